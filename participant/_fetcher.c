/* Records of Kafka as columns, without a Python object per record.
 *
 * A binding to the few functions of librdkafka that reading takes. It is linked to none: the functions are
 * looked up in the very library that confluent-kafka has brought and loaded, whose public interface
 * (rdkafka.h, whose ABI is kept stable) is declared here as far as it is used. participant/native.py is the
 * Python side; what is promised is said in participant/fetcher.py.
 *
 * Not for several threads. The interpreter's lock is released while waiting and while copying.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define INTERFACE 2 /* of what is passed to and from native.py, which has the same number */
#define CALL_RECORDS 4096
#define GROUPS_MAX 65536

typedef struct {
    int err;
    void *topic;
    int32_t partition;
    void *payload;
    size_t size;
    void *key;
    size_t key_size;
    int64_t offset;
    void *own;
} message_t;

typedef struct {
    char *topic;
    int32_t partition;
    int64_t offset;
    void *metadata;
    size_t metadata_size;
    void *opaque;
    int err;
    void *own;
} place_t;

/* Every function that is used: its result, its name after rd_kafka_, its parameters. */
#define FUNCTIONS(F)                                                                                  \
    F(int, version, (void))                                                                           \
    F(void *, conf_new, (void))                                                                       \
    F(void, conf_destroy, (void *))                                                                   \
    F(int, conf_set, (void *, const char *, const char *, char *, size_t))                            \
    F(void, conf_set_log_cb, (void *, void (*)(const void *, int, const char *, const char *)))       \
    F(void *, new, (int, void *, char *, size_t))                                                     \
    F(int, poll_set_consumer, (void *))                                                               \
    F(void *, queue_get_consumer, (void *))                                                           \
    F(void, queue_destroy, (void *))                                                                  \
    F(Py_ssize_t, consume_batch_queue, (void *, int, message_t **, size_t))                           \
    F(void, message_destroy, (message_t *))                                                           \
    F(int64_t, message_timestamp, (const message_t *, int *))                                         \
    F(const char *, message_errstr, (const message_t *))                                              \
    F(const char *, topic_name, (const void *))                                                       \
    F(void *, topic_partition_list_new, (int))                                                        \
    F(place_t *, topic_partition_list_add, (void *, const char *, int32_t))                           \
    F(void, topic_partition_list_destroy, (void *))                                                   \
    F(void *, incremental_assign, (void *, const void *))                                             \
    F(void *, incremental_unassign, (void *, const void *))                                           \
    F(const char *, error_string, (const void *))                                                     \
    F(void, error_destroy, (void *))                                                                  \
    F(int, pause_partitions, (void *, void *))                                                        \
    F(int, resume_partitions, (void *, void *))                                                       \
    F(int, query_watermark_offsets, (void *, const char *, int32_t, int64_t *, int64_t *, int))       \
    F(int, fatal_error, (void *, char *, size_t))                                                     \
    F(const char *, err2str, (int))                                                                   \
    F(int, consumer_close, (void *))                                                                  \
    F(void, destroy, (void *))

#define DECLARE(result, name, parameters) static result(*k_##name) parameters;
FUNCTIONS(DECLARE)

enum { CONSUMER = 1 };

static PyObject *Failure; /* what native.py turns into a SourceError */

typedef struct {
    PyObject_HEAD
    void *client;
    void *queue;
    message_t **messages;
    Py_ssize_t room;
    int tombstone_keys; /* whether the keys of records without a value are wanted */
    int busy;           /* another thread is in here without the interpreter's lock */
} Reader;

/* One source partition's share of what was consumed. */
typedef struct {
    void *topic;
    int32_t partition;
    Py_ssize_t count, size_bytes, nulls, filled;
    char *data;
    int64_t *starts, *offsets, *timestamps;
    char *null_flags;
    PyObject *objects[5]; /* data, starts, offsets, timestamps, nulls or None */
    PyObject *keys;       /* a dict, or NULL where there is none to keep */
} group_t;

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The membership's client talks to the same brokers and says what is wrong with them. */
static void say_nothing(const void *client, int level, const char *facility, const char *text) {
    (void)client, (void)level, (void)facility, (void)text;
}

static PyObject *load(PyObject *module, PyObject *args) {
    const char *path;
    void *library;
    (void)module;
    if (!PyArg_ParseTuple(args, "s:load", &path)) return NULL;
    library = dlopen(path, RTLD_NOW | RTLD_NOLOAD | RTLD_LOCAL);
    if (!library) {
        PyErr_Format(Failure, "librdkafka is not loaded from %s", path);
        return NULL;
    }
#define FIND(result, name, parameters)                                          \
    *(void **)&k_##name = dlsym(library, "rd_kafka_" #name);                    \
    if (!k_##name) {                                                            \
        PyErr_SetString(Failure, "librdkafka has no rd_kafka_" #name);          \
        return NULL;                                                            \
    }
    FUNCTIONS(FIND)
    return PyLong_FromLong(k_version());
}

/* --- a reader's life ---------------------------------------------------------------------------- */

static int configure(void *conf, PyObject *settings) {
    char text[512];
    Py_ssize_t at = 0;
    PyObject *name, *value;
    while (PyDict_Next(settings, &at, &name, &value)) {
        const char *name_text = PyUnicode_AsUTF8(name);
        const char *value_text = name_text ? PyUnicode_AsUTF8(value) : NULL;
        if (!value_text) return -1;
        if (k_conf_set(conf, name_text, value_text, text, sizeof text) != 0) {
            PyErr_SetString(Failure, text);
            return -1;
        }
    }
    return 0;
}

static int Reader_init(Reader *self, PyObject *args, PyObject *keywords) {
    PyObject *settings;
    char text[512];
    void *conf;
    int tombstone_keys;
    if (keywords && PyDict_Size(keywords)) {
        PyErr_SetString(PyExc_TypeError, "Reader takes no keywords");
        return -1;
    }
    if (!PyArg_ParseTuple(args, "O!p:Reader", &PyDict_Type, &settings, &tombstone_keys)) return -1;
    if (!k_destroy || self->client) {
        PyErr_SetString(Failure, self->client ? "it is open already" : "load() comes first");
        return -1;
    }
    conf = k_conf_new();
    if (configure(conf, settings) < 0) {
        k_conf_destroy(conf);
        return -1;
    }
    k_conf_set_log_cb(conf, say_nothing);
    self->client = k_new(CONSUMER, conf, text, sizeof text);
    if (!self->client) {
        k_conf_destroy(conf);
        PyErr_SetString(Failure, text);
        return -1;
    }
    k_poll_set_consumer(self->client);
    self->queue = k_queue_get_consumer(self->client);
    self->tombstone_keys = tombstone_keys;
    return 0;
}

static int is_open(Reader *self) {
    if (!self->client || self->busy)
        PyErr_SetString(Failure, self->busy ? "another thread uses it" : "it is closed");
    return self->client && !self->busy;
}

static void shut(Reader *self) {
    void *client = self->client;
    self->client = NULL;
    if (!client) return;
    Py_BEGIN_ALLOW_THREADS
    k_queue_destroy(self->queue);
    k_consumer_close(client);
    k_destroy(client);
    Py_END_ALLOW_THREADS
}

static PyObject *Reader_close(Reader *self, PyObject *unused) {
    (void)unused;
    if (self->client && !is_open(self)) return NULL;
    shut(self);
    Py_RETURN_NONE;
}

static void Reader_dealloc(Reader *self) {
    PyTypeObject *type = Py_TYPE(self);
    shut(self);
    PyMem_Free(self->messages);
    type->tp_free((PyObject *)self);
    Py_DECREF(type);
}

/* --- what is read ------------------------------------------------------------------------------- */

static PyObject *answer(void *error) {
    if (!error) Py_RETURN_NONE;
    PyErr_SetString(Failure, k_error_string(error));
    k_error_destroy(error);
    return NULL;
}

static PyObject *Reader_assign(Reader *self, PyObject *args) {
    const char *topic;
    int partition;
    long long offset;
    void *list, *error;
    if (!PyArg_ParseTuple(args, "siL:assign", &topic, &partition, &offset) || !is_open(self)) return NULL;
    list = k_topic_partition_list_new(1);
    k_topic_partition_list_add(list, topic, partition)->offset = offset;
    self->busy = 1;
    Py_BEGIN_ALLOW_THREADS
    error = k_incremental_assign(self->client, list);
    Py_END_ALLOW_THREADS
    self->busy = 0;
    k_topic_partition_list_destroy(list);
    return answer(error);
}

static PyObject *Reader_unassign(Reader *self, PyObject *args) {
    const char *topic;
    int partition;
    void *list, *error;
    if (!PyArg_ParseTuple(args, "si:unassign", &topic, &partition) || !is_open(self)) return NULL;
    list = k_topic_partition_list_new(1);
    k_topic_partition_list_add(list, topic, partition);
    self->busy = 1;
    Py_BEGIN_ALLOW_THREADS
    error = k_incremental_unassign(self->client, list);
    Py_END_ALLOW_THREADS
    self->busy = 0;
    k_topic_partition_list_destroy(list);
    return answer(error);
}

static PyObject *Reader_pause(Reader *self, PyObject *args) {
    const char *topic;
    int partition, paused, code;
    void *list;
    if (!PyArg_ParseTuple(args, "sip:pause", &topic, &partition, &paused) || !is_open(self)) return NULL;
    list = k_topic_partition_list_new(1);
    k_topic_partition_list_add(list, topic, partition);
    code = (paused ? k_pause_partitions : k_resume_partitions)(self->client, list);
    k_topic_partition_list_destroy(list);
    if (!code) Py_RETURN_NONE;
    PyErr_SetString(Failure, k_err2str(code));
    return NULL;
}

static PyObject *Reader_bounds(Reader *self, PyObject *args) {
    const char *topic;
    int partition, timeout_ms, code;
    int64_t low = 0, high = 0;
    if (!PyArg_ParseTuple(args, "sii:bounds", &topic, &partition, &timeout_ms) || !is_open(self)) return NULL;
    self->busy = 1;
    Py_BEGIN_ALLOW_THREADS
    code = k_query_watermark_offsets(self->client, topic, partition, &low, &high, timeout_ms);
    Py_END_ALLOW_THREADS
    self->busy = 0;
    if (!code) return Py_BuildValue("LL", (long long)low, (long long)high);
    PyErr_SetString(Failure, k_err2str(code));
    return NULL;
}

/* --- records ------------------------------------------------------------------------------------ */

/* Consume until there are so many records or bytes, or the time is up. Without the interpreter's lock. */
static Py_ssize_t consume(Reader *self, Py_ssize_t records_max, Py_ssize_t bytes_max, int timeout_ms) {
    Py_ssize_t count = 0, size_bytes = 0;
    int64_t deadline_ms = now_ms() + timeout_ms;
    while (count < records_max && size_bytes < bytes_max) {
        Py_ssize_t wanted = records_max - count < CALL_RECORDS ? records_max - count : CALL_RECORDS;
        int64_t left_ms = deadline_ms - now_ms();
        Py_ssize_t got = k_consume_batch_queue(
            self->queue, left_ms > 0 ? (int)left_ms : 0, self->messages + count, (size_t)wanted);
        if (got <= 0) break;
        for (Py_ssize_t i = count; i < count + got; i++) {
            const message_t *message = self->messages[i];
            size_bytes += (Py_ssize_t)message->size;
            if (self->tombstone_keys && !message->payload) size_bytes += (Py_ssize_t)message->key_size;
        }
        count += got;
        if (got < wanted) break;
    }
    return count;
}

static group_t *group_of(group_t **groups, Py_ssize_t *count, Py_ssize_t *last, const message_t *message) {
    group_t *found = *groups;
    Py_ssize_t i;
    if (*count && found[*last].topic == message->topic && found[*last].partition == message->partition)
        return &found[*last];
    for (i = 0; i < *count; i++)
        if (found[i].topic == message->topic && found[i].partition == message->partition) {
            *last = i;
            return &found[i];
        }
    if (*count >= GROUPS_MAX) return NULL;
    if (!(*count & (*count - 1))) { /* full at every power of two */
        found = realloc(*groups, sizeof(group_t) * (size_t)(*count ? *count * 2 : 1));
        if (!found) return NULL;
        *groups = found;
    }
    *last = (*count)++;
    memset(&found[*last], 0, sizeof(group_t));
    found[*last].topic = message->topic;
    found[*last].partition = message->partition;
    return &found[*last];
}

/* Keep the key of the group's next record, which has no value: few are like that, so that objects will do. */
static int keep_key(group_t *group, const message_t *message) {
    PyObject *index, *key = NULL;
    int code = -1;
    if (!group->keys && !(group->keys = PyDict_New())) return -1;
    index = PyLong_FromSsize_t(group->count);
    if (index)
        key = message->key ? PyBytes_FromStringAndSize(message->key, (Py_ssize_t)message->key_size)
                           : Py_NewRef(Py_None);
    if (key) code = PyDict_SetItem(group->keys, index, key);
    Py_XDECREF(index);
    Py_XDECREF(key);
    return code;
}

static int allot(group_t *group) {
    Py_ssize_t wide = (Py_ssize_t)sizeof(int64_t);
    Py_ssize_t sizes[5] = {group->size_bytes + group->count, (group->count + 1) * wide, group->count * wide,
                           group->count * wide, group->nulls ? group->count : -1};
    for (int i = 0; i < 5; i++) {
        if (sizes[i] < 0) {
            group->objects[i] = Py_NewRef(Py_None);
        } else if (!(group->objects[i] = PyBytes_FromStringAndSize(NULL, sizes[i]))) {
            return -1;
        }
    }
    group->data = PyBytes_AS_STRING(group->objects[0]);
    group->starts = (int64_t *)PyBytes_AS_STRING(group->objects[1]);
    group->offsets = (int64_t *)PyBytes_AS_STRING(group->objects[2]);
    group->timestamps = (int64_t *)PyBytes_AS_STRING(group->objects[3]);
    group->null_flags = group->nulls ? PyBytes_AS_STRING(group->objects[4]) : NULL;
    group->size_bytes = 0; /* from here on: how much of it is filled */
    return 0;
}

static void copy(group_t *group, const message_t *message) {
    Py_ssize_t i = group->filled++;
    int kind;
    group->starts[i] = group->size_bytes;
    if (message->size) memcpy(group->data + group->size_bytes, message->payload, message->size);
    group->size_bytes += (Py_ssize_t)message->size;
    group->data[group->size_bytes++] = '\n';
    group->starts[i + 1] = group->size_bytes;
    group->offsets[i] = message->offset;
    group->timestamps[i] = k_message_timestamp(message, &kind);
    if (group->null_flags) group->null_flags[i] = message->payload == NULL;
}

static PyObject *batch_of(group_t *group) {
    PyObject **o = group->objects;
    return Py_BuildValue("sinOOOOOO", k_topic_name(group->topic), (int)group->partition, group->count, o[0],
                         o[1], o[2], o[3], o[4], group->keys ? group->keys : Py_None);
}

static PyObject *notice_of(const message_t *message) {
    const char *topic = message->topic ? k_topic_name(message->topic) : "";
    return Py_BuildValue("siisL", topic, (int)message->partition, message->err, k_message_errstr(message),
                         (long long)message->offset);
}

static int append(PyObject *list, PyObject *item) {
    int code = item ? PyList_Append(list, item) : -1;
    Py_XDECREF(item);
    return code;
}

/* Sort what was consumed into `batches` and `notices`. -1 where memory ran out. */
static int sort_out(Reader *self, Py_ssize_t count, PyObject *batches, PyObject *notices) {
    group_t *groups = NULL, *group;
    Py_ssize_t group_count = 0, last = 0, i;
    int code = 0;
    for (i = 0; i < count && !code; i++) {
        const message_t *message = self->messages[i];
        if (message->err) {
            code = append(notices, notice_of(message));
        } else if (!(group = group_of(&groups, &group_count, &last, message))) {
            PyErr_NoMemory();
            code = -1;
        } else {
            if (self->tombstone_keys && !message->payload) code = keep_key(group, message);
            group->count++;
            group->size_bytes += (Py_ssize_t)message->size;
            group->nulls += message->payload == NULL;
        }
    }
    for (i = 0; i < group_count && !code; i++) code = allot(&groups[i]);
    self->busy = 1;
    if (!code) {
        Py_BEGIN_ALLOW_THREADS
        for (i = 0; i < count; i++)
            if (!self->messages[i]->err)
                copy(group_of(&groups, &group_count, &last, self->messages[i]), self->messages[i]);
        Py_END_ALLOW_THREADS
    }
    self->busy = 0;
    for (i = 0; i < group_count; i++) {
        if (!code) code = append(batches, batch_of(&groups[i]));
        for (int k = 0; k < 5; k++) Py_XDECREF(groups[i].objects[k]);
        Py_XDECREF(groups[i].keys);
    }
    free(groups);
    return code;
}

static PyObject *Reader_fetch(Reader *self, PyObject *args) {
    Py_ssize_t records_max, bytes_max, count;
    int timeout_ms, code;
    char text[512];
    PyObject *batches = NULL, *notices = NULL;
    if (!PyArg_ParseTuple(args, "nni:fetch", &records_max, &bytes_max, &timeout_ms) || !is_open(self))
        return NULL;
    if (records_max > self->room) {
        message_t **more = PyMem_Realloc(self->messages, sizeof(*more) * (size_t)records_max);
        if (!more) return PyErr_NoMemory();
        self->messages = more;
        self->room = records_max;
    }
    self->busy = 1;
    Py_BEGIN_ALLOW_THREADS
    count = consume(self, records_max, bytes_max, timeout_ms);
    Py_END_ALLOW_THREADS
    self->busy = 0;
    batches = PyList_New(0);
    notices = PyList_New(0);
    code = batches && notices ? sort_out(self, count, batches, notices) : -1;
    self->busy = 1;
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t i = 0; i < count; i++) k_message_destroy(self->messages[i]);
    Py_END_ALLOW_THREADS
    self->busy = 0;
    if (!code && k_fatal_error(self->client, text, sizeof text)) {
        PyErr_SetString(Failure, text);
        code = -1;
    }
    if (!code) return Py_BuildValue("NN", batches, notices);
    Py_XDECREF(batches);
    Py_XDECREF(notices);
    return NULL;
}

/* --- the module --------------------------------------------------------------------------------- */

static PyMethodDef reader_methods[] = {
    {"assign", (PyCFunction)Reader_assign, METH_VARARGS, "assign(topic, partition, offset)"},
    {"unassign", (PyCFunction)Reader_unassign, METH_VARARGS, "unassign(topic, partition)"},
    {"pause", (PyCFunction)Reader_pause, METH_VARARGS, "pause(topic, partition, paused)"},
    {"bounds", (PyCFunction)Reader_bounds, METH_VARARGS, "bounds(topic, partition, timeout_ms) -> (low, high)"},
    {"fetch", (PyCFunction)Reader_fetch, METH_VARARGS,
     "fetch(records_max, bytes_max, timeout_ms) -> (batches, notices)\n\n"
     "A batch: topic, partition, count, data, starts, offsets, timestamps_ms, nulls, keys; the columns as\n"
     "bytes of int64, nulls as bytes of bool or None, keys as a dict or None: those of the records whose\n"
     "value is null, by index. A notice: topic, partition, code, text, offset."},
    {"close", (PyCFunction)Reader_close, METH_NOARGS, "close()"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot reader_slots[] = {
    {Py_tp_doc, "Reader(settings, tombstone_keys): a Kafka consumer without a group. The settings: a dict of texts."},
    {Py_tp_init, Reader_init},
    {Py_tp_new, PyType_GenericNew},
    {Py_tp_dealloc, Reader_dealloc},
    {Py_tp_methods, reader_methods},
    {0, NULL},
};

static PyType_Spec reader_spec = {
    .name = "participant._fetcher.Reader",
    .basicsize = sizeof(Reader),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = reader_slots,
};

static PyMethodDef functions[] = {
    {"load", load, METH_VARARGS, "load(path) -> librdkafka's version; of the library that is loaded already"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "participant._fetcher", .m_size = -1, .m_methods = functions,
};

PyMODINIT_FUNC PyInit__fetcher(void) {
    PyObject *module = PyModule_Create(&definition);
    PyObject *reader = module ? PyType_FromSpec(&reader_spec) : NULL;
    if (!reader) return NULL;
    Failure = PyErr_NewException("participant._fetcher.Failure", NULL, NULL);
    if (!Failure || PyModule_AddObjectRef(module, "Failure", Failure) < 0 ||
        PyModule_AddIntMacro(module, INTERFACE) < 0 ||
        PyModule_AddObjectRef(module, "Reader", reader) < 0)
        return NULL;
    Py_DECREF(reader);
    return module;
}

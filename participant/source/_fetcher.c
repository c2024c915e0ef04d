/* Records of Kafka as columns, without a Python object per record: read, and as dead letters sent.
 *
 * A binding to the few functions of librdkafka that this takes. It is linked to none: the functions are
 * looked up in the very library that confluent-kafka has brought and loaded, whose public interface
 * (rdkafka.h, whose ABI is kept stable) is declared here as far as it is used. participant/source/native.py is the
 * Python side; what is promised is said in participant/source/fetcher.py.
 *
 * Not for several threads. The interpreter's lock is released while waiting and while copying.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define INTERFACE 6 /* of what is passed to and from native.py, which has the same number */
#define CALL_RECORDS 4096
#define FIRST_CALL_RECORDS 64
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

/* Every function that reading takes: its result, its name after rd_kafka_, its parameters. */
#define FUNCTIONS(F)                                                                                  \
    F(int, version, (void))                                                                           \
    F(void *, conf_new, (void))                                                                       \
    F(void, conf_destroy, (void *))                                                                   \
    F(int, conf_set, (void *, const char *, const char *, char *, size_t))                            \
    F(void, conf_set_log_cb, (void *, void (*)(const void *, int, const char *, const char *)))       \
    F(void, conf_set_error_cb, (void *, void (*)(void *, int, const char *, void *)))                 \
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

/* What is needed where keys and headers are kept, and to send dead letters. */
#define MORE_FUNCTIONS(F)                                                                             \
    F(int, message_headers, (const message_t *, void **))                                             \
    F(int, header_get_all, (const void *, size_t, const char **, const void **, size_t *))            \
    F(int, header_get, (const void *, size_t, const char *, const void **, size_t *))                 \
    F(size_t, header_cnt, (const void *))                                                             \
    F(void *, headers_new, (size_t))                                                                  \
    F(void, headers_destroy, (void *))                                                                \
    F(int, header_add, (void *, const char *, Py_ssize_t, const void *, Py_ssize_t))                  \
    F(int, producev, (void *, ...))                                                                   \
    F(int, poll, (void *, int))                                                                       \
    F(int, outq_len, (void *))                                                                        \
    F(int, purge, (void *, int))                                                                      \
    F(void, conf_set_dr_msg_cb, (void *, void (*)(void *, const message_t *, void *)))                \
    F(void, conf_set_opaque, (void *, void *))

#define DECLARE(result, name, parameters) static result(*k_##name) parameters;
FUNCTIONS(DECLARE)
MORE_FUNCTIONS(DECLARE)

enum { PRODUCER = 0, CONSUMER = 1 };

static PyObject *Failure; /* what native.py turns into a SourceUnreadable */

typedef struct {
    PyObject_HEAD
    void *client;
    void *queue;
    message_t **messages;
    Py_ssize_t room;
    Py_ssize_t call; /* records that the next call may take: fewer where they were large */
    int tombstone_keys; /* whether the keys of records without a value are wanted */
    int whole;          /* whether the keys and headers of all records are wanted, as columns */
    int busy;           /* another thread is in here without the interpreter's lock */
    char too_large[512]; /* the client's last error about an answer that is larger than it takes */
} Reader;

/* One source partition's share of what was consumed. */
typedef struct {
    void *topic;
    int32_t partition;
    Py_ssize_t count, size_bytes, nulls, filled;
    char *data;
    int64_t *starts, *offsets, *timestamps;
    char *null_flags;
    PyObject *objects[10]; /* data, starts, offsets, timestamps, nulls or None; of keys data, starts, nulls
                              or None; of headers data, starts; all five None where they are not wanted */
    PyObject *keys;        /* a dict, or NULL where there is none to keep */
    Py_ssize_t key_bytes, null_keys, header_bytes;
    char *key_data, *key_nulls, *header_data;
    int64_t *key_starts, *header_starts;
} group_t;

enum { COLUMNS = 10 };

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The membership's client talks to the same brokers and says what is wrong with them. */
static void say_nothing(const void *client, int level, const char *facility, const char *text) {
    (void)client, (void)level, (void)facility, (void)text;
}

/* Called while messages are taken, in the thread that does. */
static void note_error(void *client, int error, const char *reason, void *reader) {
    Reader *self = reader;
    (void)client, (void)error;
    if (strstr(reason, "receive.message.max.bytes"))
        snprintf(self->too_large, sizeof self->too_large, "%s", reason);
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
    MORE_FUNCTIONS(FIND)
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
    int tombstone_keys, whole;
    if (keywords && PyDict_Size(keywords)) {
        PyErr_SetString(PyExc_TypeError, "Reader takes no keywords");
        return -1;
    }
    if (!PyArg_ParseTuple(args, "O!pp:Reader", &PyDict_Type, &settings, &tombstone_keys, &whole)) return -1;
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
    k_conf_set_error_cb(conf, note_error);
    k_conf_set_opaque(conf, self);
    self->client = k_new(CONSUMER, conf, text, sizeof text);
    if (!self->client) {
        k_conf_destroy(conf);
        PyErr_SetString(Failure, text);
        return -1;
    }
    k_poll_set_consumer(self->client);
    self->queue = k_queue_get_consumer(self->client);
    self->call = FIRST_CALL_RECORDS;
    self->tombstone_keys = tombstone_keys;
    self->whole = whole;
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

static PyObject *Reader_too_large(Reader *self, PyObject *unused) {
    PyObject *text;
    (void)unused;
    if (!is_open(self)) return NULL;
    text = PyUnicode_DecodeUTF8(self->too_large, (Py_ssize_t)strlen(self->too_large), "replace");
    self->too_large[0] = 0;
    return text;
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

/* --- headers: as participant/records/headers.py spells them ----------------------------------------------- */

static Py_ssize_t put_text(char *at, const void *text, Py_ssize_t length) {
    for (int i = 0; i < 4; i++) at[i] = (char)((uint32_t)(int32_t)(text ? length : -1) >> (8 * i));
    if (text && length) memcpy(at + 4, text, (size_t)length);
    return 4 + (text ? length : 0);
}

static int32_t length_at(const char *at) {
    uint32_t length = 0;
    for (int i = 0; i < 4; i++) length |= (uint32_t)(unsigned char)at[i] << (8 * i);
    return (int32_t)length;
}

enum { LOOKED_THROUGH_MAX = 64 };

/* Whether a header's name goes on behind a NUL. librdkafka gives names as C strings, but compares their whole
 * lengths: such a one is not found under what is given. Where the value lies just behind the name, which is how
 * librdkafka keeps them, there is no need to look; where there are very many headers, no time. */
static int is_cut(const void *headers, const char *name, const void *value) {
    const char *other;
    const void *unused;
    size_t size, named = 0, found = 0;
    if (value && (const char *)value == name + strlen(name) + 1) return 0;
    if (k_header_cnt(headers) > LOOKED_THROUGH_MAX) return value != NULL;
    for (size_t i = 0; !k_header_get_all(headers, i, &other, &unused, &size); i++)
        named += !strcmp(other, name);
    while (!k_header_get(headers, found, name, &unused, &size)) found++;
    return named != found;
}

static const char CUT[] = "a name has a NUL: it is given up to there";
static const char UNREADABLE[] = "none could be read";
enum { NOT_THERE = -156 };

static Py_ssize_t put_note(char *at, const char *text) {
    Py_ssize_t length = (Py_ssize_t)strlen(text);
    if (at) {
        put_text(at, NULL, 0);
        put_text(at + 4, text, length);
    }
    return 8 + length;
}

/* The bytes of a record's headers, written to `at` unless that is NULL. */
static Py_ssize_t pack_headers(const message_t *message, char *at) {
    void *headers;
    const char *name;
    const void *value;
    size_t size;
    Py_ssize_t total = 0;
    int cut = 0, failed = k_message_headers(message, &headers);
    if (failed) return failed == NOT_THERE ? 0 : put_note(at, UNREADABLE);
    for (size_t i = 0; !k_header_get_all(headers, i, &name, &value, &size); i++) {
        Py_ssize_t name_length = (Py_ssize_t)strlen(name);
        if (at) {
            put_text(at + total, name, name_length);
            put_text(at + total + 4 + name_length, value, (Py_ssize_t)size);
        }
        total += 8 + name_length + (value ? (Py_ssize_t)size : 0);
        cut = cut || is_cut(headers, name, value);
    }
    return cut ? total + put_note(at ? at + total : NULL, CUT) : total;
}

/* --- records ------------------------------------------------------------------------------------ */

static Py_ssize_t least(Py_ssize_t a, Py_ssize_t b) {
    return a < b ? a : b;
}

/* How many records a call may take after one of `got` with so many bytes: a quarter of bytes_max, about. */
static Py_ssize_t next_call(Py_ssize_t call, Py_ssize_t got, Py_ssize_t bytes, Py_ssize_t bytes_max) {
    Py_ssize_t fitting = bytes_max / 4 / (bytes / got + 1) + 1;
    return least(least(call * 4, fitting), CALL_RECORDS);
}

/* Consume until there are so many records or bytes, or the time is up. Without the interpreter's lock. */
static Py_ssize_t consume(Reader *self, Py_ssize_t records_max, Py_ssize_t bytes_max, int timeout_ms) {
    Py_ssize_t count = 0, size_bytes = 0;
    int64_t deadline_ms = now_ms() + timeout_ms;
    while (count < records_max && size_bytes < bytes_max) {
        Py_ssize_t wanted = least(records_max - count, self->call), before_bytes = size_bytes;
        int64_t left_ms = deadline_ms - now_ms();
        Py_ssize_t got = k_consume_batch_queue(
            self->queue, left_ms > 0 ? (int)left_ms : 0, self->messages + count, (size_t)wanted);
        if (got <= 0) break;
        for (Py_ssize_t i = count; i < count + got; i++) {
            const message_t *message = self->messages[i];
            size_bytes += (Py_ssize_t)message->size;
            if (self->whole || (self->tombstone_keys && !message->payload))
                size_bytes += (Py_ssize_t)message->key_size;
            if (self->whole && !message->err) size_bytes += pack_headers(message, NULL);
        }
        count += got;
        self->call = next_call(self->call, got, size_bytes - before_bytes, bytes_max);
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

static int allot(group_t *group, int whole) {
    Py_ssize_t wide = (Py_ssize_t)sizeof(int64_t), n = group->count;
    Py_ssize_t sizes[COLUMNS] = {
        group->size_bytes + n, (n + 1) * wide, n * wide, n * wide, group->nulls ? n : -1,
        whole ? group->key_bytes + n : -1, whole ? (n + 1) * wide : -1, whole && group->null_keys ? n : -1,
        whole ? group->header_bytes + n : -1, whole ? (n + 1) * wide : -1};
    char *at[COLUMNS];
    for (int i = 0; i < COLUMNS; i++) {
        if (sizes[i] < 0) {
            group->objects[i] = Py_NewRef(Py_None);
        } else if (!(group->objects[i] = PyBytes_FromStringAndSize(NULL, sizes[i]))) {
            return -1;
        }
        at[i] = sizes[i] < 0 ? NULL : PyBytes_AS_STRING(group->objects[i]);
    }
    group->data = at[0];
    group->starts = (int64_t *)at[1];
    group->offsets = (int64_t *)at[2];
    group->timestamps = (int64_t *)at[3];
    group->null_flags = at[4];
    group->key_data = at[5];
    group->key_starts = (int64_t *)at[6];
    group->key_nulls = at[7];
    group->header_data = at[8];
    group->header_starts = (int64_t *)at[9];
    group->size_bytes = group->key_bytes = group->header_bytes = 0; /* from here on: how much is filled */
    return 0;
}

static void copy_whole(group_t *group, const message_t *message, Py_ssize_t i) {
    group->key_starts[i] = group->key_bytes;
    if (message->key_size) memcpy(group->key_data + group->key_bytes, message->key, message->key_size);
    group->key_bytes += (Py_ssize_t)message->key_size;
    group->key_data[group->key_bytes++] = '\n';
    group->key_starts[i + 1] = group->key_bytes;
    if (group->key_nulls) group->key_nulls[i] = message->key == NULL;
    group->header_starts[i] = group->header_bytes;
    group->header_bytes += pack_headers(message, group->header_data + group->header_bytes);
    group->header_data[group->header_bytes++] = '\n';
    group->header_starts[i + 1] = group->header_bytes;
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
    if (group->key_data) copy_whole(group, message, i);
}

static PyObject *batch_of(group_t *group) {
    PyObject **o = group->objects;
    return Py_BuildValue("sinOOOOOOOOOOO", k_topic_name(group->topic), (int)group->partition, group->count,
                         o[0], o[1], o[2], o[3], o[4], group->keys ? group->keys : Py_None, o[5], o[6], o[7],
                         o[8], o[9]);
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
            if (self->whole) {
                group->key_bytes += (Py_ssize_t)message->key_size;
                group->null_keys += message->key == NULL;
                group->header_bytes += pack_headers(message, NULL);
            }
        }
    }
    for (i = 0; i < group_count && !code; i++) code = allot(&groups[i], self->whole);
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
        for (int k = 0; k < COLUMNS; k++) Py_XDECREF(groups[i].objects[k]);
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

/* --- dead letters ------------------------------------------------------------------------------- */

enum { PIECES_MAX = 256, RUN_BYTES_MAX = 64 };

/* Of what was handed over at once: how many records are unanswered, how many were refused, and of the first
 * of these the error, its place and its size. */
typedef struct {
    long long left, failed;
    int code;
    Py_ssize_t index, size_bytes;
} piece_t;

/* A producer of rejected records. How much may be on its way is for the caller to say, who waits for pieces;
 * librdkafka's own queue would refuse a record that is larger than the bound for ever. */
typedef struct {
    PyObject_HEAD
    void *client;
    long long delivered;
    piece_t pieces[PIECES_MAX];
    int busy;
    char run[RUN_BYTES_MAX + 1]; /* of the header lockstep.run; empty: no such header */
} Sender;

/* What a record's delivery report is to bring back, in the room of a pointer: piece, index and size. */
static void *own_of(Py_ssize_t slot, Py_ssize_t index, Py_ssize_t size_bytes) {
    uint64_t size = size_bytes > INT32_MAX ? INT32_MAX : (uint64_t)size_bytes;
    return (void *)(uintptr_t)(size << 33 | (uint64_t)index << 8 | (uint64_t)slot);
}

static void note_failure(piece_t *piece, int code, Py_ssize_t index, Py_ssize_t size_bytes) {
    if (piece->failed++) return;
    piece->code = code;
    piece->index = index;
    piece->size_bytes = size_bytes;
}

static void delivered(void *client, const message_t *message, void *opaque) {
    Sender *self = opaque;
    uint64_t own = (uint64_t)(uintptr_t)message->own;
    piece_t *piece = &self->pieces[own & 0xff];
    (void)client;
    piece->left--;
    if (message->err)
        note_failure(piece, message->err, (Py_ssize_t)(own >> 8 & 0x1ffffff), (Py_ssize_t)(own >> 33));
    else
        self->delivered++;
}

static int Sender_init(Sender *self, PyObject *args, PyObject *keywords) {
    PyObject *settings;
    const char *run = "";
    char text[512];
    void *conf;
    if (keywords && PyDict_Size(keywords)) {
        PyErr_SetString(PyExc_TypeError, "Sender takes no keywords");
        return -1;
    }
    if (!PyArg_ParseTuple(args, "O!|s:Sender", &PyDict_Type, &settings, &run)) return -1;
    if (strlen(run) > RUN_BYTES_MAX) {
        PyErr_SetString(PyExc_ValueError, "the name of the run is too long");
        return -1;
    }
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
    k_conf_set_dr_msg_cb(conf, delivered);
    k_conf_set_opaque(conf, self);
    self->client = k_new(PRODUCER, conf, text, sizeof text);
    if (!self->client) {
        k_conf_destroy(conf);
        PyErr_SetString(Failure, text);
        return -1;
    }
    memcpy(self->run, run, strlen(run) + 1);
    return 0;
}

static int sender_is_open(Sender *self) {
    if (!self->client || self->busy)
        PyErr_SetString(Failure, self->busy ? "another thread uses it" : "it is closed");
    return self->client && !self->busy;
}

/* What is not delivered by now is given up. */
static void sender_shut(Sender *self) {
    void *client = self->client;
    self->client = NULL;
    if (!client) return;
    Py_BEGIN_ALLOW_THREADS
    k_purge(client, 3); /* what is queued, and what is in flight */
    k_poll(client, 0);
    k_destroy(client);
    Py_END_ALLOW_THREADS
}

static PyObject *Sender_close(Sender *self, PyObject *unused) {
    (void)unused;
    if (self->client && !sender_is_open(self)) return NULL;
    sender_shut(self);
    Py_RETURN_NONE;
}

static void Sender_dealloc(Sender *self) {
    PyTypeObject *type = Py_TYPE(self);
    sender_shut(self);
    type->tp_free((PyObject *)self);
    Py_DECREF(type);
}

/* A column of texts: `data[starts[i]:starts[i + 1] - 1]`, null where `nulls[i]`; `data` NULL where there is none. */
typedef struct {
    Py_buffer buffers[3]; /* data, starts, nulls */
    const char *data, *nulls;
    const int64_t *starts;
} column_t;

static void release(column_t *column) {
    for (int i = 0; i < 3; i++)
        if (column->buffers[i].obj) PyBuffer_Release(&column->buffers[i]);
}

/* From a tuple (data, starts, nulls or None), or None. -1 with an error where it is not of `count`. */
static int column_of(PyObject *source, Py_ssize_t count, column_t *column) {
    memset(column, 0, sizeof *column);
    if (source == Py_None) return 0;
    if (!PyTuple_Check(source) || PyTuple_GET_SIZE(source) != 3) {
        PyErr_SetString(PyExc_TypeError, "a column is None or a tuple of three");
        return -1;
    }
    for (int i = 0; i < 3; i++) {
        PyObject *part = PyTuple_GET_ITEM(source, i);
        if (i == 2 && part == Py_None) break;
        if (PyObject_GetBuffer(part, &column->buffers[i], PyBUF_SIMPLE) < 0) return -1;
    }
    column->data = column->buffers[0].buf;
    column->starts = column->buffers[1].buf;
    column->nulls = column->buffers[2].obj ? column->buffers[2].buf : NULL;
    if (column->buffers[1].len != (count + 1) * (Py_ssize_t)sizeof(int64_t) ||
        (column->nulls && column->buffers[2].len != count) || column->starts[0] < 0 ||
        column->starts[count] > column->buffers[0].len) {
        PyErr_SetString(PyExc_ValueError, "a column of another length");
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        if (column->starts[i + 1] <= column->starts[i]) {
            PyErr_SetString(PyExc_ValueError, "a column whose starts do not ascend");
            return -1;
        }
    return 0;
}

static const char *text_of(const column_t *column, Py_ssize_t i, Py_ssize_t *length) {
    *length = 0;
    if (!column->data || (column->nulls && column->nulls[i])) return NULL;
    *length = (Py_ssize_t)(column->starts[i + 1] - 1 - column->starts[i]);
    return column->data + column->starts[i];
}

typedef struct {
    const char *to, *topic;
    char number[16];
    Py_ssize_t count;
    Py_buffer offsets, timestamps, codes;
    const char **reasons;
    Py_ssize_t *reason_lengths, reason_count;
    column_t values, keys, headers;
} letters_t;

static const char NOTE[] = "lockstep.headers"; /* as in participant/records/headers.py */

static int unpack_headers(void *headers, const char *packed, Py_ssize_t length) {
    Py_ssize_t at = 0;
    while (at < length) {
        const char *name;
        int32_t name_length, value_length;
        if (length - at < 8 || (name_length = length_at(packed + at)) > length - at - 8) return -1;
        name = name_length < 0 ? NOTE : packed + at + 4;
        at += 4 + (name_length < 0 ? 0 : name_length);
        value_length = length_at(packed + at);
        at += 4;
        if (value_length > length - at) return -1;
        k_header_add(headers, name, name_length < 0 ? -1 : name_length, value_length < 0 ? NULL : packed + at,
                     value_length < 0 ? 0 : value_length);
        if (value_length > 0) at += value_length;
    }
    return 0;
}

enum { V_END = 0, V_TOPIC = 1, V_VALUE = 4, V_KEY = 5, V_OPAQUE = 6, V_FLAGS = 7, V_HEADERS = 10 };
enum { F_COPY = 2, QUEUE_FULL = -184 };

/* Hand record i to librdkafka. An error of librdkafka's, or 0. */
static int produce_one(Sender *self, const letters_t *letters, Py_ssize_t slot, Py_ssize_t i) {
    long long offset = ((const int64_t *)letters->offsets.buf)[i];
    int32_t code = ((const int32_t *)letters->codes.buf)[i];
    Py_ssize_t value_length, key_length, packed_length, size;
    const char *value = text_of(&letters->values, i, &value_length);
    const char *key = text_of(&letters->keys, i, &key_length);
    const char *packed = text_of(&letters->headers, i, &packed_length);
    char place[400], offset_text[24], time_text[24];
    void *headers = k_headers_new(8);
    int failed = 0;
    if (packed && unpack_headers(headers, packed, packed_length) < 0) failed = -186; /* an invalid argument */
    snprintf(offset_text, sizeof offset_text, "%lld", offset);
    snprintf(time_text, sizeof time_text, "%lld", (long long)((const int64_t *)letters->timestamps.buf)[i]);
    snprintf(place, sizeof place, "%s-%s-%s", letters->topic, letters->number, offset_text);
    k_header_add(headers, "lockstep.topic", -1, letters->topic, -1);
    k_header_add(headers, "lockstep.partition", -1, letters->number, -1);
    k_header_add(headers, "lockstep.offset", -1, offset_text, -1);
    k_header_add(headers, "lockstep.timestamp", -1, time_text, -1);
    if (key) k_header_add(headers, "lockstep.key", -1, key, key_length);
    k_header_add(headers, "lockstep.reason", -1, letters->reasons[code], letters->reason_lengths[code]);
    if (*self->run) k_header_add(headers, "lockstep.run", -1, self->run, -1);
    size = value_length + key_length + packed_length;
    if (!failed)
        failed = k_producev(self->client, V_TOPIC, letters->to, V_FLAGS, F_COPY, V_KEY, place, strlen(place),
                            V_VALUE, value, (size_t)value_length, V_HEADERS, headers, V_OPAQUE,
                            own_of(slot, i, size), V_END);
    if (!failed) {
        self->pieces[slot].left++;
        return 0;
    }
    k_headers_destroy(headers); /* they are ours again */
    if (failed != QUEUE_FULL) note_failure(&self->pieces[slot], failed, i, size);
    return failed;
}

static void produce_all(Sender *self, const letters_t *letters, Py_ssize_t slot) {
    for (Py_ssize_t i = 0; i < letters->count;) {
        if (produce_one(self, letters, slot, i) == QUEUE_FULL)
            k_poll(self->client, 100); /* ends by itself: the time to deliver is bounded */
        else
            i++;
        if (!(i & 1023)) k_poll(self->client, 0);
    }
}

static int reasons_of(PyObject *texts, letters_t *letters) {
    letters->reason_count = PyTuple_GET_SIZE(texts);
    letters->reasons = PyMem_Calloc((size_t)letters->reason_count + 1, sizeof(char *));
    letters->reason_lengths = PyMem_Calloc((size_t)letters->reason_count + 1, sizeof(Py_ssize_t));
    if (!letters->reasons || !letters->reason_lengths) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < letters->reason_count; i++) {
        char *text;
        if (PyBytes_AsStringAndSize(PyTuple_GET_ITEM(texts, i), &text, &letters->reason_lengths[i]) < 0) return -1;
        letters->reasons[i] = text;
    }
    return 0;
}

static int fit_together(const letters_t *letters) {
    const int32_t *codes = letters->codes.buf;
    Py_ssize_t wide = letters->count * (Py_ssize_t)sizeof(int64_t);
    if (letters->offsets.len != wide || letters->timestamps.len != wide || letters->codes.len * 2 != wide)
        return 0;
    for (Py_ssize_t i = 0; i < letters->count; i++)
        if (codes[i] < 0 || codes[i] >= letters->reason_count) return 0;
    return 1;
}

static PyObject *Sender_send(Sender *self, PyObject *args) {
    letters_t letters;
    PyObject *reasons, *values, *keys, *headers;
    long long piece;
    int number, code = -1;
    memset(&letters, 0, sizeof letters);
    if (!sender_is_open(self) ||
        !PyArg_ParseTuple(args, "Lssiny*y*y*O!OOO:send", &piece, &letters.to, &letters.topic, &number,
                          &letters.count, &letters.offsets, &letters.timestamps, &letters.codes, &PyTuple_Type,
                          &reasons, &values, &keys, &headers))
        return NULL;
    snprintf(letters.number, sizeof letters.number, "%d", number);
    if (!reasons_of(reasons, &letters) && !column_of(values, letters.count, &letters.values) &&
        !column_of(keys, letters.count, &letters.keys) && !column_of(headers, letters.count, &letters.headers)) {
        if (piece < 0 || self->pieces[piece % PIECES_MAX].left)
            PyErr_SetString(PyExc_ValueError, "so many pieces may not be on their way");
        else if (letters.count > 0x1ffffff || !fit_together(&letters))
            PyErr_SetString(PyExc_ValueError, "columns of different lengths, or too long ones");
        else
            code = 0;
    }
    if (!code) {
        memset(&self->pieces[piece % PIECES_MAX], 0, sizeof(piece_t));
        self->busy = 1;
        Py_BEGIN_ALLOW_THREADS
        produce_all(self, &letters, (Py_ssize_t)(piece % PIECES_MAX));
        Py_END_ALLOW_THREADS
        self->busy = 0;
    }
    release(&letters.values);
    release(&letters.keys);
    release(&letters.headers);
    PyBuffer_Release(&letters.offsets);
    PyBuffer_Release(&letters.timestamps);
    PyBuffer_Release(&letters.codes);
    PyMem_Free(letters.reasons);
    PyMem_Free(letters.reason_lengths);
    if (code) return NULL;
    Py_RETURN_NONE;
}

static PyObject *Sender_wait(Sender *self, PyObject *args) {
    int timeout_ms;
    int64_t deadline_ms;
    long long number;
    const piece_t *piece;
    if (!PyArg_ParseTuple(args, "Li:wait", &number, &timeout_ms) || !sender_is_open(self)) return NULL;
    if (number < 0) {
        PyErr_SetString(PyExc_ValueError, "no piece has such a number");
        return NULL;
    }
    piece = &self->pieces[number % PIECES_MAX];
    deadline_ms = now_ms() + timeout_ms;
    self->busy = 1;
    Py_BEGIN_ALLOW_THREADS
    k_poll(self->client, 0);
    while (piece->left && now_ms() < deadline_ms) k_poll(self->client, 50);
    Py_END_ALLOW_THREADS
    self->busy = 0;
    return Py_BuildValue("LLinnL", piece->left, piece->failed, piece->code, piece->index, piece->size_bytes,
                         self->delivered);
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
     "value is null, by index. Then None or columns: of keys data, starts, nulls, of headers data, starts.\n"
     "A notice: topic, partition, code, text, offset."},
    {"too_large", (PyCFunction)Reader_too_large, METH_NOARGS,
     "too_large(): the last error about an answer that is larger than the client takes, once; empty for none."},
    {"close", (PyCFunction)Reader_close, METH_NOARGS, "close()"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot reader_slots[] = {
    {Py_tp_doc, "Reader(settings, tombstone_keys, whole): a Kafka consumer without a group. The settings: a dict of\n"
                 "texts. whole: keys and headers of all records, too."},
    {Py_tp_init, Reader_init},
    {Py_tp_new, PyType_GenericNew},
    {Py_tp_dealloc, Reader_dealloc},
    {Py_tp_methods, reader_methods},
    {0, NULL},
};

static PyType_Spec reader_spec = {
    .name = "participant.source._fetcher.Reader",
    .basicsize = sizeof(Reader),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = reader_slots,
};

static PyMethodDef sender_methods[] = {
    {"send", (PyCFunction)Sender_send, METH_VARARGS,
     "send(piece, to, topic, partition, count, offsets, timestamps_ms, codes, reasons, values, keys, headers)\n\n"
     "To the topic `to`, records of the source partition, as the piece of that number; of 256 pieces in a row\n"
     "the first must be answered before the last. Offsets and timestamps_ms are int64, codes int32 indices of\n"
     "the tuple of bytes `reasons`; values, keys and headers tuples (data, starts, nulls or None), or None."},
    {"wait", (PyCFunction)Sender_wait, METH_VARARGS,
     "wait(piece, timeout_ms) -> (unanswered, failed, code, index, size, delivered): until all of the piece is\n"
     "answered. Of the first that failed the error, its place in the piece and its size; then how many records\n"
     "of all pieces ever were delivered."},
    {"close", (PyCFunction)Sender_close, METH_NOARGS, "close(): what is unanswered is given up"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot sender_slots[] = {
    {Py_tp_doc, "Sender(settings, run=''): a producer of dead letters. The settings: a dict of texts."},
    {Py_tp_init, Sender_init},
    {Py_tp_new, PyType_GenericNew},
    {Py_tp_dealloc, Sender_dealloc},
    {Py_tp_methods, sender_methods},
    {0, NULL},
};

static PyType_Spec sender_spec = {
    .name = "participant.source._fetcher.Sender",
    .basicsize = sizeof(Sender),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = sender_slots,
};

static PyMethodDef functions[] = {
    {"load", load, METH_VARARGS, "load(path) -> librdkafka's version; of the library that is loaded already"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "participant.source._fetcher", .m_size = -1, .m_methods = functions,
};

PyMODINIT_FUNC PyInit__fetcher(void) {
    PyObject *module = PyModule_Create(&definition);
    PyObject *reader = module ? PyType_FromSpec(&reader_spec) : NULL;
    PyObject *sender = reader ? PyType_FromSpec(&sender_spec) : NULL;
    if (!sender) return NULL;
    Failure = PyErr_NewException("participant.source._fetcher.Failure", NULL, NULL);
    if (!Failure || PyModule_AddObjectRef(module, "Failure", Failure) < 0 ||
        PyModule_AddIntMacro(module, INTERFACE) < 0 ||
        PyModule_AddObjectRef(module, "Reader", reader) < 0 ||
        PyModule_AddObjectRef(module, "Sender", sender) < 0)
        return NULL;
    Py_DECREF(reader);
    Py_DECREF(sender);
    return module;
}

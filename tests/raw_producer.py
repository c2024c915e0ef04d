"""Records that few producers write: headers named with any bytes (librdkafka by ctypes), and packed zeros."""

from __future__ import annotations

import ctypes as c
import glob
from collections.abc import Mapping
from pathlib import Path

import confluent_kafka

_TOPIC, _PARTITION, _VALUE, _FLAGS, _HEADERS, _END, _COPY = 1, 3, 4, 7, 10, 0, 2


def _library() -> c.CDLL:
    folder = Path(confluent_kafka.__file__).parent.parent / "confluent_kafka.libs"
    [path] = glob.glob(str(folder / "librdkafka-*.so*"))
    loaded = c.CDLL(path)
    for name, result, arguments in (
        ("conf_new", c.c_void_p, []),
        ("conf_set", c.c_int, [c.c_void_p, c.c_char_p, c.c_char_p, c.c_char_p, c.c_size_t]),
        ("new", c.c_void_p, [c.c_int, c.c_void_p, c.c_char_p, c.c_size_t]),
        ("headers_new", c.c_void_p, [c.c_size_t]),
        ("header_add", c.c_int, [c.c_void_p, c.c_char_p, c.c_ssize_t, c.c_char_p, c.c_ssize_t]),
        ("flush", c.c_int, [c.c_void_p, c.c_int]),
        ("destroy", None, [c.c_void_p]),
    ):
        function = getattr(loaded, f"rd_kafka_{name}")
        function.restype, function.argtypes = result, arguments
    return loaded


def produce_header(bootstrap_servers: str, topic: str, value: bytes, header: bytes) -> None:
    """One record whose one header has this name."""
    kafka, error = _library(), c.create_string_buffer(512)
    conf = kafka.rd_kafka_conf_new()
    assert kafka.rd_kafka_conf_set(conf, b"bootstrap.servers", bootstrap_servers.encode(), error, 512) == 0
    producer = kafka.rd_kafka_new(0, conf, error, 512)
    headers = kafka.rd_kafka_headers_new(1)
    assert kafka.rd_kafka_header_add(headers, header, len(header), b"v", 1) == 0
    done = kafka.rd_kafka_producev(
        *(
            c.c_void_p(producer),
            c.c_int(_TOPIC),
            c.c_char_p(topic.encode()),
            c.c_int(_PARTITION),
            c.c_int32(0),
        ),
        *(c.c_int(_FLAGS), c.c_int(_COPY), c.c_int(_VALUE), c.c_char_p(value), c.c_size_t(len(value))),
        *(c.c_int(_HEADERS), c.c_void_p(headers), c.c_int(_END)),
    )
    assert done == 0, done
    assert kafka.rd_kafka_flush(producer, 30_000) == 0
    kafka.rd_kafka_destroy(producer)


def produce_zeros(
    kafka: Mapping[str, str], topic: str, *, codec: str, size_bytes: int
) -> confluent_kafka.KafkaError | None:
    """One record that unpacks to so much, some kilobytes as it is sent; answers what the broker says."""
    limits = {"message.max.bytes": 1_000_000_000, "queue.buffering.max.kbytes": 2_000_000}
    producer = confluent_kafka.Producer({**kafka, **limits, "compression.codec": codec})
    said: list[confluent_kafka.KafkaError | None] = []
    producer.produce(
        topic, bytes(size_bytes), partition=0, on_delivery=lambda error, _message: said.append(error)
    )
    assert producer.flush(120) == 0
    return said[0]

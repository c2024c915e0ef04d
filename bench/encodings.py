"""What a workload's rows are encoded in where it is not JSON, and the registry that knows their schema.

A value is as Confluent's serializer writes it: the id of its schema in five bytes, of Protobuf which message
of its file it is besides, and the datum. The id is what a registry gives to the first schema that it is told.
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import fastavro
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from lockstep.errors import Failed

FIRST_ID = 1
FRAME = b"\0\0\0\0\1"
FIRST_MESSAGE = b"\0"
NAME = "Event"

COLUMNS: Sequence[tuple[str, str]] = (
    ("event_id", "string"),
    ("user_id", "long"),
    ("country", "string"),
    ("action", "string"),
    ("amount", "double"),
    ("ts", "long"),
    ("day", "string"),
    ("page", "string"),
)
"""Of the narrow records, with Avro's types."""
_FIELD = descriptor_pb2.FieldDescriptorProto
_PROTOBUF: Mapping[str, Any] = {
    "string": _FIELD.TYPE_STRING,
    "long": _FIELD.TYPE_INT64,
    "double": _FIELD.TYPE_DOUBLE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoding:
    """`format`: Lockstep's name. `kind`: the registry's. `schema`: as it is registered."""

    format: str
    kind: str
    schema: str
    encoded: Callable[[Mapping[str, Any]], bytes]
    """A row as a value."""

    def of_json(self, value: Callable[[int], bytes]) -> Callable[[int], bytes]:
        """The same rows as those that `value` makes in JSON."""
        return lambda number: self.encoded(json.loads(value(number)))


def _avro_schema() -> str:
    fields = [{"name": name, "type": kind} for name, kind in COLUMNS]
    return json.dumps({"type": "record", "name": NAME, "fields": fields})


@cache
def _parsed() -> Any:
    return fastavro.parse_schema(json.loads(_avro_schema()))


def _as_avro(row: Mapping[str, Any]) -> bytes:
    out = io.BytesIO()
    out.write(FRAME)
    fastavro.schemaless_writer(out, _parsed(), dict(row))
    return out.getvalue()


@cache
def _file() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name="event.proto", package="bench", syntax="proto3")
    message = file.message_type.add(name=NAME)
    for number, (name, kind) in enumerate(COLUMNS, 1):
        message.field.add(name=name, number=number, type=_PROTOBUF[kind], label=_FIELD.LABEL_OPTIONAL)
    return file


@cache
def message_class() -> Any:
    """Of the narrow records, as Protobuf's own library makes it."""
    pool = descriptor_pool.DescriptorPool()
    pool.Add(_file())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"bench.{NAME}"))


def _as_protobuf(row: Mapping[str, Any]) -> bytes:
    written: bytes = message_class()(**row).SerializeToString()
    return FRAME + FIRST_MESSAGE + written


AVRO = Encoding(format="avro", kind="AVRO", schema=_avro_schema(), encoded=_as_avro)
PROTOBUF = Encoding(
    format="protobuf",
    kind="PROTOBUF",
    schema=base64.b64encode(_file().SerializeToString()).decode("ascii"),
    encoded=_as_protobuf,
)


def register(url: str, subject: str, encoding: Encoding) -> None:
    """At a registry that has no schema yet. Raises `Failed` where it gives another id than the first."""
    number = SchemaRegistryClient({"url": url}).register_schema(
        subject, Schema(encoding.schema, encoding.kind)
    )
    if number != FIRST_ID:
        raise Failed(
            f"The schema registry at {url} calls the first schema {number}, where values name {FIRST_ID}."
        )

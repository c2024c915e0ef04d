"""Protobuf as a format of records: each value a message, before which its schema is named, or not."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import pyarrow as pa

from participant.records.by_schema.following import Once, Registered
from participant.records.by_schema.framing import KEY_HEADER, VALUE_HEADER
from participant.records.by_schema.native import Nowhere
from participant.records.by_schema.one_by_one import Schemas
from participant.records.errors import UnknownSchema
from participant.records.native import chosen, why_plain
from participant.records.port import RecordSpec
from participant.records.protobuf.decoder import ProtobufDecoder, ProtobufKeys
from participant.records.protobuf.files import texts_of
from participant.records.protobuf.follows import ProtobufFollows
from participant.records.protobuf.native import NativeProtobuf
from participant.records.registry.named import registry_schemas
from table.schema import SchemaError


class GivenFiles:
    """Those of a schema file. Raises `SchemaError`."""

    def __init__(self, descriptor_set: str) -> None:
        self._texts = texts_of(descriptor_set)

    def find(self, key: int | str | bytes) -> tuple[str, ...]:
        """See `participant.records.by_schema.one_by_one.Schemas`."""
        if key != b"":
            raise UnknownSchema("a schema file has one schema")
        return self._texts


class ProtobufFormat:
    """See `participant.records.port.Format`. `record`: which framing, and where schemas are."""

    typed = True

    def __init__(self, record: RecordSpec) -> None:
        self._record = record

    def values(self, schema: pa.Schema) -> ProtobufDecoder | NativeProtobuf:
        """Raises `SchemaError` where the schema that was given is none, or does not fit."""
        record = self._record
        if record.framing == "confluent":
            return self._made(schema, "", self._registered[0])
        settings = ("key_schema_file", "key_message") if record.as_keys else ("schema_file", "message")
        given = _given(record.schema_text, record.message, *settings)
        decoder = self._made(schema, record.message, given)
        decoder.check((b"", record.message))
        return decoder

    def _made(self, schema: pa.Schema, message: str, schemas: Schemas) -> ProtobufDecoder | NativeProtobuf:
        header = KEY_HEADER if self._record.as_keys else VALUE_HEADER
        alone = self._record.needs_field
        return chosen(
            self._record.decoder,
            lambda: NativeProtobuf(schema, message, schemas, header, alone=alone),
            lambda: ProtobufDecoder(schema, message, schemas, header, alone=alone),
        )

    def keys(self, fields: Sequence[pa.Field]) -> ProtobufKeys:
        """Of the columns that key a row. Raises `SchemaError`."""
        record = self._record
        if record.framing == "confluent":
            return ProtobufKeys(fields, "", self._registered[0])
        given = _given(record.key_schema_text, record.key_message, "key_schema_file", "key_message")
        keys = ProtobufKeys(fields, record.key_message, given)
        keys.check((b"", record.key_message))
        return keys

    def follows(self) -> ProtobufFollows:
        """See `participant.records.port.FollowedFormat`."""
        return ProtobufFollows(*self._registered)

    def reads_by(self, schema: pa.Schema) -> str:
        """The native decoder, or who reads without it, and why; and where schemas are."""
        where, message = "record.schema_file", self._record.message
        if self._record.framing == "confluent" and self._record.registry is not None:
            where, message = self._record.registry.url, ""
        why_not = why_plain(self._record.decoder, lambda: NativeProtobuf(schema, message, Nowhere()))
        if not why_not:
            return f"native, in one pass, by schemas of {where}"
        return f"plain: protobuf, a record at a time ({why_not}), by schemas of {where}"

    @cached_property
    def _registered(self) -> Registered:
        """Raises `SchemaError` where there is no registry."""
        schemas = registry_schemas(self._record.registry, "participant.records.protobuf.registry:PROTOBUF")
        return Once(schemas), schemas.known_as


def _given(text: str, message: str, file: str, name: str) -> GivenFiles:
    for setting, value in ((file, text), (name, message)):
        if not value:
            raise SchemaError(f'record.{setting} is missing; record.framing = "none" needs it of Protobuf')
    return GivenFiles(text)

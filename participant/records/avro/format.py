"""Avro as a format of records: each value a record of Avro, before which its schema is named, or not."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import pyarrow as pa

from participant.records.avro.decoder import AvroDecoder, AvroKeys
from participant.records.avro.events import follows_of
from participant.records.avro.follows import AvroFollows
from participant.records.avro.native import NativeAvro
from participant.records.avro.schemas import GivenSchemas
from participant.records.by_schema.following import Once, Registered
from participant.records.by_schema.framing import KEY_HEADER, VALUE_HEADER
from participant.records.by_schema.native import Nowhere
from participant.records.by_schema.one_by_one import Schemas
from participant.records.native import chosen, why_plain
from participant.records.port import RecordSpec
from participant.records.registry.named import registry_schemas
from table.schema import SchemaError


class AvroFormat:
    """See `participant.records.port.Format`. `record`: which framing, and where schemas are."""

    typed = True

    def __init__(self, record: RecordSpec) -> None:
        self._record = record

    def values(self, schema: pa.Schema) -> AvroDecoder | NativeAvro:
        """Raises `SchemaError` where the schema that was given is none, or does not fit."""
        setting = "record.key_schema_file" if self._record.as_keys else "record.schema_file"
        schemas, framing = self._schemas(self._record.schema_text, setting), self._record.framing
        header = KEY_HEADER if self._record.as_keys else VALUE_HEADER
        alone = self._record.needs_field
        decoder = chosen(
            self._record.decoder,
            lambda: NativeAvro(schema, framing, schemas, header, alone=alone),
            lambda: AvroDecoder(schema, framing, schemas, header, alone=alone),
        )
        _check_given(decoder, schemas)
        return decoder

    def keys(self, fields: Sequence[pa.Field]) -> AvroKeys:
        """Of the columns that key a row. Raises `SchemaError`."""
        schemas = self._schemas(self._record.key_schema_text, "record.key_schema_file")
        keys = AvroKeys(fields, self._record.framing, schemas)
        _check_given(keys, schemas)
        return keys

    def follows(self) -> AvroFollows:
        """See `participant.records.port.FollowedFormat`."""
        return follows_of(self._record.envelope)(*self._registered)

    def reads_by(self, schema: pa.Schema) -> str:
        """The native decoder, or who reads without it, and why; and where schemas are."""
        where, framing = "record.schema_file", self._record.framing
        if framing == "confluent" and self._record.registry is not None:
            where = self._record.registry.url
        why_not = why_plain(self._record.decoder, lambda: NativeAvro(schema, framing, Nowhere()))
        if not why_not:
            return f"native, in one pass, by schemas of {where}"
        return f"plain: Python, a record at a time ({why_not}), by schemas of {where}"

    def _schemas(self, text: str, setting: str) -> Schemas:
        record = self._record
        if record.framing != "confluent":
            if not text:
                raise SchemaError(f'{setting} is missing; record.framing = "{record.framing}" needs it')
            return GivenSchemas(text, by_fingerprint=record.framing == "single_object")
        return self._registered[0]

    @cached_property
    def _registered(self) -> Registered:
        """Raises `SchemaError` where there is no registry."""
        schemas = registry_schemas(self._record.registry, "participant.records.registry.client:AVRO")
        return Once(schemas), schemas.known_as


def _check_given(reader: AvroDecoder | NativeAvro | AvroKeys, schemas: Schemas) -> None:
    if isinstance(schemas, GivenSchemas):
        for key in schemas.keys:
            reader.check(key)

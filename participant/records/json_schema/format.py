"""JSON of a schema registry as a format of records: an id of a schema, and then JSON."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import pyarrow as pa

from participant.records.by_schema.framing import KEY_HEADER, VALUE_HEADER
from participant.records.json.format import JsonFormat
from participant.records.json_schema.decoder import FramedDecoder, FramedKeys, KnownSchemas
from participant.records.port import RecordSpec
from participant.records.registry.named import registry_schemas
from table.schema import SchemaError


class JsonSchemaFormat:
    """See `participant.records.port.Format`. `record`: where schemas are, and with what values are read."""

    typed = False

    def __init__(self, record: RecordSpec) -> None:
        self._record = record
        self._json = JsonFormat(record)

    def values(self, schema: pa.Schema) -> FramedDecoder:
        """Raises `SchemaError` for a schema that cannot be read from JSON."""
        header = KEY_HEADER if self._record.as_keys else VALUE_HEADER
        return FramedDecoder(self._json.values(schema), self._known, header)

    def keys(self, fields: Sequence[pa.Field]) -> FramedKeys:
        """Of the columns that key a row."""
        return FramedKeys(self._json.keys(fields), self._known)

    def reads_by(self, schema: pa.Schema) -> str:
        """As JSON is."""
        where = f", behind ids of {self._record.registry.url}" if self._record.registry is not None else ""
        return f"{self._json.reads_by(schema)}{where}"

    @cached_property
    def _known(self) -> KnownSchemas:
        """One for all readers of a format: an id is asked for once. Raises `SchemaError`."""
        if self._record.framing != "confluent":
            raise SchemaError(f'JSON Schema has no record.framing = "{self._record.framing}", but confluent')
        return KnownSchemas(
            registry_schemas(self._record.registry, "participant.records.json_schema.registry:JSON")
        )

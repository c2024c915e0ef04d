"""JSON as a format of records: one object a value, and keys in any of the spellings that are about."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from participant.records.json.decoder import JsonDecoder
from participant.records.json.keys import JsonKeys
from participant.records.json.lines import line_reader
from table.schema import record_schema


class JsonFormat:
    """See `participant.records.port.Format`."""

    def values(self, schema: pa.Schema) -> JsonDecoder:
        """Raises `SchemaError` for a schema that cannot be read from JSON."""
        return JsonDecoder(schema)

    def keys(self, fields: Sequence[pa.Field]) -> JsonKeys:
        """Of the columns that key a row."""
        return JsonKeys(fields)

    def reads_by(self, schema: pa.Schema) -> str:
        """Flat schemas by a faster reader, where it is installed."""
        if line_reader(record_schema(schema)) is not None:
            return "Arrow, and polars for batches that are plain enough"
        return "Arrow alone: polars takes flat schemas only, and must be installed there"

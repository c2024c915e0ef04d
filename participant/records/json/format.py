"""JSON as a format of records: one object a value, and keys in any of the spellings that are about."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from participant.records.json.keys import JsonKeys
from participant.records.json.lines import line_reader
from participant.records.json.native import NativeDecoder, row_decoder
from participant.records.native import why_plain
from participant.records.port import Decoder, RecordSpec
from participant.records.sources import REST_FIELD
from table.schema import record_schema


class JsonFormat:
    """See `participant.records.port.Format`. `record`: with what values are to be read."""

    typed = False

    def __init__(self, record: RecordSpec | None = None) -> None:
        self._wanted = (record or RecordSpec()).decoder

    def values(self, schema: pa.Schema) -> Decoder:
        """Raises `SchemaError` for a schema that cannot be read from JSON."""
        return row_decoder(_named(schema), self._wanted, rest=REST_FIELD in schema.names)

    def keys(self, fields: Sequence[pa.Field]) -> JsonKeys:
        """Of the columns that key a row."""
        return JsonKeys(fields)

    def reads_by(self, schema: pa.Schema) -> str:
        """The native decoder, or who reads without it, and why."""
        schema = _named(schema)
        why_not = why_plain(self._wanted, lambda: NativeDecoder(schema))
        if not why_not:
            return "native, in one pass"
        if line_reader(record_schema(schema)) is not None:
            return f"plain: Arrow, and polars for batches that are plain enough ({why_not})"
        return f"plain: Arrow alone, since polars takes flat schemas only, and must be installed ({why_not})"


def _named(schema: pa.Schema) -> pa.Schema:
    """The columns that fields are named for."""
    return pa.schema([field for field in schema if field.name != REST_FIELD])

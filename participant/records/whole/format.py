"""Text and bytes as formats of records: a value, or a key, is one column whole."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from participant.records.whole.decoder import WholeDecoder, WholeKeys


class WholeFormat:
    """See `participant.records.port.Format`."""

    name: str
    kind: pa.DataType
    """Of the column."""
    typed = True

    def values(self, schema: pa.Schema) -> WholeDecoder:
        """Raises `SchemaError` for a schema that is not one such column."""
        return WholeDecoder(schema, self.kind, self.name)

    def keys(self, fields: Sequence[pa.Field]) -> WholeKeys:
        """Of the column that keys a row. Raises `SchemaError`."""
        return WholeKeys(fields, self.kind, self.name)

    def reads_by(self, schema: pa.Schema) -> str:
        """As they are, whatever they are."""
        return "Arrow, as they are"


class StringFormat(WholeFormat):
    """UTF-8 into a STRING."""

    name = "string"
    kind = pa.string()


class BytesFormat(WholeFormat):
    """Whatever it is into a BINARY."""

    name = "bytes"
    kind = pa.binary()

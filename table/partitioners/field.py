"""A table partition for each value of a column."""

from __future__ import annotations

import pyarrow as pa


class FieldPartitioner:
    """See `table.partitioners.port.Partitioner`."""

    def __init__(self, field: str) -> None:
        self.field = field

    def values(self, rows: pa.Table) -> pa.DictionaryArray:
        """Null has a code of its own."""
        return rows.column(self.field).combine_chunks().dictionary_encode("encode")

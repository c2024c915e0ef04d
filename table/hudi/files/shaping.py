"""What the table needs of a row beyond its data: Kafka coordinates, record key, table partition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from table.columns import with_kafka_columns
from table.hudi.files import keys as hudi_keys
from table.hudi.files.folders import Folders
from table.hudi.files.keys import Keys
from table.hudi.layout import HudiLayout
from table.partition_columns import PartitionColumns
from table.partitioners.expressions import made_columns
from table.port import AS_KEY, AS_PARTITION
from table.rows import Rows
from table.schema import SchemaError, record_schema


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertRows:
    """Rows that are ready to be written."""

    table: pa.Table
    """The data columns, then the Kafka columns where the table has them."""
    record_key: pa.ChunkedArray
    """A string per row."""
    table_partition: pa.DictionaryArray
    """The folder per row, dictionary-encoded (one value, "", when not partitioned)."""
    refused: Mapping[int, str] = field(default_factory=dict)
    """Why rows that were decoded are not here, by their place in the batch: they have no key, or no table
    partition."""
    echoes: Sequence[int] = ()
    """There are none: every row is one of its own."""

    @property
    def count(self) -> int:
        """Rows."""
        return int(self.table.num_rows)

    @property
    def nbytes(self) -> int:
        """Memory held; a key that shares the memory of a column is not counted again."""
        held = self.table.append_column("", self.record_key).append_column("", self.table_partition)
        return int(held.get_total_buffer_size())


class InsertShaper:
    """Shapes for one table. No state: any thread may use it.

    `unique`: rows whose key may be another row's are refused. Raises `SchemaError` when a key or partition
    field is missing or of a type that cannot be one.
    """

    def __init__(self, layout: HudiLayout, schema: pa.Schema, *, unique: bool = False) -> None:
        self._layout = layout
        self._unique = unique and layout.key_format == hudi_keys.COMPLEX
        self._folders = Folders(layout)
        self._made = PartitionColumns(layout, layout.partition_bounds)
        columns = pa.schema(
            [*record_schema(schema), *(field for field in schema if field.name in made_columns(layout))]
        )
        roles = [(name, AS_KEY) for name in layout.key_fields]
        roles += [(name, AS_PARTITION) for name in layout.partition_fields]
        for name, role in roles:
            if columns.get_field_index(name) < 0:
                raise SchemaError(f"column {name} is to be {role}, but the schema does not have it")
            hudi_keys.check_key_field(columns.field(name), role)
        if layout.key_format == hudi_keys.PLAIN and len(layout.key_fields) != 1:
            raise SchemaError(f"a plain record key is one column, not {len(layout.key_fields)}")
        if layout.key_format == hudi_keys.COMPLEX and not layout.key_fields:
            raise SchemaError("a complex record key has at least one column")

    def shape(self, rows: Rows) -> InsertRows:
        """The rows, less those that this table cannot take."""
        rows, record_key, partitions, reasons = self.found(rows)
        refused: dict[int, str] = {}
        if reasons:
            refused = rows.refused(reasons)
            keep = np.delete(np.arange(rows.count), list(reasons))
            record_key, partitions = record_key.take(pa.array(keep)), partitions.take(pa.array(keep))
            rows = rows.take(keep)
        table = with_kafka_columns(rows) if self._layout.kafka_columns else rows.columns
        return InsertRows(table=table, record_key=record_key, table_partition=partitions, refused=refused)

    def found(self, rows: Rows) -> tuple[Rows, pa.ChunkedArray, pa.DictionaryArray, dict[int, str]]:
        """The rows with the columns of their table partitions, per row its key and its folder, and the reason
        of each row that cannot have one of them.
        """
        columns, unmade = self._made.added(rows.columns, rows.timestamps_ms)
        rows = replace(rows, columns=columns)
        if self._layout.key_format == hudi_keys.COORDINATES:
            record_key = hudi_keys.coordinate_keys(rows.source.topic, rows.source.number, rows.offsets).keys
            partitions, reasons = self._folders.of(columns)
        else:
            record_key, partitions, reasons = self._of(columns)
        return rows, record_key, partitions, reasons | unmade

    def of_columns(self, table: pa.Table) -> tuple[pa.ChunkedArray, pa.DictionaryArray, dict[int, str]]:
        """As `found`, of a table whose keys and table partitions are made of its columns alone."""
        columns, unmade = self._made.added(table, np.full(table.num_rows, -1, dtype=np.int64))
        record_key, partitions, reasons = self._of(columns)
        return record_key, partitions, reasons | unmade

    def _of(self, table: pa.Table) -> tuple[pa.ChunkedArray, pa.DictionaryArray, dict[int, str]]:
        found = self._keys(table)
        partitions, reasons = self._folders.of(table)
        if found.bad is not None:
            text = f"the record key ({', '.join(self._layout.key_fields)}) is null or empty"
            reasons |= dict.fromkeys(np.flatnonzero(found.bad).tolist(), text)
        if self._unique:
            names = self._layout.key_fields
            reasons |= hudi_keys.ambiguous(names, [table.column(name) for name in names])
        return found.keys, partitions, reasons

    def _keys(self, table: pa.Table) -> Keys:
        columns = [table.column(name) for name in self._layout.key_fields]
        if self._layout.key_format == hudi_keys.PLAIN:
            return hudi_keys.plain_keys(columns[0])
        return hudi_keys.complex_keys(self._layout.key_fields, columns)

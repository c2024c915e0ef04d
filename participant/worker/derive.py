"""What the table needs of a row beyond its data: Kafka coordinates, record key, table partition."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from participant.records.json.decoder import Decoded
from participant.records.raw import RawBatch
from participant.records.rejects import NONE, Rejects
from table.hudi.files import keys as hudi_keys
from table.hudi.files.keys import Keys, UnsafePartition, partition_path
from table.port import TableLayout
from table.schema import KAFKA_PREFIX, UTC_MICROS, SchemaError, record_schema

TIMES_MS = (-62_135_596_800_000, 253_402_300_799_999)
"""The years 1 to 9999, which every reader of a table knows. Kafka takes any number for a timestamp."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """Rows that are ready to be written.

    `table`: the data columns, then the Kafka columns where the table has them. `record_key`: a string per
    row. `table_partition`: the folder per row, dictionary-encoded (one value, "", when not partitioned).
    `rejects`: records that were decoded but have no key or no table partition, on top of the decoder's.
    """

    table: pa.Table
    record_key: pa.ChunkedArray
    table_partition: pa.DictionaryArray
    rejects: Rejects = NONE

    @property
    def count(self) -> int:
        """Rows."""
        return int(self.table.num_rows)

    @property
    def nbytes(self) -> int:
        """Memory held; a key that shares the memory of a column is not counted again."""
        held = self.table.append_column("", self.record_key).append_column("", self.table_partition)
        return int(held.get_total_buffer_size())


class Deriver:
    """Derives for one table. No state: any thread may use it.

    Raises `SchemaError` when a key or partition field is missing or of a type that cannot be one.
    """

    def __init__(self, layout: TableLayout, schema: pa.Schema) -> None:
        self._layout = layout
        columns = record_schema(schema)
        roles = [(name, "a record key") for name in layout.key_fields]
        if layout.partition_field:
            roles.append((layout.partition_field, "a table partition"))
        for name, role in roles:
            if columns.get_field_index(name) < 0:
                raise SchemaError(f"column {name} is to be {role}, but the schema does not have it")
            hudi_keys.check_key_field(columns.field(name), role)
        if layout.key_format == hudi_keys.PLAIN and len(layout.key_fields) != 1:
            raise SchemaError(f"a plain record key is one column, not {len(layout.key_fields)}")
        if layout.key_format == hudi_keys.COMPLEX and not layout.key_fields:
            raise SchemaError("a complex record key has at least one column")

    def derive(self, batch: RawBatch, decoded: Decoded) -> Derived:
        """The rows of `decoded`, which came from `batch`, less those rejected here."""
        rows = Rows(batch, decoded)
        table = rows.table
        record_key, partitions, reasons = self.keys_and_partitions(batch, rows)
        rejects = NONE
        if reasons:
            rejects = rows.reject(reasons)
            keep = pa.array(np.delete(np.arange(table.num_rows), list(reasons)))
            record_key, partitions = record_key.take(keep), partitions.take(keep)
            table = rows.take(keep)
        if self._layout.kafka_columns:
            table = with_kafka_columns(table, batch, rows)
        return Derived(table=table, record_key=record_key, table_partition=partitions, rejects=rejects)

    def keys_and_partitions(
        self, batch: RawBatch, rows: Rows
    ) -> tuple[pa.ChunkedArray, pa.DictionaryArray, dict[int, str]]:
        """Per row its key and its folder, and the reason of each row that cannot have one of them."""
        found = self._keys(batch, rows)
        partitions, reasons = self._partitions(rows.table)
        if found.bad is not None:
            text = f"the record key ({', '.join(self._layout.key_fields)}) is null or empty"
            reasons |= dict.fromkeys(np.flatnonzero(found.bad).tolist(), text)
        return found.keys, partitions, reasons

    def _keys(self, batch: RawBatch, rows: Rows) -> Keys:
        layout = self._layout
        if layout.key_format == hudi_keys.COORDINATES:
            return hudi_keys.coordinate_keys(batch.partition.topic, batch.partition.number, rows.offsets)
        columns = [rows.table.column(name) for name in layout.key_fields]
        if layout.key_format == hudi_keys.PLAIN:
            return hudi_keys.plain_keys(columns[0])
        return hudi_keys.complex_keys(layout.key_fields, columns)

    def _partitions(self, table: pa.Table) -> tuple[pa.DictionaryArray, dict[int, str]]:
        """The folder per row, and the reason of each row that cannot have one."""
        layout = self._layout
        if not layout.partition_field:
            return constant("", table.num_rows), {}
        codes = table.column(layout.partition_field).combine_chunks().dictionary_encode("encode")
        folders: list[str] = []
        bad: dict[int, str] = {}
        for code, value in enumerate(hudi_keys.spelled(codes.dictionary).to_pylist()):
            try:
                folders.append(
                    partition_path(
                        value,
                        layout.partition_field,
                        hive_style=layout.hive_style,
                        url_encode=layout.url_encode,
                    )
                )
            except UnsafePartition as unsafe:
                folders.append("")
                bad[code] = str(unsafe)
        indices = codes.indices.to_numpy()
        reasons = {row: bad[code] for code in bad for row in np.flatnonzero(indices == code).tolist()}
        # two values may share a folder (null and empty do): give each folder one code
        names = {folder: code for code, folder in enumerate(dict.fromkeys(folders))}
        code_of = np.array([names[folder] for folder in folders] or [0], dtype=np.int32)
        return pa.DictionaryArray.from_arrays(
            pa.array(code_of[indices]), pa.array(list(names), pa.string())
        ), reasons


class Rows:
    """The decoded rows with their offsets and places in the batch."""

    def __init__(self, batch: RawBatch, decoded: Decoded) -> None:
        self.table = decoded.table
        offsets, timestamps_ms = batch.offsets, batch.timestamps_ms
        self.kept = decoded.kept
        if self.kept is not None:
            offsets, timestamps_ms = offsets[self.kept], timestamps_ms[self.kept]
        self.offsets: npt.NDArray[np.int64] = offsets
        self.timestamps_ms: npt.NDArray[np.int64] = timestamps_ms

    def reject(self, reasons: dict[int, str]) -> Rejects:
        """`reasons` is by row; to be called before `take`."""
        rejects = Rejects.of(reasons, self.offsets)
        return rejects if self.kept is None else rejects.at(self.kept)

    def take(self, rows: pa.Array) -> pa.Table:
        """Go on with these rows only."""
        places = rows.to_numpy()
        self.offsets, self.timestamps_ms = self.offsets[places], self.timestamps_ms[places]
        self.table = self.table.take(rows)
        return self.table


def constant(value: str, length: int) -> pa.DictionaryArray:
    """One string, `length` times."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(length, dtype=np.int32)), pa.array([value]))


def with_kafka_columns(table: pa.Table, batch: RawBatch, rows: Rows) -> pa.Table:
    """The rows with where they came from."""
    length = table.num_rows
    columns = {
        "topic": constant(batch.partition.topic, length),
        "partition": pa.array(np.full(length, batch.partition.number, dtype=np.int32)),
        "offset": pa.array(rows.offsets),
        "timestamp": pa.array(np.clip(rows.timestamps_ms, *TIMES_MS) * 1_000).view(UTC_MICROS),
    }
    for name, column in columns.items():
        field = pa.field(f"{KAFKA_PREFIX}{name}", column.type, nullable=False)
        table = table.append_column(field, column)
    return table

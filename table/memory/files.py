"""The reference table in a worker: rows are kept as they come, a file for each table partition."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from control_topic.messages import DataFile
from table.columns import constant, with_kafka_columns
from table.memory.timeline import MemoryTimeline
from table.partition_columns import PartitionColumns, columns_of
from table.port import FileWriter, TableLayout, Tell, Written
from table.rows import Rows
from table.schema import SchemaError
from table.widening import aligned, ddl_of


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRows:
    """See `table.port.Shaped`."""

    table: pa.Table
    table_partition: pa.DictionaryArray
    """Per row, dictionary-encoded; "" of null, and where the table has none."""
    refused: Mapping[int, str] = field(default_factory=dict)
    echoes: Sequence[int] = ()

    @property
    def count(self) -> int:
        return int(self.table.num_rows)

    @property
    def nbytes(self) -> int:
        return int(self.table.nbytes)


class MemoryFiles:
    """See `table.port.TableFiles`."""

    def __init__(self, timeline: MemoryTimeline, layout: TableLayout, *, writer_name: str) -> None:
        self.schema = columns_of(layout)
        for name in (*layout.key_fields, *layout.partition_fields):
            if name not in self.schema.names:
                raise SchemaError(f"column {name} is a key or a partition, but the schema does not have it")
        self._timeline = timeline
        self._layout = layout
        self._made = PartitionColumns(layout, layout.partition_bounds)
        self._name = writer_name

    @property
    def handing(self) -> None:
        """See `table.port.TableFiles`."""
        return None

    def shape(self, rows: Rows) -> MemoryRows:
        """The rows, less those without a key, or a table partition."""
        bad = np.zeros(rows.count, dtype=np.bool_)
        for name in self._layout.key_fields:
            bad |= pc.is_null(rows.columns.column(name)).to_numpy()
        reason = f"the key ({', '.join(self._layout.key_fields)}) is null"
        reasons = dict.fromkeys(np.flatnonzero(bad).tolist(), reason)
        columns, unmade = self._made.added(rows.columns, rows.timestamps_ms)
        rows, reasons = replace(rows, columns=columns), reasons | unmade
        refused: dict[int, str] = {}
        if reasons:
            refused = rows.refused(reasons)
            rows = rows.take(np.delete(np.arange(rows.count), list(reasons)))
        table = with_kafka_columns(rows) if self._layout.kafka_columns else rows.columns
        return MemoryRows(table=table, table_partition=self._table_partitions(rows.columns), refused=refused)

    def writer(self, instant: str, tell: Tell) -> MemoryFileWriter:
        return MemoryFileWriter(self._timeline, instant, tell, name=self._name, schema=self.schema)

    def widened(self, columns: pa.Schema) -> MemoryFiles:
        layout = replace(self._layout, ddl=ddl_of(columns))
        return MemoryFiles(self._timeline, layout, writer_name=self._name)

    def _table_partitions(self, columns: pa.Table) -> pa.DictionaryArray:
        if not self._layout.partition_fields:
            return constant("", columns.num_rows)
        values = [
            columns.column(name).cast(pa.string()).fill_null("") for name in self._layout.partition_fields
        ]
        joined: pa.DictionaryArray = (
            pc.binary_join_element_wise(*values, "/").combine_chunks().dictionary_encode()
        )
        return joined


class MemoryFileWriter(FileWriter):
    """See `table.port.FileWriter`. A file is whole on storage once it is there."""

    def __init__(
        self, timeline: MemoryTimeline, instant: str, tell: Tell, *, name: str, schema: pa.Schema
    ) -> None:
        self._timeline = timeline
        self._instant = instant
        self._tell = tell
        self._name = name
        self._schema = schema
        self._held: dict[str, list[pa.Table]] = {}
        self._files: dict[str, DataFile] = {}
        self._closed = False
        self._written = Written()

    @property
    def upload_s(self) -> float:
        """Storage takes none."""
        return 0.0

    def write(self, shaped: MemoryRows) -> None:
        for code, name in enumerate(shaped.table_partition.dictionary.to_pylist()):
            rows = shaped.table.filter(pc.equal(shaped.table_partition.indices, code))
            if rows.num_rows:
                self._held.setdefault(name, []).append(aligned(rows, self._schema).cast(self._schema))
                self._step(size_bytes=rows.nbytes)

    def widen(self, files: MemoryFiles) -> None:
        self._end()
        self._schema = files.schema

    def finish(self, wake: Callable[[], None]) -> None:
        self._end()

    def finished(self, *, wait: bool = False) -> tuple[DataFile, ...] | None:
        self._closed = True
        return tuple(self._files.values())

    def _end(self) -> None:
        for name, held in sorted(self._held.items()):
            rows = pa.concat_tables(held).combine_chunks()
            of = f"{self._instant}-{self._name}" + (f"-{len(self._files)}" if self._files else "")
            path = "/".join(filter(None, [name, of]))
            self._timeline.write_file(path, self._instant, rows=rows)
            self._files[path] = DataFile(
                path=path, body="", table_partition=name, rows=rows.num_rows, size_bytes=rows.nbytes
            )
            self._step(files=1)
        self._held.clear()

    def discard(self) -> None:
        if not self._closed:
            self._timeline.remove(self._files)
            self._files.clear()
            self._held.clear()

    def _step(self, *, files: int = 0, size_bytes: int = 0) -> None:
        before = self._written
        self._written = Written(
            files=before.files + files, size_bytes=before.size_bytes + size_bytes, steps=before.steps + 1
        )
        self._tell(self._written)

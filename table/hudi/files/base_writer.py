"""One worker's files of one transaction: rows in, finished Hudi base files out.

Rows wait in memory per table partition until they make a row group worth encoding, then go to that table
partition's open file. Files end at the target size, when too many are open or take too much memory, and at
`finish`.

Files are named when they and their folders are on the disk (fsync), or an object store has answered for
them: the commit that names them moves Kafka's offsets, and it must not outlive its data when a machine loses
power. The other way round, files without a commit, is what rollbacks and the sweep are for. Markers need no
such care for the same reason.
"""

from __future__ import annotations

import contextlib
import posixpath
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq

from control_topic.messages import DataFile
from table.hudi.files import base_file, lookup
from table.hudi.files.backlog import Backlog, Waiting
from table.hudi.files.base_file import RECORD_KEY, KeyRange
from table.hudi.files.dated import Dated
from table.hudi.files.durable import Files
from table.hudi.files.encoding import Encodings, outgrown
from table.hudi.files.finishing import Finishing
from table.hudi.files.open_files import OpenFiles
from table.hudi.files.shaping import InsertRows
from table.hudi.layout import HudiLayout
from table.port import FileWriter, Tell
from table.store.port import Store
from table.widening import aligned

ROW_GROUP_ROWS = 128_000
ROW_GROUP_BYTES = 16 * 1024 * 1024
"""In memory, some 4 MB in the file. Smaller ones cost readers; larger ones leave more to encode after END."""
COLUMN_BYTES, CHUNK_BYTES = 2_304, 512
"""What a column of an open file takes of memory, and what more for each row group, whose place the footer is
to tell; measured. What waits to be uploaded comes on top."""


class Wider(Protocol):
    """`table.hudi.files.side.HudiFiles`, as a writer needs them."""

    schema: pa.Schema
    layout: HudiLayout


class TransactionWriter(FileWriter):
    """Not for several threads. `new_uuid` gives a random UUID per file, so that no two writers ever meet.

    `store`: where the table is. `writer_number`: the worker's slot. Memory held by rows
    that are not yet encoded stays below `pending_bytes_max`, one batch aside, and what open files hold below
    `held_bytes_max`, one file aside. `tell`: see `Files`. `is_widened`: rows may lack
    some of the columns.
    """

    def __init__(
        self,
        store: Store,
        layout: HudiLayout,
        schema: pa.Schema,
        instant: str,
        writer_number: int,
        incarnation: str,
        pending_bytes_max: int,
        held_bytes_max: int,
        new_uuid: Callable[[], UUID],
        tell: Tell | None = None,
        *,
        is_widened: bool = False,
    ) -> None:
        self._target_bytes = layout.target_file_bytes
        self._lookup_fields = layout.lookup_fields
        self._schema = schema
        self._instant = instant
        self._dated = Dated(layout, instant)
        self._writer_number = writer_number
        self._token_end = zlib.crc32(incarnation.encode()) & 0x7FFFFFFF
        self._pending_bytes_max = pending_bytes_max
        self._new_uuid = new_uuid
        self._backlog: Backlog[str] = Backlog(count_max=ROW_GROUP_ROWS, bytes_max=ROW_GROUP_BYTES)
        self._files = Files(store, instant, tell)
        self._open: OpenFiles[str, _OpenFile] = OpenFiles(self._files, held_bytes_max)
        self._open_max = store.capabilities.open_at_once
        self._made = 0
        self._rows = 0
        self._encodings = Encodings()
        self._finishing = Finishing(self._files, self._open)
        self._is_widened = is_widened

    @property
    def upload_s(self) -> float:
        """Spent so far on making, ending and securing files; whatever else takes time here is encoding."""
        return self._files.upload_s

    @property
    def pending_bytes(self) -> int:
        """Memory held by rows that are not yet encoded."""
        return self._backlog.size_bytes

    @property
    def held_bytes(self) -> int:
        """Memory held by files that are not yet whole."""
        return self._open.held_bytes

    def write(self, shaped: InsertRows) -> None:
        """Take rows; encode what is due. Raises `StorageError`."""
        shaped = self._dated.rows(shaped)
        if self._is_widened:
            shaped = replace(shaped, table=aligned(shaped.table, self._schema))
        if shaped.table.column_names != self._schema.names:
            raise ValueError(f"columns {shaped.table.column_names} where {self._schema.names} were announced")
        if not shaped.table.num_rows:
            return
        self._encode_largest(self._pending_bytes_max - shaped.nbytes)
        rows = shaped.table.append_column(RECORD_KEY, shaped.record_key)
        folders = shaped.table_partition.dictionary.to_pylist()
        codes = shaped.table_partition.indices.to_numpy()
        self._backlog.add(rows, codes, folders)
        for partition, due in self._backlog.due():
            self._encode(partition, due)
        self._encode_largest(self._pending_bytes_max)

    def widen(self, files: Wider) -> None:
        """See `table.port.FileWriter`. A file has the columns of its footer, all of its rows."""
        self._encode_all()
        self._open.end_all()
        self._schema, self._is_widened = files.schema, True
        self._encodings.clear()

    def _encode_all(self) -> None:
        for partition, waiting in self._backlog.drain():
            self._encode(partition, waiting)
            self._open.end(partition)

    def finish(self, wake: Callable[[], None]) -> None:
        """See `table.port.FileWriter`."""
        self._encode_all()
        self._finishing.begin(wake)

    def finished(self, *, wait: bool = False) -> tuple[DataFile, ...] | None:
        """See `table.port.FileWriter`."""
        return self._finishing.named(wait=wait)

    def discard(self) -> None:
        """Remove this writer's files unless `finished` named them. Their markers stay for the rollback."""
        self._backlog.clear()
        self._finishing.undo()

    # --- memory -----------------------------------------------------------------------------------

    def _encode_largest(self, bytes_max: int) -> None:
        """Encode the largest table partitions first until no more than `bytes_max` wait."""
        for partition, waiting in self._backlog.relieve(bytes_max, self._open):
            self._encode(partition, waiting)

    # --- files ------------------------------------------------------------------------------------

    def _encode(self, partition: str, waiting: Waiting) -> None:
        """What waited for a table partition becomes a row group of its file."""
        rows = waiting.all_rows()
        file = self._open.get(partition)
        if file is not None and self._begins_another(file, rows):
            self._open.end(partition)
            file = None
        name = posixpath.basename(file.path) if file is not None else self._next_name()
        seqnos = base_file.sequence_numbers(
            f"{self._instant}_{self._writer_number}", self._rows, rows.num_rows
        )
        self._rows += rows.num_rows
        keys = rows.column(RECORD_KEY)
        meta = base_file.meta_columns(
            instant=self._instant, seqnos=seqnos, keys=keys, partition=partition, name=name
        )
        data = rows.drop_columns([RECORD_KEY])
        table = pa.table(meta + data.columns, schema=pa.schema([*base_file.meta_fields(), *data.schema]))
        if file is None:
            file = self._create(partition, name, table)
        with self._files.storing(file.path):
            before_bytes = file.size_bytes
            file.write(table, keys)
            full = file.size_bytes >= self._target_bytes
        self._files.stepped(size_bytes=file.size_bytes - before_bytes)
        self._open.grown(partition)
        if full:
            self._open.end(partition)

    def _begins_another(self, file: _OpenFile, rows: pa.Table) -> bool:
        """Whether the file's encoding does not fit these rows."""
        return file.is_outgrown_by(rows.num_rows) or self._encodings.note(rows).contradict(file.options)

    def _next_name(self) -> str:
        token = f"{self._writer_number}-{self._made}-{self._token_end}"
        return base_file.file_name(base_file.new_file_id(self._new_uuid()), token, self._instant)

    def _create(self, partition: str, name: str, sample: pa.Table) -> _OpenFile:
        while len(self._open) >= self._open_max:
            self._open.end(next(iter(self._open)))
        self._made += 1
        path = posixpath.join(partition, name)
        with self._files.storing(path), self._files.uploading():
            filters = lookup.filter_options(self._lookup_fields, sample)
            options = {**self._encodings.options(sample), **filters}
            file = _OpenFile(self._files, path, partition, sample, options)
        self._open.add(partition, file)
        return file


class _OpenFile:
    """A base file that is being written. See `table.hudi.files.open_files.OpenFile`."""

    def __init__(
        self, files: Files, path: str, partition: str, sample: pa.Table, options: dict[str, Any]
    ) -> None:
        self.path = path
        self.options = options
        self._files = files
        self._partition = partition
        self._rows = 0
        self._keys = KeyRange()
        self._sink = files.open(path)
        self._sample_rows = int(sample.num_rows)
        self._columns, self._row_groups = len(options["compression"]), 0
        self._filter_bytes = lookup.held_bytes(options)
        self._writer = pq.ParquetWriter(self._sink, sample.schema, **options)

    @property
    def size_bytes(self) -> int:
        """Encoded so far."""
        return int(self._sink.tell())

    @property
    def held_bytes(self) -> int:
        of_writer = self._columns * (COLUMN_BYTES + CHUNK_BYTES * self._row_groups)
        of_writer += self._filter_bytes * self._row_groups
        return of_writer + self._files.store.held_bytes(self.size_bytes)

    def is_outgrown_by(self, rows: int) -> bool:
        """Whether so many are to be encoded otherwise than its rows are."""
        too_many = self._filter_bytes > 0 and lookup.outgrown(self._sample_rows, rows)
        return too_many or outgrown(self._sample_rows, rows)

    def write(self, table: pa.Table, keys: pa.ChunkedArray) -> None:
        self._writer.write_table(table, row_group_size=table.num_rows)
        self._row_groups += 1
        self._keys.add(keys)
        self._rows += table.num_rows

    def end(self) -> DataFile:
        """Write the footer and make the file durable."""
        self._writer.add_key_value_metadata(self._keys.footers())
        self._writer.close()
        size_bytes = self._files.ended(self.path, self._sink)
        parsed = base_file.parse_file_name(posixpath.basename(self.path))
        assert parsed is not None
        return DataFile(
            path=self.path,
            body=parsed[0],
            table_partition=self._partition,
            rows=self._rows,
            size_bytes=size_bytes,
        )

    def abandon(self) -> None:
        with contextlib.suppress(OSError, ValueError, pa.ArrowException):
            self._files.store.discard(self._sink)
        # else its finaliser writes a footer to the closed sink
        self._writer.is_open = False

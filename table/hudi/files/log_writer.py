"""One worker's changes of one transaction: rows and deletes in, finished Hudi log files out.

A file group of an upsert table is a table partition's bucket, and each worker adds a log file of its own to
it, so that several may meet there. Changes wait in memory per file group until they make a block worth
encoding; what a later one of them makes void is not written (`table.hudi.files.changes`). Blocks stand in a
file in the order of the changes.

A file is written once, from its begin to its end, as every store can. Of as many as may be open each block
goes out when it is encoded; those of others wait in memory until their file is ended. A group whose file had
to end early, for the memory that files take, goes on in a file of the next version.

What is durable when is as in `table.hudi.files.base_writer`.
"""

from __future__ import annotations

import contextlib
import errno
import posixpath
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from control_topic.messages import DataFile
from table.hudi.files import base_file, log_file
from table.hudi.files.backlog import Backlog, Waiting
from table.hudi.files.base_file import RECORD_KEY
from table.hudi.files.base_writer import Wider
from table.hudi.files.buckets import buckets
from table.hudi.files.changes import DELETE, ROW, TOMBSTONE, Places, last_of_each, layers, newest_of_each
from table.hudi.files.durable import Files
from table.hudi.files.encoding import Encodings
from table.hudi.files.finishing import Finishing
from table.hudi.files.log_file import Delete
from table.hudi.files.open_files import OpenFiles
from table.hudi.files.split import Codes
from table.hudi.files.upserts import Upserts
from table.hudi.layout import HudiLayout
from table.port import FileWriter, Tell
from table.store.port import Sink, Store
from table.widening import aligned

BLOCK_ROWS = 128_000
BLOCK_BYTES = 16 * 1024 * 1024
"""In memory; as a base file's row groups."""
STREAMS_MAX = 200
"""Files that are open on a store where that takes something of the system's."""

PLACE = "_place"
ORDERING = "_ordering"
"""Columns of changes that wait, not of the table: their order, and a delete's ordering value."""

Group = tuple[str, int]
"""A table partition and a bucket."""


class LogWriter(FileWriter):
    """As `table.hudi.files.base_writer.TransactionWriter`, for a table of kind `upsert`. Not for several
    threads."""

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
        tell: Tell | None = None,
        *,
        is_widened: bool = False,
    ) -> None:
        self._layout = layout
        self._schema = schema
        self._instant = instant
        self._writer_number = writer_number
        self._token = log_file.write_token(writer_number, incarnation)
        self._pending_bytes_max = pending_bytes_max
        self._backlog: Backlog[Group] = Backlog(
            count_max=BLOCK_ROWS, bytes_max=BLOCK_BYTES, thin=_Newest(layout.ordering_field)
        )
        self._taken = 0
        self._rows = 0
        self._files = Files(store, instant, tell)
        self._open: OpenFiles[Group, _LogFile] = OpenFiles(self._files, held_bytes_max)
        self._versions: Counter[Group] = Counter()
        self._encodings = Encodings()
        self._finishing = Finishing(self._files, self._open)
        self._is_widened = is_widened

    @property
    def upload_s(self) -> float:
        """Spent so far on making, writing and securing files; all else that takes time here is encoding."""
        return self._files.upload_s

    @property
    def pending_bytes(self) -> int:
        """Memory held by changes that are not yet encoded."""
        return self._backlog.size_bytes

    @property
    def held_bytes(self) -> int:
        """Memory held by files that are not yet whole."""
        return self._open.held_bytes

    def write(self, upserts: Upserts) -> None:
        """Take changes; encode what is due. Raises `StorageError`."""
        if self._is_widened:
            upserts = replace(upserts, rows=aligned(upserts.rows, self._schema))
        if upserts.rows.column_names != self._schema.names:
            raise ValueError(f"columns {upserts.rows.column_names} where {self._schema.names} were announced")
        self._encode_largest(self._pending_bytes_max - upserts.nbytes)
        rows = upserts.rows.append_column(RECORD_KEY, upserts.record_key)
        rows = rows.append_column(PLACE, pa.array(upserts.places + self._taken))
        self._backlog.add(rows, *self._groups(rows, upserts.table_partition))
        if len(upserts.deletes):
            deletes = upserts.deletes
            table = pa.table(
                {
                    RECORD_KEY: deletes.record_key,
                    ORDERING: deletes.ordering,
                    PLACE: pa.array(deletes.places + self._taken),
                }
            )
            self._backlog.add_deletes(table, *self._groups(table, deletes.table_partition))
        for group, due in self._backlog.due():
            self._encode(group, due)
        self._taken += upserts.length
        self._encode_largest(self._pending_bytes_max)

    def widen(self, files: Wider) -> None:
        """See `table.port.FileWriter`. What follows of a group is in a file of its next version."""
        self._encode_all()
        self._open.end_all()
        self._schema, self._layout = files.schema, files.layout
        self._encodings.clear()
        self._is_widened = True

    def _encode_all(self) -> None:
        for group, waiting in self._backlog.drain():
            self._encode(group, waiting)
            self._open.end(group)

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

    def _groups(self, table: pa.Table, partition: pa.DictionaryArray) -> tuple[Codes, list[Group]]:
        """The file group of each change, as a code, and what the codes mean."""
        count = self._layout.bucket_count
        places = buckets(table.column(RECORD_KEY), self._layout.key_fields, count)
        folders = partition.dictionary.to_pylist()
        codes = partition.indices.to_numpy().astype(np.int64) * count + places
        return codes, [(folder, bucket) for folder in folders for bucket in range(count)]

    def _encode_largest(self, bytes_max: int) -> None:
        """Encode the largest file groups first until no more than `bytes_max` wait."""
        for group, waiting in self._backlog.relieve(bytes_max, self._open):
            self._encode(group, waiting)

    # --- files ------------------------------------------------------------------------------------

    def _encode(self, group: Group, waiting: Waiting) -> None:
        """What waited for a file group becomes blocks at the end of its open log file."""
        rows = waiting.all_rows() if waiting.rows else None
        deletes = pa.concat_tables(waiting.deletes) if waiting.deletes else None
        log = self._open.get(group) or self._create(group)
        if rows is not None and waiting.is_thin:
            self._append_rows(log, rows)
            self._open.grown(group)
            return
        for row_places, delete_places in self._layers(rows, deletes):
            if deletes is not None and len(delete_places):
                self._append_deletes(log, deletes.take(pa.array(delete_places)))
            if rows is not None and len(row_places):
                whole = len(row_places) == rows.num_rows
                self._append_rows(log, rows if whole else rows.take(pa.array(row_places)))
        self._open.grown(group)

    def _layers(self, rows: pa.Table | None, deletes: pa.Table | None) -> list[tuple[Places, Places]]:
        """What to write, one after another: places in `rows` and places in `deletes`."""
        parts = [part for part in (rows, deletes) if part is not None]
        row_count = rows.num_rows if rows is not None else 0
        keys = pa.chunked_array([chunk for part in parts for chunk in part.column(RECORD_KEY).chunks])
        encoded = keys.combine_chunks().dictionary_encode()
        codes, key_count = encoded.indices.to_numpy(), len(encoded.dictionary)
        if deletes is None and key_count == row_count:
            return [(np.arange(row_count), np.arange(0))]
        places = np.concatenate([part.column(PLACE).to_numpy() for part in parts])
        order = np.argsort(places)
        if not self._layout.ordering_field:
            found = [last_of_each(codes[order], key_count)]
        else:
            kinds, ranks = self._kinds_and_ranks(rows, deletes)
            found = layers(codes[order], key_count, kinds[order], ranks[order])
        chosen = [np.sort(order[layer]) for layer in found]
        return [(layer[layer < row_count], layer[layer >= row_count] - row_count) for layer in chosen]

    def _kinds_and_ranks(
        self, rows: pa.Table | None, deletes: pa.Table | None
    ) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int64]]:
        """Of all rows, then of all deletes. A tombstone's rank says nothing."""
        values: list[pa.Array] = []
        kinds: list[npt.NDArray[np.int8]] = []
        if rows is not None:
            values += rows.column(self._layout.ordering_field).chunks
            kinds.append(np.full(rows.num_rows, ROW, dtype=np.int8))
        if deletes is not None:
            ordering = deletes.column(ORDERING)
            values += ordering.chunks
            always = ordering.is_null()
            if ordering.type == pa.int32():  # Hudi takes it for no ordering value
                always = pc.or_(always, pc.equal(ordering, 0).fill_null(False))
            kinds.append(np.where(always.to_numpy(), TOMBSTONE, DELETE).astype(np.int8))
        ranks = pa.chunked_array(values).cast(pa.int64()).fill_null(0).to_numpy()
        return np.concatenate(kinds), ranks

    def _create(self, group: Group) -> _LogFile:
        table_partition, bucket = group
        self._versions[group] += 1
        file_id = log_file.bucket_file_id(bucket)
        name = log_file.log_file_name(file_id, self._instant, self._token, self._versions[group])
        log = _LogFile(self._files, posixpath.join(table_partition, name), table_partition, file_id)
        if self._files.store.capabilities.hides or len(self._open) < STREAMS_MAX:
            with self._files.storing(log.path), self._files.uploading():
                log.stream()
        self._open.add(group, log)
        return log

    def _append_rows(self, log: _LogFile, rows: pa.Table) -> None:
        seqnos = base_file.sequence_numbers(
            f"{self._instant}_{self._writer_number}", self._rows, rows.num_rows
        )
        self._rows += rows.num_rows
        meta = base_file.meta_columns(
            instant=self._instant,
            seqnos=seqnos,
            keys=rows.column(RECORD_KEY),
            partition=log.table_partition,
            name=log.file_id,
        )
        data = rows.drop_columns([RECORD_KEY, PLACE])
        table = pa.table(meta + data.columns, schema=pa.schema([*base_file.meta_fields(), *data.schema]))
        sink = pa.BufferOutputStream()
        with pq.ParquetWriter(sink, table.schema, **self._encodings.options(table)) as writer:
            writer.write_table(table, row_group_size=table.num_rows)
        content = sink.getvalue()
        head, tail = log_file.data_block(self._instant, self._layout.avro, content.size)
        self._append(log, head, content, tail)
        log.rows += rows.num_rows

    def _append_deletes(self, log: _LogFile, deletes: pa.Table) -> None:
        keys, orderings = (deletes.column(name).to_pylist() for name in (RECORD_KEY, ORDERING))
        gone = [Delete(key, log.table_partition, by) for key, by in zip(keys, orderings, strict=True)]
        kind = deletes.schema.field(ORDERING).type
        self._append(log, log_file.delete_block(self._instant, self._layout.avro, gone, kind))
        log.deletes += deletes.num_rows

    def _append(self, log: _LogFile, *parts: bytes | pa.Buffer) -> None:
        with self._files.storing(log.path), self._files.uploading():
            log.write(parts)
        self._files.stepped(size_bytes=sum(map(len, parts)))


class _Newest:
    """Of each key's rows the one that the others leave. See `table.hudi.files.crumbs.Thin`."""

    def __init__(self, ordering_field: str) -> None:
        self.names = [RECORD_KEY, ordering_field] if ordering_field else [RECORD_KEY]

    def __call__(self, keys: pa.Array, ordering: pa.Array | None = None) -> Places:
        encoded = keys.dictionary_encode()
        codes, key_count = encoded.indices.to_numpy(), len(encoded.dictionary)
        if key_count == len(codes):
            return np.arange(key_count)
        if ordering is None:
            return last_of_each(codes, key_count)
        return newest_of_each(codes, key_count, ordering.cast(pa.int64()).to_numpy())


class _LogFile:
    """A log file that is being written. See `table.hudi.files.open_files.OpenFile`."""

    def __init__(self, files: Files, path: str, table_partition: str, file_id: str) -> None:
        self.path = path
        self.table_partition = table_partition
        self.file_id = file_id
        self.rows = 0
        self.deletes = 0
        self._files = files
        self._size_bytes = 0
        self._waiting: list[bytes | pa.Buffer] = []
        self._sink: Sink | None = None

    def stream(self) -> None:
        """Begin the file: what is written goes out at once."""
        self._sink = self._files.open(self.path)

    @property
    def held_bytes(self) -> int:
        return self._size_bytes if self._sink is None else self._files.store.held_bytes(self._size_bytes)

    def write(self, parts: Iterable[bytes | pa.Buffer]) -> None:
        for part in parts:
            self._size_bytes += len(part)
            if self._sink is None:
                self._waiting.append(part)
            else:
                self._sink.write(part)

    def end(self) -> DataFile:
        if self._sink is None:
            self._files.make_ready(self.path)
            self._sink = self._files.store.sink(self.path)
            for part in self._waiting:
                self._sink.write(part)
            self._waiting.clear()
        if self._files.ended(self.path, self._sink) != self._size_bytes:
            raise FileNotFoundError(errno.ENOENT, "another file is in its place", self.path)
        return DataFile(
            path=self.path,
            body=self.file_id,
            table_partition=self.table_partition,
            rows=self.rows,
            size_bytes=self._size_bytes,
            deletes=self.deletes,
        )

    def abandon(self) -> None:
        self._waiting.clear()
        if self._sink is not None:
            with contextlib.suppress(OSError, ValueError, pa.ArrowException):
                self._files.store.discard(self._sink)

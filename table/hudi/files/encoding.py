"""How columns are encoded in parquet, so that Spark 3.5, Hudi 1.2 and readers in Rust can read them.

Measured on 160-byte events of 8 fields: a dictionary on every column, pyarrow's default, costs twice the time
and half as much again in size as a dictionary where values repeat and deltas for the other whole numbers.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from table.hudi.files.base_file import COMMIT_SEQNO
from table.hudi.files.float_columns import Exceptions, column_leaves, find_exceptions

SAMPLE_ROWS = 4_096
REPEATS_MIN = 4
"""A column gets a dictionary where a value occurs this often on average in a sample."""
WRITE_BATCH_ROWS = 8_192
SAVED_BYTES = 512
"""What zstd must save of a column of few rows. To begin with a page costs it 16 us, whatever is in it: half
of what it takes to encode a narrow column of a thousand."""
FEW_ROWS = 256
"""Fewer count as so many: a file of which they are the beginning is seldom smaller."""
GROWTH = 8
"""Rows that are so many times as many are encoded otherwise."""


class Encodings:
    """Of the pieces of one transaction: what the first of about so many rows says holds for all of them.

    Of thousands of small files a look at each would cost what it saves.
    """

    def __init__(self) -> None:
        self._known: dict[int, dict[str, Any]] = {}
        self._exceptions = Exceptions()

    def options(self, piece: pa.Table) -> dict[str, Any]:
        """Arguments for `pyarrow.parquet.ParquetWriter`, for a file that begins with `piece`."""
        size = min(piece.num_rows, SAMPLE_ROWS).bit_length()
        if size not in self._known:
            self._known[size] = writer_options(piece)
        return self.note(piece).applied(self._known[size])

    def note(self, piece: pa.Table) -> Exceptions:
        """Exceptions of all pieces so far, and of `piece`. A file that they contradict must not take it."""
        self._exceptions |= find_exceptions(piece)
        return self._exceptions

    def clear(self) -> None:
        """The pieces that follow have other columns."""
        self._known.clear()


def outgrown(sample_rows: int, rows: int) -> bool:
    """Whether what a sample of so few rows said does not do for so many: a column may not be compressed."""
    return sample_rows < SAMPLE_ROWS and rows > GROWTH * max(sample_rows, FEW_ROWS)


def writer_options(sample: pa.Table) -> dict[str, Any]:
    """Arguments for `pyarrow.parquet.ParquetWriter`, from rows that are typical of the file."""
    leaves = _leaves_by_path(sample.slice(0, SAMPLE_ROWS))
    dictionary = [path for path, values in leaves.items() if _repeats(values)]
    deltas = {
        path: "DELTA_BINARY_PACKED"
        for path, values in leaves.items()
        if path not in dictionary and _is_whole(values.type)
    }
    options = {
        "use_dictionary": dictionary,
        "column_encoding": deltas or None,
        # nobody filters by it, and its minimum and maximum would be as long as its values
        "write_statistics": [name for name in sample.column_names if name != COMMIT_SEQNO],
        "write_batch_size": WRITE_BATCH_ROWS,
        "store_schema": False,  # Arrow's own schema would tell readers of dictionaries that are not there
    }
    return {**options, **_compression(sample, options)}


def _compression(sample: pa.Table, options: dict[str, Any]) -> dict[str, Any]:
    """The codec of each column, by its path in the file: zstd where it is worth it."""
    if sample.num_rows < SAMPLE_ROWS:
        saved_bytes = _saved_bytes(sample, options)
        least_bytes = SAVED_BYTES * min(1.0, sample.num_rows / FEW_ROWS)
        plain = {path for path, saved in saved_bytes.items() if saved < least_bytes}
    else:
        saved_bytes = _saved_bytes(sample.slice(0, 0), options)
        plain = {name for name in sample.column_names if _is_constant(sample.column(name))}
    return {
        "compression": {path: "none" if path in plain else "zstd" for path in saved_bytes},
        "compression_level": {path: 1 for path in saved_bytes if path not in plain} or None,
    }


def _saved_bytes(sample: pa.Table, options: dict[str, Any]) -> dict[str, int]:
    """By each column's path, in the order of columns, what zstd saves of it."""
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, sample.schema, compression="zstd", compression_level=1, **options) as writer:
        writer.write_table(sample)
    written = pq.read_metadata(pa.BufferReader(sink.getvalue()))
    found = {written.schema.column(place).path: 0 for place in range(written.num_columns)}
    for place in range(written.num_columns if sample.num_rows else 0):
        chunk = written.row_group(0).column(place)
        found[chunk.path_in_schema] = chunk.total_uncompressed_size - chunk.total_compressed_size
    return found


def _is_constant(column: pa.ChunkedArray) -> bool:
    """As the columns that Hudi and Kafka add are where they say the same of every row."""
    return bool(pa.types.is_dictionary(column.type)) and all(
        len(one.dictionary) == 1 for one in column.chunks
    )


def _leaves_by_path(sample: pa.Table) -> dict[str, pa.ChunkedArray]:
    """By its path in the file the values of each column, and of each within another; of maps none.

    Names may have dots: what would be called alike is not here.
    """
    leaves = [leaf for name in sample.column_names for leaf in column_leaves(name, sample.column(name))]
    counts = Counter(path for path, _ in leaves)
    return {path: values for path, values in leaves if counts[path] == 1}


def _repeats(values: pa.ChunkedArray) -> bool:
    if pa.types.is_dictionary(values.type):
        return True
    if pa.types.is_boolean(values.type):
        return False
    head = values.slice(0, SAMPLE_ROWS)
    # mostly half of them say enough that most are different
    parts = (head.slice(0, len(head) // 2), head)
    return all(pc.count_distinct(part, mode="all").as_py() * REPEATS_MIN <= len(head) for part in parts)


def _is_whole(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_date(kind))

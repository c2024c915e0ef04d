"""How columns are encoded in parquet, so that Spark 3.5, Hudi 1.2 and readers in Rust can read them.

Measured on 160-byte events of 8 fields: a dictionary on every column, pyarrow's default, costs twice the time
and half as much again in size as a dictionary where values repeat and deltas for the other whole numbers.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from table.hudi.files.base_file import COMMIT_SEQNO

SAMPLE_ROWS = 4_096
REPEATS_MIN = 4
"""A column gets a dictionary where a value occurs this often on average in a sample."""
WRITE_BATCH_ROWS = 8_192


def writer_options(sample: pa.Table) -> dict[str, Any]:
    """Arguments for `pyarrow.parquet.ParquetWriter`, from rows that are typical of the file."""
    dictionary = [name for name in sample.column_names if _repeats(sample.column(name))]
    deltas = {
        field.name: "DELTA_BINARY_PACKED"
        for field in sample.schema
        if field.name not in dictionary and _is_whole(field.type)
    }
    options = {
        "use_dictionary": dictionary,
        "column_encoding": deltas or None,
        # nobody filters by it, and its minimum and maximum would be as long as its values
        "write_statistics": [name for name in sample.column_names if name != COMMIT_SEQNO],
        "write_batch_size": WRITE_BATCH_ROWS,
        "store_schema": False,  # Arrow's own schema would tell readers of dictionaries that are not there
    }
    return {**options, **_compression(sample)}


def _compression(sample: pa.Table) -> dict[str, Any]:
    """The codec of each column, by its path in the file. To begin with a page costs zstd 25 us, whatever is
    in it: of one value it is for nothing.
    """
    constant = {name for name in sample.column_names if _is_constant(sample.column(name))}
    sink = pa.BufferOutputStream()
    pq.write_table(sample.slice(0, 0), sink)
    schema = pq.read_metadata(pa.BufferReader(sink.getvalue())).schema
    paths = [schema.column(place).path for place in range(len(schema))]
    return {
        "compression": {path: "none" if path in constant else "zstd" for path in paths},
        "compression_level": {path: 1 for path in paths if path not in constant} or None,
    }


def _is_constant(column: pa.ChunkedArray) -> bool:
    """As the columns that Hudi and Kafka add are where they say the same of every row."""
    return bool(pa.types.is_dictionary(column.type)) and all(
        len(one.dictionary) == 1 for one in column.chunks
    )


def _repeats(column: pa.ChunkedArray) -> bool:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return True
    if pa.types.is_nested(kind) or pa.types.is_boolean(kind):
        return False
    head = column.slice(0, SAMPLE_ROWS)
    return bool(pc.count_distinct(head, mode="all").as_py() * REPEATS_MIN <= len(head))


def _is_whole(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_date(kind))

"""How columns are encoded: by what a sample of them says, column by column, nested ones as well."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from table.columns import constant
from table.hudi.files.encoding import (
    FEW_ROWS,
    GROWTH,
    SAMPLE_ROWS,
    SAVED_BYTES,
    Encodings,
    outgrown,
    writer_options,
)


def sample(rows: int) -> pa.Table:
    numbers = np.arange(rows, dtype=np.int64)
    return pa.table(
        {
            "_hoodie_commit_time": constant("20261120201248694", rows),
            "text": [
                f"a text of some length that nobody has twice, {n * 7919 % 99_991}" for n in range(rows)
            ],
            "country": ["DE" if n % 3 else "FR" for n in range(rows)],
            "at": numbers,
            "tags": [[f"tag-{n}", "x" * 20] for n in range(rows)],
            "place": [{"name": f"a place by the name of {n}", "n": n % 2} for n in range(rows)],
        }
    )


def chunks(table: pa.Table, options: dict[str, Any]) -> dict[str, Any]:
    """By their paths, of a file that is written with these options."""
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, table.schema, **options) as writer:
        writer.write_table(table, row_group_size=table.num_rows)
    read = pa.BufferReader(sink.getvalue())
    assert pq.read_table(read).to_pylist() == table.to_pylist()
    group = pq.read_metadata(read).row_group(0)
    return {group.column(i).path_in_schema: group.column(i) for i in range(group.num_columns)}


def test_one_value_is_not_compressed_and_all_else_is_nested_or_not() -> None:
    found = chunks(sample(5_000), writer_options(sample(5_000)))
    assert {path for path, chunk in found.items() if chunk.compression == "UNCOMPRESSED"} == {
        "_hoodie_commit_time"
    }
    assert {chunk.compression for chunk in found.values()} == {"UNCOMPRESSED", "ZSTD"}
    assert {"tags.list.element", "place.name"} <= found.keys()


def test_a_file_of_nothing_but_one_value_is_written() -> None:
    rows = pa.table({"_hoodie_commit_time": constant("20261120201248694", 5)})
    assert chunks(rows, writer_options(rows))["_hoodie_commit_time"].compression == "UNCOMPRESSED"


def test_of_few_rows_what_compressing_saves_little_of_is_not_compressed() -> None:
    """To begin with a page costs more than that."""
    rows = sample(1_000)
    every = dict.fromkeys(chunks(rows, {}), "zstd")
    found, compressed = (
        chunks(rows, writer_options(rows)),
        chunks(rows, {**writer_options(rows), "compression": every, "compression_level": None}),
    )
    plain = {path for path, chunk in found.items() if chunk.compression == "UNCOMPRESSED"}
    assert {"country", "_hoodie_commit_time"} <= plain
    assert {"text", "tags.list.element", "place.name"} <= found.keys() - plain
    for path in plain:
        saved_bytes = found[path].total_compressed_size - compressed[path].total_compressed_size
        assert saved_bytes < SAVED_BYTES


def test_what_one_piece_says_holds_for_all_of_about_its_size_and_for_no_other() -> None:
    encodings = Encodings()
    found = [encodings.options(sample(rows)) for rows in (520, 1_000, 1_100, 5_000, 9_000)]
    assert found[0] is found[1] and found[3] is found[4]
    assert found[1] is not found[2] is not found[3]
    encodings.clear()
    assert encodings.options(sample(520)) is not found[0]


def test_many_rows_are_no_case_for_what_few_have_said() -> None:
    assert outgrown(500, 500 * GROWTH + 1) and not outgrown(500, 500 * GROWTH)
    assert outgrown(1, FEW_ROWS * GROWTH + 1) and not outgrown(1, FEW_ROWS * GROWTH)
    assert not outgrown(SAMPLE_ROWS, 1_000 * SAMPLE_ROWS)


def nested(rows: int) -> pa.Table:
    numbers = range(rows)
    return pa.table(
        {
            "place": [
                {
                    "city": None if n % 50 == 0 else f"city {n % 9}",
                    "name": f"number {n}",
                    "at": n * 7919 % 99_991,
                }
                for n in numbers
            ],
            "tags": [[f"tag {n % 11}" for _ in range(n % 4)] if n % 7 else None for n in numbers],
            "items": [
                [{"sku": f"s-{n}", "count": 1 + n % 3}, {"sku": f"t-{n}", "count": 2}] for n in numbers
            ],
            "sizes": pa.array([[n * 7919 % 99_991, n] for n in numbers], pa.list_(pa.int64())),
            "more": pa.array([[("a", n), ("b", 1)] for n in numbers], pa.map_(pa.string(), pa.int64())),
        }
    )


def test_a_column_within_another_is_encoded_by_what_it_says_itself() -> None:
    rows = nested(5_000)
    found = chunks(rows, writer_options(rows))
    dictionaries = {path for path, chunk in found.items() if "RLE_DICTIONARY" in chunk.encodings}
    deltas = {path for path, chunk in found.items() if "DELTA_BINARY_PACKED" in chunk.encodings}
    assert dictionaries == {"place.city", "tags.list.element", "items.list.element.count"}
    assert deltas == {"place.at", "sizes.list.element"}
    assert {"place.name", "items.list.element.sku", "more.key_value.key"} <= found.keys()


def test_what_stands_in_lists_is_told_by_as_many_values_as_a_sample_has_however_long_they_are() -> None:
    rows = pa.table({"long": [list(range(1_000)) for _ in range(20)]})
    assert writer_options(rows)["use_dictionary"] == ["long.list.element"]
    rows = pa.table({"long": [list(range(5_000)) for _ in range(20)]})
    assert writer_options(rows)["use_dictionary"] == []


def test_two_columns_of_one_path_are_encoded_plainly() -> None:
    """What is said of a path is said of both, and one of them may be a text."""
    rows = pa.table({"a.b": [f"text {n}" for n in range(5_000)], "a": [{"b": n} for n in range(5_000)]})
    options = writer_options(rows)
    assert not options["use_dictionary"] and not options["column_encoding"]
    assert chunks(rows, options).keys() == {"a.b"}

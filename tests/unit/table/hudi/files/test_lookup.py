"""Parquet's bloom filters in the files of a transaction."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from table.hudi.files import lookup
from table.hudi.files.lookup import check_lookup_field, filter_options, held_bytes
from table.schema import SchemaError
from tests.unit.table.hudi.files.test_base_writer import LAYOUT, base, open_writer, read, rows

__all__ = ["base"]

FILTERED = replace(LAYOUT, lookup_fields=("id", "n"))


def filters(path: Path) -> list[dict[str, int]]:
    """Of each row group, the sizes of its filters by column."""
    footer = pq.read_metadata(path)
    return [
        {one.path_in_schema: one.bloom_filter_length for one in columns if one.bloom_filter_offset}
        for group in map(footer.row_group, range(footer.num_row_groups))
        for columns in [[group.column(place) for place in range(group.num_columns)]]
    ]


def test_each_row_group_has_a_filter_of_each_of_the_columns_and_of_no_other(base: Path) -> None:
    writer = open_writer(base, layout=FILTERED, pending_bytes_max=0)
    writer.write(rows(600))
    writer.write(rows(900, first=600))
    files = writer.close()
    (found,) = (filters(base / file.path) for file in files)
    assert [set(one) for one in found] == [{"id", "n"}] * 2
    assert len({row["id"] for row in read(base, files)}) == 1_500
    plain = open_writer(base)
    plain.write(rows(10))
    (file,) = plain.close()
    assert filters(base / file.path) == [{}]


def test_rows_that_are_too_many_for_the_filters_of_a_file_begin_another(base: Path) -> None:
    writer = open_writer(base, layout=FILTERED, pending_bytes_max=0)
    for first, count in ((0, 600), (600, 1_200), (1_800, 1_201)):
        writer.write(rows(count, first=first))
    assert [file.rows for file in writer.close()] == [1_800, 1_201]


@pytest.mark.parametrize("count", [1, 300, 5_000])
def test_a_filter_takes_no_more_than_is_said_and_little_of_few_rows(count: int) -> None:
    sample = pa.table({"id": [f"{n}" for n in range(count)]})
    options = filter_options(["id"], sample)
    with_filter, without = (_written(sample, **given) for given in (options, {}))
    assert 0 < len(with_filter) - len(without) <= held_bytes(options) + 100
    assert held_bytes(options) <= max(512, 3 * count)
    assert held_bytes(filter_options([], sample)) == 0


def _written(table: pa.Table, **options: object) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def test_what_became_a_double_or_is_not_there_has_no_filter() -> None:
    sample = pa.table({"id": ["a"], "n": [0.5]})
    assert set(filter_options(["id", "n", "gone"], sample)["bloom_filter_options"]) == {"id"}
    assert filter_options(["n"], sample) == {}


@pytest.mark.parametrize("kind", [pa.float64(), pa.bool_(), pa.timestamp("us", "UTC"), pa.list_(pa.string())])
def test_filters_are_of_what_is_spelled_in_one_way(kind: pa.DataType) -> None:
    for known in lookup.TYPES:
        check_lookup_field(pa.field("x", known))
    with pytest.raises(SchemaError, match="bloom filters are of STRING, INT, BIGINT"):
        check_lookup_field(pa.field("x", kind))

"""What was put together is compared with what it was made of, by real parquet files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from table.errors import Refused, Unavailable
from table.hudi.files.base_file import KeyRange
from table.hudi.upkeep.counted import InputFile, check, count
from table.store.local import LocalStore

PLAIN = pa.schema([("a", pa.int32())])
WIDER = pa.schema([("a", pa.int32()), ("b", pa.list_(pa.string()))])
FLOATS = pa.schema([("v", pa.float64())])
STRICT = pa.schema([pa.field("a", pa.int32(), nullable=False)])


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    for folder in "xy":
        (tmp_path / folder).mkdir()
    return LocalStore(tmp_path)


NOTHING: Mapping[str, str] = {}


def write(
    store: LocalStore,
    folder: str,
    name: str,
    rows: int,
    schema: pa.Schema = PLAIN,
    footers: Mapping[str, str] = NOTHING,
    filters: Mapping[str, bool] | None = None,
) -> InputFile:
    columns = {one.name: pa.array([None if one.name == "b" else 1] * rows, one.type) for one in schema}
    table = pa.table(columns, schema=schema)
    with (
        store.sink(f"{folder}/{name}") as sink,  # type: ignore[attr-defined]
        pq.ParquetWriter(sink, table.schema, store_schema=False, bloom_filter_options=filters) as writer,
    ):
        writer.write_table(table)
        writer.add_key_value_metadata(footers)
    return InputFile(folder, name)


def test_the_same_rows_in_as_many_files_as_were_planned_are_well(store: LocalStore) -> None:
    groups = [
        [write(store, "x", f"{n}", n) for n in (1, 2, 3)],
        [write(store, "y", f"{n}", n) for n in (4, 5)],
    ]
    before = count(store, groups)
    made = [write(store, "x", "made", 6), write(store, "y", "made", 9)]
    check(store, before, made, copied=True)
    check(store, before, made, copied=False)


@pytest.mark.parametrize("rows", [5, 7])
def test_other_rows_are_refused_whoever_has_made_them(store: LocalStore, rows: int) -> None:
    before = count(store, [[write(store, "x", "1", 1), write(store, "x", "2", 5)]])
    for copied in (True, False):
        with pytest.raises(Refused, match=f"'x' had 6 rows in files that were put together, and has {rows}"):
            check(store, before, [write(store, "x", "made", rows)], copied=copied)


def test_rows_are_compared_in_each_table_partition(store: LocalStore) -> None:
    before = count(store, [[write(store, "x", "1", 1)], [write(store, "y", "1", 2)]])
    with pytest.raises(Refused, match="'x' had 1 rows"):
        check(store, before, [write(store, "x", "m", 2), write(store, "y", "m", 1)], copied=True)


def test_a_file_beside_those_that_were_planned_is_refused_of_copies(store: LocalStore) -> None:
    before = count(store, [[write(store, "x", "1", 1), write(store, "x", "2", 1)]])
    made = [write(store, "x", "made", 2), write(store, "x", "of a task that was lost", 0)]
    with pytest.raises(Refused, match="'x' has 2 files that were put together where 1 were planned"):
        check(store, before, made, copied=True)
    check(store, before, made, copied=False)


@pytest.mark.parametrize("others", [WIDER, STRICT])
def test_copies_with_other_columns_are_refused(store: LocalStore, others: pa.Schema) -> None:
    before = count(store, [[write(store, "x", "1", 1), write(store, "x", "2", 1, others)]])
    with pytest.raises(Refused, match="other columns"):
        check(store, before, [write(store, "x", "made", 2)], copied=True)


@pytest.mark.parametrize(
    ("footers", "is_copied"),
    [
        ({"hoodie_min_record_key": "a", "hoodie_max_record_key": "b"}, True),
        (KeyRange("a", "b").footers(), True),
        ({**KeyRange("a", "b").footers(), "original.created.by": "parquet-cpp-arrow"}, True),
        ({}, False),
        ({"hoodie_max_record_key": "b"}, False),
        ({**KeyRange("a", "b").footers(), "org.apache.hudi.bloomfilter": "////"}, False),
    ],
)
def test_copied_are_files_that_say_the_range_of_their_keys_and_have_no_filter_of_them(
    store: LocalStore, footers: dict[str, str], is_copied: bool
) -> None:
    ours, other = KeyRange("a", "b").footers(), write(store, "y", "1", 1, footers=footers)
    groups = [[write(store, "x", "1", 1, footers=ours), write(store, "x", "2", 1, footers=ours)], [other]]
    assert count(store, groups).not_copied == (frozenset() if is_copied else {"y"})


def test_a_file_with_bloom_filters_of_row_groups_is_not_copied_for_its_copy_would_lack_them(
    store: LocalStore,
) -> None:
    said = KeyRange("a", "b").footers()
    column = PLAIN.names[0]
    groups = [
        [write(store, "x", "1", 1, footers=said)],
        [write(store, "y", "1", 1, footers=said, filters={column: True})],
    ]
    assert count(store, groups).not_copied == {"y"}


def test_a_footer_that_cannot_be_read_is_no_verdict(store: LocalStore) -> None:
    with pytest.raises(Unavailable, match=r"the footer of .*gone could not be read"):
        count(store, [[InputFile("x", "gone")]])
    store.put("x/torn", b"PAR1 of which this is not all")
    with pytest.raises(Unavailable, match=r"the footer of .*torn could not be read"):
        count(store, [[InputFile("x", "torn")]])


def test_a_table_without_partitions_is_counted_as_a_whole(store: LocalStore) -> None:
    write(store, ".", "1", 1)
    before = count(store, [[InputFile("", "1")]])
    with pytest.raises(Refused, match=r"the table had 1 rows .* and has 0"):
        check(store, before, [], copied=True)


def values(
    store: LocalStore, folder: str, name: str, column: list[float | None], *, ranged: bool
) -> InputFile:
    footers = KeyRange("a", "b").footers()
    with (
        store.sink(f"{folder}/{name}") as sink,  # type: ignore[attr-defined]
        pq.ParquetWriter(sink, FLOATS, store_schema=False, write_statistics=ranged) as writer,
    ):
        writer.write_table(pa.table({"v": column}, schema=FLOATS))
        writer.add_key_value_metadata(footers)
    return InputFile(folder, name)


def test_files_of_which_some_have_statistics_of_a_column_and_others_have_none_are_not_copied(
    store: LocalStore,
) -> None:
    some = [values(store, "x", "1", [1.0], ranged=True), values(store, "x", "2", [2.0], ranged=False)]
    nulls = values(store, "y", "1", [None], ranged=True)
    alike = [values(store, "y", "2", [1.0], ranged=True), nulls]
    assert count(store, [some, alike]).not_copied == {"x"}
    assert count(store, [[values(store, "x", "3", [1.0], ranged=False), some[1]]]).not_copied == set()

"""What waits to be encoded: every row, in its order, and as much memory as is said."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, count

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from table.hudi.files import crumbs as crumbs_module
from table.hudi.files import split
from table.hudi.files.backlog import TIMES, Backlog, Waiting
from table.hudi.files.crumbs import COLUMN_BYTES, SMALL_BYTES, SMALL_TABLES, Crumbs, memory_bytes

NEVER = 10**12
PLACES = ["a", "b", "c"]
Batch = list[tuple[str, int]]


def table(first: int, rows: int) -> pa.Table:
    """Rows numbered from `first`, one of the columns with a dictionary of its own."""
    numbers = list(range(first, first + rows))
    names = pa.array([f"n{n % 3}-{first}" for n in numbers], pa.string()).dictionary_encode()
    return pa.table({"n": pa.array(numbers, pa.int64()), "name": names})


def codes(batch: Batch) -> np.ndarray:
    of_each = np.array([PLACES.index(place) for place, _ in batch], dtype=np.int64)
    return np.repeat(of_each, [rows for _, rows in batch])


class All:
    """Every row is worth writing."""

    names = ("n",)

    def __call__(self, numbers: pa.Array) -> np.ndarray:
        return np.arange(len(numbers))


class Last(All):
    """Of the numbers that end in the same digit, the last one."""

    def __call__(self, numbers: pa.Array) -> np.ndarray:
        last = {number % 10: row for row, number in enumerate(numbers.to_pylist())}
        return np.array(sorted(last.values()))


def numbers(found: Iterable[tuple[str, Waiting]]) -> dict[str, list[list[int]]]:
    """By place, what was found of it each time."""
    seen: dict[str, list[list[int]]] = {}
    for place, waiting in found:
        whole = waiting.all_rows()
        assert [name.rpartition("-")[0] for name in whole.column("name").to_pylist()] == [
            f"n{n % 3}" for n in whole.column("n").to_pylist()
        ]
        assert waiting.count == whole.num_rows
        seen.setdefault(place, []).append(whole.column("n").to_pylist())
    return seen


batches = st.lists(
    st.lists(st.tuples(st.sampled_from(PLACES), st.integers(1, 9) | st.just(1_500)), max_size=6), max_size=12
)


@given(batches, st.booleans(), st.sampled_from([NEVER, 20_000, 0]))
@settings(max_examples=100, deadline=None)
def test_every_row_goes_once_to_its_place_and_where_it_must_be_in_its_order(
    added: list[Batch], ordered: bool, bytes_max: int
) -> None:
    backlog: Backlog[str] = Backlog(count_max=4_000, bytes_max=NEVER, thin=All() if ordered else None)
    expected: dict[str, list[int]] = {}
    found: dict[str, list[list[int]]] = {}
    number = count()

    def note(seen: dict[str, list[list[int]]]) -> None:
        for place, parts in seen.items():
            found.setdefault(place, []).extend(parts)

    for batch in added:
        rows = sum(rows for _, rows in batch)
        first = next(number)
        number = count(first + rows)
        at = first
        for place, of_place in batch:
            expected.setdefault(place, []).extend(range(at, at + of_place))
            at += of_place
        backlog.add(table(first, rows), codes(batch), PLACES)
        note(numbers(backlog.due()))
        note(numbers(backlog.relieve(bytes_max, ["b"])))
        assert backlog.size_bytes <= bytes_max
    note(numbers(backlog.drain()))
    assert {place: sorted(chain(*parts)) for place, parts in found.items()} == expected
    if ordered:  # within one time the writer sorts them
        assert {place: list(chain(*map(sorted, parts))) for place, parts in found.items()} == expected
    assert not backlog and backlog.size_bytes == 0


def test_deletes_go_with_the_rows_that_came_before_them() -> None:
    backlog: Backlog[str] = Backlog(count_max=NEVER, bytes_max=NEVER, thin=All())
    backlog.add(table(0, 5), np.zeros(5, dtype=np.int64), PLACES)
    backlog.add_deletes(table(5, 3_000), np.zeros(3_000, dtype=np.int64), PLACES)
    ((place, waiting),) = backlog.relieve(0, [])
    assert (place, waiting.count) == ("a", 3_005)
    assert [one.num_rows for one in (*waiting.rows, *waiting.deletes)] == [5, 3_000]


def test_of_a_place_only_what_is_worth_it_goes_on_unless_there_are_deletes_of_it() -> None:
    backlog: Backlog[str] = Backlog(count_max=NEVER, bytes_max=NEVER, thin=Last())
    backlog.add(table(0, 200), codes([("a", 50), ("b", 100), ("c", 50)]), PLACES)
    backlog.add_deletes(table(200, 1), codes([("c", 1)]), PLACES)
    found = dict(backlog.drain())
    assert found["a"].all_rows().column("n").to_pylist() == list(range(40, 50))
    assert found["b"].all_rows().column("n").to_pylist() == list(range(140, 150))
    assert found["c"].all_rows().num_rows == 50
    assert [found[place].is_thin for place in PLACES] == [True, True, False]


def test_what_stays_is_thin_as_well_and_takes_as_much_less() -> None:
    crumbs: Crumbs[str] = Crumbs(Last())
    for first in (0, 5_000):
        crumbs.add(table(first, 5_000), codes([("a", 2_000), ("b", 3_000)]), PLACES)
    before = crumbs.size_bytes
    assert [rows.num_rows for _, rows in crumbs.take(["a"])] == [10]
    assert crumbs.size_bytes < before / 10 and crumbs.largest[0] == 10
    crumbs.add(table(10_000, 5), codes([("b", 5)]), PLACES)
    ((_, rows),) = crumbs.take()
    assert rows.column("n").to_pylist() == [*range(9_995, 10_000), *range(10_000, 10_005)]


def test_a_place_is_due_by_its_rows_or_by_its_memory_be_they_many_at_once_or_few() -> None:
    for rows in (2_000, 400):
        by_rows: Backlog[str] = Backlog(count_max=5 * rows, bytes_max=NEVER)
        by_memory: Backlog[str] = Backlog(count_max=NEVER, bytes_max=5 * rows * 8 + 2 * COLUMN_BYTES)
        for backlog in (by_rows, by_memory):
            seen = [rows]
            backlog.add(table(0, 3), np.ones(3, dtype=np.int64), PLACES)
            while not (due := numbers(backlog.due())):
                backlog.add(table(0, rows), np.zeros(rows, dtype=np.int64), PLACES)
                seen.append(rows)
            assert list(due) == ["a"] and len(seen) <= 6
            assert list(numbers(backlog.drain())) == ["b"]


def test_crumbs_are_never_more_than_one_piece_of_a_column_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crumbs_module, "BYTES_MAX", 20_000)
    backlog: Backlog[str] = Backlog(count_max=NEVER, bytes_max=NEVER)
    found = 0
    for first in range(0, 5_000, 500):
        backlog.add(table(first, 500), np.arange(500) % 3, PLACES)
        found += sum(waiting.count for _, waiting in backlog.due())
        assert backlog.size_bytes <= TIMES * 20_000
    assert 0 < found < 5_000
    assert found + sum(waiting.count for _, waiting in backlog.drain()) == 5_000


def test_what_is_due_is_due_no_more_once_it_is_gone() -> None:
    backlog: Backlog[str] = Backlog(count_max=2_000, bytes_max=NEVER)
    backlog.add(table(0, 2_000), np.zeros(2_000, dtype=np.int64), PLACES)
    assert len(list(backlog.drain())) == 1
    assert list(backlog.due()) == []
    backlog.add(table(0, 2_000), np.zeros(2_000, dtype=np.int64), PLACES)
    backlog.clear()
    assert list(backlog.due()) == [] and not backlog and backlog.size_bytes == 0


def test_a_part_is_worth_a_table_by_its_rows_or_by_its_memory() -> None:
    narrow = split.divide(table(0, 1_010), codes([("a", 1_000), ("b", 10)]), 3)
    assert [(code, part.num_rows) for code, part in narrow.parts] == [(0, 1_000)]
    assert (
        narrow.crumbs.column("n").to_pylist() == list(range(1_000, 1_010)) and list(narrow.codes) == [1] * 10
    )
    texts = pa.table({"text": ["x" * 2_500] * 60})
    wide = split.divide(texts, codes([("a", 50), ("b", 10)]), 3)
    assert [(code, part.num_rows) for code, part in wide.parts] == [(0, 50)]


def test_a_key_that_is_a_column_of_the_data_is_copied_once() -> None:
    key = pa.chunked_array([[f"k{n}" for n in range(1_500)], [f"k{n}" for n in range(1_500)]])
    rows = pa.table({"key": key, "n": range(3_000), "also": key})
    (_, part), *_ = split.divide(rows, np.arange(3_000) % 2, 2).parts
    assert part.column_names == rows.column_names
    assert part.column("also").to_pylist() == part.column("key").to_pylist() == key.to_pylist()[::2]
    assert part.get_total_buffer_size() == part.select(["key", "n"]).get_total_buffer_size()


# --- crumbs -------------------------------------------------------------------------------------------


def test_small_batches_become_one_and_large_ones_are_not_copied() -> None:
    crumbs: Crumbs[str] = Crumbs()
    large = table(0, SMALL_BYTES)
    crumbs.add(large, np.zeros(SMALL_BYTES, dtype=np.int64), PLACES)
    for number in range(SMALL_TABLES - 1):
        crumbs.add(table(number * 5, 5), np.ones(5, dtype=np.int64), PLACES)
    before = crumbs.size_bytes
    crumbs.add(table(1_000, 5), np.ones(5, dtype=np.int64), PLACES)
    assert crumbs.size_bytes < before - SMALL_TABLES * COLUMN_BYTES
    assert [one.num_rows for one, _ in crumbs._batches] == [SMALL_BYTES, 5 * SMALL_TABLES]
    assert crumbs._batches[0][0] is large


def test_what_stays_keeps_no_memory_of_what_was_taken_out() -> None:
    crumbs: Crumbs[str] = Crumbs()
    for number in range(10):
        crumbs.add(table(number, 1_000), codes([("a", 900), ("b", 100)]), PLACES)
    before = crumbs.size_bytes
    assert [(place, rows.num_rows) for place, rows in crumbs.take(["a"])] == [("a", 9_000)]
    assert crumbs.size_bytes < before / 5
    assert crumbs.size_bytes == sum(memory_bytes(one) for one, _ in crumbs._batches)
    assert "a" not in crumbs and "b" in crumbs


def test_columns_of_the_same_memory_share_it_afterwards() -> None:
    crumbs: Crumbs[str] = Crumbs()
    key = pa.array([f"k{n}" for n in range(1_000)])
    crumbs.add(pa.table({"key": key, "also": key}), np.arange(1_000) % 2, PLACES)
    _, rows = next(crumbs.take())
    bare = rows.select(["key"])
    assert rows.column("also").to_pylist() == [f"k{n}" for n in range(0, 1_000, 2)]
    assert rows.get_total_buffer_size() == bare.get_total_buffer_size()


def test_columns_of_the_same_codes_that_mean_something_else_are_not_the_same() -> None:
    zeros = pa.array([0] * 10, pa.int32())
    both = {name: pa.DictionaryArray.from_arrays(zeros, pa.array([name])) for name in ("topic", "region")}
    crumbs: Crumbs[str] = Crumbs()
    crumbs.add(pa.table(both), np.zeros(10, dtype=np.int64), PLACES)
    ((_, rows),) = crumbs.take()
    assert rows.to_pylist() == [{"topic": "topic", "region": "region"}] * 10


@pytest.mark.parametrize(("first", "expected"), [((), ["a"]), (("b", "c"), ["b"])])
def test_the_largest_go_first_and_of_those_about_as_large_the_preferred(
    first: tuple[str, ...], expected: list[str]
) -> None:
    crumbs: Crumbs[str] = Crumbs()
    crumbs.add(table(0, 1_000), codes([("a", 500), ("b", 400), ("c", 100)]), PLACES)
    assert crumbs.choose(1, first) == expected
    assert crumbs.choose(crumbs.size_bytes, first) == ["a", "b", "c"]


def test_at_least_a_quarter_is_taken_out_at_once() -> None:
    crumbs: Crumbs[str] = Crumbs()
    names = [f"p{n}" for n in range(100)]
    crumbs.add(table(0, 10_000), np.arange(10_000) % 100, names)
    assert len(crumbs.choose(1, ["p99"])) == 25
    assert "p99" in crumbs.choose(1, ["p99"])


def test_columns_of_the_same_memory_are_told_apart_by_what_they_mean() -> None:
    """Of two dictionaries with the same indices, and of numbers that are times as well."""
    at = pa.array(np.zeros(4, dtype=np.int32))
    numbers = pa.array(np.arange(4))
    given = pa.table(
        {
            "one": pa.DictionaryArray.from_arrays(at, pa.array(["x"])),
            "other": pa.DictionaryArray.from_arrays(at, pa.array(["y"])),
            "number": numbers,
            "same": numbers,
            "time": numbers.view(pa.timestamp("us")),
        }
    )
    crumbs: Crumbs[str] = Crumbs()
    crumbs.add(given, np.array([0, 1, 0, 1]), ["a", "b"])
    rows = {place: table for place, table in crumbs.take()}
    for place, chosen in (("a", [0, 2]), ("b", [1, 3])):
        assert rows[place].to_pylist() == given.take(pa.array(chosen)).to_pylist()


def test_columns_of_texts_that_are_all_null_or_empty_have_memory_of_no_byte() -> None:
    empty = pa.array(["", None] * 5)
    nulls = pa.Array.from_buffers(pa.string(), 10, [*empty.buffers()[:2], pa.py_buffer(b"")])
    given = pa.table({"key": [f"k{n}" for n in range(10)], "note": nulls, "also": nulls})
    crumbs: Crumbs[str] = Crumbs()
    crumbs.add(given, np.zeros(10, dtype=np.int64), PLACES)
    ((_, rows),) = crumbs.take()
    assert rows.to_pylist() == given.to_pylist()

"""What waits to be encoded: every row, in its order, and as much memory as is said."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from table.hudi.files.backlog import COLUMN_BYTES, SMALL_BYTES, SMALL_TABLES, Backlog


def table(first: int, count: int) -> pa.Table:
    """Rows numbered from `first`, one of the columns with a dictionary of its own."""
    numbers = list(range(first, first + count))
    names = pa.array([f"n{n % 3}-{first}" for n in numbers]).dictionary_encode()
    return pa.table({"n": pa.array(numbers), "name": names})


def names(waiting: list[pa.Table]) -> list[str]:
    return [name for one in waiting for name in one.column("name").to_pylist()]


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 9) | st.just(9_000)), max_size=120))
@settings(max_examples=50, deadline=None)
def test_every_row_waits_for_its_place_in_its_order(added: list[tuple[str, int]]) -> None:
    backlog: Backlog[str] = Backlog(count_max=10**9, bytes_max=10**9)
    expected: dict[str, list[str]] = {}
    first = 0
    for place, count in added:
        one = table(first, count)
        expected.setdefault(place, []).extend(one.column("name").to_pylist())
        assert not backlog.add(place, one)
        first += count
    for place, rows in expected.items():
        assert names(backlog.pop(place).rows) == rows
    assert not backlog and backlog.size_bytes == 0


def test_small_tables_become_one_and_large_ones_are_not_copied() -> None:
    backlog: Backlog[str] = Backlog(count_max=10**9, bytes_max=10**9)
    large = table(0, SMALL_BYTES)
    backlog.add("a", large)
    for number in range(SMALL_TABLES - 1):
        backlog.add("a", table(number * 5, 5))
    before = backlog.size_bytes
    backlog.add("a", table(1_000, 5))
    assert backlog.size_bytes < before - SMALL_TABLES * COLUMN_BYTES
    waiting = backlog.pop("a")
    assert [one.num_rows for one in waiting.rows] == [SMALL_BYTES, 5 * SMALL_TABLES]
    assert waiting.rows[0] is large


def test_a_place_is_due_by_its_rows_or_by_its_memory() -> None:
    by_rows: Backlog[int] = Backlog(count_max=10, bytes_max=10**9)
    assert not by_rows.add(1, table(0, 9))
    assert not by_rows.add(2, table(0, 1))
    assert by_rows.add(1, table(9, 1), deletes=True)
    by_memory: Backlog[int] = Backlog(count_max=10**9, bytes_max=3 * COLUMN_BYTES)
    assert not by_memory.add(1, table(0, 1))
    assert by_memory.add(1, table(1, 1))
    assert (by_memory.first(), by_memory.largest()) == (1, 1)
    assert len(by_rows.pop(1).deletes) == 1
    by_rows.clear()
    assert not by_rows and by_rows.size_bytes == 0

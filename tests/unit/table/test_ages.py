"""How old table partitions are by the newest value of a field in all of their files."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from table import ages
from table.ages import NOTHING, UNKNOWN, FileAges

RETENTION_MS, NOW_MS = 100, 1_000
OLD, OLDEST, YOUNG = 900.0, 10.0, 901.0
A, B, C = (f"{name}-0_0-0-0_{time}.parquet" for name, time in (("f", 1), ("e", 2), ("d", 3)))


def judged(
    files: Mapping[str, float], now_ms: int = NOW_MS, known: FileAges | None = None
) -> tuple[bool, int]:
    """Whether a table partition of these files goes, and how many of them were asked, one after the other."""
    known, asked = known or FileAges(RETENTION_MS), 0
    while unread := known.unread("p", files, now_ms):
        known.learn("p", {unread[0]: files[unread[0]]})
        asked += 1
    return known.is_past("p", files, now_ms), asked


@pytest.mark.parametrize(
    ("files", "goes"),
    [
        ({A: OLD}, True),
        ({A: YOUNG}, False),
        ({A: OLDEST, B: OLD, C: OLDEST}, True),
        ({A: YOUNG, B: OLD, C: OLDEST}, False),
        ({A: NOTHING, B: OLD}, True),
        ({A: NOTHING, B: NOTHING}, False),
        ({A: OLD, B: UNKNOWN}, False),
        ({}, False),
    ],
)
def test_it_goes_once_the_newest_value_of_all_its_files_is_older_and_where_each_says_so(
    files: dict[str, float], goes: bool
) -> None:
    assert judged(files)[0] is goes


FILES = st.dictionaries(
    st.integers(0, 999).map(lambda n: f"f-0_0-0-0_{n}.parquet"),
    st.one_of(st.sampled_from([NOTHING, UNKNOWN]), st.integers(-2_000, 2_000).map(float)),
    max_size=6,
)


@given(FILES, st.integers(-2_000, 2_000))
def test_whatever_files_say_the_verdict_is_that_of_their_maximum(
    files: dict[str, float], now_ms: int
) -> None:
    newest_ms = max(files.values(), default=NOTHING)
    assert judged(files, now_ms)[0] is (NOTHING < newest_ms <= now_ms - RETENTION_MS)


def test_the_newest_file_is_asked_first_and_no_other_where_it_is_young() -> None:
    assert judged({A: OLD, B: OLD, C: YOUNG}) == (False, 1)
    assert judged({A: YOUNG, B: OLD, C: OLD}) == (False, 3)


def test_what_is_young_is_not_looked_into_before_that_is_past_its_time() -> None:
    known = FileAges(RETENTION_MS)
    assert judged({A: OLD, B: YOUNG}, known=known)[0] is False
    assert known.open(["p", "q"], NOW_MS) == ["q"]
    assert known.open(["p", "q"], NOW_MS + 1) == ["p", "q"]
    assert judged({A: OLD, B: YOUNG}, NOW_MS + 1, known)[0] is True


def test_of_a_table_partition_that_is_gone_nothing_is_remembered() -> None:
    known = FileAges(RETENTION_MS)
    judged({A: YOUNG}, known=known)
    assert known.open([], NOW_MS) == []
    assert known.open(["p"], NOW_MS) == ["p"]


def test_a_file_is_asked_once_and_one_that_came_since_counts() -> None:
    known = FileAges(RETENTION_MS)
    assert judged({A: NOTHING, B: OLD}, known=known) == (True, 2)
    assert judged({A: NOTHING, B: OLD}, known=known) == (True, 0)
    assert judged({A: NOTHING, B: OLD, C: YOUNG}, known=known) == (False, 1)


def test_one_that_does_not_say_is_looked_into_again_for_it_may_be_written_anew() -> None:
    known = FileAges(RETENTION_MS)
    assert judged({A: UNKNOWN}, known=known) == (False, 1)
    assert known.open(["p"], NOW_MS) == ["p"]
    assert judged({A: UNKNOWN}, known=known) == (False, 0)
    assert judged({B: OLD}, known=known) == (True, 1)


def test_of_too_many_files_what_was_known_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ages, "FILES_KNOWN_MAX", 2)
    known = FileAges(RETENTION_MS)
    known.learn("q", {A: OLD, B: OLD})
    assert judged({A: OLD}, known=known) == (True, 1)
    assert known.unread("q", [A], NOW_MS) == [A]

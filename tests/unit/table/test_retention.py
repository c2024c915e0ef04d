"""How long table partitions live, by the value that each stands for."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from table.partitioners.expressions import TablePartitions
from table.partitioners.patterns import PATTERN_CHARS_MAX
from table.retention import ages_of, expired, told_by

DAY_MS = 86_400_000


def ms(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1_000)


@pytest.mark.parametrize(
    ("pattern", "value", "over"),
    [
        ("yyyy-MM-dd", "2026-11-20", "2026-11-21T00:00"),
        ("yyyy-MM-dd", "2024-02-29", "2024-03-01T00:00"),
        ("yyyyMMdd", "20261231", "2027-01-01T00:00"),
        ("yyyy/MM/dd", "2026/11/20", "2026-11-21T00:00"),
        ("yyyyMMddHH", "2026112023", "2026-11-21T00:00"),
        ("yyyy-MM-dd'T'HH:mm", "2026-11-20T10:59", "2026-11-20T11:00"),
        ("yyyy-MM", "2026-02", "2026-03-01T00:00"),
        ("yyyy-MM", "2026-12", "2027-01-01T00:00"),
        ("yyyy", "1969", "1970-01-01T00:00"),
        ("dd.MM.yyyy", "20.11.2026", "2026-11-21T00:00"),
        ("yyyy/M/d", "2026/1/9", "2026-01-10T00:00"),
        ("yyyy/M/d", "2026/01/31", "2026-02-01T00:00"),
        ("uuuu-MM-dd H", "2026-11-20 7", "2026-11-20T08:00"),
        ("yyyyMMddHHmmss", "20261120235959", "2026-11-21T00:00"),
        ("yyyy/yyyy-MM", "2026/2026-11", "2026-12-01T00:00"),
    ],
)
def test_a_value_stands_for_all_of_what_it_names(pattern: str, value: str, over: str) -> None:
    assert ages_of(pattern).end_ms(value) == ms(over)


@pytest.mark.parametrize(
    "value",
    [
        *("", "2026-11-2", "2026-13-01", "2026-02-30", "20261120", "__HIVE_DEFAULT_PARTITION__", "late"),
        *("２０２６-11-20", "0000-01-01", "9999-12-31", "2026-11-20\n", "2026-11-20 "),
    ],
)
def test_what_is_no_such_time_lives_for_ever(value: str) -> None:
    ages = ages_of("yyyy-MM-dd")
    assert ages.end_ms(value) is None
    assert expired([value], ages, now_ms=ms("9999-01-01T00:00"), retention_ms=0) == []


def test_what_is_said_twice_and_differs_lives_for_ever() -> None:
    assert ages_of("yyyy/yyyy-MM").end_ms("2025/2026-11") is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "a pattern of 1 to 100 characters"),
        ("MM-dd", "does not say a time"),
        ("yyyy-dd", "does not say a time"),
        ("yyyy-MM-dd mm", "does not say a time"),
        ("yyyy-MM-dd HH:ss", "does not say a time"),
        ("YYYY-MM-dd", "'YYYY-MM-dd' is not understood: write one of yyyy, .* not YYYY"),
        ("yyyy-MM-dd'", "a second single quote"),
        ("y" * (PATTERN_CHARS_MAX + 1), "a pattern of 1 to 100 characters"),
        ("yyyyMd", "where its month begins and ends"),
        ("yyyy-M'1'", "where its month begins and ends"),
    ],
)
def test_what_says_no_time_is_refused_as_a_pattern(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        ages_of(text)


@given(st.text(alphabet="yMdHms-/'T(+.", max_size=45))
def test_whatever_is_written_is_a_pattern_or_refused(text: str) -> None:
    try:
        ages = ages_of(text)
    except ValueError as error:
        assert str(error)
    else:
        ages.end_ms("2026-11-20")


def test_a_table_partition_is_past_its_time_once_its_end_is_older_than_the_retention() -> None:
    days = ["2026-11-19", "2026-11-18", "2026-11-20", "late"]
    ages = ages_of("yyyy-MM-dd")
    on_time = ms("2026-11-21T00:00")
    assert expired(days, ages, now_ms=on_time, retention_ms=DAY_MS) == ["2026-11-18", "2026-11-19"]
    assert expired(days, ages, now_ms=on_time - 1, retention_ms=DAY_MS) == ["2026-11-18"]


@given(st.dates().map(str), st.integers(0, 10_000 * DAY_MS), st.integers(0, ms("9998-01-01T00:00")))
def test_nothing_goes_whose_last_moment_is_within_the_retention(
    day: str, retention_ms: int, now_ms: int
) -> None:
    found = expired([day], ages_of("yyyy-MM-dd"), now_ms=now_ms, retention_ms=retention_ms)
    assert bool(found) == (day < "9999-12-31" and ms(day) + DAY_MS + retention_ms <= now_ms)


# --- which field says it ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("partition_by", "path", "value", "over"),
    [
        (["day"], "2026-11-20", "2026-11-20", "2026-11-21T00:00"),
        (["day"], "day=2026-11-20", "2026-11-20", "2026-11-21T00:00"),
        (["region", "day(ts)"], "EU/2026-11-20", "2026-11-20", "2026-11-21T00:00"),
        (['format(ts, "yyyy/M/d")'], "2026/2/3", "2026/2/3", "2026-02-04T00:00"),
        (["region", "hour(ts)"], "region=EU/ts_hour=2026-11-20-09", "2026-11-20-09", "2026-11-20T10:00"),
        (["minutes(15, ts)"], "2026-11-20-09-45", "2026-11-20-09-45", "2026-11-20T10:00"),
        (['day(ts, "Europe/Berlin")', "bucket(4, k)"], "2026-11-20/3", "2026-11-20", "2026-11-20T23:00"),
        (['day(ts, "America/New_York")'], "2026-11-20", "2026-11-20", "2026-11-21T05:00"),
        (['hour(ts, "Europe/Berlin")'], "2026-10-25-02", "2026-10-25-02", "2026-10-25T02:00"),
        (['format(ts, "yyyy/MM/dd")', "region"], "2026/11/20/EU", "2026/11/20", "2026-11-21T00:00"),
        (['format(ts, "yyyy/MM/dd")'], "2026%2F11%2F20", "2026/11/20", "2026-11-21T00:00"),
        (["region", "day(ts)"], "2026-11-20", "", ""),
        (["day"], "late", "late", ""),
    ],
)
def test_the_one_field_that_is_a_time_says_it_wherever_it_stands_in_the_path(
    partition_by: list[str], path: str, value: str, over: str
) -> None:
    told = told_by(TablePartitions.of(partition_by), "")
    assert told.value(path) == value
    assert told.ages.end_ms(value) == (ms(over) if over else None)


@pytest.mark.parametrize("partition_by", [[], ["a", "b"], ["bucket(4, k)"], ["day(ts)", "day(other)"]])
def test_where_none_says_it_or_several_could_it_is_refused(partition_by: list[str]) -> None:
    with pytest.raises(ValueError, match="to say one time"):
        told_by(TablePartitions.of(partition_by), "")

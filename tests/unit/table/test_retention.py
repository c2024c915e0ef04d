"""How long table partitions live, by the value that each stands for."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo, available_timezones

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.times import turn_between
from table.partitioners.expressions import TablePartitions
from table.partitioners.patterns import PATTERN_CHARS_MAX, pattern
from table.partitioners.times import spelled
from table.retention import Ages, ages_of, expired, told_by

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


UNITS = {
    "yyyy": 0,
    "yyyy-MM": 0,
    "yyyy-MM-dd": 0,
    "yyyy-MM-dd-HH": 0,
    "yyyy-MM-dd-HH-mm": 1,
    "yyyy-MM-dd HH:mm": 15,
    "yyyyMMddHHmm": 20,
    "yyyy/MM/dd/HH/mm": 30,
    "yyyy-MM-dd-HH-mm-ss": 0,
}
"""Pattern -> minutes of its smallest part."""
ZONES = sorted(available_timezones() - {"localtime"})
HOUR_US = 3_600_000_000


@settings(max_examples=1_000)
@given(
    zone=st.sampled_from(["Europe/Berlin", "Australia/Lord_Howe", "America/Sao_Paulo"])
    | st.sampled_from(ZONES),
    year=st.integers(1970, 2037),
    unit=st.sampled_from(sorted(UNITS)),
    beside_us=st.integers(-3 * HOUR_US, 3 * HOUR_US) | st.sampled_from([-HOUR_US - 1, -1, 0, HOUR_US - 1]),
)
def test_no_value_is_over_before_a_moment_that_has_it_in_any_zone_and_unit(
    zone: str, year: int, unit: str, beside_us: int
) -> None:
    """Also where the clock is put back: moments are those around a year's first two turns of the clock."""
    minutes = UNITS[unit]
    ages = Ages(pattern(unit), ZoneInfo(zone), minutes or 1)
    turn_ms = ms(f"{year}-01-01")
    for _ in range(2):
        turn_ms = turn_between(turn_ms, ms(f"{year + 1}-01-01"), ZoneInfo(zone)) or turn_ms
        moment_us = 1_000 * turn_ms + beside_us
        _, [value] = spelled(np.array([moment_us]), pattern(unit), zone=zone, step=minutes * 60_000_000)
        assert value is not None
        end_ms = ages.end_ms(value)
        assert end_ms is not None and moment_us < 1_000 * end_ms


@pytest.mark.parametrize(
    ("partition_by", "value", "over"),
    [
        ('minutes(15, ts, "Europe/Berlin")', "2026-10-25-02-30", "2026-10-25T01:45"),
        ('minutes(15, ts, "Europe/Berlin")', "2026-10-25-02-45", "2026-10-25T02:00"),
        ('minutes(15, ts, "Europe/Berlin")', "2026-10-25-01-45", "2026-10-25T00:00"),
        ('hour(ts, "Europe/Berlin")', "2026-10-25-01", "2026-10-25T00:00"),
        ('hour(ts, "Europe/Berlin")', "2026-10-25-02", "2026-10-25T02:00"),
        ('hour(ts, "Europe/Berlin")', "2026-03-29-01", "2026-03-29T01:00"),
        ('hour(ts, "Australia/Lord_Howe")', "2026-04-05-01", "2026-04-04T15:30"),
        ('minutes(30, ts, "Australia/Lord_Howe")', "2026-04-05-01-00", "2026-04-04T14:30"),
        ('minutes(30, ts, "Australia/Lord_Howe")', "2026-04-05-01-30", "2026-04-04T15:30"),
        ('day(ts, "America/Sao_Paulo")', "2018-02-17", "2018-02-18T03:00"),
        ('day(ts, "America/Sao_Paulo")', "2018-11-03", "2018-11-04T03:00"),
        ('day(ts, "America/Havana")', "2026-10-31", "2026-11-01T04:00"),
        ('day(ts, "Pacific/Apia")', "2011-12-29", "2011-12-30T10:00"),
        ('month(ts, "Europe/Berlin")', "2026-10", "2026-10-31T23:00"),
    ],
)
def test_a_value_is_over_when_the_clock_of_its_zone_has_shown_it_for_the_last_time(
    partition_by: str, value: str, over: str
) -> None:
    assert told_by(TablePartitions.of([partition_by]), "").ages.end_ms(value) == ms(over)


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

"""Times as texts, a column at once, are those of Python's own calendar and zones, one by one."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest

from table.partitioners import times
from table.partitioners.patterns import PatternError, pattern

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ZONES = ("", "UTC", "Europe/Berlin", "America/St_Johns", "Asia/Kathmandu", "Africa/Monrovia", "Pacific/Apia")
ENDS = (
    "2026-03-29T00:59:59.999999",
    "2026-03-29T01:00:00",
    "2026-10-25T00:30:00",
    "2026-10-25T01:30:00",
    "1987-04-05T03:31:00",
    "2011-12-30T09:59:59",
    "1972-01-07T00:44:29",
    "1893-03-31T23:06:31",
    "1969-12-31T23:59:59.999999",
    "0001-01-02T00:00:00",
    "9999-12-30T23:59:59",
)
"""Of summer time and before it, of a zone that skipped a day, of local mean times, of the calendar."""
SHAPES = (
    ("yyyy-MM-dd", "%Y-%m-%d"),
    ("yyyy-MM-dd-HH", "%Y-%m-%d-%H"),
    ("dd/MM/yyyy 'at' HH.mm", "%d/%m/%Y at %H.%M"),
)


def micros(time: datetime) -> int:
    return (time - EPOCH) // timedelta(microseconds=1)


def instants(seed: int) -> list[datetime]:
    chance = random.Random(seed)
    ends = [datetime.fromisoformat(one).replace(tzinfo=UTC) for one in ENDS]
    near = [one + timedelta(seconds=chance.choice((-1, 0, 1, 60, -60))) for one in ends for _ in range(3)]
    spread = [EPOCH + timedelta(seconds=chance.randint(-3 * 10**9, 4 * 10**9)) for _ in range(200)]
    return [*ends, *near, *spread]


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize(("shape", "as_python"), SHAPES)
def test_a_text_is_what_the_clock_of_the_zone_shows(zone: str, shape: str, as_python: str) -> None:
    moments = instants(len(zone))
    codes, texts = times.spelled(np.array([micros(one) for one in moments]), pattern(shape), zone=zone)
    there = ZoneInfo(zone) if zone else UTC
    for moment, code in zip(moments, codes.tolist(), strict=True):
        local = moment.astimezone(there)
        year = f"{local.year:04d}"  # C leaves the zeros out
        assert texts[code] == local.strftime(as_python.replace("%Y", year))


@pytest.mark.parametrize("zone", ["", "Europe/Berlin", "America/St_Johns"])
@pytest.mark.parametrize("length_s", [0, 600, 5_400, 40 * 3_600])
def test_a_stretch_of_time_is_shown_as_its_times_are_one_by_one(zone: str, length_s: int) -> None:
    shape = pattern("yyyy-MM-dd-HH")
    for end in ENDS[:-2]:
        first = micros(datetime.fromisoformat(end).replace(tzinfo=UTC)) - length_s * times.SECOND // 2
        stretch = first + np.arange(0, length_s + 60, 60, dtype=np.int64) * times.SECOND
        codes, texts = times.spelled(stretch, shape, zone=zone)
        alone = [times.spelled(stretch[at : at + 1], shape, zone=zone)[1][0] for at in range(len(stretch))]
        assert [texts[code] for code in codes] == alone


def test_of_no_times_there_is_no_text() -> None:
    codes, texts = times.spelled(np.zeros(0, dtype=np.int64), pattern("yyyy"), zone="Asia/Tokyo")
    assert (len(codes), texts) == (0, [])


def test_each_text_is_spelled_once() -> None:
    codes, texts = times.spelled(np.arange(0, 3 * times.HOUR, times.SECOND), pattern("yyyy-MM-dd-HH"))
    assert texts == ["1970-01-01-00", "1970-01-01-01", "1970-01-01-02"]
    assert np.bincount(codes).tolist() == [3_600] * 3


def test_minutes_are_those_before_also_where_a_zone_is_a_quarter_of_an_hour_off() -> None:
    quarter = 15 * times.STEPS["minute"]
    moments = [datetime(1969, 12, 31, 23, 59, tzinfo=UTC), datetime(2026, 1, 1, 0, 14, 59, tzinfo=UTC)]
    codes, texts = times.spelled(
        np.array([micros(one) for one in moments]), pattern("HH-mm"), zone="Asia/Kathmandu", step=quarter
    )
    assert [texts[code] for code in codes] == ["05-15", "05-45"]


def test_a_year_that_only_a_zone_reaches_has_no_text() -> None:
    low, high = times.BOUNDS
    codes, texts = times.spelled(np.array([low, high]), pattern("yyyy"), zone="Asia/Tokyo")
    assert [texts[code] for code in codes] == ["0001", None]
    codes, texts = times.spelled(np.array([low, high]), pattern("yyyy"), zone="America/New_York")
    assert [texts[code] for code in codes] == [None, "9999"]


def test_numbers_texts_dates_and_times_are_microseconds_and_null_where_no_year_has_them() -> None:
    days = times.micros_of(pa.array([0, -1, None], pa.date32()))
    assert days.to_pylist() == [0, -86_400 * 10**6, None]
    seconds = times.micros_of(pa.array([1, -1, 2**62, None, 253_402_300_799]), factor=times.SECOND)
    assert seconds.to_pylist() == [10**6, -(10**6), None, None, 253_402_300_799 * 10**6]
    ours = pa.array([5, None], pa.timestamp("us", tz="UTC"))
    assert times.micros_of(ours).to_pylist() == [5, None]
    read = pattern("yyyy-MM-dd HH:mm:ss")
    texts = pa.array(["1970-01-01 00:00:01", "1969-12-31 23:59:59", "nonsense", "1970-01-01", None])
    assert times.micros_of(texts, pattern=read).to_pylist() == [10**6, -(10**6), None, None, None]


READ: dict[str, dict[str, bool]] = {
    "yyyy-MM-dd": {
        "2024-02-29": True,
        "2023-02-29": False,
        "2026-02-30": False,
        "2026-04-31": False,
        "2026-12-31": True,
        "1500-02-29": False,
        "26-01-01": False,
        "2026-2-03": False,
        " 2026-02-03": False,
        "2026-02-03 ": False,
        "2026-02-03\n": False,
        "12026-02-03": False,
        "2026-13-01": False,
        "2026-00-01": False,
        "2026-01-00": False,
        "": False,
    },
    "d.M.yyyy": {"3.2.2026": True, "03.12.2026": True, "31.2.2026": False, "3.2.26": False},
    "yyyyMMdd": {"20260203": True, "2026112": False, "202611260": False},
    "yyyy-MM-dd HH:mm:ss": {
        "2026-02-28 23:59:59": True,
        "2026-02-28 23:59:60": False,
        "2026-02-28 24:00:00": False,
        "2026-02-28  23:59:59": False,
        "2026-02-28 1:2:3": False,
    },
}
"""Pattern -> text -> whether it is a time."""


@pytest.mark.parametrize("shape", READ)
def test_a_text_is_read_to_the_digit_and_names_a_day_that_there_is(shape: str) -> None:
    texts = READ[shape]
    found = times.micros_of(pa.array([*texts, None]), pattern=pattern(shape)).to_pylist()
    for (text, is_time), read in zip(texts.items(), found, strict=False):
        assert (read is not None) is is_time, text
        if read is not None:
            when = times.EPOCH + timedelta(microseconds=read)
            assert when == datetime.strptime(text, pattern(shape).strptime).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", "1 to 100 characters"),
        ("x" * 101, "1 to 100 characters"),
        ("--", "a part of a time"),
        ("yyyyy", "not yyyyy"),
        ("YYYY", "not YYYY"),
        ("yyyy'", "a second single quote"),
        ("yyyy'a''b'", "without a single quote in it"),
        ("yyyy#", "single quotes around #"),
    ],
)
def test_a_pattern_that_java_would_read_otherwise_is_refused(text: str, wanted: str) -> None:
    with pytest.raises(PatternError, match=wanted):
        pattern(text)

"""Times of the wall clock: in zones, on days of 23 and of 25 hours, and whatever is written that is none."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.schedule import CHARS_MAX, alignment_of, longest_ms, schedule_of, zone_of
from coordinator.times import DAY_MS, NEVER, WALL_MS_MAX, Every, Times

MINUTE_MS, HOUR_MS = 60_000, 3_600_000
BERLIN = ZoneInfo("Europe/Berlin")
SPRING, AUTUMN = "2026-03-29", "2026-10-25"
"""At 01:00 UTC Berlin's clock goes from 02:00 to 03:00; and from 03:00 to 02:00."""


def ms(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1_000)


def shown(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1_000, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def within(times: Times, start: str, end: str) -> list[str]:
    """All of them in `[start, end)`, as UTC shows them, without the date."""
    found, at_ms = [], times.after(ms(start) - 1)
    while at_ms < ms(end):
        found.append(shown(at_ms)[11:])
        at_ms = times.after(at_ms)
    return found


def schedule(text: str, zone: str = "UTC") -> Times:
    times = schedule_of(text, zone_of(zone))
    assert times is not None
    return times


# --- that recur ---------------------------------------------------------------------------------


def test_the_first_time_after_a_moment_is_later_than_that_moment() -> None:
    hours = Every(HOUR_MS)
    full = ms("2026-11-20T11:00:00")
    assert (hours.after(full - 1), hours.after(full), hours.after(full + 1)) == (
        full,
        full + HOUR_MS,
        full + HOUR_MS,
    )


def test_a_day_begins_by_the_clock_of_its_zone() -> None:
    days = Every(DAY_MS, 0, BERLIN)
    assert shown(days.after(ms("2026-07-01T12:00"))) == "2026-07-01T22:00:00"
    assert shown(days.after(ms("2026-12-01T12:00"))) == "2026-12-01T23:00:00"


def test_a_zone_that_is_half_an_hour_apart_has_its_own_full_hours() -> None:
    assert within(Every(HOUR_MS, 0, ZoneInfo("Asia/Kolkata")), "2026-01-01T00:00", "2026-01-01T02:00") == [
        "00:30:00",
        "01:30:00",
    ]


@pytest.mark.parametrize(("day", "hours"), [(SPRING, 23), (AUTUMN, 25), ("2026-06-01", 24)])
def test_a_day_has_as_many_full_hours_as_it_has_hours(day: str, hours: int) -> None:
    midnight = Every(DAY_MS, 0, BERLIN)
    start_ms = midnight.after(ms(f"{day}T00:00") - 12 * HOUR_MS)
    end_ms = midnight.after(start_ms)
    assert end_ms - start_ms == hours * HOUR_MS
    found, at_ms = 0, start_ms - 1
    while (at_ms := Every(HOUR_MS, 0, BERLIN).after(at_ms)) < end_ms:
        found += 1
    assert found == hours


def test_a_stretch_of_hours_is_shorter_where_one_is_left_out_and_longer_where_one_comes_twice() -> None:
    thirds = Every(6 * HOUR_MS, 0, BERLIN)
    assert within(thirds, f"{SPRING}T00:00", f"{SPRING}T12:00") == [
        "04:00:00",
        "10:00:00",
    ]  # from 23:00 on: 5 h
    assert within(thirds, f"{AUTUMN}T00:00", f"{AUTUMN}T12:00") == [
        "05:00:00",
        "11:00:00",
    ]  # from 22:00 on: 7 h


def test_a_time_that_the_clock_jumps_over_is_the_moment_of_the_jump() -> None:
    daily = schedule("every 1d at 02:30", "Europe/Berlin")
    assert within(daily, f"{SPRING}T00:00", f"{SPRING}T12:00") == ["01:00:00"]


def test_a_time_that_the_clock_shows_twice_comes_twice() -> None:
    daily = schedule("every 1d at 02:30", "Europe/Berlin")
    assert within(daily, f"{AUTUMN}T00:00", f"{AUTUMN}T12:00") == ["00:30:00", "01:30:00"]


def test_a_day_without_midnight_begins_with_the_jump_and_one_with_two_hours_before_midnight_is_one_day() -> (
    None
):
    cairo, paulo = ZoneInfo("Africa/Cairo"), ZoneInfo("America/Sao_Paulo")
    assert within(Every(DAY_MS, 0, cairo), "2024-04-25T12:00", "2024-04-26T12:00") == ["22:00:00"]
    assert within(Every(DAY_MS, 0, paulo), "2018-02-17T12:00", "2018-02-19T12:00") == ["03:00:00", "03:00:00"]


@given(
    at_ms=st.integers(0, ms("2037-12-31T00:00")),
    period_ms=st.sampled_from(
        [10_000, 15 * MINUTE_MS, 45 * MINUTE_MS, HOUR_MS, 2 * HOUR_MS, 6 * HOUR_MS, DAY_MS]
    ),
    zone=st.sampled_from(
        ["UTC", "Europe/Berlin", "Australia/Lord_Howe", "America/Havana", "Africa/Cairo", "Asia/Kathmandu"]
    ),
)
def test_times_follow_one_another_and_what_lies_between_two_has_one_end(
    at_ms: int, period_ms: int, zone: str
) -> None:
    times = alignment_of(period_ms, ZoneInfo(zone))
    assert times is not None
    next_ms = times.after(at_ms)
    assert at_ms < next_ms <= at_ms + period_ms + HOUR_MS
    assert times.after((at_ms + next_ms) // 2) == times.after(next_ms - 1) == next_ms
    clock = [datetime.fromtimestamp(one / 1_000, ZoneInfo(zone)) for one in (at_ms, next_ms - 1)]
    numbers = [
        (one.date(), (one.hour * 3_600 + one.minute * 60 + one.second) * 1_000 // period_ms) for one in clock
    ]
    assert numbers[0] == numbers[1], "a stretch holds one value of whatever is cut by its period"


@pytest.mark.parametrize("at_ms", [-1, WALL_MS_MAX, 2**60, NEVER])
def test_a_clock_that_shows_no_time_of_the_calendar_has_none_that_comes_next(at_ms: int) -> None:
    assert Every(HOUR_MS).after(at_ms) == schedule("0 * * * *").after(at_ms) == NEVER


# --- as they are written ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("every 1h at :00", ["10:00:00", "11:00:00"]),
        ("EVERY 1H", ["10:00:00", "11:00:00"]),
        ("every 30m at :05", ["10:05:00", "10:35:00", "11:05:00", "11:35:00"]),
        ("every 1d at 11:15", ["11:15:00"]),
        ("every 1d at 11:15:30", ["11:15:30"]),
        ("every 6h at 4:30", ["10:30:00"]),
        ("0 * * * *", ["10:00:00", "11:00:00"]),
        ("*/20 11 * * *", ["11:00:00", "11:20:00", "11:40:00"]),
        ("30 10 * * MON-FRI", ["10:30:00"]),
        ("30 10 * * SUN", []),
    ],
)
def test_a_schedule_is_read_as_it_is_written(text: str, expected: list[str]) -> None:
    assert within(schedule(text), "2026-11-20T10:00", "2026-11-20T12:00") == expected


def test_an_empty_schedule_is_none_and_an_alignment_of_nothing_neither() -> None:
    assert schedule_of(" ") is None
    assert alignment_of(0) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("hourly", "five fields"),
        ("0 * * * * *", "five fields"),
        ("61 * * * *", "bad minute"),
        ("* * * * MOO", "bad day-of-week"),
        ("0 0 30 2 *", "bad day-of-month"),
        ("0 0 29 2 1#1,", "bad day-of-week"),
        ("* * */20 * 1L", "never comes"),
        ("every hour", "not understood"),
        ("every 7m", "does not divide a day"),
        ("every 0s", "does not divide a day"),
        ("every 2d", "does not divide a day"),
        ("every 1h at 01:00", "not within 1h"),
        ("every 15m at :15", "not within 15m"),
        ("every 1h at :60", "no time of day"),
        ("every 100ms", "not understood"),
        ("0 " * CHARS_MAX, "at most 200 characters"),
    ],
)
def test_what_is_no_schedule_is_refused_with_a_sentence(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        schedule_of(text)


@pytest.mark.parametrize("period_ms", [-1, 7 * MINUTE_MS, 5 * HOUR_MS, 2 * DAY_MS])
def test_an_alignment_that_does_not_divide_a_day_is_refused(period_ms: int) -> None:
    with pytest.raises(ValueError, match="does not divide a day"):
        alignment_of(period_ms)


@pytest.mark.parametrize(
    "name", ["Mars/Olympus", "", "../etc/passwd", "/etc/passwd", "Europe/Berlin\0", "x" * 5_000]
)
def test_a_zone_that_nobody_knows_is_refused_with_a_sentence(name: str) -> None:
    with pytest.raises(ValueError, match="is not a zone that this machine knows"):
        zone_of(name)


@given(st.text(alphabet="0123456789*/,-#LWMONJAN every:atmhds", max_size=30))
def test_whatever_is_written_is_a_schedule_or_refused(text: str) -> None:
    try:
        times = schedule_of(text)
    except ValueError as error:
        assert len(str(error)) < 400
    else:
        assert times is None or times.after(ms("2026-01-01T00:00")) > ms("2026-01-01T00:00")


# --- cron's, when clocks change -----------------------------------------------------------------


def test_cron_does_a_job_of_a_certain_time_once_in_the_hour_that_comes_twice() -> None:
    daily = schedule("30 2 * * *", "Europe/Berlin")
    assert within(daily, f"{AUTUMN}T00:00", f"{AUTUMN}T12:00") == ["00:30:00"]
    assert shown(daily.after(ms(f"{AUTUMN}T01:10"))) == "2026-10-26T01:30:00"  # asked in the second of them


def test_cron_does_a_job_of_the_hour_that_is_left_out_right_after_it() -> None:
    assert within(schedule("30 2 * * *", "Europe/Berlin"), f"{SPRING}T00:00", f"{SPRING}T12:00") == [
        "01:00:00"
    ]


def test_cron_does_what_comes_each_hour_in_each_of_both() -> None:
    hourly = schedule("0 * * * *", "Europe/Berlin")
    assert within(hourly, f"{AUTUMN}T00:00", f"{AUTUMN}T03:00") == ["00:00:00", "01:00:00", "02:00:00"]


# --- how far they lie apart -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "apart_ms"),
    [
        ("every 10s", 10_000),
        ("every 1h at :30", HOUR_MS),
        ("0 9-17 * * *", 16 * HOUR_MS),
        ("0 9 * * MON-FRI", 3 * DAY_MS),
        ("0 0 1 1 *", 365 * DAY_MS),
    ],
)
def test_how_far_two_times_lie_apart_at_most_is_known(text: str, apart_ms: int) -> None:
    assert longest_ms(schedule(text)) == apart_ms

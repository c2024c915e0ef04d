"""Times of the wall clock where zones put theirs forward and back, 2020 to 2030, against one that is walked
minute by minute: an hour, half of one (Australia/Lord_Howe), two (Antarctica/Troll), three, and at midnight.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from typing import NamedTuple
from zoneinfo import ZoneInfo, available_timezones

import pytest

from coordinator.schedule import schedule_of
from coordinator.times import DAY_MS, Every, Times

MINUTE_MS, HOUR_MS = 60_000, 3_600_000
WEEK_MS = 7 * DAY_MS
FIRST_MS, LAST_MS = (round(datetime(year, 1, 1, tzinfo=UTC).timestamp() * 1_000) for year in (2020, 2031))
AROUND_MS = 26 * HOUR_MS

HOURS, EVEN = frozenset(range(24)), frozenset(range(0, 24, 2))
FIVES = frozenset(range(0, 60, 5))
CRONS = {
    "0 * * * *": (frozenset({0}), HOURS),
    "45 * * * *": (frozenset({45}), HOURS),
    "*/20 * * * *": (frozenset({0, 20, 40}), HOURS),
    "0 */2 * * *": (frozenset({0}), EVEN),
    "30 */2 * * *": (frozenset({30}), EVEN),
    "*/5 2 * * *": (FIVES, frozenset({2})),
    "15 2 * * *": (frozenset({15}), frozenset({2})),
    "30 0 * * *": (frozenset({30}), frozenset({0})),
    "0,30 1-3 * * *": (frozenset({0, 30}), frozenset({1, 2, 3})),
    "45 0,23 * * *": (frozenset({45}), frozenset({0, 23})),
}
"""Minutes and hours of each."""


class Turn(NamedTuple):
    """A clock that is put forward or back, and by how much."""

    zone: str
    at_ms: int
    before: timedelta
    after: timedelta


def offset(at_ms: int, zone: ZoneInfo) -> timedelta:
    found = datetime.fromtimestamp(at_ms / 1_000, zone).utcoffset()
    assert found is not None
    return found


def turns_of(name: str) -> Iterator[Turn]:
    zone = ZoneInfo(name)
    at_ms = FIRST_MS
    while at_ms < LAST_MS:
        later_ms, before = at_ms + WEEK_MS, offset(at_ms, zone)
        if offset(later_ms, zone) == before:
            at_ms = later_ms
            continue
        early_ms = at_ms
        while later_ms - early_ms > MINUTE_MS:
            middle_ms = early_ms + (later_ms - early_ms) // (2 * MINUTE_MS) * MINUTE_MS
            if offset(middle_ms, zone) == before:
                early_ms = middle_ms
            else:
                later_ms = middle_ms
        yield Turn(name, later_ms, before, offset(later_ms, zone))
        at_ms = later_ms


@cache
def turns() -> tuple[Turn, ...]:
    """One of each kind: by how much, from where to where, at which time of the day."""
    kinds: dict[tuple[object, ...], Turn] = {}
    for name in sorted(available_timezones()):
        for one in turns_of(name):
            shows = (one.at_ms + one.before // timedelta(milliseconds=1)) % DAY_MS
            kinds.setdefault((one.after - one.before, one.before, shows), one)
    return tuple(kinds.values())


@cache
def walked(turn: Turn) -> tuple[tuple[int, int], ...]:
    """Minute by minute: the moment, and what the clock shows, as if it were UTC's."""
    zone = ZoneInfo(turn.zone)
    first_ms = turn.at_ms - AROUND_MS
    moments = range(first_ms, turn.at_ms + AROUND_MS, MINUTE_MS)
    return tuple((at_ms, at_ms + offset(at_ms, zone) // timedelta(milliseconds=1)) for at_ms in moments)


def of(times: Times, turn: Turn) -> list[int]:
    """All of them around it."""
    found, at_ms = [], times.after(turn.at_ms - AROUND_MS)
    while at_ms < turn.at_ms + AROUND_MS:
        found.append(at_ms)
        at_ms = times.after(at_ms)
    return found


def test_the_zones_of_these_years_have_turns_of_every_kind() -> None:
    kinds = {(one.after - one.before) // timedelta(minutes=1) for one in turns()}
    assert {30, -30, 60, -60, 120, -120} <= kinds
    assert len(turns()) > 30


@pytest.mark.parametrize("fields", CRONS)
def test_cron_does_what_a_clock_would_have_it_do_that_is_walked(fields: str) -> None:
    """A job of each hour or minute whenever the clock shows its time. One of certain hours once, when it is
    shown first, and as the clock jumps where it is left out.
    """
    minutes, hours = CRONS[fields]
    is_certain = not any(one.startswith("*") for one in fields.split()[:2])

    def is_due(shown_ms: int) -> bool:
        return shown_ms // MINUTE_MS % 60 in minutes and shown_ms // HOUR_MS % 24 in hours

    for turn in turns():
        seen: set[int] = set()
        expected = []
        for (_, before_ms), (at_ms, shown_ms) in pairwise(walked(turn)):
            left_out = any(map(is_due, range(before_ms + MINUTE_MS, shown_ms, MINUTE_MS)))
            is_first = shown_ms not in seen
            seen.add(shown_ms)
            if (is_due(shown_ms) and is_first) or (left_out if is_certain else is_due(shown_ms)):
                expected.append(at_ms)
        times = schedule_of(fields, ZoneInfo(turn.zone))
        assert times is not None
        assert of(times, turn) == expected, turn


@pytest.mark.parametrize("splits", [False, True])
@pytest.mark.parametrize(
    ("period_ms", "offset_ms"),
    [
        (15 * MINUTE_MS, 0),
        (20 * MINUTE_MS, 5 * MINUTE_MS),
        (HOUR_MS, 0),
        (HOUR_MS, 40 * MINUTE_MS),
        (2 * HOUR_MS, 0),
        (6 * HOUR_MS, 0),
        (DAY_MS, 0),
        (DAY_MS, 2 * HOUR_MS + 15 * MINUTE_MS),
    ],
)
def test_a_period_ends_when_a_clock_would_show_it_that_is_walked(
    period_ms: int, offset_ms: int, splits: bool
) -> None:
    """Where the clock shows a multiple, or jumps over one; what is split, as well where it is put back."""
    for turn in turns():
        expected = []
        for (_, before_ms), (at_ms, shown_ms) in pairwise(walked(turn)):
            number, earlier = (shown_ms - offset_ms) // period_ms, (before_ms - offset_ms) // period_ms
            is_shown = (shown_ms - offset_ms) % period_ms == 0
            if is_shown or earlier < number or (splits and earlier != number):
                expected.append(at_ms)
        times = Every(period_ms, offset_ms, ZoneInfo(turn.zone), splits=splits)
        assert of(times, turn) == expected, turn

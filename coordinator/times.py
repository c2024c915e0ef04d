"""Times of the wall clock at which transactions end: what the core asks, and those that recur in words. Pure.

Times are milliseconds since 1970 in UTC, as `time.time()` counts them. A zone's rules are a value that the
caller has made (`zoneinfo`): nothing here reads a clock or a file.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Final, Protocol

DAY_MS: Final = 86_400_000
NEVER: Final = 2**62
"""Later than every clock shows."""

TURNS_APART_MS: Final = 7 * DAY_MS
"""No zone puts its clock forward and back again in less, but for the month of Ramadan, which is longer."""

WALL_MS_MAX: Final = 253_370_764_800_000
"""The year 9999, at which Python's calendar ends (`datetime.MAXYEAR`)."""


class Times(Protocol):
    """Some moments, in a fixed order."""

    def after(self, wall_ms: int) -> int:
        """The first of them that is later than this; `NEVER` where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ByTheClock:
    """What ends transactions by the wall clock; None: nothing does."""

    schedule: Times | None = None
    """When they end, beside the interval."""
    align: Times | None = None
    """What none spans: between two of them it begins and ends."""


NOTHING: Final = ByTheClock()


def east_of_utc_ms(at_ms: int, zone: tzinfo) -> int:
    """By how much the zone's clock is ahead of UTC's then."""
    offset = datetime.fromtimestamp(at_ms / 1_000, zone).utcoffset()
    return 0 if offset is None else round(offset.total_seconds() * 1_000)


def turn_between(from_ms: int, upto_ms: int, zone: tzinfo) -> int | None:
    """The first moment after `from_ms`, up to `upto_ms`, at which the zone's clock is put forward or back."""
    east_ms = east_of_utc_ms(from_ms, zone)
    before_ms = from_ms
    while before_ms < upto_ms:
        after_ms = min(upto_ms, before_ms + TURNS_APART_MS)
        if east_of_utc_ms(after_ms, zone) == east_ms:
            before_ms = after_ms
            continue
        while after_ms - before_ms > 1:
            middle_ms = (before_ms + after_ms) // 2
            if east_of_utc_ms(middle_ms, zone) == east_ms:
                before_ms = middle_ms
            else:
                after_ms = middle_ms
        return after_ms
    return None


@dataclass(frozen=True, slots=True)
class Every:
    """Whenever the clock of a zone shows a multiple of `period_ms`, counted from midnight, and `offset_ms`
    more.

    `period_ms` divides a day. Where the zone's clock jumps over such a time, the moment of the jump is one;
    where it is put back and shows the time again, that is another. So with 1h there are 23 on a day of 23
    hours, 25 on one of 25, and with 24h there is one on a day whose midnight is left out.
    """

    period_ms: int
    offset_ms: int = 0
    zone: tzinfo = UTC
    splits: bool = False
    """They split time into stretches, each with one number of the period since midnight: then a moment at
    which the clock is put back into an earlier stretch is one of them, too."""

    def after(self, wall_ms: int) -> int:
        """See `Times`."""
        if not 0 <= wall_ms < WALL_MS_MAX:
            return NEVER
        at_ms = wall_ms
        while at_ms < wall_ms + 2 * DAY_MS:
            next_ms = at_ms + self.period_ms - self._within_ms(at_ms)
            turn_ms = turn_between(at_ms, next_ms, self.zone)
            if turn_ms is None:
                return next_ms
            if self._rings_at_turn(turn_ms):
                return turn_ms
            at_ms = turn_ms
        return NEVER  # a zone whose clock is put back every day

    def _local_ms(self, at_ms: int) -> int:
        """What the zone's clock shows, counted as if it were UTC's."""
        return at_ms + east_of_utc_ms(at_ms, self.zone)

    def _within_ms(self, at_ms: int) -> int:
        """How long ago the clock showed, or would have shown, the last of them."""
        return (self._local_ms(at_ms) - self.offset_ms) % self.period_ms

    def _rings_at_turn(self, turn_ms: int) -> bool:
        """Whether the clock, as it is put, shows one of them, or jumps over one."""
        before, after = self._number(turn_ms - 1), self._number(turn_ms)
        return self._within_ms(turn_ms) == 0 or before < after or (self.splits and before != after)

    def _number(self, at_ms: int) -> int:
        return (self._local_ms(at_ms) - self.offset_ms) // self.period_ms

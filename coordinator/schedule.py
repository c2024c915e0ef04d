"""`transaction.schedule` and `transaction.align` as they are written, made into `Times`. Beside the core,
which is given what comes of it: here zones are loaded, and cron's expressions are a library's.

Both the configuration, which refuses what is wrong, and the worker, which holds the coordinator, read them
here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from coordinator.times import (
    DAY_MS,
    NEVER,
    WALL_MS_MAX,
    ByTheClock,
    Every,
    Times,
    east_of_utc_ms,
    turn_between,
)

CHARS_MAX: Final = 200
"""Of a schedule, or of a zone's name."""
PERIOD_MS_MIN: Final = 1_000

_UNITS_MS: Mapping[str, int] = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": DAY_MS}
_WORDS = re.compile(
    r"every\s+(\d{1,5})\s*([smhd])(?:\s+at\s+(\d{1,2})?:(\d{2})(?::(\d{2}))?)?", re.IGNORECASE
)
_EXAMPLES = 'write "every 1h at :00", "every 1d at 03:30", or cron\'s five fields, "0 * * * *"'

_LOOKED_AT: Final = 400
_YEAR_MS: Final = 366 * DAY_MS
_FROM_MS: Final = 1_704_067_200_000
"""2024-01-01, a year of 366 days: how far times lie apart is looked at from here, the same for everybody."""


@dataclass(frozen=True, slots=True)
class Cron:
    """Five fields as Debian's cron has them, summer time included: a job of a certain time is done once in
    the hour that comes twice, and after the one that is left out; one of every hour or minute whenever it
    comes."""

    fields: str
    zone: tzinfo

    def after(self, wall_ms: int) -> int:
        """See `Times`. There is none where none comes within fifty years."""
        if not 0 <= wall_ms < WALL_MS_MAX:
            return NEVER
        try:
            return self._certain(wall_ms) if self._is_certain() else self._shown(wall_ms)
        except OverflowError:
            return NEVER  # the calendar's end

    def _is_certain(self) -> bool:
        """Whether it is a job of certain hours, as Debian's cron tells them apart."""
        minutes, hours = self.fields.split()[:2]
        return not (minutes.startswith("*") or hours.startswith("*"))

    def _certain(self, wall_ms: int) -> int:
        for one in CronSim(self.fields, datetime.fromtimestamp(wall_ms / 1_000, self.zone)):
            at_ms = int(one.timestamp()) * 1_000
            if at_ms > wall_ms:  # the library forgets in which of two hours of the same name it began
                return at_ms
        return NEVER

    def _shown(self, wall_ms: int) -> int:
        """The library is asked between two turns of the zone's clock at a time: where that is put back by
        half an hour, or by several, it leaves times out.
        """
        at_ms = wall_ms // 1_000 * 1_000
        while True:
            east_ms = east_of_utc_ms(at_ms, self.zone)
            shown = datetime.fromtimestamp((at_ms + east_ms) / 1_000, UTC)
            found = next(CronSim(self.fields, shown), None)
            if found is None:
                return NEVER
            found_ms = int(found.timestamp()) * 1_000 - east_ms
            turn_ms = turn_between(at_ms, found_ms, self.zone)
            if turn_ms is None:
                return found_ms
            if self._rings(turn_ms):
                return turn_ms
            at_ms = turn_ms

    def _rings(self, at_ms: int) -> bool:
        """Whether it is time as the clock has just been put."""
        shown = datetime.fromtimestamp((at_ms + east_of_utc_ms(at_ms, self.zone)) / 1_000, UTC)
        return next(CronSim(self.fields, shown - timedelta(seconds=1)), None) == shown


def zone_of(name: str) -> tzinfo:
    """A zone of the IANA database by its name. Raises `ValueError` with a sentence."""
    if name.upper() == "UTC":
        return UTC
    try:
        return ZoneInfo(name[:CHARS_MAX])
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(
            f"{name[:CHARS_MAX]!r} is not a zone that this machine knows: write one such as "
            '"Europe/Berlin" or "UTC" (the system\'s tzdata, or the package tzdata, has them)'
        ) from None


def schedule_of(text: str, zone: tzinfo = UTC) -> Times | None:
    """What `transaction.schedule` says; None where it is empty. Raises `ValueError` with a sentence."""
    words = " ".join(text[: CHARS_MAX + 1].split())
    if not words:
        return None
    if len(words) > CHARS_MAX:
        raise ValueError(f"a schedule has at most {CHARS_MAX} characters: {_EXAMPLES}")
    times = _every(words, zone) if words.lower().startswith("every") else _cron(words, zone)
    if times.after(_FROM_MS) == NEVER:
        raise ValueError(f"{words!r} never comes: {_EXAMPLES}")
    return times


def alignment_of(period_ms: int, zone: tzinfo = UTC) -> Times | None:
    """What `transaction.align` says; None where it is 0. Raises `ValueError` with a sentence."""
    if period_ms == 0:
        return None
    if period_ms < 0 or DAY_MS % period_ms:
        raise ValueError("it does not divide a day: write one that does, such as 15m, 1h, 6h or 24h")
    return Every(period_ms, 0, zone, splits=True)


def by_the_clock(schedule: str, align_ms: int, zone: tzinfo = UTC) -> ByTheClock:
    """Both. Raises `ValueError` with a sentence."""
    return ByTheClock(schedule=schedule_of(schedule, zone), align=alignment_of(align_ms, zone))


def longest_ms(times: Times) -> int:
    """How far two of them, one after the other, lie apart at most; of rare ones, at least that."""
    at_ms, longest = times.after(_FROM_MS), 0
    for _ in range(_LOOKED_AT):
        next_ms = times.after(at_ms)
        longest = max(longest, min(next_ms - at_ms, _YEAR_MS))
        if next_ms - _FROM_MS > _YEAR_MS:
            break
        at_ms = next_ms
    return longest


def _every(words: str, zone: tzinfo) -> Every:
    said = _WORDS.fullmatch(words)
    if said is None:
        raise ValueError(f"{words!r} is not understood: {_EXAMPLES}")
    number, unit, hours, minutes, seconds = said.groups()
    period_ms = int(number) * _UNITS_MS[unit.lower()]
    if period_ms < PERIOD_MS_MIN or DAY_MS % period_ms:
        raise ValueError(
            f"{number}{unit} does not divide a day: write a period that does, such as 10s, 15m, 1h, 6h or 1d"
        )
    if int(minutes or 0) > 59 or int(seconds or 0) > 59:
        raise ValueError(f"{words!r} names no time of day after 'at': {_EXAMPLES}")
    offset_ms = 1_000 * (3_600 * int(hours or 0) + 60 * int(minutes or 0) + int(seconds or 0))
    if offset_ms >= period_ms:
        raise ValueError(f"{words!r} names a time that is not within {number}{unit}: {_EXAMPLES}")
    return Every(period_ms, offset_ms, zone)


def _cron(words: str, zone: tzinfo) -> Cron:
    if len(words.split()) != 5:
        raise ValueError(f"{words!r} has not cron's five fields: {_EXAMPLES}")
    try:
        CronSim(words, datetime.fromtimestamp(_FROM_MS / 1_000, UTC))
    except CronSimError as error:
        raise ValueError(f"{words!r} is no schedule of cron's ({str(error).lower()}): {_EXAMPLES}") from None
    return Cron(words, zone)

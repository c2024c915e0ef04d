"""The kinds of values that say when transactions end, as `coordinator.schedule` reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, PlainSerializer

from coordinator.times import DAY_MS
from lockstep.config.problems import shown
from lockstep.config.units import format_duration, parse_duration_ms

ALIGN_MS_MIN = 10_000
"""Within a second of a boundary nothing is begun: between two of them much else must have room."""


def _schedule(value: str) -> str:
    from coordinator.schedule import schedule_of  # nobody without a schedule needs its library

    schedule_of(value)
    return " ".join(value.split())


def _zone(value: str) -> str:
    from coordinator.schedule import zone_of

    zone_of(value)
    return value


def _align(value: object) -> int:
    """0 aligns nothing, and needs no unit."""
    from coordinator.schedule import alignment_of

    none = value in (0, "0", "") and not isinstance(value, bool)
    period_ms = 0 if none else parse_duration_ms(value)
    if period_ms and not ALIGN_MS_MIN <= period_ms <= DAY_MS:
        raise ValueError(f"{shown(value)} is out of bounds: at least 10s, at most 24h")
    try:
        alignment_of(period_ms)
    except ValueError as error:
        raise ValueError(f"{shown(value)}: {error}") from None
    return period_ms


def with_interval(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """A `[transaction]` with the interval that a schedule implies, where it is not given: who wants records
    each hour does not mean the interval's default. Twice the longest time between two: it ends what nothing
    else does.
    """
    from coordinator.schedule import longest_ms, schedule_of

    schedule = given.get("schedule")
    if "interval" in given or not isinstance(schedule, str):
        return given
    try:
        times = schedule_of(schedule)
    except ValueError:
        return given  # its own setting says what is wrong
    if times is None:
        return given
    return {**given, "interval": format_duration(min(DAY_MS, 2 * longest_ms(times)))}


Schedule = Annotated[str, AfterValidator(_schedule)]
Zone = Annotated[str, AfterValidator(_zone)]
AlignMs = Annotated[int, BeforeValidator(_align), PlainSerializer(format_duration)]

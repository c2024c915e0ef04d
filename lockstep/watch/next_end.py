"""When a transaction is ended by the clock next, as the run has it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from control_topic.causes import ALIGN, SCHEDULE
from coordinator.times import NEVER, Times
from lockstep.config.sections import TransactionSection


@dataclass(frozen=True, slots=True, kw_only=True)
class NextEnd:
    reason: str
    """`SCHEDULE` or `ALIGN`: what comes first, of both at once the alignment."""
    time_ms: int
    """Since 1970."""
    in_ms: int
    shown: str
    """What the clock of `transaction.zone` shows then, with its day and the zone."""


def next_end(
    transaction: TransactionSection, now_ms: int, live: Mapping[str, Any] | None = None
) -> NextEnd | None:
    """None where nothing ends by the clock. By this machine's, which may differ from the coordinator's.

    `live`: what the driver says, which knows what operators have set; None where it does not answer.
    """
    in_force = ((live or {}).get("control") or {}).get("in_force") or {}
    schedule = str(in_force.get("transaction.schedule", transaction.schedule))
    align_ms = int(in_force.get("transaction.align", transaction.align_ms))
    if not (schedule or align_ms):
        return None
    try:
        known = _known(schedule, align_ms, transaction.zone)
    except ValueError:  # of a run whose Lockstep is another
        return None
    found = [(times.after(now_ms), at, name) for at, (name, times) in enumerate(known)]
    time_ms, _, reason = min(found)
    if time_ms >= NEVER:
        return None
    return NextEnd(
        reason=reason, time_ms=time_ms, in_ms=time_ms - now_ms, shown=_shown(time_ms, transaction.zone)
    )


@lru_cache(maxsize=64)
def _known(schedule: str, align_ms: int, zone: str) -> tuple[tuple[str, Times], ...]:
    """Those that there are, by reason. Raises `ValueError`."""
    from coordinator.schedule import by_the_clock, zone_of  # nobody without a schedule needs its library

    clock = by_the_clock(schedule, align_ms, zone_of(zone))
    found = ((ALIGN, clock.align), (SCHEDULE, clock.schedule))
    return tuple((name, times) for name, times in found if times is not None)


def _shown(time_ms: int, zone: str) -> str:
    from coordinator.schedule import zone_of

    return f"{datetime.fromtimestamp(time_ms / 1_000, zone_of(zone)):%Y-%m-%d %H:%M:%S} {zone}"

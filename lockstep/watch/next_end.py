"""When a transaction is ended by the clock next, as the configuration has it. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from control_topic.causes import ALIGN, SCHEDULE
from coordinator.times import NEVER
from lockstep.config.sections import TransactionSection


@dataclass(frozen=True, slots=True, kw_only=True)
class NextEnd:
    reason: str
    """`SCHEDULE` or `ALIGN`: what comes first, of both at once the alignment."""
    time_ms: int
    """Since 1970."""
    in_ms: int


def next_end(transaction: TransactionSection, now_ms: int) -> NextEnd | None:
    """None where nothing ends by the clock. By this machine's, which may differ from the coordinator's."""
    if not (transaction.schedule or transaction.align_ms):
        return None
    from coordinator.schedule import alignment_of, schedule_of, zone_of

    zone = zone_of(transaction.zone)
    known = (
        (ALIGN, alignment_of(transaction.align_ms, zone)),
        (SCHEDULE, schedule_of(transaction.schedule, zone)),
    )
    found = [(times.after(now_ms), at, name) for at, (name, times) in enumerate(known) if times is not None]
    time_ms, _, reason = min(found)
    return NextEnd(reason=reason, time_ms=time_ms, in_ms=time_ms - now_ms) if time_ms < NEVER else None

"""Whether a slot's worker comes up: from the start of its Spark task to its first report. Pure.

Time without a free Spark slot is Spark's, and waited for as long as an outage. Time in a running task that
does not report is bounded: what forks the workers may be frozen. While another worker lives the run goes on
without this one: then nothing but an alarm comes of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from table.service.ledger import LedgerLimits

NO_SLOT_MAX_S = LedgerLimits().outage_budget_ms / 1_000
STEP_MAX_S = 5.0
"""The most that one look adds: a driver that was frozen itself does not know."""
STARTS_MAX = 2
"""Starts in a row without a report, and nobody else alive, before the run halts: the first is tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotSeen:
    """A worker's slot, as it was seen."""

    number: int
    start: int
    """Which one of the slot it is, counted from 1."""

    reported: bool = False
    """Its worker has."""

    waits: bool = False
    """Its task has no Spark slot yet."""

    idle: bool = False
    """There is no task, as between two starts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartsVerdict:
    """What follows from the slots."""

    cancel: tuple[int, ...] = ()
    """Slots whose task is to be killed."""

    alarm: str = ""
    """For the status."""

    halt: str = ""
    """Why the run ends."""


@dataclass(slots=True)
class _Slot:
    start: int = 0
    silent_s: float = 0.0
    waits_s: float = 0.0
    overdue: int = 0
    cancelled: bool = False


@dataclass(slots=True)
class Starts:
    """How long the workers' slots have been waited for, and which are late."""

    start_s: float
    """The bound, from the start of a worker's task to its first report."""
    _slots: dict[int, _Slot] = field(default_factory=dict)
    _last_s: float | None = None

    def look(self, now_s: float, slots: Sequence[SlotSeen], *, lives: bool) -> StartsVerdict:
        """`lives`: whether any worker of the run does."""
        step_s = min(now_s - self._last_s, STEP_MAX_S) if self._last_s is not None else 0.0
        self._last_s = now_s
        cancel, halt, late = [], "", []
        for seen in slots:
            slot = self._count(seen, step_s)
            if seen.reported or seen.idle:
                continue
            if slot.silent_s >= self.start_s and not slot.cancelled:
                slot.cancelled = True
                slot.overdue += 1
                cancel.append(seen.number)
            if slot.overdue >= STARTS_MAX and not lives:
                halt = halt or self._never_came(seen.number, slot)
            elif slot.waits_s >= NO_SLOT_MAX_S and not lives:
                halt = halt or _no_slot(seen.number, slot)
            if max(slot.silent_s, slot.waits_s) >= self.start_s / 2 or slot.overdue:
                late.append(_alarm(seen, slot))
        return StartsVerdict(cancel=tuple(cancel), alarm="; ".join(late), halt=halt)

    def _count(self, seen: SlotSeen, step_s: float) -> _Slot:
        slot = self._slots.setdefault(seen.number, _Slot())
        if seen.start != slot.start:
            slot.start, slot.silent_s, slot.waits_s, slot.cancelled = seen.start, 0.0, 0.0, False
        elif seen.waits and not slot.overdue:  # afterwards the task that was killed may still have its slot
            slot.waits_s += step_s
        elif not seen.idle:
            slot.silent_s += step_s
        if seen.reported:
            slot.silent_s = slot.waits_s = 0.0
            slot.overdue = 0
        return slot

    def _never_came(self, number: int, slot: _Slot) -> str:
        return (
            f"worker-{number} was started {slot.overdue} times and did not report within {self.start_s:.0f}"
            " s, and no other worker lives: what starts Python for Spark does not answer (a hung mount, a "
            "frozen process), or the workers cannot reach the driver. Nothing is lost: see the executor's "
            "log and machine, and start again."
        )


def _no_slot(number: int, slot: _Slot) -> str:
    return (
        f"Spark has had no free slot for worker-{number} for {slot.waits_s:.0f} s, and no other worker lives."
        " Nothing is lost: give the job its executors, and start again."
    )


def _alarm(seen: SlotSeen, slot: _Slot) -> str:
    if slot.waits_s > slot.silent_s:
        return f"worker-{seen.number} waits for a free Spark slot, for {slot.waits_s:.0f} s"
    times = slot.overdue - slot.cancelled
    before = " (nor the time before)" if times == 1 else f" (nor {times} times before)" if times else ""
    return f"worker-{seen.number} was started {slot.silent_s:.0f} s ago and has not reported{before}"

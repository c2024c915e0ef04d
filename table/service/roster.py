"""The workers as they last reported, one per slot. Pure: time comes in as `now_ms`."""

from __future__ import annotations

from dataclasses import dataclass

from table.service.calls import CoordinatorReport, WorkerReport
from table.service.modes import DRAINED_STATES, SILENT_STATES

FRESH_MS = 5_000
"""A coordinator that has not been reported for longer does not answer."""

GATHER_MS = 3_000
"""How long the first worker of a run waits for the others before it joins the consumer group without them."""

LIVES_MS = 20_000
"""A worker that has not reported for longer is killed, and counts as one that reads nothing."""

EARNING_STATES = frozenset({"new", "surveying", "claiming", "registering", "recovering"})
"""A coordinator's states before its first transaction; a worker that dies in them could do so for ever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """A worker's newest report."""

    report: WorkerReport
    at_ms: int
    dead: bool = False
    """Its Spark task has ended."""


def lives(entry: Reported, now_ms: int) -> bool:
    """Whether it has reported lately, and its Spark task has not ended."""
    return not entry.dead and now_ms - entry.at_ms < LIVES_MS


class Roster:
    """`slots_max`: reports of higher slots are refused."""

    def __init__(self, *, slots_max: int) -> None:
        self._slots_max = slots_max
        self._entries: dict[int, Reported] = {}
        self._first_at_ms: int | None = None

    def note(self, now_ms: int, report: WorkerReport) -> bool:
        """Remember a report. False where there is no such slot."""
        if not 0 <= report.slot < self._slots_max:
            return False
        if self._first_at_ms is None:
            self._first_at_ms = now_ms
        self._entries[report.slot] = Reported(report=report, at_ms=now_ms)
        return True

    def gathered(self, now_ms: int, workers: int) -> bool:
        """Whether so many workers have reported, or waiting for them has taken long enough.

        A worker that joined the group alone would be given all source partitions, and would hand most of
        them over a moment later: the coordinator's too, in the middle of its first transaction.
        """
        if self._first_at_ms is None:
            return False
        return len(self._entries) >= workers or now_ms - self._first_at_ms >= GATHER_MS

    def died(self, incarnation: str) -> WorkerReport | None:
        """Mark a worker as dead; its last report, None where none is alive under this name."""
        for slot, entry in self._entries.items():
            if entry.report.incarnation == incarnation and not entry.dead:
                self._entries[slot] = Reported(report=entry.report, at_ms=entry.at_ms, dead=True)
                return entry.report
        return None

    def entries(self) -> tuple[Reported, ...]:
        """All, by slot."""
        return tuple(self._entries[slot] for slot in sorted(self._entries))

    def coordinator(self, now_ms: int) -> CoordinatorReport | None:
        """The coordinator of the highest epoch that a living worker has reported lately, ended ones last."""
        held = [
            entry.report.coordinator
            for entry in self._entries.values()
            if not entry.dead and now_ms - entry.at_ms <= FRESH_MS and entry.report.coordinator is not None
        ]
        return max(held, key=lambda report: (report.state not in SILENT_STATES, report.epoch), default=None)

    def coordinator_state(self, now_ms: int, epoch: int) -> str:
        """Its state, empty where none answers. `epoch`: of the coordinator that is registered.

        One before it that has drained says nothing of what its successor has open, which may just be silent.
        """
        report = self.coordinator(now_ms)
        if report is None or (report.state in DRAINED_STATES and report.epoch < epoch):
            return ""
        return report.state

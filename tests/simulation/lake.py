"""The lake: what its files hold, and what may interrupt a driver's call at every step."""

from __future__ import annotations

from collections.abc import Callable

from control_topic.messages import DataFile, SourcePartition
from table.errors import OutcomeUnknown
from table.memory.table import Interruption
from table.memory.timeline import MemoryTimeline
from tests.simulation.chance import Chance
from tests.simulation.faults import Faults
from tests.simulation.scheduler import Process, ProcessDied, Scheduler

LOCK_LEASE_MS = 2_500
PAUSE_DEPTH_MAX = 2

Row = tuple[SourcePartition, int, int]
"""Where a row's record came from: source partition, offset, and in which life of its topic."""


class Storage:
    """The lake: the timeline, and what each data file holds.

    `place`: the run that started last. `pauses`: drivers that stand still in the middle of a call now.
    """

    def __init__(self, timeline: MemoryTimeline) -> None:
        self.timeline = timeline
        self.rows: dict[str, tuple[Row, ...]] = {}
        self.columns: dict[str, frozenset[str]] = {}
        self.pauses = 0
        self.place = ""

    def write(self, path: str, instant: str, rows: tuple[Row, ...], columns: frozenset[str]) -> DataFile:
        """A participant closes a data file; nobody asks whether its instant is still open.

        `columns`: beside those that all rows have.
        """
        self.rows[path], self.columns[path] = rows, columns
        self.timeline.write_file(path, instant)
        return DataFile(path=path, body=path, table_partition="", rows=len(rows), size_bytes=len(rows))


class Interruptions:
    """What may happen at every step of one driver's call: a pause, a lost connection, its death."""

    def __init__(
        self,
        storage: Storage,
        process: Process,
        scheduler: Scheduler,
        chance: Chance,
        faults: Callable[[], Faults],
        note: Callable[[str, object], None],
        alone: Callable[[], bool],
    ) -> None:
        self._storage = storage
        self._process = process
        self._scheduler = scheduler
        self._chance = chance
        self._faults = faults
        self._note = note
        self._alone = alone

    def reached(self, step: Interruption) -> None:
        """`MemoryTable.at`."""
        faults, chance = self._faults(), self._chance
        if chance.of(faults.driver_dies_in_call):
            self._note("dies at", step)
            self._process.die()
            self._lose_lock_later()
            raise ProcessDied
        if chance.of(faults.connection_breaks_in_call):
            self._note("breaks at", step)
            raise OutcomeUnknown(f"the connection to storage broke at {step.value}")
        if chance.of(faults.pause_in_call) and self._storage.pauses < PAUSE_DEPTH_MAX:
            self._pause(step)

    def _pause(self, step: Interruption) -> None:
        """The rest of the world goes on while this process stands still in the middle of a call.

        Its lock is taken from it only where no other driver lived when the pause began: a lease that ends
        under a living writer is what no table format survives (docs/protocol.md).
        """
        for_ms = self._chance.upto(6_000)
        self._note("paused at", f"{step.value} for {for_ms} ms")
        self._process.pause(for_ms)
        if self._alone():
            self._lose_lock_later()
        self._storage.pauses += 1
        try:
            self._scheduler.run_until(self._process.paused_until_ms)
        finally:
            self._storage.pauses -= 1
        if not self._process.alive:
            self._lose_lock_later()
            raise ProcessDied
        self._note("resumes at", step)

    def _lose_lock_later(self) -> None:
        holder = self._storage.timeline.lock_holder
        if holder is not None:
            self._scheduler.at(LOCK_LEASE_MS, None, self._expire, holder)

    def _expire(self, holder: object) -> None:
        if self._storage.timeline.lock_holder is holder:
            self._note("lock expires", None)
            self._storage.timeline.expire_lock()

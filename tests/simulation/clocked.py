"""A process with two clocks: a monotonic one of its own, and a wall clock that may jump either way."""

from __future__ import annotations

from tests.simulation.scheduler import Process, Scheduler

WALL_EPOCH_MS = 1_700_000_000_000


class Clocked(Process):
    """`clock_ms` never goes back; by `wall_ms`, which envelopes carry and which names a driver's instants,
    nothing may be decided."""

    def __init__(self, scheduler: Scheduler, name: str, *, skew_ms: int = 0) -> None:
        super().__init__(scheduler, name)
        self.skew_ms = skew_ms
        self.wall_skew_ms = 0

    def wall_ms(self) -> int:
        wall_ms = WALL_EPOCH_MS + self.scheduler.now_ms + self.wall_skew_ms
        return wall_ms if wall_ms > 0 else 0

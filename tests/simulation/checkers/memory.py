"""A worker that holds what its memory may hold consumes no more until it holds less, rejects included."""

from tests.simulation.checkers.base import Checker
from tests.simulation.worker import Worker

LATE_MS = 2_000
"""What was decoded has to be told, and the pause that follows from it to be heard."""


class WhatIsHeldIsBounded(Checker):
    name = "memory"

    def __init__(self) -> None:
        self._since_ms: dict[str, int] = {}

    def held(self, worker: Worker, size_bytes: int, paused: bool) -> None:
        world = self.world
        if paused or size_bytes < world.memory_bytes:
            self._since_ms.pop(worker.incarnation, None)
            return
        now_ms = world.scheduler.now_ms
        # A process that stands still tells nothing, hears nothing and consumes nothing.
        since_ms = max(self._since_ms.setdefault(worker.incarnation, now_ms), worker.paused_until_ms)
        self.require(
            now_ms - since_ms <= LATE_MS,
            f"{worker.name} holds {size_bytes} bytes of {world.memory_bytes} and goes on consuming",
        )

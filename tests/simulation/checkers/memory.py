"""A worker that holds what its memory may hold consumes no more until it holds less, rejects included. While
no file is open it may hold more.
"""

from tests.simulation.checkers.base import Checker
from tests.simulation.plane import Plane
from tests.simulation.worker import Worker

LATE_MS = 2_000
"""What was decoded has to be told, and the pause that follows from it to be heard."""


class WhatIsHeldIsBounded(Checker):
    name = "memory"

    def held(self, worker: Worker, plane: Plane) -> None:
        world = self.world
        told_ms = world.scheduler.now_ms - LATE_MS
        # A process that stands still tells nothing, hears nothing and consumes nothing.
        if worker.paused_until_ms > told_ms or plane.still_ms > told_ms:
            return
        size_bytes, since_ms = plane.held_bytes(told_ms), plane.open_since_ms
        is_open = since_ms is not None and since_ms <= told_ms
        bytes_max = world.memory_bytes if is_open else world.idle_bytes
        if size_bytes >= bytes_max:
            self.violated(
                f"{worker.name} holds {size_bytes} bytes of {bytes_max} for long and goes on consuming"
            )

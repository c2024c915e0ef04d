"""One seeded scheduler for a whole world: virtual time, processes that pause and die, channels in order."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

EVENTS_MAX = 200_000
"""A schedule that needs more than this hangs in a hot loop: that is a finding, not a slow test."""


class HotLoop(AssertionError):
    """The schedule did not come to an end."""


class ProcessDied(BaseException):
    """Unwinds out of whatever a process was doing when it was killed. Nobody but the scheduler catches it."""


class Process:
    """Something that is paused or killed as one. Its clock runs ahead of the world's by `skew_ms`."""

    def __init__(self, scheduler: Scheduler, name: str) -> None:
        self.scheduler = scheduler
        self.name = name
        self.alive = True
        self.paused_until_ms = 0
        self.skew_ms = 0

    @property
    def paused(self) -> bool:
        return self.paused_until_ms > self.scheduler.now_ms

    def clock_ms(self) -> int:
        """Monotonic: never goes back, and jumps ahead where the process was paused."""
        return self.scheduler.now_ms + self.skew_ms

    def pause(self, for_ms: int) -> None:
        self.paused_until_ms = max(self.paused_until_ms, self.scheduler.now_ms + for_ms)

    def die(self) -> None:
        self.alive = False


class Channel:
    """What goes through it arrives in the order it was sent."""

    __slots__ = ("last_ms",)

    def __init__(self) -> None:
        self.last_ms = 0


Entry = tuple[int, int, "Process | None", Callable[..., None], tuple[Any, ...]]


class Scheduler:
    """The only source of order. Events of equal time run in the order they were scheduled."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.events = 0
        self._count = 0
        self._heap: list[Entry] = []
        self.limit_ms: int | None = None

    def at(self, delay_ms: int, process: Process | None, do: Callable[..., None], *args: Any) -> None:
        """Run `do(*args)` after a delay, later where the process is paused then, never where it is dead."""
        self._count += 1
        heapq.heappush(self._heap, (self.now_ms + delay_ms, self._count, process, do, args))

    def through(
        self,
        channel: Channel,
        delay_ms: int,
        process: Process | None,
        do: Callable[..., None],
        *args: Any,
    ) -> None:
        """As `at`, but never before what went through the same channel earlier."""
        channel.last_ms = max(channel.last_ms, self.now_ms + delay_ms)
        self.at(channel.last_ms - self.now_ms, process, do, *args)

    def run_until(self, until_ms: int) -> None:
        """Run everything that is due before `until_ms`. May be called from inside an event (a pause)."""
        heap = self._heap
        while heap and heap[0][0] <= until_ms:
            time_ms, number, process, do, args = heapq.heappop(heap)
            if process is not None:
                if not process.alive:
                    continue
                if process.paused_until_ms > time_ms:
                    heapq.heappush(heap, (process.paused_until_ms, number, process, do, args))
                    continue
            self.now_ms = max(self.now_ms, time_ms)
            self.events += 1
            if self.events > EVENTS_MAX:
                raise HotLoop(f"more than {EVENTS_MAX} events by {self.now_ms} ms")
            try:
                do(*args)
            except ProcessDied:
                if process is not None and process.alive:
                    raise
        self.now_ms = max(self.now_ms, until_ms)

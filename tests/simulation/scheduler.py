"""One seeded scheduler for a whole world: virtual time, processes that pause and die, channels in order."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
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
        self._number = count(1).__next__
        self._heap: list[Entry] = []
        self._attend_at = EVENTS_MAX
        self._interruption: Callable[[], None] | None = None

    def at(self, delay_ms: int, process: Process | None, do: Callable[..., None], *args: Any) -> None:
        """Run `do(*args)` after a delay, later where the process is paused then, never where it is dead."""
        heappush(self._heap, (self.now_ms + delay_ms, self._number(), process, do, args))

    def through(
        self,
        channel: Channel,
        delay_ms: int,
        process: Process | None,
        do: Callable[..., None],
        *args: Any,
    ) -> None:
        """As `at`, but never before what went through the same channel earlier."""
        due_ms = self.now_ms + delay_ms
        if due_ms < channel.last_ms:
            due_ms = channel.last_ms
        else:
            channel.last_ms = due_ms
        heappush(self._heap, (due_ms, self._number(), process, do, args))

    def interrupt(self, at_event: int, do: Callable[[], None]) -> None:
        """Run `do()` once, when so many events have run and before the next one."""
        self._attend_at, self._interruption = min(at_event, EVENTS_MAX), do

    def run_until(self, until_ms: int) -> None:
        """Run everything that is due before `until_ms`. May be called from inside an event (a pause)."""
        heap = self._heap
        while heap and heap[0][0] <= until_ms:
            events = self.events
            if events >= self._attend_at:
                self._attend()
                continue
            time_ms, number, process, do, args = heappop(heap)
            if process is not None:
                if not process.alive:
                    continue
                if process.paused_until_ms > time_ms:
                    heappush(heap, (process.paused_until_ms, number, process, do, args))
                    continue
            if time_ms > self.now_ms:
                self.now_ms = time_ms
            self.events = events + 1
            try:
                do(*args)
            except ProcessDied:
                if process is not None and process.alive:
                    raise
        if until_ms > self.now_ms:
            self.now_ms = until_ms

    def _attend(self) -> None:
        do, self._interruption, self._attend_at = self._interruption, None, EVENTS_MAX
        if do is not None:
            do()
        elif self.events >= EVENTS_MAX:
            raise HotLoop(f"more than {EVENTS_MAX} events by {self.now_ms} ms")

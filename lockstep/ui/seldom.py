"""What may happen as often as a stranger likes, and is in the log now and then. Pure."""

from __future__ import annotations

from collections.abc import Callable

EVERY_S = 60.0


class Seldom:
    """`clock`: seconds that only grow."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._due_s: float | None = None
        self._count = 0

    def more(self) -> int:
        """It has happened once more: how often since the last line, where one is due now, else 0."""
        self._count += 1
        now_s = self._clock()
        if self._due_s is not None and now_s < self._due_s:
            return 0
        count, self._count = self._count, 0
        self._due_s = now_s + EVERY_S
        return count

"""Orders from other threads to one that owns a Kafka client: taken in turn, by that thread, when it looks."""

from __future__ import annotations

import queue
from collections.abc import Callable


class Orders:
    """`give` from any thread; `obey` from the one that they are for."""

    def __init__(self) -> None:
        self._waiting: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()

    def give(self, order: Callable[[], None]) -> None:
        self._waiting.put(order)

    def obey(self) -> None:
        """Do all that wait, in the order in which they were given."""
        while True:
            try:
                order = self._waiting.get_nowait()
            except queue.Empty:
                return
            order()

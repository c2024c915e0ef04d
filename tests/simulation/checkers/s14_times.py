"""S14: the requested times of the commits grow along the chain: Hudi merges a key's changes in their order.

Their completion times need not: a clock may be set back between the last look at it and the completion.
"""

from table.memory.timeline import MemoryInstant
from table.state import TableState
from tests.simulation.checkers.base import Checker


class RequestedTimesGrow(Checker):
    name = "S14"

    def __init__(self) -> None:
        self._last = ""

    def committed(self, instant: MemoryInstant, state: TableState) -> None:
        self.require(
            instant.time > self._last,
            f"instant {instant.time} follows instant {self._last}, which was requested later",
        )
        self._last = instant.time

"""S5: committed offsets never go back."""

from control_topic.messages import SourcePartition
from table.memory.timeline import MemoryInstant
from table.state import TableState
from tests.simulation.checkers.base import Checker


class OffsetsGoForward(Checker):
    name = "S5"

    def __init__(self) -> None:
        self._last: dict[SourcePartition, int] = {}

    def committed(self, instant: MemoryInstant, state: TableState) -> None:
        for partition, offset in self._last.items():
            now = state.offsets.get(partition)
            if now is None or now < offset:
                self.violated(f"{partition} goes back from {offset} to {now} with instant {instant.time}")
        self._last = dict(state.offsets)

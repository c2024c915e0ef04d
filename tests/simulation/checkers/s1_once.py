"""S1: every offset is in at most one completed commit."""

from control_topic.messages import SourcePartition
from table.memory.timeline import MemoryInstant
from table.state import TableState
from tests.simulation.checkers.base import Checker


class EveryOffsetOnce(Checker):
    name = "S1"

    def __init__(self) -> None:
        self._covered: dict[SourcePartition, list[tuple[int, int, str]]] = {}

    def committed(self, instant: MemoryInstant, state: TableState) -> None:
        for r in state.ranges:
            covered = self._covered.setdefault(r.partition, [])
            for start, next_offset, other in covered:
                overlap = min(next_offset, r.next) - max(start, r.start)
                if overlap > 0:
                    self.violated(
                        f"{r.partition}: [{r.start}, {r.next}) of instant {instant.time} overlaps "
                        f"[{start}, {next_offset}) of instant {other}"
                    )
            covered.append((r.start, r.next, instant.time))

"""S2: the ranges of a source partition chain without overlap, in order, and lead to the offsets stored."""

from control_topic.messages import SourcePartition
from table.memory.timeline import MemoryInstant
from table.state import TableState
from tests.simulation.checkers.base import Checker


class RangesChain(Checker):
    name = "S2"

    def __init__(self) -> None:
        self._ends: dict[SourcePartition, int] = {}

    def committed(self, instant: MemoryInstant, state: TableState) -> None:
        ends = self._ends
        if state.kind == "genesis":
            ends.update(state.offsets)
        if state.kind == "admission":
            ends.update({p: o for p, o in state.offsets.items() if p not in ends})
        for r in state.ranges:
            if r.start != ends.get(r.partition, 0):
                self.violated(
                    f"{r.partition}: instant {instant.time} starts at {r.start}, "
                    f"the one before ended at {ends.get(r.partition, 0)}"
                )
            ends[r.partition] = r.next
        stored = {p: o for p, o in state.offsets.items() if o}
        if stored != {p: o for p, o in ends.items() if o}:
            self.violated(f"instant {instant.time} stores {stored}, its ranges lead to {ends}")

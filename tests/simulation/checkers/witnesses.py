"""A commit names the last record of every source partition that it has any of; of others what was named."""

from control_topic.messages import Range, SourcePartition, Witness
from table.memory.timeline import MemoryInstant
from table.state import TableState
from tests.simulation.checkers.base import Checker


class TheLastRecordIsNamed(Checker):
    name = "witnesses"

    def __init__(self) -> None:
        self._named: dict[SourcePartition, Witness] = {}

    def committed(self, instant: MemoryInstant, state: TableState) -> None:
        if self.world.log.replaced:  # of a commit that was under way, and so of the old log's records
            self._named = dict(state.witnesses)
            return
        if state.kind == "operator":
            self._named = {p: witness for p, witness in state.witnesses.items() if p in self._named}
        for r in state.ranges:
            if r.records:
                self._named[r.partition] = self._last(r, state)
        for lost in state.lost:  # records stood there, and may come back
            if (last := self._named.get(lost.partition)) is not None and last.offset < lost.start:
                del self._named[lost.partition]
        self.require(
            state.witnesses == self._named,
            f"instant {instant.time} names {state.witnesses}, the last records are {self._named}",
        )

    def _last(self, r: Range, state: TableState) -> Witness:
        """Compaction may have taken some from behind it, before they were read or after."""
        log, named = self.world.log, state.witnesses.get(r.partition)
        compacted = log.compacted.get(r.partition, ())
        for last in reversed(log.between(r.partition, r.start, r.next, state.lost)):
            if (named is not None and named.offset == last) or last not in compacted:
                return log.witness(r.partition, last)
        self.violated(f"{r} has no record that was not compacted away")

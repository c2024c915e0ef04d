"""W3: what a commit says of event times is what its rows say, of all commits so far, and of no others."""

from control_topic.messages import Range, SourcePartition
from table.memory.timeline import MemoryInstant
from table.state import TableState
from tests.simulation.checkers.base import Checker
from tests.simulation.source_log import event_time_ms, is_absurd


class MarksAreOfTheRows(Checker):
    name = "W3"

    def __init__(self) -> None:
        self._earliest: dict[SourcePartition, int] = {}
        self._least: dict[SourcePartition, int] = {}
        self._most: dict[SourcePartition, int] = {}
        self._at_ms: int | None = None

    def committed(self, instant: MemoryInstant, state: TableState) -> None:
        rule, after = self.world.mark_rule, state.watermark
        if rule is None or after is None:
            return
        late = [0, 0]
        for r in state.ranges:
            sure, perhaps = self._times(r, state)
            if perhaps:
                mark = min(perhaps) - rule.lateness_ms
                self._earliest[r.partition] = min(mark, self._earliest.get(r.partition, mark))
            for bound, known, times in ((self._least, 0, sure), (self._most, 1, perhaps)):
                if times:
                    mark = max(times) - rule.lateness_ms
                    bound[r.partition] = max(mark, bound.get(r.partition, mark))
                if self._at_ms is not None:
                    late[known] += sum(at < self._at_ms for at in times)
        for partition, mark_of in after.marks.items():
            if not self._may_be(partition, mark_of.at_ms):
                least, most = self._least.get(partition), self._most.get(partition)
                self.violated(
                    f"{partition}: instant {instant.time} says {mark_of.at_ms} ms, "
                    f"its rows {least} to {most} ms"
                )
        if state.kind == "data":
            said = f"instant {instant.time} counts {after.late} late records, there are {late}"
            self.require(late[0] <= after.late <= late[1], said)
        self._at_ms = after.at_ms

    def _may_be(self, partition: SourcePartition, at_ms: int | None) -> bool:
        """Whether rows that may have been read give this mark.

        If no row is sure to have been read, compaction may have taken all rows before the worker read them.
        Then the mark is unknown, or it is at least the mark of the earliest row. Marks may be negative.
        """
        least, most = self._least.get(partition), self._most.get(partition)
        if at_ms is None or most is None:
            return at_ms is None and least is None
        return (self._earliest[partition] if least is None else least) <= at_ms <= most

    def _times(self, r: Range, state: TableState) -> tuple[list[int], list[int]]:
        """Those that must count, and with them those that compaction may have taken before they were read."""
        log, partition = self.world.log, r.partition
        compacted, bad = log.compacted.get(partition, ()), log.bad.get(partition)
        sure, perhaps = [], []
        for offset in log.between(partition, r.start, r.next, state.lost):
            at_ms = event_time_ms(partition, offset)
            if at_ms is None or is_absurd(offset) or (bad and log.is_bad(partition, offset)):
                continue
            perhaps.append(at_ms)
            if offset not in compacted:
                sure.append(at_ms)
        return sure, perhaps

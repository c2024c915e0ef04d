"""W1: the watermark is never past an event time that comes later, beyond the lateness that is allowed.

But of a source partition that was idle, and truly was so: read to its end, which the broker was asked for,
and without a record for as long as it takes; and of one that was not there yet.
"""

from control_topic.messages import SourcePartition
from table.memory.timeline import MemoryInstant
from table.state import TableState
from table.watermark import Watermark
from tests.simulation.checkers.base import Checker
from tests.simulation.source_log import event_time_ms, is_absurd


class WatermarksAreNotPassed(Checker):
    name = "W1"

    def __init__(self) -> None:
        self._at_ms: int | None = None
        self._passed: dict[SourcePartition, int] = {}
        self._held: set[SourcePartition] = set()
        self._last_ms: dict[SourcePartition, int] = {}

    def committed(self, instant: MemoryInstant, state: TableState) -> None:
        rule = self.world.mark_rule
        if rule is None:
            return
        for r in state.ranges:
            if r.records:
                self._last_ms[r.partition] = self.world.scheduler.now_ms
            if self._at_ms is not None and self._at_ms > self._passed.get(r.partition, self._at_ms - 1):
                self._look_for_late(r.partition, r.start, r.next, state)
        if state.watermark is not None:
            self._believe(state, state.watermark, rule.idle_after_ms)

    def _look_for_late(
        self, partition: SourcePartition, start: int, following: int, state: TableState
    ) -> None:
        log = self.world.log
        for offset in log.between(partition, start, following, state.lost):
            at_ms = event_time_ms(partition, offset)
            if at_ms is None or is_absurd(offset) or log.is_bad(partition, offset):
                continue
            if self._at_ms is not None and at_ms < self._at_ms:
                self.violated(
                    f"{partition}: the record at offset {offset} is of {at_ms} ms, the watermark was "
                    f"{self._at_ms} ms"
                )

    def _believe(self, state: TableState, after: Watermark, idle_after_ms: int) -> None:
        log, now_ms = self.world.log, self.world.scheduler.now_ms
        read = {r.partition for r in state.ranges}
        for partition in log.records:
            mark = after.marks.get(partition)
            if mark is not None:  # quiet since its first mark, not since the world began
                self._last_ms.setdefault(partition, now_ms)
            if mark is not None and mark.idle and state.kind == "data":  # others carry on what was found
                quiet_ms = now_ms - self._last_ms[partition]
                at_end = log.looked.get(partition, state.offsets[partition] + 1) <= state.offsets[partition]
                self.require(
                    partition in read and at_end and quiet_ms >= idle_after_ms,
                    f"{partition} is said to be idle: read {partition in read}, at its end {at_end}, "
                    f"quiet for {quiet_ms} ms",
                )
            held = mark is not None and not mark.idle
            passed_ms = after.at_ms if not held else self._at_ms if partition not in self._held else None
            if passed_ms is not None:
                self._passed[partition] = passed_ms
            if held:
                self._held.add(partition)
        self._at_ms = after.at_ms

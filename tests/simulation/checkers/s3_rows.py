"""S3: the table holds exactly the records of the committed ranges.

A record that was rejected is no row; one that is declared lost had been taken by retention, and is none
either. A source partition that appears later begins where its log does, one of a topic that is added where
`starting_offsets` says: what lies before is nobody's, and nothing else is passed over. What compaction took
before it was committed may be a row, and need not.
"""

from collections import Counter

from control_topic.messages import Lost, Offsets, SourcePartition
from table.memory.timeline import MemoryInstant
from table.state import TableState
from tests.simulation.checkers.base import Checker
from tests.simulation.lake import Row


class RowsAreTheRecords(Checker):
    name = "S3"

    def __init__(self) -> None:
        self._starting: dict[SourcePartition, int] = {}
        self._lost: list[Lost] = []
        self._rejected: set[Row] = set()

    def committed(self, instant: MemoryInstant, state: TableState) -> None:
        log = self.world.log
        for lost in state.lost:
            self.require(
                lost.next <= log.lows.get(lost.partition, 0) or log.replaced,
                f"instant {instant.time} gives up [{lost.start}, {lost.next}) of {lost.partition}, "
                f"and its log begins at {log.lows.get(lost.partition)}",
            )
            self.require(
                self.world.on_data_loss == "earliest", f"instant {instant.time} gives up {lost}, not allowed"
            )
        if state.kind in ("genesis", "admission"):
            self._begin(instant, {p: o for p, o in state.offsets.items() if p not in self._starting})
        self._lost.extend(state.lost)
        if self.world.on_error == "dead_letter":
            self._rejected.update((p, offset, 0) for p, offset in log.bad_in(state.ranges))

    def _begin(self, instant: MemoryInstant, starting: Offsets) -> None:
        """Retention may go on between the resolving and the commit, and records may come."""
        world, followed = self.world, {p.topic for p in self._starting}
        for partition, offset in starting.items():
            at_end = world.starting_offsets == "latest" and partition.topic not in followed
            limit = (world.log.ends if at_end else world.log.lows).get(partition, 0)
            self.require(
                offset <= limit or world.log.replaced,
                f"instant {instant.time} begins {partition} at {offset}, and not at {limit} or before",
            )
        self._starting.update(starting)

    def _wanted(self) -> set[Row]:
        log = self.world.log
        records = {
            (partition, offset, 0)
            for partition, committed in self.world.committed.items()
            for offset in log.between(partition, self._starting.get(partition, 0), committed, self._lost)
        }
        return records - self._rejected

    def at_end(self) -> None:
        world = self.world
        rows: Counter[Row] = Counter()
        for instant in world.storage.timeline.completed:
            for file in instant.files:
                rows.update(world.storage.rows[file.path])
        wanted = self._wanted()
        if len(wanted) == len(rows) == rows.total() and wanted == rows.keys():
            return
        doubled = sorted(row for row, count in rows.items() if count > 1)
        compacted = {(p, offset, 0) for p, gone in world.log.compacted.items() for offset in gone}
        missing, unexpected = sorted(wanted - rows.keys() - compacted), sorted(rows.keys() - wanted)
        self.require(not doubled, f"rows that are there twice: {doubled[:5]}")
        self.require(not missing, f"records that are missing: {missing[:5]}")
        self.require(not unexpected, f"rows that nobody asked for: {unexpected[:5]}")

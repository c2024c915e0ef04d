"""A table in memory with commits of one pipeline, as hooks see it."""

from __future__ import annotations

from collections.abc import Mapping

from control_topic.messages import Range, SourcePartition
from table.errors import Unavailable
from table.memory.reader import MemoryTableReader
from table.memory.table import MemoryTable
from table.memory.timeline import MemoryTimeline
from table.port import Commit
from table.state import TableState
from table.watermark import Watermark

PIPELINE = "events"
P0 = SourcePartition("events", 0)


class Committed:
    """Commits come one after the other, each of a record more; `reads`: how often somebody opened it."""

    def __init__(self) -> None:
        self.timeline = MemoryTimeline()
        self.table = MemoryTable(self.timeline, PIPELINE)
        self.table.open()
        self.state: TableState | None = None
        self.count = 0
        self.opened = 0

    def commit(
        self,
        *,
        run: str = "run",
        epoch: int = 1,
        cluster: str = "",
        topics: Mapping[str, str] | None = None,
        watermark: Watermark | None = None,
    ) -> TableState:
        transaction = f"t{self.count}"
        before = self.state.offsets if self.state is not None else {}
        start, instant = before.get(P0, 0), self.table.begin(run=run, transaction=transaction)
        state = TableState(
            pipeline=PIPELINE,
            run=run,
            epoch=epoch,
            transaction=transaction,
            offsets={P0: start + 1},
            ranges=(Range(partition=P0, start=start, next=start + 1, records=1),),
            cluster=cluster,
            watermark=watermark,
            topics=topics or {},
        )
        commit = Commit(instant=instant, expected=before, state=state, files=())
        self.table.commit(commit, fence=lambda _newest: "")
        self.count += 1
        self.state = self.table.newest()
        assert self.state is not None
        return self.state

    def seen(self) -> TableState | None:
        return self.state

    def reader(self) -> MemoryTableReader:
        self.opened += 1
        if not self.timeline.available:
            raise Unavailable("the store is away")
        return MemoryTableReader(self.timeline, "memory:/events")

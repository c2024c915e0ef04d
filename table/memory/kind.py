"""The reference table as a kind: tables by their paths, in the memory of this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from control_topic.clocks import wall_ms
from table.census import TableCensus
from table.errors import Refused
from table.memory.store import MemoryStore
from table.memory.timeline import MemoryTimeline
from table.port import (
    INSERT,
    OtherWriters,
    SparkNeeds,
    TableFiles,
    TableLayout,
    TableReader,
    TableSpec,
    TableSweeper,
    TransactionalTable,
)
from table.store.port import Store
from table.store.settings import StoreSettings

if TYPE_CHECKING:
    import pyarrow as pa

    from table.catalog import Catalog, CatalogSpec

TIMELINES: dict[str, MemoryTimeline] = {}
"""Path -> the table that was made there, as storage is to those who come and go."""

NOTES: dict[str, MemoryStore] = {}


class Memory:
    """See `table.port.TableKind`. It has nothing to look after: no services, nothing is ever archived."""

    modes = frozenset({INSERT})

    def committer(
        self,
        spark: Any,
        spec: TableSpec,
        pipeline: str,
        *,
        services: bool = False,
        free_slots: Callable[[], int] = lambda: 1,
    ) -> TransactionalTable:
        from table.memory.table import MemoryTable

        timeline = TIMELINES.setdefault(spec.path, MemoryTimeline())
        return MemoryTable(timeline, pipeline, wall_ms=lambda: _moved(timeline), spec=spec)

    def needs(self, path: str) -> SparkNeeds:
        """Nothing: any Spark will do."""
        return SparkNeeds()

    def files(
        self,
        *,
        layout: TableLayout,
        slot: int,
        incarnation: str,
        pending_bytes_max: int,
        held_bytes_max: int,
        storage: StoreSettings | None = None,
    ) -> TableFiles:
        """Everything waits in memory, whatever limits say: that is where this table is."""
        from table.memory.files import MemoryFiles

        timeline = TIMELINES[layout.path]
        _moved(timeline)
        return MemoryFiles(timeline, layout, writer_name=f"{slot}-{incarnation}")

    def reader(self, path: str, storage: StoreSettings | None = None) -> TableReader:
        from table.memory.reader import MemoryTableReader

        return MemoryTableReader(TIMELINES.get(path, MemoryTimeline()), path)

    def sweeper(self, spec: TableSpec) -> TableSweeper:
        raise Refused("a table in memory has no files to sweep")

    def census(self, spec: TableSpec) -> TableCensus:
        from table.memory.census import MemoryCensus

        return MemoryCensus(TIMELINES.setdefault(spec.path, MemoryTimeline()), spec)

    def notes(self, path: str, storage: StoreSettings | None = None) -> Store:
        return NOTES.setdefault(path, MemoryStore())

    def catalog(self, spark: Any, spec: CatalogSpec) -> Catalog:
        raise Refused("a table in memory is in no catalog")

    def column_problem(self, column: pa.Field, role: str) -> str:
        """Any column will do."""
        return ""

    def other_writers(self, spec: TableSpec) -> OtherWriters:
        """None come from elsewhere."""
        return OtherWriters()


def _moved(timeline: MemoryTimeline) -> int:
    """The time now, by which the timeline goes on as well."""
    timeline.now_ms = max(timeline.now_ms, wall_ms())
    return timeline.now_ms

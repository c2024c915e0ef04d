"""The reference table, counted: what its completed instants name, and the columns that it was made with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace

from table.census import Census, Column, SchemaCensus, Tally
from table.instants import MissingTable
from table.memory.timeline import MemoryTimeline
from table.partition_columns import columns_of
from table.port import TableSpec
from table.schema import ddl_name


class MemoryCensus:
    """See `table.census.TableCensus`. Its columns have no history."""

    def __init__(self, timeline: MemoryTimeline, spec: TableSpec) -> None:
        self._timeline = timeline
        self._spec = spec

    def take(self, *, unless: str | None, files_max: int, enough: Callable[[], bool]) -> Census | None:
        if self._timeline.spec is None:
            raise MissingTable(f"There is no table at {self._spec.path}.")
        completed = self._timeline.completed
        as_of = completed[-1].time if completed else ""
        if as_of == unless:
            return None
        files = [file for one in completed for file in one.files if file.path in self._timeline.files]
        sizes: dict[str, list[int]] = defaultdict(list)
        is_over = enough()
        for file in () if is_over else files[:files_max]:
            sizes[file.table_partition].append(file.size_bytes)
        tally = Tally(self._spec.target_file_bytes // 2)
        for path, some in sizes.items():
            tally.add(path, some)
        spec = self._timeline.spec
        columns = tuple(
            Column(name=one.name, kind=ddl_name(one.type), nullable=one.nullable)
            for one in columns_of(replace(spec, ddl=self._timeline.columns))
        )
        return Census(
            as_of=as_of,
            files=tally.total(is_whole=not is_over and len(files) <= files_max),
            schema=SchemaCensus(columns=columns),
        )

"""The reference table's history and rows, as they are now."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import pyarrow as pa

from table.chain import newest_of
from table.errors import Unavailable
from table.instants import CommittedFile, Instant, MissingTable, PendingInstant
from table.memory.timeline import InstantPhase, MemoryInstant, MemoryTimeline
from table.partition_columns import made_fields
from table.partitioners.expressions import made_terms
from table.port import INSTANT, FileRows, TableRows, TableSpec
from table.schema import parse_ddl
from table.state import TableState

ACTION = "commit"


class MemoryTableReader:
    """See `table.port.TableReader`."""

    def __init__(self, timeline: MemoryTimeline, path: str) -> None:
        if timeline.spec is None:
            raise MissingTable(f"There is no table at {path}.")
        self._timeline = timeline
        self._spec: TableSpec = timeline.spec
        self.place = path
        self.mode = timeline.spec.mode

    def completed(self) -> Iterator[Instant]:
        self._reach()
        return iter([_instant(one) for one in reversed(self._timeline.completed)])

    def newest(self, pipeline: str) -> TableState | None:
        self._reach()
        return newest_of(self._timeline.states(pipeline))

    def newest_instant(self, pipeline: str) -> Instant | None:
        newest = self.newest(pipeline)
        return _instant(self._timeline.instants[newest.instant]) if newest is not None else None

    def pending(self) -> Sequence[PendingInstant]:
        self._reach()
        return [
            PendingInstant(
                requested=one.time,
                action=ACTION,
                phase=one.phase.value,
                owner=_owner(one),
                rollback_requested=one.rollback_requested,
            )
            for _, one in sorted(self._timeline.instants.items())
            if one.phase in (InstantPhase.REQUESTED, InstantPhase.INFLIGHT)
        ]

    def oldest_savepoint(self) -> None:
        return None

    def time_ms(self, instant_time: str) -> int:
        return int(instant_time)

    def said(self, names: Collection[str]) -> tuple[str, Mapping[str, str]]:
        self._reach()
        for one in reversed(self._timeline.completed):
            if found := {name: one.metadata[name] for name in names if one.metadata.get(name)}:
                return one.time, found
        return "", {}

    def damage(self) -> str:
        return ""

    def columns(self) -> pa.Schema:
        record = parse_ddl(self._timeline.columns) if self._timeline.columns else pa.schema([])
        return pa.schema([*record, *made_fields(made_terms(self._spec), record)]) if len(record) else record

    def rows(self) -> TableRows:
        self._reach()
        return TableRows(kafka_columns=self._spec.kafka_columns, files=self._files())

    def _files(self) -> Iterator[FileRows]:
        for instant in self._timeline.completed:
            for file in instant.files:
                yield FileRows(name=file.path, batches=self._batches(file.path, instant.time))

    def _batches(self, path: str, instant: str) -> Iterator[pa.RecordBatch]:
        stored = self._timeline.files.get(path)
        if stored is None or stored.rows is None:
            raise Unavailable(f"file {path} of instant {instant} is not there")
        rows = stored.rows
        yield from rows.append_column(INSTANT, pa.array([instant] * rows.num_rows, pa.string())).to_batches()

    def _reach(self) -> None:
        if not self._timeline.available:
            raise Unavailable("the table's storage does not answer")


def _owner(one: MemoryInstant) -> dict[str, str]:
    """Empty before the instant says whose it is, and of everybody else's."""
    if not one.pipeline:
        return {}
    return {"pipeline": one.pipeline, "run": one.run, "transaction": one.transaction}


def _instant(one: MemoryInstant) -> Instant:
    return Instant(
        requested=one.time,
        completed=one.completed_at,
        action=ACTION,
        state=one.state,
        files=tuple(
            CommittedFile(path=file.path, rows=file.rows, size_bytes=file.size_bytes) for file in one.files
        ),
        writes=True,
    )

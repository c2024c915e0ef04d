"""The reference table's storage, which any number of drivers, workers and readers share.

Pure and single-threaded: time is `MemoryTimeline.now_ms`, which the owner moves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from operator import attrgetter
from typing import TYPE_CHECKING

from control_topic.messages import DataFile
from table.errors import Refused, Unavailable
from table.port import TableSpec
from table.state import TableState, decode

if TYPE_CHECKING:  # the simulator's workers keep their rows elsewhere
    import pyarrow as pa


class InstantPhase(Enum):
    REQUESTED = "requested"
    INFLIGHT = "inflight"
    COMPLETED = "completed"
    ROLLED_BACK = "rolled back"


@dataclass(slots=True, kw_only=True)
class MemoryInstant:
    """One instant of the timeline. `metadata` and `files` are the completed commit's, `doomed` the files that
    its rollback takes. Times are in milliseconds, spelled so that they sort as text.
    """

    time: str
    """When it was requested, which is its name."""
    phase: InstantPhase = InstantPhase.REQUESTED
    completed_at: str = ""
    """Empty while it is not."""
    pipeline: str = ""
    run: str = ""
    transaction: str = ""
    rollback_requested: bool = False
    doomed: tuple[str, ...] = ()
    metadata: dict[str, str] = field(default_factory=dict)
    files: tuple[DataFile, ...] = ()
    columns: str = ""
    """The table's, of the record, in Spark DDL, as its commit left them."""
    state: TableState | None = None

    @property
    def complete(self) -> bool:
        return self.phase is InstantPhase.COMPLETED


@dataclass(slots=True, kw_only=True)
class StoredFile:
    """A data file on storage, whether or not a commit names it."""

    path: str
    instant: str
    written_at_ms: int
    ours: bool = True
    """Whether it bears our mark."""
    rows: pa.Table | None = None
    """None where whoever wrote it keeps them elsewhere."""


class MemoryTimeline:
    """The storage of one table: `instants` by requested time, `files` by path.

    `spec`: what the table was made as; None before it is. `columns`: of the record, in Spark DDL, as its
    newest commit has them.
    """

    def __init__(self) -> None:
        self.spec: TableSpec | None = None
        self.columns = ""
        self.now_ms = 0
        self.instants: dict[str, MemoryInstant] = {}
        self.files: dict[str, StoredFile] = {}
        self.lock_holder: object | None = None
        self.available = True

    @property
    def completed(self) -> list[MemoryInstant]:
        """Completed instants, as a timeline lists them: by completion time."""
        done = [one for one in self.instants.values() if one.phase is InstantPhase.COMPLETED]
        return sorted(done, key=_completion)

    def newest_time(self) -> str:
        """The greatest time that anything on the timeline bears, empty where there is nothing."""
        completed = max((one.completed_at for one in self.instants.values()), default="")
        return max(completed, max(self.instants, default=""))

    def new_instant(self, time: str) -> MemoryInstant:
        """Put a requested instant on the timeline; storage lets nobody take another one's name."""
        if time in self.instants:
            raise Unavailable(f"instant {time} is on the timeline already")
        instant = self.instants[time] = MemoryInstant(time=time)
        return instant

    def complete(
        self,
        instant: MemoryInstant,
        metadata: Mapping[str, str],
        files: Sequence[DataFile],
        *,
        at: str,
        columns: str = "",
    ) -> None:
        """Publish an instant. Storage allows it only while the inflight file is there."""
        if instant.phase is not InstantPhase.INFLIGHT:
            raise Refused(f"instant {instant.time} is {instant.phase.value}: its inflight file is not there")
        instant.metadata, instant.files = dict(metadata), tuple(files)
        instant.state = decode(metadata, instant=instant.time)
        instant.columns = self.columns = columns or self.columns
        instant.phase, instant.completed_at = InstantPhase.COMPLETED, at

    def foreign_commit(self) -> str:
        """A commit by a writer that is not Lockstep, whose clock is behind nobody's; its instant."""
        time = self.later(self.now_ms)
        instant = self.new_instant(time)
        instant.phase = InstantPhase.INFLIGHT
        self.complete(instant, {}, (), at=time)
        return instant.time

    def foreign_columns(self, ddl: str) -> str:
        """A writer that is not Lockstep adds columns; its instant."""
        from table.widening import united_ddl

        self.columns = united_ddl(self.columns, [ddl])
        return self.foreign_commit()

    def foreign_begin(self) -> str:
        """An instant of a writer that is not Lockstep, which stays open."""
        instant = self.new_instant(self.later(self.now_ms))
        instant.phase = InstantPhase.INFLIGHT
        return instant.time

    def foreign_rollback(self, instant: str) -> None:
        """A writer rolls back what is open, whoever's it is."""
        target = self.instants[instant]
        self.remove(self.paths_of(instant))
        target.phase = InstantPhase.ROLLED_BACK

    def later(self, now_ms: int) -> str:
        """The time of a clock that says `now_ms` once it is past everything on the timeline."""
        return spelled(max(now_ms, int(self.newest_time() or 0) + 1))

    def write_file(self, path: str, instant: str, *, ours: bool = True, rows: pa.Table | None = None) -> None:
        """A participant closes a data file; nobody asks whether its instant is still open."""
        now_ms = self.now_ms
        self.files[path] = StoredFile(path=path, instant=instant, written_at_ms=now_ms, ours=ours, rows=rows)

    def paths_of(self, instant: str) -> tuple[str, ...]:
        """The files that name this instant and are on storage now."""
        return tuple(file.path for file in self.files.values() if file.instant == instant)

    def remove(self, paths: Iterable[str]) -> None:
        """Those that are not there any more are no error."""
        for path in paths:
            self.files.pop(path, None)

    def expire_lock(self) -> None:
        """The lock provider takes the lock from a holder that has kept it too long."""
        self.lock_holder = None

    def states(self, pipeline: str) -> Iterator[TableState]:
        """This pipeline's committed states, by completion time, the latest first."""
        for instant in reversed(self.completed):
            if instant.state is not None and instant.state.pipeline == pipeline:
                yield instant.state


_completion = attrgetter("completed_at", "time")


def spelled(time_ms: int) -> str:
    """A time as instants are named."""
    return f"{time_ms:017d}"

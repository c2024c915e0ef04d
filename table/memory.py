"""A transactional table in memory: the port's reference, for the simulator and for tests of the service.

`MemoryTimeline` is the storage, which any number of drivers share; `MemoryTable` is one driver's client
for one pipeline. Pure and single-threaded: time is `MemoryTimeline.now_ms`, which the owner moves, and
faults come from `MemoryTable.at`, which is called at every step of a call and may raise (the process or
the connection dies there) or use the timeline as somebody else (this process is paused there).

What is kept of the real thing: one table lock that a dead holder keeps until `expire_lock`; an instant
that is requested before it says whose it is; a rollback that is requested under the lock and carried out
after it; completing an instant needs its inflight file, whatever the lock says by then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum

from control_topic.messages import DataFile
from table.checks import rival_open
from table.errors import OutcomeUnknown, Refused, Unavailable
from table.port import Commit, ServiceProgress, TableLayout, Unfinished
from table.state import TableState, decode, encode


class Phase(Enum):
    REQUESTED = "requested"
    INFLIGHT = "inflight"
    COMPLETED = "completed"
    ROLLED_BACK = "rolled back"


class Step(Enum):
    """Where a call may be interrupted. What is named has just been done."""

    BEGIN_REQUESTED = "begin.requested"
    BEGIN_INFLIGHT = "begin.inflight"
    COMMIT_LOCKED = "commit.locked"
    COMMIT_CHECKED = "commit.checked"
    COMMIT_COMPLETED = "commit.completed"
    ROLLBACK_REQUESTED = "rollback.requested"
    ROLLBACK_DONE = "rollback.done"


@dataclass(slots=True, kw_only=True)
class MemoryInstant:
    """One instant of the timeline. `metadata` and `files` are the completed commit's."""

    time: str
    phase: Phase = Phase.REQUESTED
    pipeline: str = ""
    run: str = ""
    transaction: str = ""
    rollback_requested: bool = False
    metadata: dict[str, str] = field(default_factory=dict)
    files: tuple[DataFile, ...] = ()

    @property
    def complete(self) -> bool:
        return self.phase is Phase.COMPLETED


@dataclass(slots=True, kw_only=True)
class StoredFile:
    """A data file on storage, whether or not a commit names it."""

    path: str
    instant: str
    written_at_ms: int


class MemoryTimeline:
    """The storage of one table. Instants are ordered by time in `instants`, by completion in `completed`."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.instants: dict[str, MemoryInstant] = {}
        self.completed: list[MemoryInstant] = []
        self.files: dict[str, StoredFile] = {}
        self.lock_holder: object | None = None
        self.available = True

    def new_instant(self) -> MemoryInstant:
        instant = MemoryInstant(time=f"{len(self.instants) + 1:017d}")
        self.instants[instant.time] = instant
        return instant

    def complete(
        self, instant: MemoryInstant, metadata: Mapping[str, str], files: Sequence[DataFile]
    ) -> None:
        """Publish an instant. Storage allows it only while the inflight file is there."""
        if instant.phase is not Phase.INFLIGHT:
            raise Refused(f"instant {instant.time} is {instant.phase.value}: its inflight file is not there")
        instant.metadata, instant.files = dict(metadata), tuple(files)
        instant.phase = Phase.COMPLETED
        self.completed.append(instant)

    def foreign_commit(self) -> str:
        """A commit by a writer that is not Lockstep; its instant."""
        instant = self.new_instant()
        instant.phase = Phase.INFLIGHT
        self.complete(instant, {}, ())
        return instant.time

    def write_file(self, path: str, instant: str) -> None:
        """A participant closes a data file; nobody asks whether its instant is still open."""
        self.files[path] = StoredFile(path=path, instant=instant, written_at_ms=self.now_ms)

    def expire_lock(self) -> None:
        """The lock provider takes the lock from a holder that has kept it too long."""
        self.lock_holder = None

    def states(self, pipeline: str) -> Iterator[TableState]:
        """This pipeline's committed states, newest first."""
        for instant in reversed(self.completed):
            state = decode(instant.metadata, instant=instant.time)
            if state is not None and state.pipeline == pipeline:
                yield state


def _nothing(_step: Step) -> None:
    return None


class MemoryTable:
    """One driver's client. Implements `table.port.TransactionalTable`."""

    def __init__(
        self, timeline: MemoryTimeline, pipeline: str, *, at: Callable[[Step], None] = _nothing
    ) -> None:
        self.timeline = timeline
        self.pipeline = pipeline
        self.at = at

    def open(self) -> TableLayout:
        self._reach()
        return TableLayout(
            path="memory:",
            key_fields=(),
            key_format="coordinates",
            partition_field="",
            hive_style=False,
            url_encode=False,
            kafka_columns=True,
            target_file_bytes=120_000_000,
            ddl="",
            created=not self.timeline.instants,
        )

    def newest(self) -> TableState | None:
        self._reach()
        return next(self.timeline.states(self.pipeline), None)

    def unfinished(self) -> Sequence[Unfinished]:
        self._reach()
        return [
            Unfinished(
                instant=instant.time,
                run=instant.run,
                transaction=instant.transaction,
                rollback_requested=instant.rollback_requested,
            )
            for instant in self.timeline.instants.values()
            if instant.phase is Phase.INFLIGHT and instant.pipeline == self.pipeline
        ]

    def begin(self, *, run: str, transaction: str) -> str:
        self._reach()
        instant = self.timeline.new_instant()
        self.at(Step.BEGIN_REQUESTED)
        instant.pipeline, instant.run, instant.transaction = self.pipeline, run, transaction
        instant.phase = Phase.INFLIGHT
        self.at(Step.BEGIN_INFLIGHT)
        return instant.time

    def commit(self, commit: Commit, *, fence: Callable[[TableState | None], str]) -> None:
        self._reach()
        with self._lock(commit.instant):
            self.at(Step.COMMIT_LOCKED)
            if self._is_repeat(commit):
                return
            self._check(commit, fence)
            self.at(Step.COMMIT_CHECKED)
            instant = self.timeline.instants[commit.instant]
            self.timeline.complete(instant, encode(commit.state), commit.files)
            self.at(Step.COMMIT_COMPLETED)

    def find(self, transaction: str) -> TableState | None:
        self._reach()
        states = self.timeline.states(self.pipeline)
        return next((state for state in states if state.transaction == transaction), None)

    def roll_back(self, instant: str) -> bool:
        self._reach()
        target = self.timeline.instants.get(instant)
        if target is None or target.pipeline != self.pipeline:
            raise Refused(f"instant {instant} is not one of pipeline {self.pipeline!r}: it is left alone")
        with self._lock(instant):
            if target.complete:
                return False
            target.rollback_requested = True
        self.at(Step.ROLLBACK_REQUESTED)
        if target.complete:
            return False  # only a holder that lost the lock after its check can have done this
        self._remove([file.path for file in self.timeline.files.values() if file.instant == instant])
        target.phase = Phase.ROLLED_BACK
        self.at(Step.ROLLBACK_DONE)
        return True

    def sweep(self, *, grace_ms: int) -> int:
        self._reach()
        orphans = [file.path for file in self.timeline.files.values() if self._is_orphan(file, grace_ms)]
        self._remove(orphans)
        return len(orphans)

    def tend(self) -> None:
        return None

    def services(self) -> Sequence[ServiceProgress]:
        return ()

    def close(self) -> None:
        return None

    def _reach(self) -> None:
        if not self.timeline.available:
            raise Unavailable("the table's storage does not answer")

    @contextmanager
    def _lock(self, instant: str) -> Iterator[None]:
        """The table lock. A fault that a step raises is a death: the lock stays with the dead holder."""
        if self.timeline.lock_holder is not None:
            raise Unavailable(f"instant {instant}: the table lock is held by another writer")
        self.timeline.lock_holder = holder = object()
        try:
            yield
        except (Refused, Unavailable, OutcomeUnknown):
            self._unlock(holder)
            raise
        self._unlock(holder)

    def _unlock(self, holder: object) -> None:
        if self.timeline.lock_holder is holder:
            self.timeline.lock_holder = None

    def _is_repeat(self, commit: Commit) -> bool:
        """Whether this transaction is on the timeline with these very ranges and instant."""
        done = self.find(commit.state.transaction)
        if done is None:
            return False
        if done.instant == commit.instant and sorted(done.ranges, key=repr) == sorted(
            commit.state.ranges, key=repr
        ):
            return True
        raise Refused(
            f"transaction {commit.state.transaction} is already committed as instant {done.instant}"
        )

    def _check(self, commit: Commit, fence: Callable[[TableState | None], str]) -> None:
        newest = self.newest()
        objection = fence(newest)
        if objection:
            raise Refused(objection)
        instant = self.timeline.instants.get(commit.instant)
        if instant is None or instant.phase is not Phase.INFLIGHT:
            phase = instant.phase.value if instant is not None else "not on the timeline"
            raise Refused(f"instant {commit.instant} cannot be completed: it is {phase}")
        if instant.rollback_requested:
            raise Refused(f"instant {commit.instant} cannot be completed: its rollback is requested")
        if (instant.pipeline, instant.transaction) != (self.pipeline, commit.state.transaction):
            raise Refused(f"instant {commit.instant} belongs to transaction {instant.transaction!r}")
        self._check_rivals(commit.instant)
        committed = dict(newest.offsets) if newest is not None else {}
        if committed != dict(commit.expected):
            raise Refused(
                f"instant {commit.instant}: the table's committed offsets are no longer those that "
                f"transaction {commit.state.transaction} started from"
            )

    def _check_rivals(self, instant: str) -> None:
        for rival in self.unfinished():
            if rival.instant != instant:
                raise Refused(rival_open(instant, rival.instant))

    def _is_orphan(self, file: StoredFile, grace_ms: int) -> bool:
        instant = self.timeline.instants.get(file.instant)
        if instant is None or instant.pipeline != self.pipeline:
            return False
        if instant.phase not in (Phase.COMPLETED, Phase.ROLLED_BACK):
            return False
        named = {data_file.path for data_file in instant.files}
        return file.path not in named and self.timeline.now_ms - file.written_at_ms >= grace_ms

    def _remove(self, paths: Sequence[str]) -> None:
        for path in paths:
            del self.timeline.files[path]

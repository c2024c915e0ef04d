"""A driver's client of a table in memory: the port's reference, for the simulator and for tests.

`MemoryTimeline` is the storage, which any number of drivers share; `MemoryTable` is one driver's client
for one pipeline. Pure and single-threaded: time is `MemoryTimeline.now_ms`, which the owner moves, each
client's wall clock says what its owner wants, and faults come from `MemoryTable.at`, which is called at every
step of a call and may raise (the process or the connection dies there) or use the timeline as somebody else
(this process is paused there).

What is kept of the real thing: one table lock that a dead holder keeps until `expire_lock`; an instant
that is requested before it says whose it is; a rollback that is requested under the lock and carried out
after it, on the files that were there when it was requested; completing an instant needs its inflight file,
whatever the lock says by then; whoever gives the lock back takes away whatever lock there is. Requested and
completion times are what the wall clock of whoever asks or completes says, and commits are listed by their
completion times: only the requested times of one process are never the same or less. What is assumed here is
checked against Hudi by tests/conformance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import Enum
from itertools import pairwise

from control_topic.causes import CHECK, FILES, LOCK, WRITE
from control_topic.messages import DataFile
from table.chain import does_not_follow, follows, newest_of
from table.checks import rival_open
from table.errors import ClockBehind, Contradiction, OutcomeUnknown, Refused, Unavailable
from table.memory.timeline import InstantPhase, MemoryTimeline, StoredFile, spelled
from table.orphans import NOT_LISTED, ROLLED_BACK, UNKNOWN, FoundFile, SweepReport
from table.partitioners.expressions import made_terms, record_fields
from table.port import INSERT, Commit, ServiceProgress, TableLayout, TableSpec, Unfinished
from table.state import TableState, encode

KIND = "memory"
ANY = TableSpec(path="memory:", name="", mode=INSERT, ddl="")
TIMED = (FILES, LOCK, CHECK, WRITE)
"""Of a commit, in their order: there is no index of its files."""
NOBODY: Mapping[str, str] = {}
CLOCK_WAIT_MS = 1_000
"""A clock that is behind the table by no more is waited for within the call."""


class Interruption(Enum):
    """Where a call may be interrupted. What is named has just been done."""

    BEGIN_REQUESTED = "begin.requested"
    BEGIN_INFLIGHT = "begin.inflight"
    COMMIT_LOCKED = "commit.locked"
    COMMIT_CHECKED = "commit.checked"
    COMMIT_COMPLETED = "commit.completed"
    ROLLBACK_REQUESTED = "rollback.requested"
    ROLLBACK_BEGUN = "rollback.begun"
    ROLLBACK_DONE = "rollback.done"


def _nothing(_step: Interruption) -> None:
    return None


def _told(file: DataFile) -> tuple[int, int]:
    return file.rows, file.size_bytes


def _check_same(stands: TableSpec, spec: TableSpec) -> None:
    """Raise `Contradiction` where a table that stands is not the one that is asked for."""
    for name in ("key_fields", "partition_fields", "partition_terms", "kafka_columns"):
        if getattr(stands, name) != getattr(spec, name):
            raise Contradiction(
                f"table {spec.path}: its {name} is {getattr(stands, name)!r}, not {getattr(spec, name)!r}"
            )
    if not spec.follows and not spec.ddl.startswith(stands.ddl):
        raise Contradiction(f"table {spec.path}: its columns are {stands.ddl}, to which {spec.ddl} adds none")


class MemoryTable:
    """One driver's client. Implements `table.port.TransactionalTable`.

    `wall_ms`: the driver's wall clock, which may be set forth and back; by default one that never is. `spec`:
    by default that of a table that is asked for no rows.
    """

    def __init__(
        self,
        timeline: MemoryTimeline,
        pipeline: str,
        *,
        at: Callable[[Interruption], None] = _nothing,
        wall_ms: Callable[[], int] | None = None,
        spec: TableSpec = ANY,
    ) -> None:
        self.timeline = timeline
        self._spec = spec
        self.pipeline = pipeline
        self.at = at
        self._wall_ms = wall_ms or (lambda: int(timeline.later(timeline.now_ms)))
        self._last_requested = ""

    def reach(self) -> None:
        self._reach()

    def open(self) -> TableLayout:
        self._reach()
        spec, stands = self._spec, self.timeline.spec
        if spec.mode != INSERT:
            raise Contradiction(f"table {spec.path} is in memory and takes inserts only, not {spec.mode}")
        if any(term.source.is_now for term in made_terms(spec)):
            raise Refused(
                f"table {spec.path} is in memory, and its transactions have no time: now() cannot be"
            )
        if stands is not None:
            _check_same(stands, spec)
            if spec.follows:
                spec = replace(spec, ddl=self._wide([spec.ddl]))
        self.timeline.spec, self.timeline.columns = spec, spec.ddl
        return TableLayout(
            kind=KIND,
            path=spec.path,
            key_fields=spec.key_fields,
            partition_fields=spec.partition_fields,
            partition_terms=spec.partition_terms,
            partition_bounds=spec.partition_bounds,
            kafka_columns=spec.kafka_columns,
            target_file_bytes=spec.target_file_bytes,
            ddl=spec.ddl,
            created=stands is None,
        )

    def newest(self) -> TableState | None:
        self._reach()
        return newest_of(self.timeline.states(self.pipeline))

    def lost_commits(self, newest: TableState | None) -> str:
        self._reach()
        if newest is not None:
            return ""
        unknown = [file for file in self.timeline.files.values() if self._proof(file, 0) == UNKNOWN]
        return f"the timeline does not know the instant of {unknown[0].path}" if unknown else ""

    def unfinished(self) -> Sequence[Unfinished]:
        self._reach()
        return [
            Unfinished(
                instant=instant.time,
                run=instant.run,
                transaction=instant.transaction,
                rollback_requested=instant.rollback_requested,
            )
            for _, instant in sorted(self.timeline.instants.items())
            if instant.phase is InstantPhase.INFLIGHT and instant.pipeline == self.pipeline
        ]

    def begin(self, *, run: str, transaction: str) -> str:
        self._reach()
        for one in self.unfinished():
            if one.transaction == transaction:
                if one.rollback_requested:
                    raise Refused(f"the rollback of instant {one.instant} is requested")
                return one.instant
        done = self.find(transaction)
        if done is not None:
            raise Refused(f"transaction {transaction} is committed already, as instant {done.instant}")
        self._await_clock()  # not under the lock
        with self._lock(f"transaction {transaction}"):
            instant = self.timeline.new_instant(self._requested())
            self.at(Interruption.BEGIN_REQUESTED)
        instant.pipeline, instant.run, instant.transaction = self.pipeline, run, transaction
        instant.phase = InstantPhase.INFLIGHT
        self.at(Interruption.BEGIN_INFLIGHT)
        return instant.time

    def commit(self, commit: Commit, *, fence: Callable[[TableState | None], str]) -> Mapping[str, int]:
        self._reach()
        if self._is_repeat(commit):
            return {}
        began_ms = self.timeline.now_ms
        self._check_files(commit)
        waited_ms = self._await_clock()
        looked_ms = self.timeline.now_ms
        with self._lock(f"instant {commit.instant}"):
            self.at(Interruption.COMMIT_LOCKED)
            locked_ms = self.timeline.now_ms
            self._check(commit, fence)
            self.at(Interruption.COMMIT_CHECKED)
            checked_ms = self.timeline.now_ms
            instant = self.timeline.instants[commit.instant]
            columns = self._columns_with(commit)
            at = self._now(waited_ms)
            self.timeline.complete(instant, encode(commit.state), commit.files, at=at, columns=columns)
            self.at(Interruption.COMMIT_COMPLETED)
        times_ms = (began_ms, looked_ms, locked_ms, checked_ms, self.timeline.now_ms)
        return {part: end - start for part, (start, end) in zip(TIMED, pairwise(times_ms), strict=True)}

    def find(self, transaction: str) -> TableState | None:
        self._reach()
        states = self.timeline.states(self.pipeline)
        return next((state for state in states if state.transaction == transaction), None)

    def roll_back(self, instant: str) -> bool:
        self._reach()
        target = self.timeline.instants.get(instant)
        self._await_clock()
        with self._lock(f"instant {instant}"):
            if target is None or target.phase is InstantPhase.ROLLED_BACK:
                return True
            if target.complete:
                return False
            if target.pipeline != self.pipeline:
                raise Refused(f"instant {instant} is not one of pipeline {self.pipeline!r}: it is left alone")
            if not target.rollback_requested:
                target.rollback_requested, target.doomed = True, self.timeline.paths_of(instant)
        self.at(Interruption.ROLLBACK_REQUESTED)
        if target.complete:
            return False  # only a holder that lost the lock after its check can have done this
        half = len(target.doomed) // 2
        self.timeline.remove(target.doomed[:half])
        self.at(Interruption.ROLLBACK_BEGUN)
        self.timeline.remove(target.doomed[half:])
        target.phase = InstantPhase.ROLLED_BACK
        self.at(Interruption.ROLLBACK_DONE)
        return True

    def sweep(self, *, grace_ms: int) -> SweepReport:
        self._reach()
        files = list(self.timeline.files.values())
        found = [
            FoundFile(path=file.path, instant=file.instant, proof=proof)
            for file in files
            if (proof := self._proof(file, grace_ms))
        ]
        orphans = [one.path for one in found if one.is_orphan]
        self.timeline.remove(orphans)
        return SweepReport(files=len(files), share=1.0, found=found, removed=len(orphans))

    def tend(self) -> None:
        return None

    def services(self) -> Sequence[ServiceProgress]:
        return ()

    def compare_clocks(self) -> str:
        self._reach()
        return "storage has no clock of its own"

    def close(self) -> None:
        return None

    def _reach(self) -> None:
        if not self.timeline.available:
            raise Unavailable("the table's storage does not answer")

    def _now(self, waited_ms: int) -> str:
        """What the wall clock says: `waited_ms` were waited for in this call, which moves no clock here."""
        return spelled(self._wall_ms() + waited_ms)

    def _requested(self) -> str:
        """The next requested time. Of one process no two are the same, and none is less than one before."""
        now = self._now(self._await_clock())
        self._last_requested = max(now, spelled(int(self._last_requested or 0) + 1))
        return self._last_requested

    def _await_clock(self) -> int:
        """Nothing is requested or completed while the clock is behind what is on the timeline.

        How long was waited, ms. Raises `ClockBehind` where that would be too long.
        """
        behind_ms = max(0, int(self.timeline.newest_time() or 0) + 1 - self._wall_ms())
        if behind_ms > CLOCK_WAIT_MS:
            raise ClockBehind(f"the clock is {behind_ms} ms behind the table")
        return behind_ms

    @contextmanager
    def _lock(self, what: str) -> Iterator[None]:
        """The table lock. A fault that a step raises is a death: the lock stays with the dead holder.

        Giving it back takes away whatever lock is there: it may have expired, and be a successor's.
        """
        if self.timeline.lock_holder is not None:
            raise Unavailable(f"{what}: the table lock is held by another writer")
        self.timeline.lock_holder = object()
        try:
            yield
        except (Refused, Unavailable, OutcomeUnknown):
            self.timeline.lock_holder = None
            raise
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

    def _check_files(self, commit: Commit) -> None:
        for file in commit.files:
            stored = self.timeline.files.get(file.path)
            if stored is None or stored.instant != commit.instant:
                raise Refused(f"instant {commit.instant}: file {file.path} is not there")
            if stored.rows is not None and _told(file) != (stored.rows.num_rows, stored.rows.nbytes):
                raise Refused(f"instant {commit.instant}: file {file.path} is not what was said of it")

    def _check(self, commit: Commit, fence: Callable[[TableState | None], str]) -> None:
        instant = self.timeline.instants.get(commit.instant)
        if instant is None or instant.phase is not InstantPhase.INFLIGHT:
            phase = instant.phase.value if instant is not None else "not on the timeline"
            raise Refused(f"instant {commit.instant} cannot be completed: it is {phase}")
        if instant.rollback_requested:
            raise Refused(f"instant {commit.instant} cannot be completed: its rollback is requested")
        if (instant.pipeline, instant.transaction) != (self.pipeline, commit.state.transaction):
            raise Refused(f"instant {commit.instant} belongs to transaction {instant.transaction!r}")
        self._check_rivals(commit.instant)
        newest = self.newest()
        objection = fence(newest)
        if objection:
            raise Refused(objection)
        committed = dict(newest.offsets) if newest is not None else {}
        if committed != dict(commit.expected):
            raise Refused(
                f"instant {commit.instant}: the table's committed offsets are no longer those that "
                f"transaction {commit.state.transaction} started from"
            )
        if newest is not None and not self._follows(newest, commit.state):
            raise Refused(does_not_follow(newest, commit.state))

    def _columns_with(self, commit: Commit) -> str:
        """The table's, wide enough for what workers have written."""
        return self._wide(list(commit.columns), commit.columns)

    def _wide(self, others: Sequence[str], named: Mapping[str, str] = NOBODY) -> str:
        """The table's columns, and those. Raises `Contradiction`."""
        stands, spec = self.timeline.columns, self._spec
        if all(one in ("", stands) for one in others):
            return stands
        from table.widening import Disunited, united_ddl

        fixed = (*spec.key_fields, *record_fields(spec))
        try:
            return united_ddl(stands, others, fixed=fixed, named=named)
        except Disunited as why:
            raise Contradiction(f"table {spec.path}: {why}") from why

    def _follows(self, newest: TableState | None, state: TableState) -> bool:
        return follows(newest, state)

    def _check_rivals(self, instant: str) -> None:
        for rival in self.unfinished():
            if rival.instant != instant:
                raise Refused(rival_open(instant, rival.instant))

    def _proof(self, file: StoredFile, grace_ms: int) -> str:
        """Return the proof for a file that no commit lists, empty for all others."""
        instant = self.timeline.instants.get(file.instant)
        if not file.ours or self.timeline.now_ms - file.written_at_ms < grace_ms:
            return ""
        if instant is None:
            return UNKNOWN
        if instant.phase is InstantPhase.ROLLED_BACK:
            return ROLLED_BACK
        listed = {data_file.path for data_file in instant.files}
        return NOT_LISTED if instant.complete and file.path not in listed else ""

"""A Hudi table that takes inserts or upserts, as a transactional table. In the driver, through Py4J.

Who calls, in which order, and why it is safe: docs/protocol.md. Here only: how each step is done with Hudi's
write client.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from control_topic.causes import FILES, METADATA, WRITE
from table.checks import same_ranges
from table.errors import OutcomeUnknown, Refused, TableError, Unavailable
from table.hudi.definition import (
    TERMS,
    Definition,
    check_table,
    fixed_properties,
    impatient,
    layout,
    plain_spec,
    schema_of,
    terms_of,
    with_the_tables,
)
from table.hudi.driver import opening, presence, rollback
from table.hudi.driver.clock import await_clock, check_requested
from table.hudi.driver.commit import Columns, PreCommit, Timing, check, write_stats
from table.hudi.driver.encodings import check_encodings
from table.hudi.driver.fence import Fence
from table.hudi.driver.history import History
from table.hudi.driver.java import FAILED, THROWN, changing, sentence, without_effect
from table.hudi.driver.looking import Look, looking
from table.hudi.driver.replaced import Replaced
from table.hudi.driver.session import Session
from table.hudi.driver.storage import is_of_one_machine
from table.hudi.driver.versions import check_versions
from table.hudi.driver.watchdog import CALLBACK_S, SILENCE_S, Watchdog
from table.hudi.evolution import evolve
from table.hudi.modes import INDEX_TYPE, MODES, kept_properties
from table.hudi.properties import AUTO_ARCHIVE, ONE_CLOCK, archives_beside, shared_lock
from table.hudi.properties import check as check_properties
from table.hudi.reader.schema_history import check_history
from table.hudi.reader.timeline import Timeline
from table.hudi.reader.torn import Torn
from table.hudi.upkeep.due import Upkeep
from table.hudi.upkeep.heartbeats import Heartbeats
from table.hudi.upkeep.markers import Markers
from table.hudi.upkeep.services import upkeep
from table.hudi.upkeep.sweep import Sweeper
from table.hudi.upkeep.timeline_records import TimelineRecords
from table.hudi.upkeep.unknown_files import unknown_files
from table.orphans import SweepReport
from table.port import UPSERT, Commit, ServiceProgress, TableLayout, TableSpec, Unfinished
from table.state import TableState, encode, owner

log = logging.getLogger(__name__)

LATE_MAX = 5
"""Completions that land late one after the other: each is of another driver that stood still."""
TEND_FACTOR = 2
"""Beside a transaction the metadata table is tended when so many of its compactions are due, which costs a
few percent of the commits' time. Unless commits are fast, a sweep comes before it."""

UPKEEP_STOP_S = 1.0
MARKERS_STOP_S = 10.0
NOTHING: Mapping[str, str] = {}
NOTHING_TIMED: Mapping[str, int] = {}


class HudiTable:
    """Implements `table.port.TransactionalTable` in every mode. One thread calls it.

    `watchdog_silence_s`, `watchdog_callback_s`: see `table.hudi.driver.watchdog`. `services`: whether this is
    the process that looks after the table (compaction, clustering, cleaning), as the configuration wants it.
    `free_slots`: how many of Spark's slots its compactions may take at once; asked by any thread.
    """

    def __init__(
        self,
        spark: SparkSession,
        spec: TableSpec,
        pipeline: str,
        *,
        watchdog_silence_s: int = SILENCE_S,
        watchdog_callback_s: int = CALLBACK_S,
        services: bool = False,
        free_slots: Callable[[], int] = lambda: 1,
    ) -> None:
        if spec.mode not in MODES:
            raise Refused(f"table.kind {spec.mode!r}: it is one of {', '.join(MODES)}")
        self._spec = impatient(plain_spec(spec))
        self._mode = MODES[spec.mode]
        self._pipeline = pipeline
        self._thread: int | None = None
        self._session = Session(spark, self._spec.path, self._spec.storage)
        self._history = History(self._session, pipeline, self._mode.action)
        self._timelines = TimelineRecords(partial(Timeline, self._spec.path, self._spec.storage))
        self._sweeper = Sweeper(
            self._session.store,
            self._timelines,
            self._session.in_local_time,
            share=spec.sweep_share,
        )
        self._heartbeats = Heartbeats(self._session.store)
        self._markers = Markers(self._session.store)
        self._watchdog = Watchdog(
            self._session.jvm_pid(), silence_s=watchdog_silence_s, callback_s=watchdog_callback_s
        )
        self._upkeep = Upkeep([])
        if services:
            self._upkeep = upkeep(self._spec, pipeline, self._session_beside, free_slots)
        # Others of the same pipeline, an operator's say, open the table beside a run that lives.
        self._opening = opening.Opening(self._session.store, pipeline) if services else None
        self._opened = False
        self._given: dict[str, str] = {}
        self._fixed: dict[str, str] = {}
        self._columns: Columns
        self._fence: Fence
        self._replaced = Replaced(self._session) if spec.mode == UPSERT else None
        self._torn: Torn | None = None
        self._tend_after = self._untended = 0
        self._archives = False

    def reach(self) -> None:
        """See `table.port.TransactionalTable.reach`."""
        self._enter()
        check_properties(self._spec.properties, self._spec.mode)
        check_versions(self._session.spark._jvm)
        check_encodings(self._session.spark, self._spec)
        schema_of(self._spec)
        with changing(f"the driver's JVM cannot use the place of table {self._spec.path}"):
            self._session.lock.check_conditions()

    def open(self) -> TableLayout:
        """Create the table when missing; `Contradiction` where the one that exists says something else."""
        self._enter()
        spec = self._spec
        check_properties(spec.properties, spec.mode)
        if not self._opened:  # later there may be no free slot to ask executors in
            check_versions(self._session.spark._jvm)
            check_encodings(self._session.spark, spec)
        schema = schema_of(spec)
        doing = f"table {spec.path} could not be opened"
        self._watchdog.start()
        with changing(doing):
            self._session.lock.check_conditions()
            created = presence.ensure(self._session, spec, schema)
            definition = self._session.load()
            definition = self._keep(spec, definition)
            check_table(definition, spec)
            if not created:
                check_history(self._session.store)
            spec = with_the_tables(definition, spec)
            # The table's own columns first: their order stays what foreign writers know.
            schema = evolve(definition.schema, schema_of(spec), spec)
            self._columns = Columns(self._session, spec, schema)
            if self._session.client is not None:
                self._session.close()
            self._fixed = fixed_properties(definition, schema, spec)
            clock = ONE_CLOCK if spec.storage is None and is_of_one_machine(spec.path) else {}
            self._archives = archives_beside(spec, self._upkeep.properties)
            archive = {AUTO_ARCHIVE: "false"} if self._archives else {}
            self._given = {**clock, **archive, **self._upkeep.properties, **spec.properties}
            self._session.start(self._given, self._fixed, spec.mode)
            self._fence = self._session.fence = Fence(
                self._session.store, self._session.jvm_pid(), lease_s=self._session.lock_lives_s()
            )
            self._torn = Torn(spec.path, spec.storage) if self._session.keeps_metadata() else None
            self._tend_after = TEND_FACTOR * self._session.metadata_commits()
            if not created and self._session.keeps_metadata() and not self._session.has_metadata():
                # Hudi makes a metadata table from what lies there, whoever has given it up.
                swept = self._sweeper.sweep(grace_ms=0)
                if swept.limited:
                    raise Refused(f"{doing}: it has no metadata table. {swept.alarm}")
        if not self._opened:
            self._opened = True
            self._upkeep.start()
        self._settle_rollbacks()
        if self._opening is not None:
            opening.take_back(self._session, self._history, self._watchdog, self._opening)
        # An older table soon, for a run may be short, but not before its first commit.
        self._untended = 0 if created else self._tend_after - 1
        log.info("table %s is %s", spec.path, "created" if created else "open")
        return layout(definition, spec, schema, created=created).encoded()

    def _settle_rollbacks(self) -> None:
        rollback.settle(self._session, self._history, self._watchdog, self._fence)

    def _kept(self, state: TableState | None) -> bool:
        """Whether it counts from here on. A completion that does not is taken off the timeline."""
        if state is None or self._fence.keep(state.instant):
            return True
        self._settle_rollbacks()
        return False

    def _keep(self, spec: TableSpec, definition: Definition) -> Definition:
        """Keep with a table that nobody has written to yet what its writers must know, and load it again."""
        kept = {TERMS: terms_of(spec)} if spec.partition_terms else {}
        if spec.mode == UPSERT and INDEX_TYPE not in definition.properties:
            kept |= kept_properties(spec.key_fields, spec.bucket_count, shared_lock(spec.path))
        if kept.keys() <= definition.properties.keys() or not self._session.is_untouched():
            return definition
        self._session.keep(kept)
        return self._session.load()

    def newest(self) -> TableState | None:
        """This pipeline's newest committed state, archived timeline included; None before genesis."""
        self._enter()
        for _ in range(LATE_MAX):
            newest = self._history.newest()
            if self._kept(newest):
                return newest
        raise Unavailable(f"table {self._spec.path}: a completion that landed too late cannot be removed")

    def lost_commits(self, newest: TableState | None) -> str:
        """See `table.port.TransactionalTable.lost_commits`."""
        self._enter()
        if self._history.newest_is_active:
            return ""
        after = newest.instant if newest is not None else ""
        try:
            unknown = unknown_files(self._session.store, self._timelines, after=after)
        except OSError as error:
            raise Unavailable(f"table {self._spec.path} could not be listed: {sentence(error)}") from error
        if not unknown:
            return ""
        instant = max(unknown)
        return (
            f"files of Lockstep name {len(unknown):,} instants that the timeline does not know, such as "
            f"{unknown[instant][0]}"
        )

    def unfinished(self) -> Sequence[Unfinished]:
        """This pipeline's inflight instants, oldest first."""
        self._enter()
        return self._history.unfinished()

    def find(self, transaction: str) -> TableState | None:
        """The committed state of this transaction where it is on the timeline, else None."""
        self._enter()
        return self._find(transaction)

    def _find(self, transaction: str) -> TableState | None:
        done = self._history.find(transaction)
        return done if self._kept(done) else None

    def begin(self, *, run: str, transaction: str) -> str:
        """Open an inflight instant that carries its owner; the same one again for the same transaction."""
        self._enter()
        doing = f"transaction {transaction}: no instant could be opened"
        for one in self._history.unfinished():
            if one.transaction == transaction:
                if one.rollback_requested:
                    raise Refused(f"{doing}: the rollback of its instant {one.instant} is requested")
                with changing(doing):
                    self._session.keep_alive(one.instant)
                return one.instant
        done = self._find(transaction)
        if done is not None:
            raise Refused(f"{doing}: it is committed already, as instant {done.instant}")
        with changing(doing, self._session.lock.folder):
            self._session.choose_client()
            return self._start_instant(owner(self._pipeline, run, transaction))

    def commit(self, commit: Commit, *, fence: Callable[[TableState | None], str]) -> Mapping[str, int]:
        """Complete the instant, whole or not at all. See `table.port.TransactionalTable.commit`."""
        self._enter()
        with looking(self._session.store, self._spec.mode, commit.instant, commit.files) as look:
            if self._is_repeat(commit):
                return NOTHING_TIMED
            timing = Timing()
            look.before_lock()
            return self._complete(commit, fence, look, timing)

    def _complete(
        self, commit: Commit, fence: Callable[[TableState | None], str], look: Look, timing: Timing
    ) -> Mapping[str, int]:
        marked = self._markers.are_of(commit.instant, commit.files)
        timing.ended(FILES)
        await_clock(self._session, loaded=True)  # by the look for a repeat
        self._untended += 1

        def objection(newest: TableState | None) -> str:
            if newest is not None and not self._fence.keep(newest.instant):
                return (
                    f"instant {commit.instant} cannot be completed: {newest.instant} landed too late: recover"
                )
            return fence(newest)

        def checked() -> None:
            check(self._session, self._history, commit, objection, self._columns, self._replaced, self._torn)
            look.under_lock()

        pre_commit = PreCommit(
            checked,
            lambda: self._fence.commit(commit.instant),
            self._watchdog,
            self._session.lock.holder,
            timing,
        )
        self._columns.widen(commit.columns)
        timing.begins()
        took_ms: Mapping[str, int] = timing.took_ms
        try:
            with self._watchdog.armed():
                self._session.leave_markers(commit.instant if marked else "")
                self._commit(commit, pre_commit)
            timing.inside(METADATA, self._session.metadata_ms(commit.instant))
            timing.ended(WRITE)
        except FAILED as error:
            if isinstance(error, THROWN):
                self._session.let_go()
            self._settle(commit, pre_commit, error)
            took_ms = NOTHING_TIMED
        finally:
            self._columns.settle(decided=pre_commit.decided)
        self._heartbeats.completed(commit.instant)
        if marked:
            self._markers.completed(commit.instant)
        self._upkeep.committed(commit.files)
        return took_ms

    def roll_back(self, instant: str) -> bool:
        """Remove an instant's files and the instant. False where it proved to be complete under the lock."""
        self._enter()
        await_clock(self._session)
        return rollback.roll_back(self._session, self._history, self._watchdog, self._fence, instant)

    def sweep(self, *, grace_ms: int) -> SweepReport:
        """Remove files with our mark that provably no commit lists, unchanged for `grace_ms`.

        The metadata table is tended as well; where that fails it is logged, and tried again.
        """
        self._enter()
        try:
            report = self._sweeper.sweep(grace_ms)
        except OSError as error:
            raise Unavailable(f"table {self._spec.path} could not be swept: {sentence(error)}") from error
        if self._fence.needed:
            self._settle_rollbacks()
            self._fence.forget(self._session.oldest())
        self._tend()
        return report

    def tend(self) -> None:
        """Let Hudi compact its metadata table, and do what is due of the services that are inline."""
        self._enter()
        self._heartbeats.clear()
        if self._untended >= self._tend_after:
            self._tend()
        self._upkeep.run_inline()

    def services(self) -> Sequence[ServiceProgress]:
        """How the table's services stand, as far as this process does them. Any thread may ask."""
        return self._upkeep.progress()

    def compare_clocks(self) -> str:
        """How this clock and the file system's compare, for a person. Raises `ClockAhead`, `Unavailable`."""
        self._enter()
        return self._session.lock.clock.sentence()

    def close(self) -> None:
        """Stop heartbeats and the watchdog. Open instants stay: whoever comes next rolls them back."""
        self._enter()
        self._upkeep.stop(UPKEEP_STOP_S)
        self._markers.close(MARKERS_STOP_S)
        self._watchdog.close()
        with changing(f"table {self._spec.path} could not be closed"):
            self._session.close()

    def _enter(self) -> None:
        """Hudi's client, the caches here and Py4J's callbacks know one thread only."""
        here = threading.get_ident()
        self._thread = self._thread or here
        if self._thread != here:
            raise RuntimeError("a HudiTable is used by one thread only, the one that used it first")

    def _session_beside(
        self,
        *,
        given: Mapping[str, str] = NOTHING,
        fixed: Mapping[str, str] = NOTHING,
        by_spark: bool = False,
    ) -> Session:
        """See `table.hudi.upkeep.due.Opener`."""
        with changing(f"table {self._spec.path} could not be opened for its services"):
            session = Session(self._session.spark, self._spec.path, self._spec.storage)
            session.load()
            properties = {**given, **self._given}
            session.start(properties, {**self._fixed, **fixed}, self._spec.mode, by_spark=by_spark)
            session.fence = self._fence
        return session

    def _tend(self) -> None:
        """Let Hudi compact its metadata table, and archive what it lets be archived.

        Only Hudi's own ways of writing records ask for it, and completing an instant does not; but without
        it no instant of the table is ever archived, and every commit makes the next one slower.
        """
        self._untended = 0
        doing = f"table {self._spec.path}: its metadata table could not be compacted"
        try:
            await_clock(self._session)
            with changing(doing, self._session.lock.folder), self._watchdog.armed():
                if self._session.has_metadata():
                    self._session.lock.holder.free_if_dead()
                    self._session.tend_metadata()
                if self._archives:
                    self._session.archive()
        except TableError as error:
            log.warning("%s: until it is, no instant is archived; it will be tried again", error)

    def _start_instant(self, owned_by: dict[str, str]) -> str:
        session, client, model = self._session, self._session.client, self._session.hudi.common.model
        await_clock(session)
        instant, requested = self._request_instant()
        try:
            timeline = session.reload()
            metadata = model.HoodieCommitMetadata()
            operation = model.WriteOperationType.valueOf(self._mode.operation)
            metadata.setOperationType(operation)
            for name, value in owned_by.items():
                metadata.addMetadata(name, value)
            # What is complete by now cannot conflict; untold, the commit compares with all of the timeline.
            client.preWrite(instant, operation, session.meta)
            timeline.transitionRequestedToInflight(requested, session.some(metadata))
            self._history.opened(instant, owned_by)
        except THROWN:
            self._take_back(instant)
            raise
        return instant

    def _request_instant(self) -> tuple[str, Any]:
        """A new instant's time and its file on the timeline, as the client's `startCommit` makes them.

        Under the lock as there, but under one whose holder is known: it waits for the clock inside it.
        """
        session, client = self._session, self._session.client
        with rollback.table_lock(session, self._watchdog):
            timeline = session.reload()
            if not timeline.getRestoreTimeline().filterInflightsAndRequested().empty():
                raise Unavailable(f"table {self._spec.path} is being restored to an earlier instant")
            instant = str(client.createNewInstantTime(False))
            check_requested(session, timeline, instant)
            requested = session.meta.createNewInstant(
                session.hudi.common.table.timeline.HoodieInstant.State.REQUESTED, self._mode.action, instant
            )
            try:
                if self._opening is not None:
                    self._opening.note(instant)
                session.keep_alive(instant)  # before anybody can see it without a heartbeat
                timeline.createNewInstant(requested)
            except THROWN:
                self._take_back(instant)
                raise
        return instant, requested

    def _take_back(self, instant: str) -> None:
        """Remove an instant that could not be opened: nothing was written for it, and nobody knows of it.

        What cannot be removed either is left to a LAZY cleaner, once its heartbeat ends.
        """
        try:
            self._session.let_die(instant)
            self._session.remove_pending(self._mode.action, instant)
        except THROWN as error:
            log.warning(
                "instant %s could not be opened, nor removed: %s",
                *(instant, sentence(error)),
                extra={"instant": instant},
            )

    def _commit(self, commit: Commit, pre_commit: PreCommit) -> None:
        session, client = self._session, self._session.client
        session.lock.holder.free_if_dead()
        session.keep_alive(commit.instant)
        # Without an operation type the metadata table's update throws; a new client has none yet.
        operations = session.hudi.common.model.WriteOperationType
        client.setOperationType(operations.valueOf(self._mode.operation))
        client.commitStats(
            commit.instant,
            write_stats(session, self._spec.mode, commit),
            session.some(session.java_map(encode(commit.state))),
            self._mode.action,
            session.jvm.java.util.Collections.emptyMap(),
            session.some(pre_commit),
        )

    def _settle(self, commit: Commit, pre_commit: PreCommit, error: Exception) -> None:
        """The call threw: return where the commit is on the timeline all the same, raise what is proved."""
        if pre_commit.objection is not None:
            raise pre_commit.objection from error
        doing = f"instant {commit.instant} could not be completed"
        why = sentence(error)
        if not isinstance(error, THROWN):
            raise OutcomeUnknown(f"{doing}: {why}: read the table before anything else") from error
        try:
            done = self._find(commit.state.transaction)
        except TableError as unread:
            raise OutcomeUnknown(f"{doing}: {why}; and then the table could not be read: {unread}") from error
        if done is None and pre_commit.decided and self._fence.needed:
            # What Hudi had put last may land yet. Whoever rolls the instant back finds out, and nobody
            # completes it a second time.
            raise OutcomeUnknown(f"{doing}: {why}: read the table before anything else") from error
        if done is None:
            raise without_effect(doing, error, self._session.lock.folder) from error
        log.warning(
            "instant %s is complete, what came after it failed: %s",
            *(commit.instant, why),
            extra={"instant": commit.instant},
        )

    def _is_repeat(self, commit: Commit) -> bool:
        """Whether this transaction is on the timeline with these very ranges and instant."""
        done = self._find(commit.state.transaction)
        if done is None:
            return False
        if done.instant == commit.instant and same_ranges(done.ranges, commit.state.ranges):
            return True
        raise Refused(
            f"transaction {commit.state.transaction} is committed already, as instant {done.instant} with "
            f"{'other ranges' if done.instant == commit.instant else 'another instant'}: its status is stale"
        )

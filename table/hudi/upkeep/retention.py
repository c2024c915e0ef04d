"""Table partitions that are past their time go out of the table, as Hudi's delete-partition takes them out.

That names the file groups that they hold, in one instant, and touches no file: queries that have begun read
on, and the files go with a later cleaning, when no reader that Hudi keeps them for is left
(`hoodie.clean.*`). A transaction that is open meanwhile writes file groups that nobody had before: what it
brings for such a table partition stays, and goes the next time. So neither makes the other fail. Where a
field says how old rows are, what has come since it was looked may be young: then nothing is taken out, and it
is looked anew.

A clustering that is planned has those file groups in its hands, and would bring their rows back: its table
partitions are left for the next time, and it is looked once more inside the table lock, in which Hudi plans
as well.

What a driver that died leaves of it is taken away as table/hudi/upkeep/plans.py says.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing, suppress
from typing import Any

from table.errors import TableError, Unavailable
from table.hudi.driver.asking import elements
from table.hudi.driver.clock import await_clock
from table.hudi.driver.commit import PreCommit, Timing
from table.hudi.driver.java import FAILED, changing, reading
from table.hudi.driver.rollback import table_lock
from table.hudi.driver.session import Session
from table.hudi.driver.watchdog import Watchdog
from table.hudi.upkeep import plans
from table.hudi.upkeep.due import ByCommits, Done, Opener
from table.hudi.upkeep.past import AT_ONCE_MAX, Past, base_files, file_groups, finder
from table.hudi.upkeep.plans import OWNER, PendingPlan, Tidied
from table.port import TableSpec
from table.state import PREFIX

ACTION = "replacecommit"
OPERATION = "DELETE_PARTITION"
RETENTION = PREFIX + "retention"
"""In the instant's metadata: which pipeline's it is. It names no offsets, and is no commit of a chain."""
LOOKS_EVERY_S = 600.0
"""Values are of days, mostly; and what is looked at is a list of all table partitions."""
FIRST_LOOK_S = 60.0
"""After the service has begun, where no commit comes before: whose run was taken over has ended by then."""
Groups = Mapping[str, list[str]]
"""By the path of a table partition, the ids of file groups, in order."""


class Retention(ByCommits):
    """Implements `table.hudi.upkeep.due.ServiceWork`. `wall_s`, `clock_s`: Unix epoch, and one that only
    grows."""

    name = "retention"
    properties: Mapping[str, str] = {}

    def __init__(
        self,
        spec: TableSpec,
        pipeline: str,
        *,
        wall_s: Callable[[], float] = time.time,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._pipeline = pipeline
        self._finder = finder(spec)
        self._wall_s = wall_s
        self._clock_s = clock_s
        self._looked_s: float | None = None
        """None: not since it was tidied, or there was more than one look takes out."""
        self._tidied_s = clock_s()
        self._held_some = False

    def open(self, opener: Opener) -> Session:
        return opener()

    def tidy(self, session: Session) -> str:
        self._looked_s, self._tidied_s = None, self._clock_s()
        return tidy(session, self._pipeline).objection(ACTION)

    def run(self, session: Session, doing: Callable[[str], None]) -> Done | None:
        """One instant for all that is past its time; None where nothing is, or it was looked at just now."""
        now_s = self._clock_s()
        is_early = self._looked_s is not None and now_s < self._looked_s + LOOKS_EVERY_S
        if is_early and self._held_some:  # a new table begins empty
            return None
        await_clock(session)  # of a clock that is ahead nothing is believed
        found = self._past_their_time(session)
        if not found:
            self._looked_s = now_s
            return None
        doing(f"{len(found):,} table partitions")
        instant = request(session, self._pipeline)
        groups = take_out(session, self._pipeline, instant, found)
        self._looked_s = now_s if len(found) < AT_ONCE_MAX else None
        return Done(instant, f"{len(found):,} table partitions taken out, of {groups:,} file groups")

    def due_in_s(self, now_s: float) -> float | None:
        """Whether or not anything is committed: days are over by themselves."""
        if self._looked_s is None:
            return max(0.0, self._tidied_s + FIRST_LOOK_S - now_s)
        return max(0.0, self._looked_s + LOOKS_EVERY_S - now_s)

    def run_early(self, session: Session, doing: Callable[[str], None], now_s: float) -> Done | None:
        return self.run(session, doing)

    def _past_their_time(self, session: Session) -> Past:
        """Without those that a pending plan has in its hands, and those that are empty."""
        with reading(f"table {session.path}: its table partitions cannot be listed"):
            session.reload()
            paths = table_partitions(session)
            self._held_some = bool(paths)
            now_ms = round(self._wall_s() * 1_000)
            return self._finder.find(session, paths, in_hands(session), now_ms)


def table_partitions(session: Session) -> list[str]:
    """The paths of all, as the table's metadata has them, or its folders."""
    return [str(one) for one in elements(session.table().getTableMetadata().getAllPartitionPaths())]


def in_hands(session: Session) -> set[str]:
    """The table partitions of which a pending clustering has files, as the timeline was loaded last."""
    utils = session.hudi.common.util.ClusteringUtils
    groups = utils.getAllFileGroupsInPendingClusteringPlans(session.meta)
    return {str(one.getPartitionPath()) for one in elements(groups.keySet())}


def request(session: Session, owner: str) -> str:
    """The instant, asked for and in nobody's hands yet. `owner`: the pipeline whose driver carries it out."""
    doing = f"table {session.path}: no table partition could be taken out"
    with closing(Watchdog(session.jvm_pid())) as watchdog, changing(doing, session.lock.folder):
        session.choose_client()
        with table_lock(session, watchdog):
            session.reload()
            instant = str(session.client.createNewInstantTime(False))
            made = (
                session.hudi.avro.model.HoodieRequestedReplaceMetadata.newBuilder()
                .setOperationType(OPERATION)
                .setExtraMetadata(session.java_map({OWNER: owner}))
                .build()
            )
            timeline = session.meta.getActiveTimeline()
            timeline.saveToPendingReplaceCommit(_requested(session, instant), made)
    return instant


def take_out(session: Session, owner: str, instant: str, past: Past) -> int:
    """Complete it: what these table partitions hold is in the table no more. How many file groups that is.

    Raises `TableError`; `Unavailable` where a clustering took one of them into its hands meanwhile, where
    one holds other files than those that were looked at, or columns came.
    """
    doing = f"{ACTION} {instant} of table {session.path}: its table partitions were not taken out"
    operation = session.hudi.common.model.WriteOperationType.valueOf(OPERATION)
    with closing(Watchdog(session.jvm_pid())) as watchdog:
        pre_commit = PreCommit(
            lambda: _check(session, instant, past, groups),
            lambda: session.fence.commit(instant),
            watchdog,
            session.lock.holder,
            Timing(),
        )
        try:
            with changing(doing, session.lock.folder):
                groups = _begin(session, instant, operation, past)
                session.client.setOperationType(operation)
                session.lock.holder.free_if_dead()
                with watchdog.armed():
                    session.client.commitStats(
                        instant,
                        session.jvm.java.util.ArrayList(),
                        session.some(session.java_map({RETENTION: owner})),
                        ACTION,
                        _java_lists(session, groups),
                        session.some(pre_commit),
                    )
        except TableError as error:
            if pre_commit.objection is not None:
                raise pre_commit.objection from error
            raise
        finally:
            with suppress(*FAILED):
                session.let_die(instant)
    return sum(map(len, groups.values()))


def tidy(session: Session, pipeline: str) -> Tidied:
    """Take away what is pending of this pipeline's. See `plans.abandon`."""

    def pending() -> Iterator[PendingPlan]:
        timeline = session.meta.getActiveTimeline()
        for one in elements(timeline.filterInflightsAndRequested().getInstants()):
            if str(one.getAction()) == ACTION:
                instant = str(one.requestedTime())
                yield PendingPlan(instant, _owner(session, instant), None)

    return plans.abandon(session, ACTION, pipeline, pending, lambda _plan: set())


def _begin(session: Session, instant: str, operation: Any, paths: Collection[str]) -> Groups:
    """It is carried out from here on; by path, the file groups that are there now."""
    metadata = session.hudi.common.model.HoodieReplaceCommitMetadata()
    metadata.setOperationType(operation)
    timeline = session.reload()
    session.client.preWrite(instant, operation, session.meta)
    plans.begin(session, ACTION, instant)
    session.keep_alive(instant)  # before anybody can see it without a heartbeat
    timeline.transitionReplaceRequestedToInflight(_requested(session, instant), session.some(metadata))
    session.reload()
    view = session.table().getSliceView()
    return {path: file_groups(view, path) for path in paths}


def _check(session: Session, instant: str, past: Past, groups: Groups) -> None:
    """Raise where it may not be completed, or not now. Under the table lock. `groups`: what is to go."""
    what = f"{ACTION} {instant} of table {session.path}"
    plans.check_held(session, ACTION, instant)
    with reading(f"table {session.path}: its timeline cannot be read"):
        if busy := in_hands(session).intersection(past):
            raise Unavailable(f"{what}: a clustering has table partition {min(busy)!r} in its hands")
        if other := _holds_others(session, past, groups):
            raise Unavailable(f"{what}: files of table partition {other!r} came or went meanwhile")
        if session.columns() != session.begun_with:  # to the letter: what this one says is taken for them
            raise Unavailable(f"{what}: columns came meanwhile")


def _holds_others(session: Session, past: Past, groups: Groups) -> str | None:
    """A table partition that went by its files and has others now: what has come may be young."""
    looked_at = {path: names for path, names in past.items() if names is not None}
    view = session.table().getSliceView() if looked_at else None
    for path, names in looked_at.items():
        there = base_files(view, path)
        if there != names or sorted(name.partition("_")[0] for name in there) != groups[path]:
            return path
    return None


def _requested(session: Session, instant: str) -> Any:
    requested = session.hudi.common.table.timeline.HoodieInstant.State.REQUESTED
    return session.meta.createNewInstant(requested, ACTION, instant)


def _owner(session: Session, instant: str) -> str:
    """The pipeline that carries a pending one out, empty where it is others'."""
    found = session.store.stat(f"{plans.timeline_folder(session)}/{instant}.{ACTION}.requested")
    if found is None or not found.size_bytes:  # as INSERT OVERWRITE leaves it
        return ""
    timeline = session.meta.getActiveTimeline()
    extra = timeline.readRequestedReplaceMetadata(_requested(session, instant)).getExtraMetadata()
    return str((extra or {}).get(OWNER) or "")


def _java_lists(session: Session, groups: Groups) -> Any:
    """A java.util.Map of lists of texts, by Hudi's own JSON: a call for each takes a millisecond."""
    mapper = session.hudi.common.util.JsonUtils.getObjectMapper()
    return mapper.readValue(json.dumps(groups), session.jvm.java.util.HashMap().getClass())

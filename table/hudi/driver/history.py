"""What a pipeline has committed and what it has open, read from the table's timeline and remembered.

The newest instant that carries our keys counts, however many foreign instants came after it. Which of ours is
newest, they say themselves (table/chain.py): requested and completion times come from clocks. All are read
once; from then on only instants that were not there at the last look, so that a look costs the same however
long the timeline is.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt

from table.chain import earliest_after, follows
from table.errors import Refused
from table.hudi.driver.asking import elements, texts
from table.hudi.driver.java import is_gone, reading
from table.hudi.driver.session import Session
from table.port import Unfinished
from table.state import PREFIX, StateError, TableState, decode

PIPELINE = PREFIX + "pipeline"
TRANSACTIONS_REMEMBERED = 4_096
LOOKS_MAX = 4
"""A look that meets an instant which is just being archived begins anew; that happens seldom."""


class UnreadableState(Refused, StateError):
    """A commit claims to be ours and its state cannot be read."""


@dataclass(frozen=True, slots=True)
class Pending:
    """An instant that is not complete."""

    instant: Any
    time: str
    owner: Mapping[str, str]
    """Its `lockstep.*` metadata, empty for everybody else's."""


class History:
    """One pipeline's commits, by `action`. Each method looks anew. Raises `Unavailable`, `Refused`."""

    def __init__(self, session: Session, pipeline: str, action: str) -> None:
        self._session = session
        self._pipeline = pipeline
        self.action = action
        self._newest: TableState | None = None
        self._anchor: Any = None  # the newest one's instant, as long as it is on the active timeline
        self._seen = Seen(session)
        self._instants: OrderedDict[str, str] = OrderedDict()  # by transaction; states may be large
        self._owners: dict[str, Mapping[str, str]] = {}

    def newest(self, *, loaded: bool = False) -> TableState | None:
        """The state that the newest commit of this pipeline left, None before genesis.

        `loaded`: the timeline was loaded under the table lock, which is held still.
        """
        self._look(loaded=loaded)
        return self._newest

    @property
    def newest_is_active(self) -> bool:
        """Whether the newest commit, as `newest` returned it last, is on the active timeline."""
        return self._anchor is not None

    def find(self, transaction: str) -> TableState | None:
        """The transaction's commit: on the active timeline, in its newest archived stretch, or seen since."""
        self._look()
        if self._newest is not None and self._newest.transaction == transaction:
            return self._newest
        instant = self._instants.get(transaction)
        return self._read(instant) if instant is not None else None

    def pending(self) -> list[Pending]:
        """Commits that are requested or inflight, everybody's, oldest first."""
        with reading(f"table {self._session.path}: its timeline cannot be read"):
            timeline = self._session.reload()
            listed = [
                instant
                for instant in elements(
                    timeline.getCommitsTimeline().filterInflightsAndRequested().getInstants()
                )
                if instant.getAction() == self.action
            ]
            found = [Pending(one, str(one.requestedTime()), self._owner(timeline, one)) for one in listed]
        self._owners = {one.time: one.owner for one in found if one.instant.isInflight()}
        return found

    def pending_times(self) -> set[str]:
        """Requested times of all that is requested or inflight, of every action, everybody's."""
        with reading(f"table {self._session.path}: its timeline cannot be read"):
            pending = self._session.reload().filterInflightsAndRequested()
            return {str(one.requestedTime()) for one in elements(pending.getInstants())}

    def opened(self, instant: str, owned_by: Mapping[str, str]) -> None:
        """An instant of ours is inflight, with this metadata, which nobody changes."""
        self._owners[instant] = dict(owned_by)

    def ours(self, pending: Pending) -> bool:
        return pending.owner.get(PIPELINE) == self._pipeline

    def unfinished(self) -> list[Unfinished]:
        """This pipeline's open instants, oldest first."""
        pending = [one for one in self.pending() if self.ours(one)]
        if not pending:
            return []
        requested = rollbacks(self._session)
        return [
            Unfinished(
                instant=one.time,
                run=one.owner.get(PREFIX + "run", ""),
                transaction=one.owner.get(PREFIX + "transaction", ""),
                rollback_requested=one.time in requested,
            )
            for one in pending
        ]

    def archived(self, instant: str) -> Mapping[str, str] | None:
        """The extra metadata of a completed instant in the archived timeline, None where it has none such."""
        with reading(f"table {self._session.path}: its archived timeline cannot be read"):
            timeline = archived_between(self._session, instant, instant)
            for one in elements(timeline.getInstants()):
                if one.requestedTime() == instant and one.getAction() == self.action:
                    return self._texts(timeline.readCommitMetadata(one).getExtraMetadata())
        return None

    def _look(self, *, loaded: bool = False) -> None:
        with reading(f"table {self._session.path}: its timeline cannot be read"):
            # What was listed may have been archived since, by another driver.
            Retrying(
                retry=retry_if_exception(is_gone),
                stop=stop_after_attempt(LOOKS_MAX),
                before_sleep=self._begin_anew,
                reraise=True,
            )(self._look_once, loaded)

    def _begin_anew(self, _retry: RetryCallState) -> None:
        self._seen.forget()

    def _look_once(self, loaded: bool) -> None:
        timeline = self._session.meta.getActiveTimeline() if loaded else self._session.reload()
        completed = timeline.getCommitsTimeline().filterCompletedInstants().getInstants()
        if not self._seen or (self._anchor is not None and not completed.contains(self._anchor)):
            # The first look; or the newest has been archived, or taken back by a restore.
            self._newest = self._anchor = None
            self._instants.clear()
            self._seen.forget()
            self._take_archived()
        for instant in self._seen.fresh(completed):
            if self._remember(self._state(timeline, instant)):
                self._anchor = instant
        self._seen.note(completed)

    def _take_archived(self) -> None:
        """The newest archived stretch; older ones as far as they may hold what follows our newest there."""
        local = self._session.in_local_time()
        for start, end in _stretches(self._session):
            newest = self._newest
            if newest is not None and earliest_after(newest.instant, in_local_time=local) > end:
                return
            archived = archived_between(self._session, start, end)
            for instant in elements(archived.getInstants()):
                self._remember(self._state(archived, instant))

    def _remember(self, state: TableState | None) -> bool:
        """Whether it is the newest."""
        if state is None:
            return False
        self._instants[state.transaction] = state.instant
        while len(self._instants) > TRANSACTIONS_REMEMBERED:
            self._instants.popitem(last=False)
        if not follows(self._newest, state):
            return False
        self._newest = state
        return True

    def _read(self, time: str) -> TableState | None:
        """The state that this instant of ours left, wherever the timeline has it by now."""
        with reading(f"table {self._session.path}: its timeline cannot be read"):
            timeline = self._session.meta.getActiveTimeline()
            completed = timeline.getCommitsTimeline().filterCompletedInstants()
            for instant in elements(completed.getInstants()):
                if instant.requestedTime() == time:
                    return self._state(timeline, instant)
        extra = self.archived(time)
        return self._decoded(extra, time) if extra is not None else None

    def _state(self, timeline: Any, instant: Any) -> TableState | None:
        if instant.getAction() != self.action:
            return None
        extra = timeline.readCommitMetadata(instant).getExtraMetadata()
        if extra.get(PIPELINE) != self._pipeline:
            return None
        return self._decoded(self._texts(extra), str(instant.requestedTime()))

    def _decoded(self, extra: Mapping[str, str], time: str) -> TableState:
        try:
            state = decode(extra, instant=time)
        except StateError as error:
            raise UnreadableState(_unreadable(self._session.path, time, str(error))) from error
        if state is None:
            raise UnreadableState(_unreadable(self._session.path, time, "it has no lockstep.offsets"))
        return state

    def _texts(self, extra: Any) -> dict[str, str]:
        return texts(self._session.hudi, extra)

    def _owner(self, timeline: Any, instant: Any) -> Mapping[str, str]:
        """An instant that is only requested says nothing of its owner, and holds no files either."""
        if not instant.isInflight():
            return {}
        known = self._owners.get(str(instant.requestedTime()))
        if known is not None:
            return known
        extra = timeline.readCommitMetadata(instant).getExtraMetadata()
        return self._texts(extra) if extra.get(PIPELINE) is not None else {}


class Seen:
    """The completed instants that were there when `note` was called last; which of a list were not."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._noted: Any = None  # a java.util.HashSet: one call for all of them

    def __bool__(self) -> bool:
        return self._noted is not None

    def fresh(self, instants: Any) -> list[Any]:
        """Those of a java.util.List of instants that were not noted, in its order."""
        fresh = self._session.jvm.java.util.ArrayList(instants)
        if self._noted is not None:
            fresh.removeAll(self._noted)
        return elements(fresh)

    def note(self, instants: Any) -> None:
        self._noted = self._session.jvm.java.util.HashSet(instants)

    def forget(self) -> None:
        self._noted = None


def rollbacks(session: Session) -> dict[str, Any]:
    """Target instant -> HoodiePendingRollbackInfo of its rollback that is requested and not complete.

    Looks at the active timeline as `session` loaded it last.
    """
    found: dict[str, Any] = {}
    read = session.hudi.table.action.rollback.RollbackUtils.getRollbackPlan
    pending = session.meta.getActiveTimeline().filterPendingRollbackTimeline()
    for instant in elements(pending.getInstants()):
        plan = read(session.meta, instant)
        target = str(plan.getInstantToRollback().getCommitTime())
        found.setdefault(target, session.hudi.common.HoodiePendingRollbackInfo(instant, plan))
    return found


def archived_between(session: Session, start: str, end: str) -> Any:
    """The archived timeline, only instants requested from `start` to `end`, with their metadata."""
    timelines = session.hudi.common.table.timeline.versioning.v2
    timeline = timelines.ArchivedTimelineV2(session.meta, False)
    before = f"{int(start) - 1:017d}"  # Hudi leaves the start of a range out
    timeline.loadCompletedInstantDetailsInMemory(before, end)
    return timeline


def _stretches(session: Session) -> list[tuple[str, str]]:
    """First and last instant of each file of the archived timeline, newest file first."""
    files = session.hudi.common.table.timeline.LSMTimeline
    manifest = files.latestSnapshotManifest(session.meta, session.meta.getArchivePath())
    names = [str(name) for name in elements(manifest.getFileNames())]
    stretches = [(str(files.getMinInstantTime(name)), str(files.getMaxInstantTime(name))) for name in names]
    return sorted(stretches, key=lambda stretch: stretch[1], reverse=True)


def _unreadable(path: str, instant: str, why: str) -> str:
    return (
        f"table {path}: instant {instant} is this pipeline's, and its state cannot be read ({why}): "
        "use the version of Lockstep that wrote it"
    )


def listed_files(metadata: Any) -> Iterable[str]:
    """The paths, relative to the table, that a completed instant's commit metadata names."""
    return [str(stat.getPath()) for stat in elements(metadata.getWriteStats())]

"""Removing data files of Lockstep that no commit names.

A worker leaves such a file if it was paused and closed the file after its instant was rolled back or
completed. Readers of the metadata table never see the file. A reader that lists folders takes it for
committed once its instant is older than the active timeline, so the sweep has to come first.

A file is removed only with a proof that no commit lists it. There are three: the timeline has the commit of
its instant, which does not list it; the rollback of its instant is on the timeline; a driver of Lockstep has
noted that it removed the plan of its instant. A file whose instant the timeline does not know stays, for a
part of the timeline may be missing, after a restore for example. A sweep that finds more orphaned files than
`services.sweep_share` removes none, because that many are unusual and may be a mistake.

An upload to an object store that a killed worker began is in no listing, and costs money. The sweep aborts it
once its instant is over.

Only files with Lockstep's mark in their file id are judged, and files of a compaction or a clustering that a
driver of Lockstep has begun (table/hudi/upkeep/plans.py): a paused driver may write them after a successor
has removed the plan, and a lost executor after the plan was completed without it. The sweep reads files
first, then the active timeline, then the archived one, so that it finds an instant that is being archived.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Container, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

from table.hudi.upkeep import plans
from table.hudi.upkeep.candidates import Candidates, candidates
from table.hudi.upkeep.drafts import Drafts
from table.orphans import NOT_LISTED, REMOVED_PLAN, ROLLED_BACK, UNKNOWN, FoundFile, SweepReport
from table.store.port import Store, Upload

log = logging.getLogger(__name__)

T = TypeVar("T")

ARCHIVE_LOOKUPS_MAX = 200
"""Instants looked up in the archived timeline per sweep, so that none holds the table thread long."""


class Timelines(Protocol):
    """What the table's two timelines record of instants."""

    def pending(self) -> Container[str]:
        """Return instants of all writers that are requested or inflight. Reads the active timeline again."""

    def named(self, instant: str, *, carried_out: bool) -> Container[str] | None:
        """Return the files that the commit of `instant` lists on the active timeline, as `pending` read it.

        None if the instant is not complete there; everything for an instant that another writer completed.
        `carried_out`: a driver of Lockstep began to carry its plan out.
        """

    def named_in_archive(
        self, instants: Collection[str], carried_out: Container[str]
    ) -> Mapping[str, Container[str]]:
        """Return the same for those of `instants` that the archived timeline has."""

    def rolled_back(self, instants: Collection[str]) -> Collection[str]:
        """Return those of `instants` that a completed rollback on either timeline names."""


class Sweeper:
    """Sweeps one table. A sweep reads only what changed since the one before.

    `in_local_time`: whether the table's timeline is in local time, once the table is open. `clock_s`: Unix
    epoch. `share`: largest share of the table's files that a sweep may remove, from 0 to 1.
    """

    def __init__(
        self,
        store: Store,
        timelines: Timelines,
        in_local_time: Callable[[], bool],
        *,
        share: float = 1.0,
        clock_s: Callable[[], float] = lambda: time.time(),
    ) -> None:
        self._store = store
        self._timelines = timelines
        self._in_local_time = in_local_time
        self._share = share
        self._clock_s = clock_s
        self._known: Candidates | None = None
        self._unknown: set[str] = set()
        """Instants that neither timeline knew at the sweep before."""
        self._drafts = Drafts(store, clock_s=clock_s)

    @property
    def _candidates(self) -> Candidates:
        if self._known is None:  # not before the table is open
            self._known = candidates(self._store, in_local_time=self._in_local_time(), clock_s=self._clock_s)
        return self._known

    def look(self, grace_ms: int) -> SweepReport:
        """Report what a sweep would remove; remove nothing."""
        return self._report(self._look(grace_ms))

    def _report(self, look: _Look) -> SweepReport:
        return SweepReport(files=self._candidates.seen, share=self._share, found=look.found())

    def sweep(self, grace_ms: int, *, limit: bool = True) -> SweepReport:
        """Remove orphaned files that have not changed for `grace_ms`.

        `limit`: remove none if there are more than a share of all files.
        """
        look = self._look(grace_ms)
        report = self._report(look)
        limited = limit and report.limited
        refused: dict[str, str] = {}
        removed = [
            (one.path, one.instant)
            for one in report.orphans
            if not limited and _done(one.path, self._store.delete, one.path, refused)
        ]
        aborted = [
            (upload.path, instant)
            for upload, instant in look.uploads
            if instant not in look.pending and _done(upload.path, self._aborted, upload, refused)
        ]
        kept = {one.path for one in report.found if limited or not one.is_orphan}
        self._candidates.settle(look.listed, look.left | kept | refused.keys(), complete=not look.unseen)
        for folder in self._candidates.marker_folders(look.pending, look.noted, self._is_complete):
            self._store.delete_folder(folder)
        self._tell(removed, aborted, look.unseen, refused)
        self._drafts.sweep()
        return replace(report, removed=len(removed))

    def _look(self, grace_ms: int) -> _Look:
        self._candidates.begin(grace_ms)
        look = _Look(plans.carried_out(self._store), plans.taken_away(self._store))
        for path, instant in self._candidates.files(look.noted, look.unseen):
            look.by_instant[instant].append(path)
        look.uploads = self._uploads(look.noted, look.unseen)
        look.pending = self._timelines.pending()
        missing: list[str] = []
        for instant, paths in look.by_instant.items():
            if instant in look.pending:
                look.left.update(paths)
            elif (listed := self._timelines.named(instant, carried_out=instant in look.carried_out)) is None:
                missing.append(instant)
            else:
                look.judge(instant, listed)
        self._look_further(look, missing)
        return look

    def _look_further(self, look: _Look, missing: Collection[str]) -> None:
        """Judge files of instants that are not complete on the active timeline."""
        # Instants that were unknown before come last: they keep no other from being looked up.
        order = sorted(sorted(missing, reverse=True), key=self._unknown.__contains__)
        asked, later = order[:ARCHIVE_LOOKUPS_MAX], order[ARCHIVE_LOOKUPS_MAX:]
        look.left.update(path for instant in later for path in look.by_instant[instant])
        archived = self._timelines.named_in_archive(asked, look.carried_out) if asked else {}
        for instant, listed in archived.items():
            look.judge(instant, listed)
        absent = [instant for instant in asked if instant not in archived]
        removed_plans = [instant for instant in absent if instant in look.removed_plans]
        unproven = [instant for instant in absent if instant not in look.noted]
        rolled_back = self._timelines.rolled_back(unproven) if unproven else ()
        look.proved |= dict.fromkeys(removed_plans, REMOVED_PLAN)
        look.proved |= {instant: ROLLED_BACK for instant in unproven if instant in rolled_back}
        look.proved |= {instant: UNKNOWN for instant in absent if instant not in look.proved}
        self._unknown = {instant for instant in absent if look.proved[instant] == UNKNOWN}

    def _is_complete(self, instant: str) -> bool:
        """On the active timeline. Of archived ones Hudi has removed all that was left."""
        return self._timelines.named(instant, carried_out=False) is not None

    def _uploads(self, noted: Container[str], unseen: list[OSError]) -> list[tuple[Upload, str]]:
        """Looked for before it is asked which instants are pending: whose instant is over then, is over."""
        found: list[tuple[Upload, str]] = []
        try:
            found.extend(self._candidates.uploads(noted))
        except OSError as error:
            unseen.append(error)
        return found

    def _tell(
        self,
        removed: list[tuple[str, str]],
        aborted: list[tuple[str, str]],
        unseen: list[OSError],
        refused: dict[str, str],
    ) -> None:
        if gone := removed + aborted:
            path, instant = gone[0]
            begun = f"; {len(aborted)} of them had only been begun to be uploaded" if aborted else ""
            log.warning(
                "removed %d files that no commit names, of %d instants; one of them: %s of instant %s%s",
                *(len(gone), len({one for _, one in gone}), path, instant, begun),
            )
        if unseen:
            log.warning(
                "%s could not be looked at, and may hold what no commit names: %s. It is tried again: see "
                "who may read there",
                *(unseen[0].filename, unseen[0].strerror),
            )
        if refused:
            path, why = next(iter(refused.items()))
            log.warning(
                "%d files that no commit names could not be removed; one of them: %s: %s. It is tried again: "
                "see who may write there",
                *(len(refused), self._store.place(path), why),
            )

    def _aborted(self, upload: Upload) -> bool:
        self._store.abort(upload)
        return True


@dataclass(slots=True)
class _Look:
    """One look at the table. `carried_out`, `removed_plans`: instants of plans, by the drivers' notes."""

    carried_out: set[str]
    removed_plans: set[str]
    by_instant: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    uploads: list[tuple[Upload, str]] = field(default_factory=list)
    unseen: list[OSError] = field(default_factory=list)
    pending: Container[str] = ()
    left: set[str] = field(default_factory=set)
    """Files that the next look has to judge."""
    listed: set[str] = field(default_factory=set)
    """Files that a commit lists."""
    proved: dict[str, str] = field(default_factory=dict)
    """Instant -> the proof for its files that are not in `listed`."""

    @property
    def noted(self) -> set[str]:
        return self.carried_out | self.removed_plans

    def judge(self, instant: str, listed: Container[str]) -> None:
        """Take the files that the commit of `instant` lists."""
        self.listed.update(path for path in self.by_instant[instant] if path in listed)
        self.proved[instant] = NOT_LISTED

    def found(self) -> list[FoundFile]:
        """Return the files that no commit lists, newest instant first."""
        return [
            FoundFile(path=path, instant=instant, proof=self.proved[instant])
            for instant in sorted(self.proved, reverse=True)
            for path in self.by_instant[instant]
            if path not in self.listed
        ]


def _done(path: str, remove: Callable[[T], bool], what: T, refused: dict[str, str]) -> bool:
    """Whether it was there to be removed. One that may not be is noted, and keeps no other."""
    try:
        return remove(what)
    except OSError as error:
        refused[path] = error.strerror or repr(error)
        return False

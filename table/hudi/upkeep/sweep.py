"""Removing data files that name an instant of ours and that no commit names.

Such a file is left by a worker that was paused and closed it after its instant was rolled back or completed.
Readers that use the metadata table never see it; to a reader that lists folders it counts as committed once
its instant is older than the active timeline, so it has to go before that, or at once where it comes later.

So is one that was begun to be uploaded to an object store by a worker that was killed: nobody sees it, and it
is paid for. It is aborted once its instant is over.

Only files that bear our mark in their file id are looked at, and those of a compaction or a clustering that
a successor has taken away (table/hudi/upkeep/plans.py), which a paused driver may write afterwards. The order
is what makes it safe: files first, then the active timeline, then the archived one, so that an instant is
always found where it is.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Container
from typing import Any, TypeVar

from table.hudi.driver.history import History, archived_between, listed_files
from table.hudi.driver.java import reading
from table.hudi.driver.session import Session
from table.hudi.upkeep import plans
from table.hudi.upkeep.candidates import Candidates, candidates
from table.store.port import Upload

log = logging.getLogger(__name__)

T = TypeVar("T")

COMPACTED = "commit"
ARCHIVE_LOOKUPS_MAX = 200
"""Instants looked up in the archived timeline per sweep, so that none holds the table thread long."""


class Sweeper:
    """Remembers what it has judged: a sweep reads only what changed since the one before."""

    def __init__(self, session: Session, history: History) -> None:
        self._session = session
        self._history = history
        self._store = session.store
        self._known: Candidates | None = None

    @property
    def _candidates(self) -> Candidates:
        if self._known is None:  # not before the table is open
            self._known = candidates(self._store, in_local_time=self._session.in_local_time())
        return self._known

    def sweep(self, grace_ms: int) -> int:
        """Remove orphans that have not changed for `grace_ms`; the number of data files removed."""
        self._candidates.begin(grace_ms)
        by_instant: dict[str, list[str]] = defaultdict(list)
        taken_away = plans.taken_away(self._store)
        unseen: list[OSError] = []
        for path, instant in self._candidates.files(taken_away, unseen):
            by_instant[instant].append(path)
        uploads = self._uploads(taken_away, unseen)
        pending = self._history.pending_times()
        left: set[str] = set()
        judged: set[str] = set()
        removed: list[tuple[str, str]] = []
        refused: dict[str, str] = {}
        lookups = 0
        for instant in sorted(by_instant, reverse=True):
            paths = by_instant[instant]
            if instant in pending:
                left.update(paths)
                continue
            listed = self._listed(instant)
            if listed is None:
                if lookups >= ARCHIVE_LOOKUPS_MAX:
                    left.update(paths)
                    continue
                lookups += 1
                listed = self._listed_in_archive(instant)
            removed += [
                (path, instant)
                for path in paths
                if path not in listed and _done(path, self._store.delete, path, refused)
            ]
            judged.update(path for path in paths if path in listed)  # what was removed may come again
        aborted = [
            (upload.path, instant)
            for upload, instant in uploads
            if instant not in pending and _done(upload.path, self._aborted, upload, refused)
        ]
        self._candidates.settle(judged, left | refused.keys(), complete=not unseen)
        for folder in self._candidates.marker_folders(pending, taken_away):
            self._store.delete_folder(folder)
        self._tell(removed, aborted, unseen, refused)
        return len(removed)

    def _uploads(self, taken_away: Container[str], unseen: list[OSError]) -> list[tuple[Upload, str]]:
        """Looked for before it is asked which instants are pending: whose instant is over then, is over."""
        found: list[tuple[Upload, str]] = []
        try:
            found.extend(self._candidates.uploads(taken_away))
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

    def _listed(self, instant: str) -> Container[str] | None:
        """The files that a completed instant of the active timeline names, None where it holds none such."""
        with reading(f"table {self._session.path}: its timeline cannot be read"):
            timeline = self._session.meta.getActiveTimeline()
            return self._named(timeline, timeline.getCommitsTimeline().filterCompletedInstants(), instant)

    def _listed_in_archive(self, instant: str) -> Container[str]:
        with reading(f"table {self._session.path}: its archived timeline cannot be read"):
            timeline = archived_between(self._session, instant, instant)
            return self._named(timeline, timeline, instant) or ()

    def _named(self, timeline: Any, instants: Any, time_of: str) -> Container[str] | None:
        for one in instants.findInstantsInClosedRange(time_of, time_of).getInstants():
            if one.getAction() in (self._history.action, COMPACTED):
                return set(listed_files(timeline, one))
            return _Everything()  # a replacecommit of others', say: its files are no affair of ours
        return None


def _done(path: str, remove: Callable[[T], bool], what: T, refused: dict[str, str]) -> bool:
    """Whether it was there to be removed. One that may not be is noted, and keeps no other."""
    try:
        return remove(what)
    except OSError as error:
        refused[path] = error.strerror or repr(error)
        return False


class _Everything(Container[str]):
    def __contains__(self, _path: object) -> bool:
        return True

"""Removing data files that name an instant of ours and that no commit names.

Such a file is left by a worker that was paused and closed it after its instant was rolled back or completed.
Readers that use the metadata table never see it; to a reader that lists folders it counts as committed once
its instant is older than the active timeline, so it has to go before that, or at once where it comes later.

So is one that was begun to be uploaded to an object store by a worker that was killed: nobody sees it, and it
is paid for. It is aborted once its instant is over.

Only files that bear our mark in their file id are looked at, and those of a compaction or a clustering that
a driver of ours has begun (table/hudi/upkeep/plans.py): a paused driver may write them after a successor has
taken it away, and an executor that was taken for lost after it was completed without it. The order is what
makes it safe: files first, then the active timeline, then the archived one, so that an instant is always
found where it is.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Container
from typing import Protocol, TypeVar

from table.hudi.upkeep import plans
from table.hudi.upkeep.candidates import Candidates, candidates
from table.hudi.upkeep.drafts import Drafts
from table.store.port import Store, Upload

log = logging.getLogger(__name__)

T = TypeVar("T")

ARCHIVE_LOOKUPS_MAX = 200
"""Instants looked up in the archived timeline per sweep, so that none holds the table thread long."""


class Timelines(Protocol):
    """What the table's two timelines say of an instant."""

    def pending(self) -> Container[str]:
        """Instants that are requested or inflight, everybody's. Looks at the active timeline anew."""

    def named(self, instant: str, *, carried_out: bool) -> Container[str] | None:
        """The files that it names, complete on the active timeline as it was looked at last; None where it is
        not there. Everything where it is none of ours to judge. `carried_out`: by a driver of ours.
        """

    def named_in_archive(self, instant: str, *, carried_out: bool) -> Container[str]:
        """The same, of the archived timeline; nothing where it is not there."""


class Sweeper:
    """Remembers what it has judged: a sweep reads only what changed since the one before.

    `in_local_time`: whether the table's timeline is, once the table is open. `clock_s`: Unix epoch.
    """

    def __init__(
        self,
        store: Store,
        timelines: Timelines,
        in_local_time: Callable[[], bool],
        *,
        clock_s: Callable[[], float] = lambda: time.time(),
    ) -> None:
        self._store = store
        self._timelines = timelines
        self._in_local_time = in_local_time
        self._clock_s = clock_s
        self._known: Candidates | None = None
        self._drafts = Drafts(store, clock_s=clock_s)

    @property
    def _candidates(self) -> Candidates:
        if self._known is None:  # not before the table is open
            self._known = candidates(self._store, in_local_time=self._in_local_time(), clock_s=self._clock_s)
        return self._known

    def sweep(self, grace_ms: int) -> int:
        """Remove orphans that have not changed for `grace_ms`; the number of data files removed."""
        self._candidates.begin(grace_ms)
        by_instant: dict[str, list[str]] = defaultdict(list)
        carried_out = plans.carried_out(self._store)
        noted = plans.taken_away(self._store) | carried_out
        unseen: list[OSError] = []
        for path, instant in self._candidates.files(noted, unseen):
            by_instant[instant].append(path)
        uploads = self._uploads(noted, unseen)
        pending = self._timelines.pending()
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
            ours = instant in carried_out
            listed = self._timelines.named(instant, carried_out=ours)
            if listed is None:
                if lookups >= ARCHIVE_LOOKUPS_MAX:
                    left.update(paths)
                    continue
                lookups += 1
                listed = self._timelines.named_in_archive(instant, carried_out=ours)
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
        for folder in self._candidates.marker_folders(pending, noted, self._is_complete):
            self._store.delete_folder(folder)
        self._tell(removed, aborted, unseen, refused)
        self._drafts.sweep()
        return len(removed)

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


def _done(path: str, remove: Callable[[T], bool], what: T, refused: dict[str, str]) -> bool:
    """Whether it was there to be removed. One that may not be is noted, and keeps no other."""
    try:
        return remove(what)
    except OSError as error:
        refused[path] = error.strerror or repr(error)
        return False

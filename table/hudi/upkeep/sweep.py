"""Removing data files that name an instant of ours and that no commit names.

Such a file is left by a worker that was paused and closed it after its instant was rolled back or completed.
Readers that use the metadata table never see it; to a reader that lists folders it counts as committed once
its instant is older than the active timeline, so it has to go before that, or at once where it comes later.

Only files that bear our mark in their file id are looked at, and those of a compaction or a clustering that
a successor has taken away (table/hudi/upkeep/plans.py), which a paused driver may write afterwards. The order
is what makes it safe: files first, then the active timeline, then the archived one, so that an instant is
always found where it is.
"""

from __future__ import annotations

import logging
import posixpath
import re
import time
from collections import defaultdict
from collections.abc import Container, Iterator, Sequence
from typing import Any

from table.hudi.driver.history import History, archived_between, listed_files
from table.hudi.driver.java import reading
from table.hudi.driver.session import Session
from table.hudi.files.base_file import is_ours, parse_file_name
from table.hudi.files.log_file import is_in_bucket, is_our_log_file, parse_log_file_name
from table.hudi.layout import META_FOLDER
from table.hudi.upkeep import plans
from table.store.port import Store

log = logging.getLogger(__name__)

COMPACTED = "commit"
MARKERS = f"{META_FOLDER}/.temp"
INSTANT_NAME = re.compile(r"^\d{17}$")
MARKER_NAME = re.compile(r"^(?P<of>.+)\.marker\.(CREATE|MERGE|APPEND)$")
"""Those of compactions are Hudi's, and may be hidden beside a checksum: `.NAME.crc`."""
FIRST_LOOK_BACK_S = 7 * 24 * 3600
"""Files that have not changed for longer were judged by an earlier run."""
ARCHIVE_LOOKUPS_MAX = 200
"""Instants looked up in the archived timeline per sweep, so that none holds the table thread long."""


class Sweeper:
    """Remembers what it has judged: a sweep reads only what changed since the one before."""

    def __init__(self, session: Session, history: History) -> None:
        self._session = session
        self._history = history
        self._store = session.store
        self._judged_until_s = time.time() - FIRST_LOOK_BACK_S
        self._unjudged: set[str] = set()

    def sweep(self, grace_ms: int) -> int:
        """Remove orphans that have not changed for `grace_ms`; the number of data files removed."""
        until_s = time.time() - grace_ms / 1_000
        if until_s < self._judged_until_s:  # the clock went back: what came since may look older than it is
            self._judged_until_s = until_s - FIRST_LOOK_BACK_S
        by_instant: dict[str, list[str]] = defaultdict(list)
        taken_away = plans.taken_away(self._store)
        unseen: list[OSError] = []
        for path, instant in self._candidates(until_s, taken_away, unseen):
            by_instant[instant].append(path)
        pending = self._history.pending_times()
        unjudged: set[str] = set()
        removed: list[tuple[str, str]] = []
        refused: dict[str, str] = {}
        lookups = 0
        for instant in sorted(by_instant, reverse=True):
            paths = by_instant[instant]
            if instant in pending:
                unjudged.update(paths)
                continue
            listed = self._listed(instant)
            if listed is None:
                if lookups >= ARCHIVE_LOOKUPS_MAX:
                    unjudged.update(paths)
                    continue
                lookups += 1
                listed = self._listed_in_archive(instant)
            removed += [
                (path, instant) for path in paths if path not in listed and self._delete(path, refused)
            ]
        unjudged.update(refused)
        self._unjudged = unjudged
        if not unseen:  # else what is there is judged once it can be seen
            self._judged_until_s = until_s
        self._remove_markers(pending, until_s, taken_away)
        if removed:
            path, instant = removed[0]
            log.warning(
                "removed %d files that no commit names, of %d instants; one of them: %s of instant %s",
                *(len(removed), len({one for _, one in removed}), path, instant),
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
        return len(removed)

    def _delete(self, path: str, refused: dict[str, str]) -> bool:
        """Whether it was there to be removed. One that may not be is noted, and keeps no other."""
        try:
            return self._store.delete(path)
        except OSError as error:
            refused[path] = error.strerror or repr(error)
            return False

    def _candidates(
        self, until_s: float, taken_away: Container[str], unseen: list[OSError]
    ) -> Iterator[tuple[str, str]]:
        """(path below the table, instant) of files with our mark that are old enough and not judged yet.

        What storage refuses to show is noted in `unseen`.
        """
        try:
            for folder, names in self._store.walk(leaving_out=(META_FOLDER,)):
                yield from self._candidates_in(folder, names, until_s, taken_away, unseen)
        except OSError as error:
            unseen.append(error)

    def _candidates_in(
        self,
        folder: str,
        names: Sequence[str],
        until_s: float,
        taken_away: Container[str],
        unseen: list[OSError],
    ) -> Iterator[tuple[str, str]]:
        for name in names:
            instant = _instant_of_ours(name, taken_away)
            if not instant:
                continue
            path = posixpath.join(folder, name)
            try:
                found = self._store.stat(path)
            except OSError as error:
                unseen.append(error)
                continue
            if found is None or found.changed_s > until_s:
                continue
            if found.changed_s > self._judged_until_s or path in self._unjudged:
                yield path, instant

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

    def _remove_markers(self, pending: set[str], until_s: float, taken_away: Container[str]) -> None:
        """Marker folders of instants that are over, where all markers are ours."""
        for instant in plans.names_in(self._store, MARKERS):
            folder = f"{MARKERS}/{instant}"
            if not INSTANT_NAME.match(instant) or instant in pending:
                continue
            if _is_ours_and_old(self._store, folder, until_s, taken_away):
                self._store.delete_folder(folder)


def _is_ours_and_old(store: Store, folder: str, until_s: float, taken_away: Container[str]) -> bool:
    """False also where it cannot be seen."""
    try:
        for inner, names in store.walk(folder):
            found = store.stat(inner)
            if found is None or found.changed_s > until_s:
                return False
            if not all(_is_our_marker(name, taken_away) for name in names):
                return False
    except OSError:
        return False
    return True


def _is_our_marker(name: str, taken_away: Container[str]) -> bool:
    is_checksum = name.startswith(".") and name.endswith(".crc")
    marker = MARKER_NAME.match(name[1 : -len(".crc")] if is_checksum else name)
    return marker is not None and bool(_instant_of_ours(marker["of"], taken_away))


class _Everything(Container[str]):
    def __contains__(self, _path: object) -> bool:
        return True


def _instant_of_ours(name: str, taken_away: Container[str]) -> str:
    """The instant in the name of a file with our mark, of a bucket's base file, or of one for an instant that
    was taken away; empty for all others."""
    parsed = parse_file_name(name)
    if parsed is not None:
        return parsed[2] if is_ours(name) or is_in_bucket(name) or parsed[2] in taken_away else ""
    parsed = parse_log_file_name(name) if is_our_log_file(name) else None
    return parsed[2] if parsed is not None else ""

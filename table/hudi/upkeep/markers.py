"""Markers of instants that this process completes: looked at before the table lock, removed beside all else.

Inside it Hudi lists them, folder by folder, to remove files that the commit does not name, and removes all of
them once the instant is complete: of a thousand table partitions that was most of a commit. So Hudi is told
where nothing is to be done, as every marker is of a file that the commit names. A worker that comes too late
may make one after that look, as it might have after Hudi's: the sweep finds its file.

What a process that dies has not removed is the sweep's as well: of instants that are complete it removes all.
"""

from __future__ import annotations

import logging
import posixpath
import threading
from collections.abc import Sequence
from queue import Full, Queue

from control_topic.messages import DataFile
from table.hudi.upkeep.candidates import MARKER_NAME, MARKERS
from table.store.port import Store

LEFT_MAX = 1_000
"""Of instants whose markers wait to be removed; those beyond are left to the sweep."""

log = logging.getLogger(__name__)


class Markers:
    """Where each look is a request, Hudi does all of it: there it has them by one listing
    (table/hudi/driver/jvm/Markers.java). One thread of its own removes them, slow as the disk may be.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._left: Queue[str | None] = Queue(LEFT_MAX)
        self._thread: threading.Thread | None = None

    def are_of(self, instant: str, files: Sequence[DataFile]) -> bool:
        """Whether all of the instant's markers are known to be of these files."""
        if self._store.capabilities.remote:
            return False
        folder, named = f"{MARKERS}/{instant}", {file.path for file in files}
        try:
            for below, names in self._store.walk(folder):
                table_partition = posixpath.relpath(below, folder)
                if not all(_of(table_partition, name) in named for name in names):
                    return False
        except OSError:
            return False  # Hudi will say what is wrong
        return True

    def completed(self, instant: str) -> None:
        """Hudi has left the markers of this one: they are removed soon."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._remove, name="markers", daemon=True)
            self._thread.start()
        try:
            self._left.put_nowait(instant)
        except Full:
            log.debug("the markers of instant %s are left to the sweep", instant)

    def close(self, timeout_s: float) -> None:
        """Wait until they are removed, but no longer than that."""
        if self._thread is not None and not self._left.full():
            self._left.put(None)
            self._thread.join(timeout_s)
            self._thread = None

    def _remove(self) -> None:
        while (instant := self._left.get()) is not None:
            try:
                self._store.delete_folder(f"{MARKERS}/{instant}")
            except OSError as error:
                log.debug("the markers of instant %s are left to the sweep: %s", instant, error)


def _of(table_partition: str, name: str) -> str:
    """The path of the file that a marker is of; empty of what is none."""
    marker = MARKER_NAME.match(name)
    return posixpath.normpath(posixpath.join(table_partition, marker["of"])) if marker is not None else ""

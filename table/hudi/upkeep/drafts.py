"""Removing drafts: what a process that died had written, and not yet renamed to what it was to be.

Nobody reads one, but each takes a name and, of most, a block. They lie wherever files are put: in table
partitions, among notes, decisions and markers. Those of Hudi's driver lie in its timelines, on HDFS, where it
renames as well. Nothing rests on the clocks by which one is old: should it be somebody's after all, who has
stood still for so long, he finds it gone, and does not take it for done.
"""

from __future__ import annotations

import logging
import posixpath
import re
import time
from collections.abc import Callable

from table.store.paths import DRAFT
from table.store.port import Store

OLD_S = 24 * 3600
LOOK_EVERY_S = 3600.0
"""A look lists all folders of the table, Hudi's own among them: 5,000 of them on HDFS in 2 to 4 s."""

HUDIS = re.compile(r"\d{14,17}(_\d{14,17})?\.[a-z.]+\.[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""An instant's file with a random word behind it: Hudi 1.2, `HoodieStorage.createImmutableFileInPath`."""

log = logging.getLogger(__name__)


class Drafts:
    """Of one table. `clock_s`: Unix epoch. `steady_s`: of this process."""

    def __init__(
        self,
        store: Store,
        *,
        clock_s: Callable[[], float],
        steady_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._clock_s = clock_s
        self._steady_s = steady_s
        self._looked_s: float | None = None

    def sweep(self) -> None:
        """Remove those that are old, wherever in the table. Now and then; an object store has none."""
        now_s = self._steady_s()
        is_early = self._looked_s is not None and now_s - self._looked_s < LOOK_EVERY_S
        if is_early or not self._store.capabilities.folders:
            return
        self._looked_s = now_s
        gone: list[str] = []
        try:
            for folder, names in self._store.walk():
                drafts = [posixpath.join(folder, name) for name in names if is_draft(name)]
                gone += [path for path in drafts if self._is_old(path) and self._store.delete(path)]
        except OSError as error:
            log.warning(
                "drafts that dead processes have left could not all be removed: %s: %s. It is tried again: "
                "see who may read and write there",
                *(error.filename, error.strerror),
            )
        if gone:
            log.info("removed %d drafts that dead processes have left; one of them: %s", len(gone), gone[0])

    def _is_old(self, path: str) -> bool:
        found = self._store.stat(path)
        return found is not None and found.changed_s < self._clock_s() - OLD_S


def is_draft(name: str) -> bool:
    """Ours, or Hudi's."""
    return name.startswith(DRAFT) or HUDIS.fullmatch(name) is not None

"""Of a commit and a rollback of one instant, who comes first is decided, where no file system decides it.

On a file system completing an instant renames its inflight file, which a rollback has removed: one of the two
fails. On an object store Hudi looks whether that file is there and then puts another one, under a name with
the time in it: nothing keeps a driver that stood still in between from completing what its successor has
rolled back. So each creates the same object before it goes on, under a name that is used once, and whoever
does not create it has lost. Of a file system nothing is asked here.

What is left is a driver that created it and then stood still, or died. Its successor holds the table lock by
then. It overrules the commit where that process is proved dead, or where its guardian has long ended it
(table/hudi/driver/watchdog.py), and notes that; a completion that lands all the same, late, is then known by
that note and its rollback, and taken away: its files are gone, and it is not the newest commit, whatever its
time says (table/chain.py).
"""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from table.errors import Refused, Unavailable
from table.hudi.driver.file_clock import AHEAD_MAX_S
from table.hudi.driver.holder import is_dead, process_of
from table.hudi.layout import META_FOLDER
from table.store.port import Store

FOLDER = f"{META_FOLDER}/.lockstep/decided"
"""Hudi looks at nothing there."""
OVERRULED = ".overruled"
COMMIT = "commit"
ROLLBACK = "rollback"
BYTES_MAX = 4_096

Process = dict[str, str]

log = logging.getLogger(__name__)


class Fence:
    """Of one driver's table. `jvm_pid`: the process that completes instants for it. `lease_s`: how long the
    table lock lives that nobody renews. `process_of` and `is_dead` as in `table.hudi.driver.holder`.

    Methods raise `Unavailable` where the store does not say. `commit` and `roll_back` are called under the
    table lock, after a look at the timeline.
    """

    def __init__(
        self,
        store: Store,
        jvm_pid: int,
        *,
        lease_s: int,
        clock_s: Callable[[], float] = time.time,
        process_of: Callable[[int], Process | None] = process_of,
        is_dead: Callable[[Process, Process], bool] = is_dead,
    ) -> None:
        self._store = store
        self.needed = not store.capabilities.claims
        self._by = uuid.uuid4().hex
        self._process = process_of(jvm_pid)
        self._is_dead = is_dead
        self._lease_s = lease_s
        self._clock_s = clock_s

    def commit(self, instant: str) -> None:
        """From here on no rollback begins while this driver may live. Raises `Refused` where one has."""
        if not self.needed or self._create(instant, COMMIT):
            return
        said = self._said(instant)
        if (said.get("for"), said.get("by")) != (COMMIT, self._by):
            raise Refused(f"instant {instant} cannot be completed: {_of(said)} was there first")

    def roll_back(self, instant: str, *, noting: bool = True) -> None:
        """From here on no driver of ours completes it. Raises `Unavailable` where one may be doing so.

        `noting`: nobody completes it rightly any more.
        """
        if not self.needed or self._create(instant, ROLLBACK):
            return
        said = self._said(instant)
        if said.get("for") == ROLLBACK:
            return
        why = self._why_over(instant, said)
        if noting:
            with _asking(instant):
                self._store.put(f"{FOLDER}/{instant}{OVERRULED}", why.encode())
        log.warning("instant %s was to be completed, and is rolled back: %s", instant, why)

    def overruled(self) -> list[str]:
        """Instants of which `roll_back` has overruled a commit."""
        return [name.removesuffix(OVERRULED) for name in self._names() if name.endswith(OVERRULED)]

    def restore(self, instant: str) -> None:
        """It was completed before it was rolled back, and stays so."""
        if self.needed:
            with _asking(instant):
                self._store.delete(f"{FOLDER}/{instant}{OVERRULED}")

    def forget(self, oldest: str) -> int:
        """Remove what is older than the oldest instant on the active timeline; how many. One listing."""
        old = [name for name in self._names() if name < oldest]
        for name in old:
            with _asking(name):
                self._store.delete(f"{FOLDER}/{name}")
        return len(old)

    def _why_over(self, instant: str, said: Mapping[str, Any]) -> str:
        """Why a commit will not be completed any more. Raises `Unavailable` where that is not known."""
        if said.get("by") == self._by:
            return "this driver has given it up"
        process = said.get("process")
        if isinstance(process, dict) and self._process is not None and self._is_dead(process, self._process):
            return f"process {process['pid']} is dead"
        with _asking(instant):
            found = self._store.stat(f"{FOLDER}/{instant}")
        age_s = self._clock_s() - found.modified_s if found is not None else 0.0
        left_s = self._lease_s + AHEAD_MAX_S - age_s
        if left_s > 0:
            raise Unavailable(
                f"instant {instant} is being completed by another driver, or was when it died; in "
                f"{left_s:.0f} s its guardian has ended it in any case"
            )
        return f"its driver's table lock was over for {age_s - self._lease_s:.0f} s"

    def _create(self, instant: str, what: str) -> bool:
        words = {"for": what, "by": self._by, "process": self._process}
        with _asking(instant):
            return self._store.create(f"{FOLDER}/{instant}", json.dumps(words).encode())

    def _said(self, instant: str) -> Mapping[str, Any]:
        with _asking(instant):
            read = self._store.read(f"{FOLDER}/{instant}", bytes_max=BYTES_MAX)
        try:
            said = json.loads(read)
        except ValueError:
            said = None
        return said if isinstance(said, dict) else {}

    def _names(self) -> list[str]:
        if not self.needed:
            return []
        try:
            return self._store.names(FOLDER)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise Unavailable(f"{self._store.place(FOLDER)} cannot be listed: {error.strerror}") from error


@contextmanager
def _asking(instant: str) -> Iterator[None]:
    """What the store cannot answer is asked again later, with all that depends on it."""
    try:
        yield
    except OSError as error:
        raise Unavailable(
            f"instant {instant}: whether it is completed or rolled back could not be decided: "
            f"{error.filename}: {error.strerror}"
        ) from error


def _of(said: Mapping[str, Any]) -> str:
    return "its rollback" if said.get("for") == ROLLBACK else "another driver"

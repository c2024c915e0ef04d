"""Of a commit and a rollback of one instant, who comes first is decided, where tables are on servers.

Hudi completes an instant by a look whether its inflight file is there, which a rollback has removed, and the
creation of another one, under a name with the time in it; on HDFS it renames a draft to such a name. Nothing
keeps a driver that stood still in between from completing what its successor has rolled back. So each creates
the same object before it goes on, under a name that is used once, and whoever does not create it has lost.

Of a file system nothing is asked here: between look and creation is a millisecond there, or where machines
share it Hudi's wait for their clocks, and no request is under way when its sender is gone. What that leaves
open is in docs/reliability.md (a frozen driver).

What is left is a driver that created it and then stood still, or died, or gave it up. Whoever rolls the
instant back holds the table lock by then. It overrules the commit where that process is proved dead, or where
its guardian has long ended it (table/hudi/driver/watchdog.py); but the completion may land all the same, at
any moment until 20 s later. So there is a verdict for such an instant, an object that is created once like
the other: overruled, by whoever rolls it back, or kept, by whoever has seen it complete and is about to rely
on it. Who comes second goes by what is there. A completion that was overruled is no commit, whatever its time
says and whatever offsets it has; it is taken off the timeline where it is met.
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
from table.store.paths import DRAFT
from table.store.port import Store

FOLDER = f"{META_FOLDER}/.lockstep/decided"
"""Hudi looks at nothing there."""
VERDICT = ".verdict"
COMMIT = "commit"
ROLLBACK = "rollback"
KEPT = "kept"
OVERRULED = "overruled"
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
        self.needed = store.capabilities.remote
        self._by = uuid.uuid4().hex
        self._process = process_of(jvm_pid)
        self._is_dead = is_dead
        self._lease_s = lease_s
        self._clock_s = clock_s
        self._verdicts: dict[str, str] = {}  # each is final

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
        if noting and self._verdict(instant, OVERRULED, why) != OVERRULED:
            raise Unavailable(f"instant {instant} has just been completed: it stays, and is looked for again")
        log.warning(
            "instant %s was to be completed, and is rolled back: %s",
            *(instant, why),
            extra={"instant": instant},
        )

    def keep(self, instant: str) -> bool:
        """Whether an instant that is complete counts. From here on nobody overrules it.

        To be asked before anything follows from it: that it is the newest commit, that it is done.
        """
        return not self.needed or self._verdict(instant, KEPT) == KEPT

    def overruled(self) -> list[str]:
        """Instants of which `roll_back` has overruled a commit."""
        told = [name.removesuffix(VERDICT) for name in self._names() if name.endswith(VERDICT)]
        return [instant for instant in told if self._read_verdict(instant) == OVERRULED]

    def decided(self) -> set[str]:
        """Instants of which a driver of ours has begun a commit or a rollback."""
        return {name for name in self._names() if not name.endswith(VERDICT)}

    def forget(self, oldest: str) -> int:
        """Remove what is older than the oldest instant on the active timeline; how many. One listing."""
        old = [name for name in self._names() if name < oldest]
        for name in old:
            with _asking(name):
                self._store.delete(f"{FOLDER}/{name}")
            self._verdicts.pop(name.removesuffix(VERDICT), None)
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
        return self._created(instant, instant, words)

    def _created(self, instant: str, name: str, words: Mapping[str, Any]) -> bool:
        content = json.dumps(words).encode()
        with _asking(instant):
            try:
                return self._store.create(f"{FOLDER}/{name}", content)
            except FileNotFoundError:
                if not self._store.capabilities.folders or self._store.stat(META_FOLDER) is None:
                    raise  # a table that is gone is not begun anew
                self._store.make_folder(FOLDER)
                return self._store.create(f"{FOLDER}/{name}", content)

    def _verdict(self, instant: str, wanted: str, why: str = "") -> str:
        """What holds: what is wanted, or what somebody has said before."""
        if instant not in self._verdicts:
            words = {"for": wanted, "why": why}
            if self._created(instant, f"{instant}{VERDICT}", words):
                self._verdicts[instant] = wanted
        return self._read_verdict(instant)

    def _read_verdict(self, instant: str) -> str:
        if instant not in self._verdicts:
            said = self._said(instant, VERDICT).get("for")
            self._verdicts[instant] = OVERRULED if said == OVERRULED else KEPT
        return self._verdicts[instant]

    def _said(self, instant: str, what: str = "") -> Mapping[str, Any]:
        with _asking(instant):
            read = self._store.read(f"{FOLDER}/{instant}{what}", bytes_max=BYTES_MAX)
        try:
            said = json.loads(read)
        except ValueError:
            said = None
        return said if isinstance(said, dict) else {}

    def _names(self) -> list[str]:
        if not self.needed:
            return []
        try:
            # A draft is another driver's, who has not made his object of it yet.
            return [name for name in self._store.names(FOLDER) if not name.startswith(DRAFT)]
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

"""How far this machine's clock is from that of the file system which keeps the table lock.

Hudi's file lock has expired for whoever finds its file older, by the clock of his own machine, than a lock
lives; the file's time is the file server's. To a clock that is ahead of the server's by more than that every
lock looks expired, also one that was taken a moment ago: its owner would be in the lock together with
whoever holds it, and the two would tear Hudi's metadata table. So before the lock is taken the server dates a
file, and a clock that is too far ahead takes none.

A clock that is behind does no harm: locks that nobody holds any more live for longer by as much.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

from control_topic.spelling import lasting
from table.errors import ClockAhead, Unavailable
from table.hudi.driver.watchdog import LOCK_MARGIN_S
from table.hudi.layout import META_FOLDER
from table.store.port import Store

NAME = ".lockstep_clock"
AHEAD_MAX_S = LOCK_MARGIN_S / 2
"""By so much earlier than it should a lock may look expired. A guardian begins to end its holder
`LOCK_MARGIN_S` before it does, and may need the other half of that. A server may also cut seconds off."""
ATTEMPTS_MAX = 3


class ClockDifference(NamedTuple):
    """By how much this clock is ahead of the file system's, seconds; negative where it is behind.

    What lies between is the time that the server took to answer.
    """

    least_s: float
    most_s: float
    theirs_s: float
    """What the file system's clock said, Unix epoch."""


class FileClock:
    """`folder`: where the lock of the table at `path` is. `expire_s`: how long it lives; 0: for ever, or it
    is no file, and then no clock is compared.
    """

    def __init__(
        self, path: str, folder: Store, *, expire_s: int, clock_s: Callable[[], float] | None = None
    ) -> None:
        self._path = path
        self._folder = folder.place()
        self._store = folder
        self._expire_s = expire_s
        self._clock_s = clock_s or time.time

    def check(self) -> None:
        """Raise `ClockAhead` where this clock is too far ahead for the lock, `Unavailable` where that is
        not known. Before the lock is taken; some microseconds and two requests to the file server.
        """
        if not self._expire_s:
            return
        for _ in range(ATTEMPTS_MAX):
            apart = self.apart()
            if apart.most_s <= AHEAD_MAX_S:
                return
            if apart.least_s > AHEAD_MAX_S:
                raise self._ahead(apart)
        raise Unavailable(
            f"table {self._path}: the file system of {self._folder} took "
            f"{apart.most_s - apart.least_s:.0f} s to date a file, too long to compare clocks"
        )

    def apart(self) -> ClockDifference:
        """Raises `Unavailable`."""
        try:
            before_s = self._clock_s()
            self._date()
            found = self._store.stat(NAME)
            after_s = self._clock_s()  # the date may be another driver's, who has dated it since
        except OSError as error:
            raise self._unasked(error.strerror) from error
        if found is None:
            raise self._unasked("somebody has removed it")
        theirs_s = found.modified_s
        return ClockDifference(before_s - theirs_s, after_s - theirs_s, theirs_s)

    def _unasked(self, why: str | None) -> Unavailable:
        return Unavailable(
            f"table {self._path}: the clock of its file system cannot be asked: {self._store.place(NAME)}: "
            f"{why}"
        )

    def sentence(self) -> str:
        """How the clocks compare, for a person. Raises as `check`."""
        if not self._expire_s:
            return "the table lock does not depend on clocks"
        self.check()
        apart = self.apart()
        if apart.most_s < -AHEAD_MAX_S:
            return (
                f"this clock is {_lasting(-apart.most_s)} behind that of {self._folder}'s file system: the "
                "lock of a driver that was killed is waited for by so much longer"
            )
        return f"this clock and that of {self._folder}'s file system agree to {AHEAD_MAX_S:.0f} s"

    def _date(self) -> None:
        """Have the file system say what time it is for it."""
        if self._store.capabilities.remote:
            # On HDFS a file is opened to be dated; whoever dies over it keeps it from others for a minute.
            self._put()
            return
        try:
            self._store.date(NAME)
        except FileNotFoundError:
            self._make()
        except PermissionError:  # of another user, who writes to the table as well
            self._store.delete(NAME)
            self._make()

    def _put(self) -> None:
        try:
            self._store.put(NAME, b"")
        except FileNotFoundError:
            self._make_folder()
            self._store.put(NAME, b"")

    def _make(self) -> None:
        self._make_folder()
        self._store.create(NAME)
        self._store.date(NAME)

    def _make_folder(self) -> None:
        if self._folder != f"{self._path}/{META_FOLDER}":  # a table that is gone is not begun anew
            self._store.make_folder("")

    def _ahead(self, apart: ClockDifference) -> ClockAhead:
        left_s = self._expire_s - apart.least_s
        expired = "as soon as somebody takes it" if left_s <= 0 else f"{left_s:.0f} s after somebody takes it"
        return ClockAhead(
            f"the clock is {_lasting(apart.least_s)} ahead of the file system's: {self._folder}, where the "
            f"lock of table {self._path} is, has {_utc(apart.theirs_s)}, and here it is "
            f"{_utc(apart.theirs_s + apart.least_s)}. The table lock would count as expired {expired}, so "
            "it is not taken. It is waited for; set right what is wrong, this clock or the file server's, "
            "with NTP on both (Clocks, in docs/operations.md)"
        )


def _lasting(for_s: float) -> str:
    return lasting(round(1_000 * for_s))


def _utc(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")

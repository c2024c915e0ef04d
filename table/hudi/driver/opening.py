"""Whose an instant is that was only requested.

Hudi opens an instant by two files, and says whose it is in the second. Who dies between them leaves one that
nobody rolls back: cleaners of ours roll nothing back, and to everybody else it may be somebody's who has just
begun. So the pipeline notes the instant before it requests it, in a file of its own, and whoever opens the
table for it next takes that instant back.
"""

from __future__ import annotations

import logging
from urllib.parse import quote

from table.errors import Unavailable
from table.hudi.driver.history import History
from table.hudi.driver.java import changing
from table.hudi.driver.rollback import remove_requested, table_lock
from table.hudi.driver.session import Session
from table.hudi.driver.watchdog import Watchdog
from table.hudi.layout import HEARTBEATS, META_FOLDER
from table.store.port import Store

FOLDER = f"{META_FOLDER}/.lockstep/opening"
INSTANT_BYTES_MAX = 64

log = logging.getLogger(__name__)


class Opening:
    """The instant that a pipeline opened last. Methods raise `Unavailable`."""

    def __init__(self, store: Store, pipeline: str) -> None:
        self._store = store
        self._path = f"{FOLDER}/{quote(pipeline, safe='')}"

    def note(self, instant: str) -> None:
        """To be called before it can be seen."""
        try:
            self._store.make_folder(FOLDER)
            self._store.put(self._path, instant.encode())
        except OSError as error:
            raise self._failed("written", error) from error

    def noted(self) -> str:
        """Empty where there is none."""
        try:
            return self._store.read(self._path, bytes_max=INSTANT_BYTES_MAX).decode("ascii", "replace")
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise self._failed("read", error) from error

    def let_die(self, instant: str) -> None:
        """Remove its heartbeat, which nobody stops any more."""
        try:
            self._store.delete(f"{HEARTBEATS}/{instant}")
        except OSError as error:
            raise self._failed("taken back", error) from error

    def _failed(self, done: str, error: OSError) -> Unavailable:
        return Unavailable(f"{self._store.place(self._path)} could not be {done}: {error.strerror}")


def take_back(session: Session, history: History, watchdog: Watchdog, opening: Opening) -> None:
    """Remove the instant that another driver of this pipeline has requested and not opened."""
    instant = opening.noted()
    if not instant or not _is_only_requested(history, instant):
        return
    doing = f"instant {instant}, which was requested and not opened, could not be taken back"
    with changing(doing, session.lock.folder), table_lock(session, watchdog):
        if not _is_only_requested(history, instant):
            return
        if not remove_requested(session, history, instant):
            return
    opening.let_die(instant)
    log.warning(
        "instant %s was requested and not opened by a driver that is gone: it is taken back",
        instant,
        extra={"instant": instant},
    )


def _is_only_requested(history: History, instant: str) -> bool:
    return any(one.time == instant and not one.instant.isInflight() for one in history.pending())

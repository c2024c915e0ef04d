"""Compaction beside the ingestion: a thread, a session and a write client of its own, and Spark's free slots.

Nothing waits for it. Log files that are committed meanwhile belong to the next file slice, and under
non-blocking concurrency control neither side makes the other's commit fail.

A driver that dies leaves a compaction pending, or one that is paused goes on with it after its successor has
begun. So a successor takes what is pending of its pipeline away, under the table lock, and plans anew: to be
completed, an instant needs its inflight file, which Hudi looks for under the same lock. Plans of others are
left alone, and so are those of `schedule`, which are for others to carry out.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path

from table.errors import TableError
from table.hudi.java import changing
from table.hudi.session import Session
from table.state import PREFIX

log = logging.getLogger(__name__)

ASYNC, SCHEDULE, OFF = "async", "schedule", "off"
OWNER = PREFIX + "compaction"
"""In a plan's metadata: the pipeline whose driver carries it out."""
ACTION = "compaction"
RETRY_S = 60.0


class Compactor:
    """Plans a compaction each `every` commits of ours and, where `mode` is `async`, carries it out.

    `open_session` gives a started session; it is called on the compactor's thread, once.
    """

    def __init__(self, open_session: Callable[[], Session], *, pipeline: str, mode: str, every: int) -> None:
        self._open_session = open_session
        self._pipeline = pipeline
        self._mode = mode
        self._every = every
        self._session: Session | None = None
        self._commits = 0
        self._wanted = threading.Condition()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="compaction", daemon=True)

    def start(self) -> None:
        """Take away what an earlier driver left, then wait for commits. Another thread does it."""
        self._thread.start()

    def committed(self) -> None:
        """A transaction has been committed."""
        with self._wanted:
            self._commits += 1
            self._wanted.notify_all()

    def stop(self, timeout_s: float) -> None:
        """Begin nothing more. What is being done goes on until the process ends; its successor tidies up."""
        with self._wanted:
            self._stopping = True
            self._wanted.notify_all()
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    # --- the thread -------------------------------------------------------------------------------

    def _run(self) -> None:
        done = self._attempt(self._tidy)
        while self._await_commits(retry=not done):
            if not done:
                done = self._attempt(self._tidy)
            elif self._attempt(self.compact):
                with self._wanted:
                    self._commits -= self._every

    def _await_commits(self, *, retry: bool) -> bool:
        """Wait until enough was committed, or where something failed for a while; False at the end."""
        with self._wanted:
            if retry:
                self._wanted.wait_for(lambda: self._stopping, RETRY_S)
            else:
                self._wanted.wait_for(lambda: self._stopping or self._commits >= self._every)
            return not self._stopping

    def _attempt(self, work: Callable[[], None]) -> bool:
        try:
            work()
        except TableError as error:
            log.warning("%s; ingestion goes on, and it will be tried again in %.0f s", error, RETRY_S)
            with self._wanted:
                self._wanted.wait_for(lambda: self._stopping, RETRY_S)
            return False
        return True

    def _opened(self) -> Session:
        if self._session is None:
            self._session = self._open_session()
        return self._session

    # --- the steps --------------------------------------------------------------------------------

    def _tidy(self) -> None:
        abandon(self._opened(), self._pipeline)

    def compact(self) -> None:
        """Plan a compaction and, unless that is left to others, carry it out. Raises `TableError`."""
        session = self._opened()
        instant = plan(session, self._pipeline if self._mode == ASYNC else "")
        if not instant or self._mode != ASYNC:
            return
        began = time.monotonic()
        doing = f"compaction {instant} of table {session.path} was not completed"
        with changing(doing, session.lock_folder):
            done = session.client.compact(instant)
            session.client.commitCompaction(instant, done, session.none())
        log.info("compaction %s is complete after %.1f s", instant, time.monotonic() - began)


def plan(session: Session, owner: str) -> str:
    """Plan a compaction of what is committed; its instant, empty where Hudi finds nothing due.

    `owner`: the pipeline that carries it out, empty where it is left to others.
    """
    marked = session.java_map({OWNER: owner} if owner else {})
    with changing(f"table {session.path}: no compaction could be planned", session.lock_folder):
        session.reload()
        planned = session.client.scheduleCompaction(session.some(marked))
        return str(planned.get()) if planned.isPresent() else ""


def abandon(session: Session, pipeline: str) -> list[str]:
    """Take away pending compactions of this pipeline and the files they had made; their instants."""
    doing = f"table {session.path}: a compaction that was left behind could not be taken away"
    utils = session.hudi.common.util.CompactionUtils
    taken: list[str] = []
    with changing(doing, session.lock_folder):
        session.holder.free_if_dead()
        with session.locked():
            session.reload()
            for pair in list(utils.getAllPendingCompactionPlans(session.meta)):
                instant, planned = str(pair.getLeft().requestedTime()), pair.getRight()
                if (planned.getExtraMetadata() or {}).get(OWNER) == pipeline:
                    folders = {str(one.getPartitionPath()) for one in planned.getOperations() or ()}
                    session.remove_pending(ACTION, instant)
                    _remove_files(Path(session.path), folders, instant)
                    taken.append(instant)
                    log.warning("compaction %s was left behind by another run: it is taken away", instant)
    return taken


def _remove_files(base: Path, folders: set[str], instant: str) -> None:
    """Base files of an instant that is on the timeline no more. One that comes later is the sweep's."""
    for folder in folders:
        for path in (base / folder).glob(f"*_{instant}.parquet"):
            path.unlink(missing_ok=True)

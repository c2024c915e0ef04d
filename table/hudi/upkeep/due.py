"""The table's services beside the ingestion: each by its mode, each after so many commits of ours, or earlier
where it finds by what they say that it is due.

A service of mode `async` (or `schedule`) has a thread, a session and a write client of its own, so that no
transaction waits for it; one of mode `inline` runs on the table's thread, and the next commit waits for it.
What a service does, and why it is safe beside commits, paused drivers and dead ones, is said where it is
done: table/hudi/{compaction,clustering,cleaning}.py. Here: when, and what became of it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from control_topic.messages import DataFile
from table.errors import TableError
from table.hudi.driver.session import Session
from table.port import INLINE, ServiceProgress

log = logging.getLogger(__name__)

RETRY_S = 60.0


@dataclass(frozen=True, slots=True)
class Done:
    """What a service has completed."""

    instant: str
    """Empty where it has none."""
    what: str
    """A phrase."""


class Opener(Protocol):
    """Starts one more session for the same table: Hudi's clients are for one thread each.

    `given`: properties that the configuration may change; `fixed`: those that it may not. `by_spark`: the
    Spark client, which runs its work as Spark's jobs. Raises `TableError`.
    """

    def __call__(
        self, *, given: Mapping[str, str] = ..., fixed: Mapping[str, str] = ..., by_spark: bool = ...
    ) -> Session: ...


class ServiceWork(Protocol):
    """What a service does, with a session of its own.

    `open`, `tidy`, `run` and `run_early` raise `TableError`; one thread calls them. The others any thread.
    """

    name: str
    properties: Mapping[str, str]
    """Those that commits of ours need because of it."""

    def open(self, opener: Opener) -> Session:
        """The session that it needs."""

    def tidy(self, session: Session) -> str | None:
        """Take away what was left half done, by an earlier run or by a failure. Before anything else.

        What of it others have in hand, as a sentence; it is looked at again before each `run`.
        """

    def run(self, session: Session, doing: Callable[[str], None]) -> Done | None:
        """Do what is due; None where nothing was. `doing` is told a phrase as soon as there is one."""

    def committed(self, files: Sequence[DataFile], now_s: float) -> None:
        """Hear of a commit of ours; `now_s` as below."""

    def due_in_s(self, now_s: float) -> float | None:
        """When there is something to be done before so many commits: 0 now, None not by what is known."""

    def run_early(self, session: Session, doing: Callable[[str], None], now_s: float) -> Done | None:
        """Do that, as `run` does all."""

    def rest_s(self, took_s: float) -> float:
        """For how long nothing is to be begun after work of so long."""


class ByCommits:
    """Of a service that is due after so many commits and not earlier: what it knows of anything else."""

    def committed(self, files: Sequence[DataFile], now_s: float) -> None:
        pass

    def due_in_s(self, now_s: float) -> float | None:
        return None

    def run_early(self, session: Session, doing: Callable[[str], None], now_s: float) -> Done | None:
        return None

    def rest_s(self, took_s: float) -> float:
        return 0.0


class Service:
    """One service of one run. Its session is opened once, where the work runs.

    Other threads may ask for `progress` and tell of commits; the work is done by one thread.
    """

    def __init__(
        self,
        work: ServiceWork,
        opener: Opener,
        *,
        mode: str,
        every: int,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.work = work
        self._opener = opener
        self._mode = mode
        self._every = every
        self._clock_s = clock_s
        self._session: Session | None = None
        self._tidied = False
        self._changed = threading.Condition()
        self._stopping = False
        self._commits = 0
        self._began_s: float | None = None
        self._doing = ""
        self._last: tuple[Done, float, float] | None = None  # (what, took s, at s)
        self._done = self._failures = 0
        self._problem = ""
        self._left = ""
        self._not_before_s = clock_s()
        self._thread: threading.Thread | None = None

    @property
    def inline(self) -> bool:
        return self._mode == INLINE

    def start(self) -> None:
        """Take away what an earlier run left, then wait for commits, in a thread; inline services wait."""
        if not self.inline:
            self._thread = threading.Thread(target=self._run, name=self.work.name, daemon=True)
            self._thread.start()

    def committed(self, files: Sequence[DataFile] = ()) -> None:
        """A transaction has been committed, with these files."""
        self.work.committed(files, self._clock_s())
        with self._changed:
            self._commits += 1
            self._changed.notify_all()

    def run_where_due(self) -> None:
        """Do the work on this thread where it is due. Never raises `TableError`: what failed is logged."""
        with self._changed:
            if not self._is_due() or self._stopping or self._clock_s() < self._not_before_s:
                return
        self._attempt()

    def stop(self, timeout_s: float) -> None:
        """Begin nothing more. What is being done goes on until the process ends; its successor tidies up."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(timeout_s)

    def progress(self) -> ServiceProgress:
        """How it stands now. Any thread may ask."""
        with self._changed:
            now_s = self._clock_s()
            done, took_s, at_s = self._last or (Done("", ""), 0.0, now_s)
            return ServiceProgress(
                name=self.work.name,
                mode=self._mode,
                every=self._every,
                commits=self._commits,
                running_ms=None if self._began_s is None else round(1_000 * (now_s - self._began_s)),
                doing=self._doing,
                done=self._done,
                last_instant=done.instant,
                last_what=done.what,
                last_took_ms=round(1_000 * took_s),
                last_age_ms=None if self._last is None else round(1_000 * (now_s - at_s)),
                failures=self._failures,
                problem=self._problem or self._left,
            )

    # --- where the work is done -----------------------------------------------------------------------

    def _run(self) -> None:
        while self._await_its_turn():
            self._attempt()

    def _await_its_turn(self) -> bool:
        """Wait until it is due, and where it failed for a while; False at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopping, max(0.0, self._not_before_s - self._clock_s()))
            while not self._stopping and not self._is_due():
                self._changed.wait(self.work.due_in_s(self._clock_s()))
            return not self._stopping

    def _is_due(self) -> bool:
        is_counted = not self._tidied or self._commits >= self._every
        return is_counted or self.work.due_in_s(self._clock_s()) == 0

    def _attempt(self) -> None:
        with self._changed:
            tidied, commits = self._tidied, self._commits
            self._began_s = self._clock_s()
        try:
            if self._session is None:
                self._session = self.work.open(self._opener)
            if not tidied or self._left:
                self._tidy(self._session)
            if tidied and commits >= self._every:
                self._finished(self.work.run(self._session, self._say), commits)
            elif tidied:
                self._finished(self.work.run_early(self._session, self._say, self._clock_s()), 0)
        except TableError as error:
            self._failed(str(error))
        except Exception as error:
            log.exception("%s failed unexpectedly", self.work.name)
            self._failed(f"{self.work.name} failed unexpectedly, see the driver's log: {error!r}")
        finally:
            with self._changed:
                self._began_s, self._doing = None, ""

    def _tidy(self, session: Session) -> None:
        left = self.work.tidy(session) or ""
        if left and left != self._left:
            log.warning("%s", left)
        with self._changed:
            self._left = left
            self._tidied = True

    def _say(self, doing: str) -> None:
        with self._changed:
            self._doing = doing

    def _finished(self, done: Done | None, commits: int) -> None:
        with self._changed:
            now_s = self._clock_s()
            took_s = now_s - (self._began_s or now_s)
            self._commits -= commits
            self._failures, self._problem = 0, ""
            self._not_before_s = now_s + self.work.rest_s(took_s)
            if done is None:
                return
            self._done += 1
            self._last = (done, took_s, now_s)
        name = f"{self.work.name} {done.instant}".rstrip()
        log.info(
            "%s is complete after %.1f s: %s", *(name, took_s, done.what), extra={"instant": done.instant}
        )

    def _failed(self, problem: str) -> None:
        with self._changed:
            self._failures += 1
            self._problem = problem
            self._tidied = False  # what it left half done would stand in its way
            self._not_before_s = self._clock_s() + RETRY_S
            if self._stopping:  # Spark ends under it, and the next run begins where this one does
                log.info("%s: the run ends", problem)
                return
        log.warning("%s; ingestion goes on, and it will be tried again in %.0f s", problem, RETRY_S)


class Upkeep:
    """All services of a run."""

    def __init__(self, services: Sequence[Service]) -> None:
        self._services = services

    @property
    def properties(self) -> Mapping[str, str]:
        """What the client that commits is to be given, where the configuration says nothing else."""
        return {name: value for one in self._services for name, value in one.work.properties.items()}

    def start(self) -> None:
        for service in self._services:
            service.start()

    def committed(self, files: Sequence[DataFile] = ()) -> None:
        """A transaction has been committed, with these files."""
        for service in self._services:
            service.committed(files)

    def run_inline(self) -> None:
        """Do here what is due of the services that are inline."""
        for service in self._services:
            if service.inline:
                service.run_where_due()

    def stop(self, timeout_s: float) -> None:
        for service in self._services:
            service.stop(timeout_s)

    def progress(self) -> tuple[ServiceProgress, ...]:
        """How each stands, in a fixed order. Any thread may ask."""
        return tuple(service.progress() for service in self._services)

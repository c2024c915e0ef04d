"""Calls of hdfs-native's, each with a bound: it waits for ever for a name node that stands still."""

from __future__ import annotations

import errno
import threading
import time
import weakref
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from urllib.parse import urlsplit

from hdfs_native import AsyncClient, Client

from table.store.hdfs.errors import told
from table.store.hdfs.loop import GivenUp, Loop, Panic
from table.store.hdfs.settings import HdfsSettings
from table.store.outstanding import OutstandingCalls
from table.store.port import OutcomeUnknown
from table.store.process import stay_here

ENDING_AT_ONCE = 32
"""The name node is asked twice for each file that is closed: until its data nodes have told it of the last
block."""
HANGING_MAX = 4 * ENDING_AT_ONCE
"""Calls that were given up and have not ended: each holds a thread until its server answers or goes away.
Of a data node that stands still the client lets go after half a minute. Until then each file that is closed
gives up two or three, all at once the first time: beside those there is room for attempts without it."""
LEAN_S = 60.0
"""So long files have one copy from the first, once a data node was met that is away. It may take a call that
never ends to meet one."""
UNHURRIED_S = 10.0
"""So long the client closes large files in its own time, once one had to have its lease recovered."""
ATTEMPTS_MAX, SLEEP_FIRST_MS, SLEEP_MAX_MS = 6, 200, 5_000
LOOP = Loop("hdfs-writing")
OUTSTANDING = OutstandingCalls()
T = TypeVar("T")


class Calls:
    """Of one cluster. Safe to use from any thread."""

    def __init__(self, url: str, settings: HdfsSettings) -> None:
        self._url = url
        self._settings = settings
        self._lock = threading.Lock()
        self._client: Client | None = None
        self._writing: AsyncClient | None = None
        self._hanging = 0
        self._lean_until_s = self._unhurried_until_s = 0.0

    def client(self) -> Client:
        """Made when it is first needed, where a process may still fork before."""
        stay_here()
        with self._lock:
            if self._client is None:
                self._client = self._made(Client)
                # Collected in a thread of another client's runtime, it would panic as it ends its own.
                weakref.finalize(self._client, LOOP.let_go, self._client.inner)
            return self._client

    def writing(self) -> AsyncClient:
        """The same, for what is to be ended where it is given up. It has a connection of its own. Whoever
        needs it holds it, and not its `inner` alone, which would end with him.
        """
        stay_here()
        with self._lock:
            if self._writing is None:
                # Of a name service the next node is asked, and before that the client sleeps.
                one_node = urlsplit(self._url).port is not None
                self._writing = self._made(AsyncClient, attempts_max=0 if one_node else ATTEMPTS_MAX)
                weakref.finalize(self._writing, LOOP.let_go, self._writing.inner)
            return self._writing

    @property
    def lean(self) -> bool:
        """Whether a file has just not got through to as many data nodes as it was to be on."""
        return time.monotonic() < self._lean_until_s

    def be_lean(self) -> None:
        self._lean_until_s = time.monotonic() + LEAN_S

    @property
    def unhurried(self) -> bool:
        """Whether the cluster has just been slower than it takes to close files in haste."""
        return time.monotonic() < self._unhurried_until_s

    def be_unhurried(self) -> None:
        self._unhurried_until_s = time.monotonic() + UNHURRIED_S

    def ask(self, place: str, call: Callable[[], T], *, patience_s: float | None = None) -> T:
        """What the call says. Raises `OSError`; `OutcomeUnknown` where that is not known in time.

        `place`: which file or folder, for people. `patience_s`: less than others have.
        """
        patience_s = min(patience_s or self._settings.patience_s, self._settings.patience_s)
        with self._lock:
            if self._hanging >= HANGING_MAX:
                raise self._silent(place, patience_s)
        ended, given_up = threading.Event(), threading.Event()
        answer: list[T] = []
        broke: list[BaseException] = []

        def asking() -> None:
            try:
                answer.append(call())
            except BaseException as error:  # noqa: BLE001 — whatever it is, whoever asked is told
                broke.append(error)
            OUTSTANDING.end()
            with self._lock:
                ended.set()
                self._hanging -= given_up.is_set()

        self._begin(asking, place)
        if not ended.wait(patience_s):
            with self._lock:
                if not ended.is_set():  # else it has answered just now
                    given_up.set()
                    self._hanging += 1
                    self._client = None  # the next call is not kept by what hangs on this one
                    raise self._silent(place, patience_s)
        if broke:
            if not isinstance(broke[0], Exception):
                raise broke[0]
            raise told(broke[0], place) from broke[0]
        return answer[0]

    def run(self, place: str, work: Callable[[], Awaitable[T]], *, patience_s: float | None = None) -> T:
        """As `ask` does, of a coroutine, which is ended where it is given up."""
        patience_s = min(patience_s or self._settings.patience_s, self._settings.patience_s)
        used = self._writing
        try:
            return LOOP.run(work, patience_s)
        except (GivenUp, Panic) as error:
            with self._lock:
                if self._writing is used:
                    self._writing = None  # the next call does not meet what this one has met
            if isinstance(error, Panic):
                raise told(error, place) from error
            raise self._silent(place, patience_s) from error
        except Exception as error:
            raise told(error, place) from error

    def _begin(self, asking: Callable[[], None], place: str) -> None:
        """Start `asking`, which ends what is outstanding, in a daemon thread. Raises `OSError`."""
        if not OUTSTANDING.begin():
            raise OSError(errno.ECANCELED, "HDFS is not asked: this process ends", place)
        try:
            threading.Thread(target=asking, name="hdfs", daemon=True).start()
        except RuntimeError as error:
            OUTSTANDING.end()
            raise OSError(errno.EAGAIN, f"HDFS is not asked: {error}. Allow more threads.", place) from error

    def _silent(self, place: str, patience_s: float) -> OutcomeUnknown:
        return OutcomeUnknown(errno.ETIMEDOUT, f"HDFS did not answer within {patience_s:.0f} s", place)

    def _made(self, kind: Callable[..., T], *, attempts_max: int = ATTEMPTS_MAX) -> T:
        settings = self._settings
        properties: dict[str, Any] = {
            "dfs.client.failover.max.attempts": str(attempts_max),
            "dfs.client.failover.sleep.base.millis": str(SLEEP_FIRST_MS),
            "dfs.client.failover.sleep.max.millis": str(SLEEP_MAX_MS),
            "dfs.client.socket-timeout": str(round(500 * settings.patience_s)),
        }
        return kind(
            self._url,
            properties,
            settings.config_folder or None,
            kerberos_principal=settings.principal or None,
            kerberos_keytab=settings.keytab or None,
        )

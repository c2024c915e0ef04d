"""The one thread that talks to the table. Calls queue up within a bound and may be waited for in vain."""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, InvalidStateError
from dataclasses import dataclass
from typing import Any, TypeVar

log = logging.getLogger(__name__)

T = TypeVar("T")


class NotStarted(Exception):
    """The work was not begun and never will be: the queue is full, the thread closed, or time ran out."""


class StillRunning(Exception):
    """Time ran out while the work was being done. It goes on, and its effect is not known yet."""


@dataclass(frozen=True, slots=True)
class _Task:
    name: str
    work: Callable[[], Any]
    future: Future[Any]
    awaited: bool


class TableThread:
    """Does one piece of work at a time, in the order asked. A daemon: a hung call never blocks the exit."""

    def __init__(self, *, queue_max: int) -> None:
        self._queue: queue.Queue[_Task | None] = queue.Queue(maxsize=queue_max)
        self._closed = threading.Event()
        self._busy: tuple[str, float] | None = None
        self._running: Future[Any] | None = None
        self._thread = threading.Thread(target=self._run, name="table", daemon=True)
        self._thread.start()

    def call(self, name: str, work: Callable[[], T], *, timeout_s: float) -> T:
        """Do `work` on the thread and wait for it. Raises what it raises, `NotStarted` or `StillRunning`."""
        future = self._submit(name, work, awaited=True)
        try:
            return future.result(timeout_s)
        except CancelledError:
            raise NotStarted(f"{name}: the table service is closed") from None
        except TimeoutError:
            if future.cancel():
                raise NotStarted(f"{name} waited {timeout_s:.1f} s behind {self.busy_with()}") from None
            if future.done():
                return future.result()
            raise StillRunning(f"{name} is still being done after {timeout_s:.1f} s") from None

    def post(self, name: str, work: Callable[[], object]) -> None:
        """Do `work` some time; nobody waits for it. Raises `NotStarted`."""
        self._submit(name, work, awaited=False)

    def busy_with(self) -> str:
        """What the thread is doing and for how long, empty while it is idle."""
        busy = self._busy
        return f"{busy[0]} ({time.monotonic() - busy[1]:.1f} s)" if busy is not None else ""

    def busy_s(self) -> float:
        """How long the present work has taken so far."""
        busy = self._busy
        return time.monotonic() - busy[1] if busy is not None else 0.0

    def queued(self) -> int:
        """How many pieces of work wait."""
        return self._queue.qsize()

    def close(self, *, timeout_s: float) -> bool:
        """Take no more work, finish what is queued; whether that was done in time.

        Who still waits after that is told so: a call that hangs must not hold up the end of the process.
        """
        deadline = time.monotonic() + timeout_s
        self._closed.set()
        with contextlib.suppress(queue.Full):
            self._queue.put(None, timeout=timeout_s)
            self._thread.join(max(0.0, deadline - time.monotonic()))
        if not self._thread.is_alive():
            return True
        self._abandon()
        return False

    def _abandon(self) -> None:
        while not self._queue.empty():
            with contextlib.suppress(queue.Empty):
                task = self._queue.get_nowait()
                if task is not None:
                    task.future.cancel()
        self._queue.put_nowait(None)
        running = self._running
        if running is not None:
            with contextlib.suppress(InvalidStateError):
                running.set_exception(StillRunning(f"the table service is closed during {self.busy_with()}"))

    def _submit(self, name: str, work: Callable[[], T], *, awaited: bool) -> Future[T]:
        if self._closed.is_set():
            raise NotStarted(f"{name}: the table service is closed")
        future: Future[T] = Future()
        try:
            self._queue.put_nowait(_Task(name, work, future, awaited))
        except queue.Full:
            raise NotStarted(f"{name}: {self._queue.maxsize} calls wait behind {self.busy_with()}") from None
        return future

    def _run(self) -> None:
        while (task := self._queue.get()) is not None:
            if not task.future.set_running_or_notify_cancel():
                continue
            self._busy, self._running = (task.name, time.monotonic()), task.future
            with contextlib.suppress(InvalidStateError):  # abandoned meanwhile
                self._do(task)
            self._busy = self._running = None

    def _do(self, task: _Task) -> None:
        try:
            result = task.work()
        except Exception as error:
            if not task.awaited:
                log.exception("%s failed unexpectedly", task.name)
            task.future.set_exception(error)
        else:
            task.future.set_result(result)

"""Metrics as a file, for node_exporter's textfile collector: where no scrape reaches the driver.

Written anew from time to time, whole or not at all. At an orderly end it is removed: figures of a run that is
over would stay there for ever. Of a run that ends otherwise it is left as it was last, so that alerts see the
halt; a driver that dies leaves it, too, and its age says so.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Callable

from lockstep.watch.metric_values import MetricsSeen
from lockstep.watch.metrics import exposed

log = logging.getLogger("lockstep.observer")

JOIN_S = 5.0


class MetricsFile:
    """A thread that writes the file at once and every `period_s`. `look`: as `PipelineCollector` has it."""

    def __init__(self, path: str, look: Callable[[], MetricsSeen], *, period_s: float) -> None:
        self._path, self._period_s = path, period_s
        self._look = look
        self._problem = ""
        self._stopping = threading.Event()
        self._leaves = False
        self._guard = threading.Lock()
        """Held by whoever puts the file there, or takes it away."""
        self._is_over = False
        self._written: tuple[int, int] | None = None
        self._thread = threading.Thread(target=self._run, name="metrics-file", daemon=True)

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def stop(self) -> None:
        """Write no more, and remove what this has written; a file that another run has put there stays."""
        self._end()
        if not self._guard.acquire(timeout=JOIN_S):
            log.warning("metrics.file %s is being written and cannot be: it is left there", self._path)
            return
        try:
            self._is_over = True
            with contextlib.suppress(OSError):
                if self._written is not None and _identity(self._path) == self._written:
                    os.remove(self._path)
        finally:
            self._guard.release()

    def leave(self) -> None:
        """Write it once more, and leave it there."""
        self._leaves = True
        self._end()

    def write(self) -> None:
        """Once. What keeps it from being written is logged when it is new."""
        problem = ""
        try:
            self._put(exposed(self._look, as_openmetrics=False))
        except OSError as error:
            problem = (
                f"metrics.file {self._path} cannot be written: {error.strerror}. Make its folder, or let the "
                "driver write there; the run goes on without."
            )
        except Exception as error:  # a run must not end, nor its metrics, because of one figure
            log.exception("metrics could not be computed; it is tried again")
            problem = repr(error)
        else:
            if self._problem:
                log.warning("metrics.file %s is written again", self._path)
        if problem and problem != self._problem:
            log.warning("%s", problem)
        self._problem = problem

    def _end(self) -> None:
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(JOIN_S)

    def _put(self, text: bytes) -> None:
        unfinished = f"{self._path}.{os.getpid()}"
        try:
            with contextlib.suppress(FileNotFoundError):
                os.remove(unfinished)  # of one that died, with this number
            with open(unfinished, "xb") as file:
                file.write(text)
            with self._guard:
                if not self._is_over:  # it may have been removed while this was held up
                    written = _identity(unfinished)
                    os.replace(unfinished, self._path)
                    self._written = written
        finally:
            with contextlib.suppress(OSError):
                os.remove(unfinished)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self.write()
            self._stopping.wait(self._period_s)
        if self._leaves:
            self.write()


def _identity(path: str) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_dev, found.st_ino

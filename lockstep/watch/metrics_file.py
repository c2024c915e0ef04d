"""Metrics as a file, for node_exporter's textfile collector: where no scrape reaches the driver.

Written anew from time to time, whole or not at all. At an orderly end it is removed: figures of a run that is
over would stay there for ever. A driver that dies leaves it, and its age says so.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Callable

from prometheus_client import write_to_textfile

from lockstep.watch.metric_values import MetricsSeen
from lockstep.watch.metrics import PipelineCollector

log = logging.getLogger("lockstep.observer")

JOIN_S = 5.0


class MetricsFile:
    """A thread that writes the file every `period_s`. `look`: as `PipelineCollector` has it."""

    def __init__(self, path: str, look: Callable[[], MetricsSeen], *, period_s: float) -> None:
        self._path, self._period_s = path, period_s
        self._collector = PipelineCollector(look)
        self._problem = ""
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="metrics-file", daemon=True)

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def stop(self) -> None:
        """Write no more, and remove it."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(JOIN_S)
        with contextlib.suppress(OSError):
            os.remove(self._path)

    def write(self) -> None:
        """Once. What keeps it from being written is logged when it is new."""
        problem = ""
        try:
            write_to_textfile(self._path, self._collector)
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

    def _run(self) -> None:
        while not self._stopping.wait(self._period_s):
            self.write()

"""The worker's line to the driver: a report out, a directive back, twice a second once it is at work."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from control_topic.threads import guarded
from table.service.calls import Directive, Unreached, WorkerReport
from table.service.client import TableClient

log = logging.getLogger("lockstep.report")

PERIOD_S = 0.5
JOIN_PERIOD_S = 0.05
"""Between reports as long as the driver has not said that the group may be joined."""
UNREACHED_MAX_S = 30
"""A worker whose driver has been silent for so long ends: nobody is left to commit what it writes."""


class Reporter:
    """`failed` is called once, when the driver has been out of reach for too long."""

    def __init__(
        self,
        table: TableClient,
        report: Callable[[], WorkerReport],
        directive: Callable[[Directive], None],
        failed: Callable[[str], None],
    ) -> None:
        self._table = table
        self._report = report
        self._directive = directive
        self._failed = failed
        self._stopping = threading.Event()
        self._thread = threading.Thread(
            target=guarded("report", self._run, failed), name="report", daemon=True
        )

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """One last report, so that the driver knows how it ended."""
        self._stopping.set()
        self._thread.join(PERIOD_S + 5)

    def _run(self) -> None:
        reached_s = time.monotonic()
        period_s = JOIN_PERIOD_S
        while True:
            stopping = self._stopping.wait(period_s)
            answer = self._table.report(self._report())
            if not isinstance(answer, Unreached):
                reached_s = time.monotonic()
                self._directive(answer)
                if answer.join:
                    period_s = PERIOD_S
            elif time.monotonic() - reached_s > UNREACHED_MAX_S:
                self._failed(f"no answer for {UNREACHED_MAX_S} s: {answer.reason}")
                return
            if stopping:
                return

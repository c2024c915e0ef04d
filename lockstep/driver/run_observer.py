"""A run that is observed by its own driver: at most one observer, made for whoever needs it first."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import ExitStack

from lockstep.config import Config
from lockstep.watch.metrics_file import MetricsFile
from lockstep.watch.observer import Observer
from table.service.ledger import RunOutcome, RunOutcomeKind
from table.service.servicer import TableService

log = logging.getLogger("lockstep.observer")

ALARMING = (RunOutcomeKind.HALTED,)
"""A run that ended so, or by an error, leaves its last metrics for whoever alerts by them. Not one that was
superseded: a newer run writes its own, perhaps elsewhere, and old ones would hide what these say."""


class RunObserver:
    """What it starts ends with `stack`. `kafka`: librdkafka properties with secrets resolved."""

    def __init__(
        self, stack: ExitStack, config: Config, kafka: Mapping[str, str], service: TableService
    ) -> None:
        self._stack, self._config, self._kafka, self._service = stack, config, kafka, service
        self._observer: Observer | None = None
        self._outcome: RunOutcome | None = None

    def get(self) -> Observer:
        """The one, started."""
        if self._observer is None:
            self._observer = Observer(
                self._config, self._kafka, ask_live=lambda: self._service.progress().to_json()
            )
            self._stack.callback(self._observer.stop)
            self._observer.start()
        return self._observer

    def keep_file(self) -> None:
        """Write `metrics.file` from now on, where there is to be one."""
        metrics = self._config.metrics
        if not metrics.file:
            return
        observer = self.get()
        file = MetricsFile(metrics.file, observer.metrics_seen, period_s=metrics.file_period_ms / 1_000)
        self._stack.callback(self._end_file, file, observer)
        file.start()

    def finish(self, outcome: RunOutcome) -> None:
        """How the run ends. Whoever is unwound without was ended by an error."""
        self._outcome = outcome

    def _end_file(self, file: MetricsFile, observer: Observer) -> None:
        if self._outcome is not None and self._outcome.kind not in ALARMING:
            file.stop()
            return
        try:
            observer.ask_driver()  # what it was last told may be of before the halt
        except Exception:  # the run's own end must not be hidden by its metrics'
            log.exception("the last metrics may be of before the end")
        file.leave()

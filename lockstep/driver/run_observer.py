"""A run that is observed by its own driver: at most one observer, made for whoever needs it first."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack

from lockstep.config import Config
from lockstep.watch.metrics_file import MetricsFile
from lockstep.watch.observer import Observer
from table.service.servicer import TableService


class RunObserver:
    """What it starts ends with `stack`. `kafka`: librdkafka properties with secrets resolved."""

    def __init__(
        self, stack: ExitStack, config: Config, kafka: Mapping[str, str], service: TableService
    ) -> None:
        self._stack, self._config, self._kafka, self._service = stack, config, kafka, service
        self._observer: Observer | None = None

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
        file = MetricsFile(metrics.file, self.get().metrics_seen, period_s=metrics.file_period_ms / 1_000)
        self._stack.callback(file.stop)
        file.start()

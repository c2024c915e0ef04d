"""The driver's live status, asked for on a thread of its own so that the view never waits for it."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from lockstep.driver.rundir import read_run_file
from table.service.client import Deadlines, TableClient

PERIOD_S = 0.5
ANSWER_S = 3.0


class Driver:
    """Asks the pipeline's run, as its run file names it, how its workers are."""

    def __init__(self, pipeline: str) -> None:
        self._pipeline = pipeline
        self._client: TableClient | None = None
        self._workers: tuple[Mapping[str, Any], ...] = ()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._ask_again_and_again, name="status", daemon=True)
        self._thread.start()

    def workers(self) -> Sequence[Mapping[str, Any]]:
        """As `table.service.progress.Progress.to_json` lists them; empty while the driver has not
        answered."""
        return self._workers

    def close(self) -> None:
        self._stopping.set()
        self._thread.join(2 * ANSWER_S)

    def _ask_again_and_again(self) -> None:
        while not self._stopping.wait(PERIOD_S):
            client = self._connect()
            status = client.status() if client is not None else None
            if isinstance(status, dict):
                self._workers = tuple(status["workers"])
        if self._client is not None:
            self._client.close()

    def _connect(self) -> TableClient | None:
        if self._client is None and (file := read_run_file(self._pipeline)) is not None:
            self._client = TableClient(file.address, file.token, deadlines=Deadlines(status_s=ANSWER_S))
        return self._client

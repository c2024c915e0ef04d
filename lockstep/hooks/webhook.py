"""Each commit by POST, as JSON. Whoever gets one twice knows it by its `Idempotency-Key`."""

from __future__ import annotations

from collections.abc import Mapping

from lockstep.config.hooks import host_of
from lockstep.hooks.commits import Commit, TableTold, message
from lockstep.hooks.port import Ending
from lockstep.hooks.post import Poster


class WebhookSink:
    """See `lockstep.hooks.port.Sink`. `address`, `headers`: with secrets resolved."""

    name = "webhook"
    newest_only = False
    every_ms = 0

    def __init__(
        self, address: str, headers: Mapping[str, str], *, timeout_s: float, pipeline: str, table: TableTold
    ) -> None:
        self._poster = Poster(address, headers, timeout_s=timeout_s)
        self._pipeline, self._table = pipeline, table
        self.place = host_of(address)
        self.patience_s = 2 * timeout_s

    def begin(self) -> None:
        """Nobody is asked before there is something to say."""

    def deliver(self, commit: Commit) -> None:
        body = message(commit, pipeline=self._pipeline, table=self._table)
        headers = {"Content-Type": "application/json", "Idempotency-Key": commit.transaction}
        self._poster.post(body, headers)

    def end(self, ending: Ending) -> None:
        """Nothing is said of it."""

    def close(self) -> None:
        """Each POST has a connection of its own."""

"""A file for each stretch of event time that is complete, which batch schedulers wait for."""

from __future__ import annotations

import json
from collections.abc import Callable

from lockstep.hooks.commits import Commit
from lockstep.hooks.port import Ending, SinkError
from lockstep.hooks.stretches import completed
from table.errors import TableError
from table.store.port import Store

MARKER = "_SUCCESS"
PATIENCE_S = 30.0


class CompleteSink:
    """See `lockstep.hooks.port.Sink`. `open_store`: the folder that the markers are in. Told once more, a
    commit writes the same markers again.
    """

    name = "complete"
    newest_only = False
    every_ms = 0
    patience_s = PATIENCE_S

    def __init__(
        self, place: str, open_store: Callable[[], Store], *, pipeline: str, stretch_ms: int
    ) -> None:
        self.place = place
        self._open_store, self._pipeline, self._stretch_ms = open_store, pipeline, stretch_ms
        self._store: Store | None = None

    def begin(self) -> None:
        """Nothing is written before there is something to say."""

    def deliver(self, commit: Commit) -> None:
        for stretch in completed(commit.watermark_before_ms, commit.watermark_ms, self._stretch_ms):
            said = {
                "version": 1,
                "pipeline": self._pipeline,
                "from_ms": stretch.from_ms,
                "through_ms": stretch.through_ms,
                "event_time": commit.event_time,
                "instant": commit.instant,
                "transaction": commit.transaction,
            }
            self._put(stretch.name, json.dumps(said).encode())

    def end(self, ending: Ending) -> None:
        """Nothing is said of it."""

    def close(self) -> None:
        self._store = None

    def _put(self, folder: str, content: bytes) -> None:
        try:
            store = self._store = self._store or self._open_store()
            if store.capabilities.folders:
                store.make_folder(folder)
            store.put(f"{folder}/{MARKER}", content, durable=True)
        except (OSError, TableError) as error:
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise SinkError(f"{folder}/{MARKER} cannot be written: {why}") from error

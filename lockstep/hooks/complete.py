"""A file for each stretch of event time that is complete, which batch schedulers wait for."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable

from lockstep.hooks.commits import Commit, Mark
from lockstep.hooks.port import Ending, SinkError
from lockstep.hooks.stretches import completed
from table.errors import TableError
from table.store.port import Store

log = logging.getLogger("lockstep.hooks")

MARKER = "_SUCCESS"
PATIENCE_S = 30.0
"""Maximum for one marker. A commit that completes many stretches takes longer, while it writes marker after
marker."""
MANY = 1_000
"""Number of stretches of one commit from which the log says so."""


class CompleteSink:
    """See `lockstep.hooks.port.Sink`. `open_store`: the folder that the markers are in. Told once more, a
    commit writes the same markers again.
    """

    name = "complete"
    newest_only = False
    every_ms = 0
    patience_s: float = PATIENCE_S

    def __init__(
        self, place: str, open_store: Callable[[], Store], *, pipeline: str, stretch_ms: int
    ) -> None:
        self.place = place
        self._open_store, self._pipeline, self._stretch_ms = open_store, pipeline, stretch_ms
        self._store: Store | None = None
        self._written: tuple[Mark, int] | None = None
        """Commit and number of its stretches whose markers are written: a retry continues there."""

    def begin(self) -> None:
        """Nothing is written before there is something to say."""

    def deliver(self, commit: Commit) -> None:
        stretches = completed(commit.watermark_before_ms, commit.watermark_ms, self._stretch_ms)
        written = self._written[1] if self._written is not None and self._written[0] == commit.mark else 0
        if len(stretches) > MANY and not written:
            log.info(
                "hook complete: writes many markers: instant=%s stretches=%d", commit.instant, len(stretches)
            )
        began_s = time.monotonic()
        for at in range(written, len(stretches)):
            self.patience_s = time.monotonic() - began_s + PATIENCE_S
            stretch = stretches[at]
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
            self._written = (commit.mark, at + 1)
        self.patience_s, self._written = PATIENCE_S, None

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

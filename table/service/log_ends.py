"""Where logs end, for whoever commits and waits for nobody: asked beside, taken where it comes in time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from threading import Event, Thread
from typing import Protocol

from control_topic.messages import Offsets, SourcePartition
from table.service.source_facts import SourceTopicsError

log = logging.getLogger(__name__)

LOOK_EVERY_MS = 10_000
FRESH_MS = 30_000
"""What was asked for longer ago says nothing."""
WAIT_S = 0.2
"""A broker that is well answers in some milliseconds."""

Ask = Callable[[Sequence[SourcePartition]], Offsets]


class LogEnds(Protocol):
    def latest(self, partitions: Sequence[SourcePartition], now_ms: int) -> Offsets:
        """Of these and perhaps of others, of those of which it is known. `now_ms` never goes back."""


class Due:
    """When it is asked, and of whom. Pure."""

    def __init__(self) -> None:
        self._asked_ms: int | None = None
        self._asked: frozenset[SourcePartition] = frozenset()

    def is_due(self, partitions: Sequence[SourcePartition], now_ms: int) -> bool:
        """Whether it is to be asked for these now; it counts as asked then. Whom nobody has asked about is
        asked about at once."""
        is_old = self._asked_ms is None or now_ms - self._asked_ms >= LOOK_EVERY_MS
        if not partitions or not (is_old or not self._asked.issuperset(partitions)):
            return False
        self._asked_ms, self._asked = now_ms, frozenset(partitions)
        return True


class AskedBeside:
    """`ask`: raises `SourceTopicsError`, and may take its time: on a thread of its own, one at a time."""

    def __init__(self, ask: Ask, *, wait_s: float = WAIT_S) -> None:
        self._ask, self._wait_s = ask, wait_s
        self._due = Due()
        self._running: Event | None = None
        self._known: tuple[int, Offsets] = (0, {})

    def latest(self, partitions: Sequence[SourcePartition], now_ms: int) -> Offsets:
        running = self._running
        if (running is None or running.is_set()) and self._due.is_due(partitions, now_ms):
            self._running = running = Event()
            asked = tuple(partitions)
            Thread(target=self._look, args=(asked, now_ms, running), name="log-ends", daemon=True).start()
            running.wait(self._wait_s)
        began_ms, ends = self._known
        return ends if now_ms - began_ms < FRESH_MS else {}

    def _look(self, partitions: Sequence[SourcePartition], now_ms: int, done: Event) -> None:
        try:
            self._known = (now_ms, self._ask(partitions))
        except SourceTopicsError as error:
            log.debug("no source partition counts as idle: %s", error)
            self._known = (now_ms, {})
        finally:
            done.set()


class AskedNow:
    """The same without a thread, for whom questions take no time."""

    def __init__(self, ask: Ask) -> None:
        self._ask, self._due = ask, Due()
        self._known: Offsets = {}

    def latest(self, partitions: Sequence[SourcePartition], now_ms: int) -> Offsets:
        if self._due.is_due(partitions, now_ms):
            try:
                self._known = self._ask(partitions)
            except SourceTopicsError:
                self._known = {}
        return self._known

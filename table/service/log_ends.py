"""Where logs end, for whoever commits and waits for nobody: asked beside, taken where it comes in time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from threading import Event, Thread
from typing import Final, NamedTuple, Protocol

from control_topic.messages import Offsets, SourcePartition
from table.service.source_facts import SourceTopicsError

log = logging.getLogger(__name__)

LOOK_EVERY_MS = 10_000
FRESH_MS = 30_000
"""What was asked for longer ago says nothing."""
WAIT_S = 0.2
"""A broker that is well answers in some milliseconds."""

Ask = Callable[[Sequence[SourcePartition]], Offsets]


class Ends(NamedTuple):
    """Of logs, as they were so long ago."""

    offsets: Offsets
    age_ms: int


UNKNOWN: Final = Ends({}, 0)


class LogEnds(Protocol):
    def latest(
        self, partitions: Sequence[SourcePartition], now_ms: int, *, of: Sequence[SourcePartition] = ()
    ) -> Ends:
        """Of these and perhaps of others, of those of which it is known. `now_ms` never goes back.

        `of`: all that may be asked about later. One question is for all of them, so that whoever falls silent
        next is known already.
        """


class Due:
    """When it is asked, and of whom. Pure."""

    def __init__(self) -> None:
        self._asked_ms: int | None = None
        self._asked: frozenset[SourcePartition] = frozenset()

    def is_due(
        self, partitions: Sequence[SourcePartition], now_ms: int, *, of: Sequence[SourcePartition] = ()
    ) -> bool:
        """Whether it is to be asked for these now; it counts as asked then. Whom nobody has asked about is
        asked about at once."""
        is_old = self._asked_ms is None or now_ms - self._asked_ms >= LOOK_EVERY_MS
        if not partitions or not (is_old or not self._asked.issuperset(partitions)):
            return False
        self._asked_ms, self._asked = now_ms, frozenset((*partitions, *of))
        return True


class AskedBeside:
    """`ask`: raises `SourceTopicsError`, and may take its time: on a thread of its own, one at a time."""

    def __init__(self, ask: Ask, *, wait_s: float = WAIT_S) -> None:
        self._ask, self._wait_s = ask, wait_s
        self._due = Due()
        self._running: Event | None = None
        self._known: tuple[int, Offsets] = (0, {})

    def latest(
        self, partitions: Sequence[SourcePartition], now_ms: int, *, of: Sequence[SourcePartition] = ()
    ) -> Ends:
        running = self._running
        if (running is None or running.is_set()) and self._due.is_due(partitions, now_ms, of=of):
            self._running = running = Event()
            asked = tuple(partitions), tuple(of)
            Thread(target=self._look, args=(*asked, now_ms, running), name="log-ends", daemon=True).start()
            if not self._fresh(now_ms).offsets.keys() >= set(partitions):
                running.wait(self._wait_s)
        return self._fresh(now_ms)

    def _fresh(self, now_ms: int) -> Ends:
        began_ms, ends = self._known
        return Ends(ends, now_ms - began_ms) if now_ms - began_ms < FRESH_MS else UNKNOWN

    def _look(
        self,
        partitions: Sequence[SourcePartition],
        of: Sequence[SourcePartition],
        now_ms: int,
        done: Event,
    ) -> None:
        try:
            self._known = (now_ms, asked_for(self._ask, partitions, of))
        except SourceTopicsError as error:
            log.debug("no source partition counts as idle: %s", error)
            self._known = (now_ms, {})
        finally:
            done.set()


class AskedNow:
    """The same without a thread, for whom questions take no time."""

    def __init__(self, ask: Ask) -> None:
        self._ask, self._due = ask, Due()
        self._known: tuple[int, Offsets] = (0, {})

    def latest(
        self, partitions: Sequence[SourcePartition], now_ms: int, *, of: Sequence[SourcePartition] = ()
    ) -> Ends:
        if self._due.is_due(partitions, now_ms, of=of):
            try:
                self._known = (now_ms, asked_for(self._ask, partitions, of))
            except SourceTopicsError:
                self._known = (now_ms, {})
        began_ms, ends = self._known
        return Ends(ends, now_ms - began_ms)


def asked_for(ask: Ask, partitions: Sequence[SourcePartition], of: Sequence[SourcePartition]) -> Offsets:
    """Of all, or at least of these: a leader that is away of whom nobody waits for hides no other.

    Raises as `ask` does.
    """
    everybody = sorted({*partitions, *of})
    try:
        return ask(everybody)
    except SourceTopicsError:
        if len(everybody) == len(partitions):
            raise
        return ask(partitions)

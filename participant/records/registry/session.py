"""A worker's talk with its schema registry: how much is asked for one batch, and whether it was reset.

A registry that was reset counts its ids from 1 again: records by a new schema 1 would be read by the old one.
So the schemas in use are asked for again, in a thread. One that is another than before stops the worker's
decoding. The offsets up to which each schema was confirmed say which records may have been read by the wrong
one.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

from control_topic.messages import SourcePartition
from control_topic.threads import guarded
from participant.records.errors import RecordsError, SchemasPending

log = logging.getLogger("lockstep.registry")

RECHECK_S = 15.0
"""Between two rounds of questions for schemas in use."""
RECHECKED_MAX = 20
"""Schemas that are asked for in one round, those first that were confirmed longest ago."""
TOLD_MAX, TOLD_CHARS_MAX = 1_000, 16_000_000
"""Schemas that are asked for again; then the oldest are not."""
QUESTIONS_S = 1.0
"""Time for questions that one batch may take from the records of others."""
REST_S = 2.0
"""Time without a question after a batch has used that up."""
PLACES_SAID_MAX = 20

Key = int | str
Offsets = dict[SourcePartition, int]


@dataclass(slots=True, kw_only=True)
class _Told:
    """A schema as the registry has told it."""

    texts: tuple[str, ...]
    ask: Callable[[], tuple[str, ...]]
    is_same: Callable[[tuple[str, ...], tuple[str, ...]], bool]
    confirmed: Offsets
    """Up to where records were decoded when it was last confirmed."""
    confirmed_s: float
    used: bool = True


@dataclass(slots=True)
class _Budget:
    """Time for questions, used up by one batch after another."""

    spent_s: float = 0.0
    questions: int = 0
    resting_until_s: float = 0.0


@dataclass(slots=True, weakref_slot=True, eq=False)
class RegistrySession:
    """Shared by all that asks one registry in a worker. One thread decodes, another repeats questions."""

    now_s: Callable[[], float] = time.monotonic
    reset: str = ""
    """Why nothing more may be decoded, and which records may have been read by another schema; empty: may."""
    ask_ahead: list[Callable[[Iterable[Key]], None]] = field(default_factory=list)
    """What takes ids of values that are to be asked for ahead."""
    _told: dict[tuple[str, Key], _Told] = field(default_factory=dict)
    _positions: Offsets = field(default_factory=dict)
    _snapshot: Offsets | None = None
    _decoded: bool = False
    """Whether anything was since the last round."""
    _budget: _Budget = field(default_factory=_Budget)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _thread: threading.Thread | None = None

    # --- questions of one batch -------------------------------------------------------------------

    def begin_batch(self) -> None:
        """Give the next batch its time for questions."""
        self._budget.spent_s = 0.0
        self._budget.questions = 0

    def check_budget(self) -> None:
        """Raises `SchemasPending` where the batch has used up its time for questions."""
        budget, now_s = self._budget, self.now_s()
        if budget.spent_s >= QUESTIONS_S:
            budget.resting_until_s = max(budget.resting_until_s, now_s + REST_S)
            raise SchemasPending(
                "its records name more new schemas than the registry is asked for at once: "
                f"{budget.questions:,} answers took {budget.spent_s:.1f} s. The worker asks for the others "
                "in turn; records whose schema the registry does not know are rejects"
            )
        if now_s < budget.resting_until_s:
            raise SchemasPending("its records name new schemas, which the worker asks for in turn")

    @contextmanager
    def question(self) -> Iterator[None]:
        """Count a question, answered or not, and the time that it takes. Raises as `check_budget`."""
        self.check_budget()
        began_s = self.now_s()
        try:
            yield
        finally:
            self._budget.spent_s += self.now_s() - began_s
            self._budget.questions += 1

    def want(self, keys: Iterable[Key]) -> None:
        """Ask ahead for schemas that records of a batch name, which has used up its time for questions."""
        for ask_ahead in self.ask_ahead:
            ask_ahead(keys)

    # --- what was decoded -------------------------------------------------------------------------

    def decoded(self, partition: SourcePartition, first: int, following: int, keys: Iterable[Key]) -> None:
        """Records up to before `following` were decoded, by these schemas among others."""
        with self._lock:
            if first < self._positions.get(partition, first):
                for confirmed in {id(one.confirmed): one.confirmed for one in self._told.values()}.values():
                    confirmed[partition] = min(first, confirmed.get(partition, first))
            self._positions.setdefault(partition, first)
            for one in self._told.values():
                one.confirmed.setdefault(partition, first)
            self._positions[partition] = following
            self._snapshot, self._decoded = None, True
            for (_, key), told in self._told.items():
                told.used = told.used or key in keys

    def told(
        self,
        name: str,
        key: Key,
        texts: tuple[str, ...],
        ask: Callable[[], tuple[str, ...]],
        is_same: Callable[[tuple[str, ...], tuple[str, ...]], bool],
    ) -> None:
        """The registry has told a schema, of the kind of this name. `ask` asks for it again."""
        with self._lock:
            self._told.pop((name, key), None)
            self._told[name, key] = _Told(
                texts=texts, ask=ask, is_same=is_same, confirmed=self._now(), confirmed_s=self.now_s()
            )
            while len(self._told) > TOLD_MAX or (
                len(self._told) > 1
                and sum(sum(map(len, one.texts)) for one in self._told.values()) > TOLD_CHARS_MAX
            ):
                del self._told[next(iter(self._told))]
        if self._thread is None:
            run = partial(_recheck, weakref.ref(self))
            self._thread = threading.Thread(target=guarded("recheck", run, log.warning), daemon=True)
            self._thread.start()

    def _now(self) -> Offsets:
        """The positions, shared by all that are confirmed at them."""
        if self._snapshot is None:
            self._snapshot = dict(self._positions)
        return self._snapshot

    # --- the other thread -------------------------------------------------------------------------

    def recheck(self) -> None:
        """Ask for schemas in use again: one round."""
        with self._lock:
            if not self._decoded or self.reset:
                return
            self._decoded = False
            waiting = sorted(self._told.items(), key=lambda one: (not one[1].used, one[1].confirmed_s))
            before, before_s = self._now(), self.now_s()
        for (_, key), told in waiting[:RECHECKED_MAX]:
            try:
                texts = told.ask()
            except RecordsError as why:
                log.debug("schema %s could not be confirmed: %s", key, why)
                continue
            if not told.is_same(told.texts, texts):
                self._note_reset(key, told)
                return
            with self._lock:
                told.confirmed, told.confirmed_s, told.used = before, before_s, False

    def _note_reset(self, key: Key, told: _Told) -> None:
        with self._lock:
            places = [
                (partition, start, following)
                for partition, following in sorted(self._positions.items())
                if (start := told.confirmed.get(partition, following)) < following
            ]
            ago_s = self.now_s() - told.confirmed_s
        count = sum(following - start for _, start, following in places)
        said = [f"{partition} {start} to {following - 1}" for partition, start, following in places]
        more = f" and of {len(said) - PLACES_SAID_MAX} more" if len(said) > PLACES_SAID_MAX else ""
        which = (
            f"{count:,} records at most may be rows by the wrong schema, those of them that name schema "
            f"{key}, and may be committed. Offsets: {', '.join(said[:PLACES_SAID_MAX])}{more}"
            if said
            else "no record was read since"
        )
        self.reset = (
            f"the schema registry has another schema {key} than it had {ago_s:.0f} s ago: it was reset, or "
            f'registry.url leads to another one. In this worker {which}. See "A registry that was reset" in '
            "docs/formats.md"
        )
        log.error("%s", self.reset)


def _recheck(session: weakref.ReferenceType[RegistrySession]) -> None:
    """One round after another, until the session is dropped."""
    while True:
        time.sleep(RECHECK_S)
        mine = session()
        if mine is None or mine.reset:
            return
        mine.recheck()
        del mine

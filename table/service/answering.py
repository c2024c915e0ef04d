"""How the table's calls answer: what an error proves, what is stale, and what is known of the table.

A call never raises: it answers with a `Result` whose proof is described in proto/table.proto. What other
threads read is `view`, replaced whole, and the ledger, which is touched under `guard` only; `guard` is
never held while the table works.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from inspect import signature
from threading import Lock
from typing import Concatenate, ParamSpec, TypeVar

from control_topic.log_fields import FIELDS, about
from control_topic.messages import Offsets
from table.errors import ClockBehind, Refused, TableError, Unavailable
from table.service.calls import Answer, Result
from table.service.ledger import Ledger
from table.service.source_facts import SourceRefused, SourceUnavailable
from table.state import StateError, TableState

log = logging.getLogger(__name__)

STOPPING_WAIT_MS = 1_000
SAY_AGAIN_MS = 30_000
"""An outage is worth a line so often, however often it is met."""
_DIGITS = re.compile(r"\b[0-9a-f]*\d[0-9a-f]*\b")
P = ParamSpec("P")
S = TypeVar("S", bound="Answering")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableView:
    """The table as this process last saw it, and what it committed itself. Times of the service's clock."""

    newest: TableState | None = None
    commits: int = 0
    rows: int = 0
    rejects: int = 0
    """Records that commits passed over, each of them in the dead-letter topic."""
    late: int = 0
    """Records behind the watermark."""
    absurd: int = 0
    """Records whose event time is too far ahead to count."""
    last_commit_at_ms: int | None = None


def stands(state: TableState, *, instant: str) -> Answer:
    """The table's offsets, and what whoever reads on from them looks for."""
    return Answer(
        result=Result.OK,
        instant=instant,
        committed=state.offsets,
        witnesses=tuple(state.witnesses.values()),
    )


def answers(
    effect: bool,
) -> Callable[[Callable[Concatenate[S, P], Answer]], Callable[Concatenate[S, P], Answer]]:
    """Turn what a call raises into its answer. `effect`: without an answer the call may have had one."""

    def decorate(
        method: Callable[Concatenate[S, P], Answer],
    ) -> Callable[Concatenate[S, P], Answer]:
        names = tuple(signature(method).parameters)[1:]
        told = [(place, name) for place, name in enumerate(names) if name in FIELDS]

        @wraps(method)
        def answering(self: S, /, *args: P.args, **kwargs: P.kwargs) -> Answer:
            given = {name: args[place] for place, name in told if place < len(args)}
            given.update({name: kwargs[name] for _, name in told if name in kwargs})
            with about(**given):
                return answered(self, *args, **kwargs)

        def answered(self: S, /, *args: P.args, **kwargs: P.kwargs) -> Answer:
            name = method.__name__
            try:
                return method(self, *args, **kwargs)
            except ClockBehind as error:
                return self.unavailable(str(error), patience_ms=error.patience_ms)
            except (Unavailable, SourceUnavailable) as error:
                return self.unavailable(str(error))
            except (StateError, SourceRefused) as error:
                return self.halt(str(error))
            except Refused as error:
                if effect:
                    return Answer(result=Result.REFUSED, reason=str(error))
                # A coordinator asks for recovery until it is done: only what is counted has an end.
                return self.unavailable(str(error))
            except TableError as error:
                reason = str(error)
            except Exception as error:
                log.exception("%s failed unexpectedly", name)
                reason = f"{name} failed unexpectedly, see the driver's log: {error!r}"
            answer = self.unavailable(reason)
            return replace(answer, result=Result.UNKNOWN) if effect else answer

        return answering

    return decorate


class Answering:
    """What every call on the table shares."""

    def __init__(self, *, ledger: Ledger, guard: Lock, clock_ms: Callable[[], int]) -> None:
        self.view = TableView()
        self._ledger = ledger
        self._guard = guard
        self._clock_ms = clock_ms
        self._said = ("", 0)

    def unavailable(self, reason: str, *, patience_ms: int = 0) -> Answer:
        """Nothing came of it, by the environment's fault; when that has lasted too long, the run halts.

        `patience_ms`: of what is known to pass, how long from now on it may last.
        """
        with self._guard:
            wait_ms = self._ledger.unavailable(self._clock_ms(), reason, patience_ms=patience_ms)
            halted = self._ledger.halted and self._ledger.closed
            outage_s, budget_s = self._ledger.outage_ms // 1_000, self._ledger.outage_budget_ms // 1_000
        so_far = f" ({outage_s} s so far; after {budget_s} s the run halts)" if outage_s else ""
        log.log(
            logging.WARNING if self._is_news(reason) else logging.DEBUG,
            "%s: tried again in %.1f s%s",
            *(reason.rstrip(". :"), wait_ms / 1_000, so_far),
        )
        if halted:
            log.error("the run halts: %s", halted)
            return Answer(result=Result.HALTED, reason=halted)
        return Answer(result=Result.UNAVAILABLE, reason=reason, wait_ms=wait_ms)

    def _is_news(self, reason: str) -> bool:
        """Whether this was not said a moment ago, ids and numbers apart."""
        text, now_ms = _DIGITS.sub("", reason), self._clock_ms()
        said, said_ms = self._said
        if text == said and now_ms - said_ms < SAY_AGAIN_MS:
            return False
        self._said = (text, now_ms)
        return True

    def halt(self, reason: str) -> Answer:
        """The run stops here, without effect on the table."""
        log.error("the run halts: %s", reason)
        with self._guard:
            self._ledger.halt(reason)
            return Answer(result=Result.HALTED, reason=self._ledger.halted or reason)

    def _stale(self, epoch: int) -> Answer | None:
        with self._guard:
            if self._ledger.is_current(epoch):
                return None
            registered, highest = self._ledger.epoch, self._ledger.highest_epoch
        known = f"epoch {registered} is registered in this run"
        if highest != registered:
            known += f", the table carries epoch {highest}"
        elif epoch == registered:
            known = "another run has committed with it"
        return Answer(result=Result.STALE, reason=f"epoch {epoch} is stale: {known}")

    def _closed(self) -> Answer | None:
        with self._guard:
            closed, halted = self._ledger.closed, self._ledger.halted
        if not closed:
            return None
        result = Result.HALTED if halted else Result.UNAVAILABLE
        return Answer(result=result, reason=closed, wait_ms=0 if halted else STOPPING_WAIT_MS)

    def _see(self, newest: TableState | None) -> None:
        if newest is None:
            return
        if newest is not self.view.newest:
            self.view = replace(self.view, newest=newest)
        with self._guard:
            self._ledger.saw(newest)

    def _offsets(self) -> Offsets:
        return self.view.newest.offsets if self.view.newest is not None else {}

"""The driver's memory of a run: epochs, failures, back-off, and what every worker shall do next.

Pure: no clock, thread, random or I/O; time comes in as `now_ms`, which must not go back. Who uses it from
several threads guards it with a lock, except `epoch`, `run` and `fence`, which may be read without one.

How a run ends is the walk that `table.service.modes.TRANSITIONS` describes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from control_topic.controls import STOP, Tuning
from control_topic.messages import Offsets
from table.faults import WorkerFault
from table.service.calls import Directive, Fault, Order, RunMode
from table.service.epochs import Epochs
from table.service.failures import Failures
from table.service.fallen import Fallen
from table.service.modes import DRAINED_STATES, GOING_ON, SILENT_STATES, TRANSITIONS, Signal
from table.service.orders import Orders

TRANSACTIONS_REMEMBERED = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerLimits:
    """What the ledger waits for, and how often."""

    max_consecutive_failures: int = 5
    backoff_first_ms: int = 500
    backoff_max_ms: int = 30_000
    outage_budget_ms: int = 600_000
    outage_step_ms: int = 90_000
    """The most that one failure adds to an outage, so that the quiet time between two is not taken for one
    long outage."""
    drain_silence_ms: int = 30_000
    drain_ms: int = 300_000
    halt_ms: int = 10_000
    dead_kept: int = 256
    dead_kept_ms: int = 600_000

    def __post_init__(self) -> None:
        if self.max_consecutive_failures < 1:
            raise ValueError("max_consecutive_failures must be at least 1")
        if not 0 < self.backoff_first_ms <= self.backoff_max_ms < self.outage_step_ms:
            raise ValueError("0 < backoff_first_ms <= backoff_max_ms < outage_step_ms does not hold")
        if self.outage_step_ms > self.outage_budget_ms:
            raise ValueError("outage_step_ms must not exceed outage_budget_ms")
        if not 0 < self.drain_silence_ms <= self.drain_ms:
            raise ValueError("0 < drain_silence_ms <= drain_ms does not hold")


class RunOutcomeKind(Enum):
    STOPPED = "stopped"
    REACHED = "reached"
    HALTED = "halted"
    SUPERSEDED = "superseded"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """How the run ended."""

    kind: RunOutcomeKind
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerStanding:
    """What the ledger knows, for status and logs. Times in ms of the caller's clock."""

    epoch: int
    incarnation: str
    mode: RunMode
    halted: str
    stopping: str
    pipeline_failures: int
    environment_failures: int
    outage_ms: int
    backoff_left_ms: int
    reasons: tuple[str, ...]
    deaths: tuple[str, ...]
    fenced: tuple[str, ...]
    control: Mapping[str, Any]
    """`table.service.orders.Orders.to_json`."""


class Ledger(Epochs):
    """One run's memory. `until`: source partition -> offset that ends the run once all are committed.

    `tuning`: the settings that operators may change while it goes on; None: they may change none.
    """

    def __init__(
        self,
        *,
        run: str,
        now_ms: int,
        limits: LedgerLimits | None = None,
        until: Offsets | None = None,
        tuning: Tuning | None = None,
    ) -> None:
        super().__init__(run)
        self.orders = Orders(tuning)
        self._limits = limits or LedgerLimits()
        self._until = until
        self._failures = Failures()
        self._blamed: deque[str] = deque(maxlen=TRANSACTIONS_REMEMBERED)
        self._open_transaction = ""
        self._fallen = Fallen(kept=self._limits.dead_kept, kept_ms=self._limits.dead_kept_ms)
        self._mode = RunMode.RUN
        self._mode_since_ms = now_ms
        self._answered_at_ms = now_ms
        self._halt_reason = ""
        self._halt_drains = False
        self._stop: RunOutcome | None = None

    # --- transactions and failures --------------------------------------------------------------

    def began(self, transaction: str) -> None:
        """A transaction has an open instant."""
        self._open_transaction = transaction

    def committed(self, transaction: str, offsets: Offsets) -> None:
        """A transaction is durable: failures and back-off start again from nothing."""
        self._close(transaction)
        self._failures = Failures()
        self.saw_offsets(offsets)

    def saw_offsets(self, offsets: Offsets) -> None:
        """The table's committed offsets; they may be what `until` waits for."""
        if self._until is None or self._stop is not None:
            return
        if all(offsets.get(partition, 0) >= target for partition, target in self._until.items()):
            self._stop = RunOutcome(
                kind=RunOutcomeKind.REACHED, reason="every source partition is committed up to its target"
            )

    def aborted(self, now_ms: int, *, transaction: str, reason: str, fault: Fault) -> int:
        """A transaction was given up; the wait before the next may begin, ms. A repeat counts once."""
        self._close(transaction)
        if fault is Fault.NONE or transaction in self._blamed:
            return self.wait_ms(now_ms)
        self._blamed.append(transaction)
        if fault is Fault.PIPELINE:
            return self._count_pipeline(now_ms, reason)
        return self.unavailable(now_ms, reason)

    def unavailable(self, now_ms: int, reason: str, *, patience_ms: int = 0) -> int:
        """The environment did not serve; the wait before the next attempt, ms.

        `patience_ms`: of what is known to pass, how long from now on it may last.
        """
        failures, limits = self._failures, self._limits
        if self._mode is RunMode.PAUSE:  # who paused it may be at work on what is away
            failures.outage_ms = failures.environment = 0
            failures.last_outage_at_ms = None
        quiet_ms = now_ms - failures.last_outage_at_ms if failures.last_outage_at_ms is not None else 0
        if quiet_ms > self.outage_budget_ms:  # an idle pipeline commits nothing; its last outage is over
            failures.outage_ms = failures.environment = 0
        else:
            failures.outage_ms += min(quiet_ms, limits.outage_step_ms)
        failures.last_outage_at_ms = now_ms
        failures.environment += 1
        failures.reasons.append(reason)
        if patience_ms:
            failures.budget_ms = max(failures.budget_ms, failures.outage_ms + patience_ms)
        if failures.outage_ms > self.outage_budget_ms:
            self.halt(
                f"Nothing could be committed for {failures.outage_ms // 1000} s, and an outage is waited out "
                f"for {self.outage_budget_ms // 1000} s; last: {self._last_reasons()}. Nothing is lost: "
                "start again once storage, lock and broker answer."
            )
        return self._back_off(now_ms, failures.environment)

    @property
    def outage_ms(self) -> int:
        """How long nothing could be committed, by the environment's fault."""
        return self._failures.outage_ms

    @property
    def outage_budget_ms(self) -> int:
        """How long that may last before the run halts."""
        return max(self._limits.outage_budget_ms, self._failures.budget_ms)

    def wait_ms(self, now_ms: int) -> int:
        """How long the next transaction must still wait."""
        return max(0, self._failures.begin_not_before_ms - now_ms)

    def _count_pipeline(self, now_ms: int, reason: str) -> int:
        failures = self._failures
        quiet_ms = now_ms - failures.last_pipeline_at_ms
        if self._mode is RunMode.PAUSE and quiet_ms > self._limits.outage_budget_ms:
            failures.pipeline = 0  # no commit will clear it: a loss now and then is no crash loop
        failures.last_pipeline_at_ms = now_ms
        failures.pipeline += 1
        failures.reasons.append(reason)
        if failures.pipeline >= self._limits.max_consecutive_failures:
            self.halt(
                f"{failures.pipeline} transactions in a row failed (transaction.max_consecutive_failures); "
                f"last: {self._last_reasons()}. Nothing is lost: remove the cause and start again."
            )
        return self._back_off(now_ms, failures.pipeline)

    def _back_off(self, now_ms: int, attempts: int) -> int:
        doublings = min(attempts - 1, 30)
        wait_ms = min(self._limits.backoff_first_ms << doublings, self._limits.backoff_max_ms)
        self._failures.begin_not_before_ms = max(self._failures.begin_not_before_ms, now_ms + wait_ms)
        return self.wait_ms(now_ms)

    def _last_reasons(self) -> str:
        """Why transactions failed, and what workers died of meanwhile where that does not say so already."""
        said = "; ".join(dict.fromkeys(reason.rstrip(". ") for reason in self._failures.reasons))
        more = [
            self._failures.death(reason)
            for reason in self._failures.deaths
            if reason.rstrip(". ") not in said
        ]
        return f"{said}; deaths since the last commit: {'; '.join(more)}" if more else said

    def _close(self, transaction: str) -> None:
        if self._open_transaction == transaction:
            self._open_transaction = ""

    # --- workers --------------------------------------------------------------------------------

    def died(
        self,
        now_ms: int,
        *,
        incarnation: str,
        reason: str,
        recovering: bool = False,
        fault: WorkerFault = WorkerFault.PIPELINE,
    ) -> None:
        """A worker's Spark task ended against its will.

        That counts as a failure where it took a transaction with it, once for that transaction however many
        workers die, or where its coordinator was still `recovering`: a crash loop must not go on for ever.
        An outage is the environment's.
        """
        self._fallen.died(now_ms, incarnation, reason)
        self._failures.died(reason)
        blame = self._open_transaction or (incarnation if recovering or fault.is_outage else "")
        if blame and self._mode in GOING_ON and blame not in self._blamed:
            self._blamed.append(blame)
            if fault.is_outage:
                self.unavailable(now_ms, reason)
            else:
                self._count_pipeline(now_ms, reason)

    def dead(self, now_ms: int) -> tuple[str, ...]:
        """Incarnations known dead, oldest first; forgotten after `dead_kept_ms`."""
        return self._fallen.dead(now_ms)

    def fenced(self, incarnation: str) -> None:
        """A worker says that Kafka gave its group membership to somebody else."""
        self._fallen.fenced(incarnation)

    # --- the end of the run ---------------------------------------------------------------------

    @property
    def halted(self) -> str:
        """Why the run halts, empty while it does not. The first reason wins."""
        return self._halt_reason

    @property
    def stopping(self) -> str:
        """Why the run ends, empty while it goes on."""
        if self._halt_reason:
            return self._halt_reason
        return self._stop.reason if self._stop is not None else ""

    @property
    def closed(self) -> str:
        """Why not even the transaction that a drain ends may begin, empty while it may."""
        may = self._mode in GOING_ON or self._mode is RunMode.DRAIN
        draining = may and (self._halt_drains or not self._halt_reason)
        return "" if draining else self.stopping

    def halt(self, reason: str) -> None:
        """Stop the run without a drain; a later run is not stopped by it."""
        if self._mode is RunMode.STOP:
            return
        self._halt_reason = self._halt_reason or reason
        self._halt_drains = False

    def poison(self, reason: str) -> None:
        """A record that the pipeline cannot go past; `reason` names topic, source partition and offset."""
        if self._mode is RunMode.STOP or self._halt_reason:
            return
        self._halt_reason = reason
        self._halt_drains = True

    def request_stop(self, reason: str) -> None:
        """End the open transaction, commit it, and stop."""
        if self._stop is None:
            self._stop = RunOutcome(kind=RunOutcomeKind.STOPPED, reason=reason)

    def take(self, now_ms: int, order: Order) -> tuple[int, str]:
        """An operator's order: its number, or why it is not taken. A run that ends takes none but to stop."""
        if self.stopping and order.action != STOP:
            return 0, f"it ends already: {self.stopping}"
        if order.action == STOP:
            self.request_stop(f"{order.who or 'an operator'} has stopped it{_why(order.why)}")
        return self.orders.take(now_ms, order), ""

    def paused(self, now_ms: int) -> bool:
        """Whether no transaction may begin: a coordinator that comes new may not have heard of it."""
        controls = self.orders.controls(now_ms)
        if controls is None or not controls.pause or controls.commit > controls.pause:
            return False
        return self._mode in GOING_ON and not self.stopping

    def settled(self, epoch: int, number: int) -> None:
        """The coordinator of this epoch says that every order up to this one is done. A stale one knows no
        better.
        """
        if epoch == self.epoch:
            self.orders.heard(number)

    def supersede(self, reason: str) -> None:
        """A newer run has taken over: stop at once, since nothing of this run can be committed any more."""
        if self._mode is not RunMode.STOP:
            self._stop = RunOutcome(kind=RunOutcomeKind.SUPERSEDED, reason=reason)
            self._halt_reason = ""
            self._mode = RunMode.STOP

    def directive(self, now_ms: int, coordinator_state: str) -> Directive:
        """Move the mode on by at most one step, and say what every worker shall do.

        `coordinator_state`: as the coordinator last reported it, empty where none reports.
        """
        if coordinator_state not in SILENT_STATES:
            self._answered_at_ms = now_ms
        for signal, mode in TRANSITIONS[self._mode]:
            if self._holds(signal, now_ms, coordinator_state):
                self._mode, self._mode_since_ms, self._answered_at_ms = mode, now_ms, now_ms
                break
        return Directive(
            mode=self._mode,
            reason=self.stopping if self._mode not in GOING_ON else "",
            dead=self.dead(now_ms),
            died_of=self._fallen.died_of(),
            controls=self.orders.controls(now_ms),
        )

    def _holds(self, signal: Signal, now_ms: int, coordinator_state: str) -> bool:
        """Whether this signal is given."""
        pending = bool(self._halt_reason)
        match signal:
            case Signal.HALT_NOW:
                return pending and not self._halt_drains
            case Signal.DRAIN_WANTED:
                return pending or self._stop is not None
            case Signal.DRAINED:
                return not pending and self._is_drained(coordinator_state)
            case Signal.DRAINED_POISON:
                return pending and self._is_drained(coordinator_state)
            case Signal.DRAIN_OVERDUE:
                return not pending and self._drains_too_long(now_ms)
            case Signal.DRAIN_OVERDUE_POISON:
                return pending and self._drains_too_long(now_ms)
            case Signal.ANNOUNCED:
                return coordinator_state == "halted"
            case Signal.HALT_OVERDUE:
                return now_ms - self._mode_since_ms > self._limits.halt_ms
            case Signal.PAUSE_WANTED:
                return self.orders.paused is not None
            case Signal.RESUME_WANTED:
                return self.orders.paused is None

    def _is_drained(self, coordinator_state: str) -> bool:
        return coordinator_state in DRAINED_STATES or not self.epoch  # no coordinator ever opened anything

    def _drains_too_long(self, now_ms: int) -> bool:
        in_mode_ms, silent_ms = now_ms - self._mode_since_ms, now_ms - self._answered_at_ms
        return in_mode_ms > self._limits.drain_ms or silent_ms > self._limits.drain_silence_ms

    def outcome(self) -> RunOutcome | None:
        """How the run ended, None before the mode is STOP."""
        if self._mode is not RunMode.STOP:
            return None
        if self._halt_reason:
            return RunOutcome(kind=RunOutcomeKind.HALTED, reason=self._halt_reason)
        return self._stop

    def standing(self, now_ms: int) -> LedgerStanding:
        failures = self._failures
        return LedgerStanding(
            epoch=self.epoch,
            incarnation=self.incarnation,
            mode=self._mode,
            halted=self._halt_reason,
            stopping=self.stopping,
            pipeline_failures=failures.pipeline,
            environment_failures=failures.environment,
            outage_ms=failures.outage_ms,
            backoff_left_ms=self.wait_ms(now_ms),
            reasons=tuple(failures.reasons),
            deaths=tuple(map(failures.death, failures.deaths)),
            fenced=self._fallen.fenced_ones(),
            control=self.orders.to_json(now_ms),
        )


def _why(text: str) -> str:
    return f": {text}" if text else ""

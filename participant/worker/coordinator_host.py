"""The coordinator that lives in this worker while it owns source partition 0: none, or one at a time.

Assignments come from the membership's thread, the driver's word from the reporter's, messages from the
control topic's reader, the end from the protocol's: hence the lock. A runner is stopped outside of it.
"""

from __future__ import annotations

import threading

from control_topic.clocks import monotonic_ms, wall_ms
from control_topic.messages import Message
from coordinator.events import Settings, Snapshot
from coordinator.runner import Environment, Runner
from table.service.calls import CoordinatorReport, Directive, RunMode


class CoordinatorHost:
    """`environment`: what each coordinator here is lent. Safe to use from any thread."""

    def __init__(self, settings: Settings, environment: Environment) -> None:
        self._settings = settings
        self._environment = environment
        self._lock = threading.Lock()
        self._runner: Runner | None = None
        self._leaving = False
        self._directive: Directive | None = None
        """The newest: who begins to coordinate here goes by it from the first."""

    def start(self) -> None:
        """The source partition is ours. Nothing begins in a worker that was told to leave."""
        with self._lock:
            if self._runner is not None or self._leaving:
                return
            self._runner = Runner(self._settings, self._environment)
            if self._directive is not None:
                _direct(self._runner, self._directive)
            self._runner.start()

    def stop(self) -> None:
        """It is ours no more, or the worker ends."""
        with self._lock:
            runner, self._runner = self._runner, None
        if runner is not None:
            runner.stop()

    def received(self, message: Message) -> None:
        runner = self._current()
        if runner is not None:
            runner.received(message)

    def directed(self, directive: Directive) -> None:
        """The driver's word: which workers are dead, and how this run is to go on."""
        with self._lock:  # whoever is not told to stop does not begin
            self._leaving = self._leaving or directive.mode is RunMode.STOP
            self._directive, runner = directive, self._runner
        if runner is not None:
            _direct(runner, directive)

    def report(self) -> CoordinatorReport | None:
        """None where there is no coordinator, or it has not begun."""
        runner = self._current()
        snapshot = runner.snapshot() if runner is not None else None
        return _report_of(snapshot) if snapshot is not None else None

    def _current(self) -> Runner | None:
        with self._lock:
            return self._runner


def _direct(runner: Runner, directive: Directive) -> None:
    runner.died(directive.dead, directive.died_of)
    runner.directed(directive.mode, directive.reason, directive.controls)


def _report_of(snapshot: Snapshot) -> CoordinatorReport:
    """Ages, not instants of a clock that only this process has: turned into wall time here."""
    started = wall_ms() - (monotonic_ms() - snapshot.started_at_ms) if snapshot.started_at_ms else 0
    return CoordinatorReport(
        epoch=snapshot.epoch,
        state=snapshot.state,
        transaction=snapshot.transaction,
        instant=snapshot.instant,
        started_at_ms=started,
        answered=snapshot.answered,
        missing=snapshot.missing,
        ignored=sum(snapshot.ignored.values()),
        settled=snapshot.settled,
    )

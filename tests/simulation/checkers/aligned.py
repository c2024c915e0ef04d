"""No transaction spans a boundary of the alignment, by the clock of whoever coordinates and by its
instant."""

from __future__ import annotations

from control_topic.messages import StartCommit
from coordinator import events as ev
from coordinator.transitions import State
from table.memory.timeline import MemoryInstant
from table.state import TableState
from tests.simulation.checkers.base import Checker
from tests.simulation.checkers.in_force import ClockInForce
from tests.simulation.claims import Claims


class NoTransactionSpansABoundary(Checker):
    name = "aligned"

    def __init__(self) -> None:
        self._began: dict[str, int] = {}
        """By transaction, the end of the stretch that was shown when its instant was asked for first."""
        self._clock = ClockInForce()
        self._started: set[str] = set()

    def coordinator_acts(
        self, claims: Claims, event: ev.Event, before: State, actions: list[ev.Action]
    ) -> None:
        for action in actions:
            if isinstance(action, ev.Begin):
                align = self._clock.begins(claims, action).align
                if align is not None:
                    self._began.setdefault(action.transaction, align.after(event.wall_ms))
            elif isinstance(action, ev.Send) and isinstance(action.body, StartCommit):
                align = self._clock.of(action.body.transaction).align
                if align is not None:
                    self._starts(action.body.transaction, align.after(event.wall_ms))

    def _starts(self, transaction: str, shown: int) -> None:
        if transaction not in self._started:  # it may be said again
            self._started.add(transaction)
            self._is_within(transaction, shown, "is started")

    def coordinator_directed(
        self, claims: Claims, event: ev.Directed, before: State, actions: list[ev.Action]
    ) -> None:
        self._clock.hears(claims, event)

    def coordinator_handled(
        self, claims: Claims, event: ev.Event, before: State, actions: list[ev.Action]
    ) -> None:
        core = claims.core
        open_one = core.rounds.transaction
        if open_one is None or core.machine.state is not State.STARTED or not isinstance(event, ev.Tick):
            return
        align = self._clock.of(open_one.id).align
        if align is not None:
            self._is_within(open_one.id, align.after(event.wall_ms), "is not ended")

    def _is_within(self, transaction: str, shown: int, what: str) -> None:
        began = self._began[transaction]
        if began != shown:
            self.violated(f"{transaction}, begun in the stretch to {began}, {what} in that to {shown}")

    def committed(self, instant: MemoryInstant, state: TableState) -> None:
        """Where nobody's clock is wrong, the instant is named by the same stretch."""
        began, align = self._began.get(instant.transaction), self._clock.of(instant.transaction).align
        if align is None or not self.world.clocks_hold or began is None:
            return
        if align.after(int(instant.time)) != began:
            self.violated(f"{instant.transaction} began in the stretch to {began}, without {instant.time}")

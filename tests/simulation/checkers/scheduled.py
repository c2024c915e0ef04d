"""A scheduled time ends the transaction that it finds, or, where none can be ended, the next one at once."""

from __future__ import annotations

from control_topic.causes import NOTHING
from control_topic.messages import AbortCommit, AckCommit, EndCommit
from coordinator import events as ev
from coordinator.opening import SHORTEST
from coordinator.transitions import State
from tests.simulation.checkers.base import Checker
from tests.simulation.checkers.in_force import ClockInForce
from tests.simulation.claims import Claims


class ScheduledTimesAreKept(Checker):
    """Only where no wall clock jumps: what is missed then is decided by the monotonic one."""

    name = "scheduled"

    def __init__(self) -> None:
        self._ended_ms: dict[str, int] = {}
        """By transaction, what the wall clock showed when END was said first."""
        self._owed: dict[str, bool] = {}
        """By claim, whether a time was missed."""
        self._began_ms: dict[str, int] = {}
        """By transaction, what the wall clock showed when it was first seen open."""

        self._decided: set[str] = set()
        self._clock = ClockInForce()

    def coordinator_acts(
        self, claims: Claims, event: ev.Event, before: State, actions: list[ev.Action]
    ) -> None:
        for action in actions:
            if isinstance(action, ev.Begin):
                begun = self._clock.begins(claims, action)
                if begun.schedule is None:
                    self._owed[claims.incarnation] = False
            elif isinstance(action, ev.Send):
                self._said(claims, event, action)

    def _said(self, claims: Claims, event: ev.Event, action: ev.Send) -> None:
        body = action.body
        if not isinstance(body, EndCommit | AckCommit | AbortCommit):
            return
        schedule = self._clock.of(body.transaction).schedule
        if schedule is None:
            return
        if isinstance(body, EndCommit):
            if body.transaction not in self._ended_ms:
                self._ended_ms[body.transaction] = event.wall_ms
                self._owed[claims.incarnation] = False
            return
        ended_ms = self._ended_ms.get(body.transaction)
        if ended_ms is None or body.transaction in self._decided:  # it may be said again
            return
        self._decided.add(body.transaction)
        missed = schedule.after(ended_ms) <= event.wall_ms
        if isinstance(body, AbortCommit) and body.cause != NOTHING:
            began_ms = self._began_ms.get(body.transaction, ended_ms)
            missed = missed or schedule.after(began_ms) <= ended_ms
        self._owed[claims.incarnation] = self._owed.get(claims.incarnation, False) or missed

    def coordinator_directed(
        self, claims: Claims, event: ev.Directed, before: State, actions: list[ev.Action]
    ) -> None:
        self._clock.hears(claims, event)

    def coordinator_handled(
        self, claims: Claims, event: ev.Event, before: State, actions: list[ev.Action]
    ) -> None:
        open_one = claims.core.rounds.transaction
        if open_one is None or claims.core.machine.state is not State.STARTED:
            return
        schedule = self._clock.of(open_one.id).schedule
        if schedule is None:
            return
        began_ms = self._began_ms.setdefault(open_one.id, event.wall_ms)
        if not isinstance(event, ev.Tick) or not self.world.clocks_hold:
            return
        settings = claims.core.machine.settings
        soon_ms = min(settings.interval_ms // SHORTEST, settings.settle_ms)
        owed = self._owed.get(claims.incarnation, False) or schedule.after(began_ms) <= event.wall_ms
        if owed and event.now_ms >= open_one.started_ms + soon_ms:
            self.violated(f"{open_one.id}, open since {began_ms}, is not ended by {event.wall_ms}")

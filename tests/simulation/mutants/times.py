"""Bugs of transactions that end by the wall clock."""

from __future__ import annotations

from typing import Any

from coordinator.appointments import Appointments
from coordinator.events import Completed, Event
from coordinator.rounds import Rounds
from coordinator.transitions import State


class BoundaryForgotten(Rounds):
    """What is open when a boundary of the alignment comes is left open, until something else ends it."""

    def on_started_tick(self, event: Event) -> None:
        if self._open().stretch == self.appointments.stretch(event):
            super().on_started_tick(event)
        elif event.now_ms >= self._open().due_ms:
            self.end(event, "interval")


class BoundaryOnlyAhead(Rounds):
    """A clock that is put back over a boundary is not noticed: only one that has passed it is."""

    def on_started_tick(self, event: Event) -> None:
        if not 0 < event.wall_ms < self._open().stretch:
            super().on_started_tick(event)


class StartsBeyondItsBoundary(Rounds):
    """A transaction that is there only after the boundary of its stretch is started all the same."""

    def on_begun(self, event: Completed) -> None:
        self._open().stretch = self.appointments.stretch(event)
        super().on_begun(event)


class EdgeForgotten(Rounds):
    """Who begins at a boundary does not mind that the clock which names the instant may be on its other
    side."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.appointments = _Marginless(self.machine.settings)


class _Marginless(Appointments):
    def is_at_an_edge(self, event: Event) -> bool:
        return False

    def may_start(self, event: Event, stretch: int) -> bool:
        return not self.is_over(event, stretch)


class MissedTimesForgotten(Rounds):
    """A scheduled time that comes while no transaction can be ended is not made good."""

    def look_at_the_clock(self, event: Event) -> None:
        self.appointments.look(event, held=self.machine.state is State.STARTED)


class TimesOfAbortsForgotten(Rounds):
    """What a scheduled end was for, and was aborted, waits for the next time."""

    def on_aborted(self, event: Completed) -> None:
        self._open().makes_good = False
        super().on_aborted(event)


class ScheduleUnheard(Rounds):
    """Scheduled times come, and end nothing."""

    def on_started_tick(self, event: Event) -> None:
        self.appointments.owed = False
        super().on_started_tick(event)


class ClockUnheard(Rounds):
    """Another schedule or alignment that operators have set counts for nothing."""

    def maybe_begin(self, event: Event) -> None:
        self.orders.by_the_clock = self.machine.settings.by_the_clock
        super().maybe_begin(event)

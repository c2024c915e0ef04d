"""Which schedule and alignment a coordinator's transactions have: those it had heard of as each was begun."""

from __future__ import annotations

from coordinator import events as ev
from coordinator.times import ByTheClock
from tests.simulation.claims import Claims

NO_TIMES = ByTheClock()
"""No schedule and no alignment."""


class ClockInForce:
    """One for each checker that asks."""

    def __init__(self) -> None:
        self._heard: dict[str, tuple[int, ByTheClock]] = {}
        self._begun: dict[str, ByTheClock] = {}
        """By transaction."""

    def hears(self, claims: Claims, event: ev.Directed) -> None:
        """An older word than the newest counts for nothing."""
        if event.controls is not None:
            number, _ = self._heard.get(claims.incarnation, (0, None))
            if event.controls.number >= number:
                known = event.by_the_clock or claims.configured
                self._heard[claims.incarnation] = (event.controls.number, known)

    def begins(self, claims: Claims, action: ev.Begin) -> ByTheClock:
        """What it has. It may be asked for again."""
        return self._begun.setdefault(action.transaction, self.now(claims))

    def now(self, claims: Claims) -> ByTheClock:
        """What would begin."""
        return self._heard.get(claims.incarnation, (0, claims.configured))[1]

    def of(self, transaction: str) -> ByTheClock:
        """What one that was begun has."""
        return self._begun.get(transaction, NO_TIMES)

"""The orders of operators to one run, in the order in which they came, and what they amount to. Pure.

What is done is learned from the coordinator's reports. A coordinator that comes new is told what is not done,
and does it again where its predecessor had not said so: no order is lost with a worker. All of them end with
the run.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import Any

from control_topic.controls import COMMIT, PAUSE, RESUME, SET, SETTINGS, Controls, Tuning
from table.service.calls import Order

COMMIT_LIVES_MS = 120_000
COMMIT_LIVES_MAX_MS = 3_720_000
"""An order to commit that nobody can do would be tried for as long as the run goes on. More than a command
may wait for, so that whoever still waits does not see it given up."""
REMEMBERED = 20
COMMITS_REMEMBERED = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """An order, and when it came."""

    number: int
    order: Order
    at_ms: int


class Orders:
    """`tuning`: what the configuration says; None where nothing can be set."""

    def __init__(self, tuning: Tuning | None = None) -> None:
        self.tuning = tuning
        """In force from the next transaction on."""
        self.number = 0
        """Of the newest."""
        self.settled = 0
        """Every order up to this one is done."""
        self.paused: Taken | None = None
        """What paused the run."""
        self._configured = tuning
        self._commit_until_ms = 0
        """Until then somebody waits for it, or for one before it."""
        self._waited_for: deque[int] = deque(maxlen=COMMITS_REMEMBERED)
        """Orders to commit that are neither done nor given up."""
        self._expired: deque[int] = deque(maxlen=COMMITS_REMEMBERED)
        self._taken: deque[Taken] = deque(maxlen=REMEMBERED)

    def tuned(self, order: Order) -> Tuning | None:
        """What would be in force with this order; None where nothing can be set."""
        changes: dict[str, Any] = dict(order.settings)
        return replace(self.tuning, **changes) if self.tuning is not None else None

    def take(self, now_ms: int, order: Order) -> int:
        """Its number."""
        self._forget_late(now_ms)
        self.number += 1
        taken = Taken(number=self.number, order=order, at_ms=now_ms)
        self._taken.append(taken)
        if order.action == SET:
            self.tuning = self.tuned(order)
        elif order.action == COMMIT:
            lives_ms = min(order.lives_ms or COMMIT_LIVES_MS, COMMIT_LIVES_MAX_MS)
            earlier_ms = self._commit_until_ms if self._waited_for else 0
            self._commit_until_ms = max(earlier_ms, now_ms + lives_ms)
            self._waited_for.append(taken.number)
        elif order.action == PAUSE:
            # One that cannot be done would begin transactions for as long as it lives, and nobody would be
            # told that the run is paused.
            self._give_up()
            self.paused = self.paused or taken
        elif order.action == RESUME:
            self.paused = None
        return self.number

    def heard(self, settled: int) -> None:
        """The coordinator says that every order up to this number is done."""
        self.settled = max(self.settled, min(settled, self.number))
        while self._waited_for and self._waited_for[0] <= self.settled:
            self._waited_for.popleft()

    @property
    def expired(self) -> tuple[int, ...]:
        """Orders to commit that were given up before they were done: once no coordinator is told of them,
        `settled` passes them as well."""
        return tuple(self._expired)

    def controls(self, now_ms: int) -> Controls | None:
        """What every worker is told; None before the first order."""
        if not self.number:
            return None
        self._forget_late(now_ms)
        return Controls(
            number=self.number,
            commit=self._waited_for[-1] if self._waited_for else 0,
            pause=self.paused.number if self.paused is not None else 0,
            tuning=self.tuning,
        )

    def _forget_late(self, now_ms: int) -> None:
        """Nobody waits any more for what is to be committed."""
        if now_ms >= self._commit_until_ms:
            self._give_up()

    def _give_up(self) -> None:
        self._expired.extend(self._waited_for)
        self._waited_for.clear()

    def to_json(self, now_ms: int) -> dict[str, Any]:
        """For the status: base units, ages instead of times."""
        in_force = self.tuning.known() if self.tuning is not None else {}
        return {
            "number": self.number,
            "settled": self.settled,
            "expired": list(self._expired),
            "paused": _said(self.paused, now_ms) if self.paused is not None else None,
            "in_force": {SETTINGS[name]: value for name, value in in_force.items()},
            "settings": {
                SETTINGS[name]: value
                for name, value in in_force.items()
                if value != getattr(self._configured, name)
            },
            "orders": [_said(taken, now_ms) for taken in self._taken],
        }


def _said(taken: Taken, now_ms: int) -> dict[str, Any]:
    order = taken.order
    return {
        "number": taken.number,
        "action": order.action,
        "settings": {SETTINGS[name]: value for name, value in order.settings.items()},
        "who": order.who,
        "why": order.why or None,
        "age_ms": now_ms - taken.at_ms,
    }

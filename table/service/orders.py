"""The orders of operators to one run, in the order in which they came, and what they amount to. Pure.

What is done is learned from the coordinator's reports. A coordinator that comes new is told what is not done,
and does it again where its predecessor had not said so: no order is lost with a worker. All of them end with
the run.
"""

from __future__ import annotations

from collections import deque
from dataclasses import asdict, dataclass, replace
from typing import Any

from control_topic.controls import COMMIT, PAUSE, RESUME, SET, SETTINGS, Controls, Tuning
from table.service.calls import Order

COMMIT_LIVES_MS = 120_000
COMMIT_LIVES_MAX_MS = 3_600_000
"""An order to commit that nobody can do would be tried for as long as the run goes on."""
REMEMBERED = 20


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
        self._commit: Taken | None = None
        self._commit_until_ms = 0
        """Until then somebody waits for it, or for one before it."""
        self._taken: deque[Taken] = deque(maxlen=REMEMBERED)

    def tuned(self, order: Order) -> Tuning | None:
        """What would be in force with this order; None where nothing can be set."""
        return replace(self.tuning, **order.settings) if self.tuning is not None else None

    def take(self, now_ms: int, order: Order) -> int:
        """Its number."""
        self.number += 1
        taken = Taken(number=self.number, order=order, at_ms=now_ms)
        self._taken.append(taken)
        if order.action == SET:
            self.tuning = self.tuned(order)
        elif order.action == COMMIT:
            lives_ms = min(order.lives_ms or COMMIT_LIVES_MS, COMMIT_LIVES_MAX_MS)
            self._commit = taken
            self._commit_until_ms = max(self._commit_until_ms, now_ms + lives_ms)
        elif order.action == PAUSE:
            self.paused = self.paused or taken
        elif order.action == RESUME:
            self.paused = None
        return self.number

    def heard(self, settled: int) -> None:
        """The coordinator says that every order up to this number is done."""
        self.settled = max(self.settled, min(settled, self.number))

    def controls(self, now_ms: int) -> Controls | None:
        """What every worker is told; None before the first order."""
        if not self.number:
            return None
        return Controls(
            number=self.number,
            commit=self._wanted(now_ms),
            pause=self.paused.number if self.paused is not None else 0,
            tuning=self.tuning,
        )

    def _wanted(self, now_ms: int) -> int:
        """The order to commit that is not done, while somebody may wait for it."""
        taken = self._commit
        if taken is None or taken.number <= self.settled:
            return 0
        return taken.number if now_ms < self._commit_until_ms else 0

    def to_json(self, now_ms: int) -> dict[str, Any]:
        """For the status: base units, ages instead of times."""
        changed = asdict(self.tuning) if self.tuning is not None and self.tuning != self._configured else {}
        return {
            "number": self.number,
            "settled": self.settled,
            "paused": _said(self.paused, now_ms) if self.paused is not None else None,
            "settings": {
                SETTINGS[name]: value
                for name, value in changed.items()
                if self._configured is None or value != getattr(self._configured, name)
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

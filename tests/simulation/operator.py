"""Somebody who gives orders to a run while it goes on, and forgets that it is paused, until the tail."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from control_topic.controls import COMMIT, PAUSE, RESUME, SET
from table.service.calls import Order
from tests.simulation.by_the_clock import drawn_order

if TYPE_CHECKING:
    from tests.simulation.world import World

COMMIT_LIVES_MS = (1_500, 600_000)


class Operator:
    """Draws of its own: a schedule without orders is what it was before there were any."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._random = Random(f"operator {world.seed}")
        self._of_times = Random(f"operator's clock {world.seed}")

    def order(self) -> None:
        """To the newest run that is there."""
        living = [driver for driver in self._world.drivers if driver.reachable() and driver.outcome is None]
        if living:
            living[-1].order(self._drawn())

    def leave(self) -> None:
        """Nothing stays paused."""
        for driver in self._world.drivers:
            if driver.alive and driver.ledger.orders.paused is not None:
                driver.order(Order(action=RESUME))

    def _drawn(self) -> Order:
        pick = self._random.choice
        action = pick((SET, SET, SET, COMMIT, COMMIT, COMMIT, PAUSE, PAUSE, RESUME, RESUME))
        if action == COMMIT:
            return Order(action=COMMIT, lives_ms=pick(COMMIT_LIVES_MS))
        if action != SET:
            return Order(action=action)
        wanted = {
            "interval_ms": pick((400, 1_000, 2_500)),
            "write_timeout_ms": pick((1_500, 2_500, 4_000)),
            "max_records": pick((0, 15, 40)),
        }
        names = self._random.sample(sorted(wanted), pick((1, 1, 2, 3)))
        by_the_clock = drawn_order(self._world, self._of_times)
        return Order(action=SET, settings={**{name: wanted[name] for name in names}, **by_the_clock})

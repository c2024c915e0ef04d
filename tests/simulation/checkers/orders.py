"""An operator's commit is answered when what workers held is durable; in peace every order is done."""

from __future__ import annotations

from control_topic.controls import COMMIT
from control_topic.messages import SourcePartition, StartCommit
from coordinator import events as ev
from table.service.calls import Order
from table.service.orders import COMMIT_LIVES_MS
from tests.simulation.checkers.base import Checker
from tests.simulation.claims import Claims
from tests.simulation.driver import Driver
from tests.simulation.worker import Worker

Held = tuple[Worker, SourcePartition, int, int]
"""Who, of what, in which reading of it, up to where."""


class OrdersAreDone(Checker):
    name = "orders"

    def __init__(self) -> None:
        self._held: dict[tuple[str, int], list[Held]] = {}
        self._until_ms: dict[tuple[str, int], int] = {}
        self._writers: dict[str, dict[SourcePartition, str]] = {}

    def ordered(self, driver: Driver, number: int, order: Order) -> None:
        if order.action == COMMIT:
            lives_ms = order.lives_ms or COMMIT_LIVES_MS
            self._until_ms[driver.run, number] = driver.clock_ms() + lives_ms
            self._held[driver.run, number] = [
                (worker, partition, owned.generation, owned.next)
                for worker in driver.workers.values()
                if worker.alive and not worker.stopped
                for partition, owned in worker.core.owned.items()
                if owned.resolved
            ]

    def coordinator_sent(self, claims: Claims, action: ev.Send) -> None:
        """Who is not known to the coordinator by then holds what nobody can ask for."""
        if isinstance(action.body, StartCommit):
            self._writers[claims.core.settings.run] = dict(action.body.writers)

    def orders_done(self, driver: Driver) -> None:
        orders = driver.ledger.orders
        for run, number in [one for one in self._held if one[0] == driver.run and one[1] <= orders.settled]:
            held = self._held.pop((run, number))
            if number in orders.expired:  # whoever waits for it is told so
                self.require(
                    driver.clock_ms() >= self._until_ms[run, number],
                    f"order {number} to commit was given up while somebody waited for it",
                )
                continue
            for worker, partition, generation, following in held:
                self._is_durable(number, worker, partition, generation, following)

    def _is_durable(
        self, number: int, worker: Worker, partition: SourcePartition, generation: int, following: int
    ) -> None:
        owned = worker.core.owned.get(partition)
        if not worker.alive or worker.stopped or owned is None or owned.generation != generation:
            return  # it is gone, or has given up what it held
        if self._writers.get(worker.driver.run, {}).get(partition) != worker.incarnation:
            return
        committed = self.world.committed.get(partition, 0)
        if committed < following:
            self.violated(
                f"order {number} to commit is said to be done, {worker.name} held {partition} up to "
                f"{following}, and the table has it up to {committed}"
            )

    def at_end(self) -> None:
        if self.world.ending.obstacles():
            return
        left = self.world.orders_left()
        self.require(not left, f"orders to {left} are not done")

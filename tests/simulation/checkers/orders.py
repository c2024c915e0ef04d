"""An operator's commit is answered when what workers held is durable; in peace every order is done."""

from __future__ import annotations

from control_topic.controls import COMMIT, PAUSE
from control_topic.messages import SourcePartition, StartCommit
from coordinator import events as ev
from coordinator.transitions import State
from table.service.calls import Order
from table.service.orders import COMMIT_LIVES_MS
from tests.simulation.checkers.base import Checker
from tests.simulation.claims import Claims
from tests.simulation.driver import Driver
from tests.simulation.worker import Worker

Held = tuple[Worker, SourcePartition, int, int]
"""Who, of what, how often that had come to him, up to where."""


class OrdersAreDone(Checker):
    name = "orders"

    def __init__(self) -> None:
        self._held: dict[tuple[str, int], list[Held]] = {}
        self._until_ms: dict[tuple[str, int], int] = {}
        self._writers: dict[str, dict[SourcePartition, str]] = {}
        self._durable: dict[str, int] = {}

    def ordered(self, driver: Driver, number: int, order: Order) -> None:
        if order.action == COMMIT:
            lives_ms = order.lives_ms or COMMIT_LIVES_MS
            self._until_ms[driver.run, number] = driver.clock_ms() + lives_ms
            self._held[driver.run, number] = [
                (worker, partition, worker.assigned[partition], owned.next)
                for worker in driver.workers.values()
                if worker.alive and not worker.stopped
                for partition, owned in worker.core.owned.items()
                if owned.resolved
            ]
        elif order.action == PAUSE:  # it gives up what was ordered before it and is not done
            for run, earlier in self._until_ms:
                if run == driver.run:
                    self._until_ms[run, earlier] = min(self._until_ms[run, earlier], driver.clock_ms())

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
            for worker, partition, assigned, following in held:
                self._is_durable(number, worker, partition, assigned, following)

    def _is_durable(
        self, number: int, worker: Worker, partition: SourcePartition, assigned: int, following: int
    ) -> None:
        """Whoever has gone back meanwhile, as after an abort or behind a new coordinator, has said so."""
        is_its_own = partition in worker.core.owned and worker.assigned[partition] == assigned
        if not worker.alive or worker.stopped or not is_its_own:
            return  # it is gone, or was taken from it
        if self._writers.get(worker.driver.run, {}).get(partition) != worker.incarnation:
            return
        committed = self.world.committed.get(partition, 0)
        if committed < following:
            self.violated(
                f"order {number} to commit is said to be done, {worker.name} held {partition} up to "
                f"{following}, and the table has it up to {committed}"
            )

    def coordinator_handled(
        self, claims: Claims, event: ev.Event, before: State, actions: list[ev.Action]
    ) -> None:
        """There may always be a newer one that is not: who waits for this one is answered."""
        orders, run = claims.core.rounds.orders, claims.core.settings.run
        if orders.durable > self._durable.get(run, 0):
            self._durable[run] = orders.durable
            self._forget_others(run, orders.durable)
        if orders.settled < orders.durable:
            self.violated(f"order {orders.durable} to commit is done, and it is said up to {orders.settled}")

    def _forget_others(self, run: str, durable: int) -> None:
        """Forget workers that own nothing when the coordinator decides.

        The driver hears of the decision later, and a worker that slept may own its source partitions again.
        """
        writers = self._writers.get(run, {})
        for of, number in self._held:
            if of == run and number <= durable:
                held = self._held[of, number]
                self._held[of, number] = [one for one in held if writers.get(one[1]) == one[0].incarnation]

    def at_end(self) -> None:
        if self.world.ending.obstacles():
            return
        left = self.world.orders_left()
        self.require(not left, f"orders to {left} are not done")

"""While a run is paused it holds nothing open and commits nothing, until it is resumed or told to commit."""

from control_topic.controls import COMMIT, PAUSE, RESUME
from coordinator import events as ev
from coordinator.transitions import State
from table.memory.timeline import MemoryInstant
from table.service.calls import Answer, Order, Result
from table.state import TableState
from tests.simulation.checkers.base import Checker
from tests.simulation.claims import Claims
from tests.simulation.driver import Driver


class NothingIsDoneWhilePaused(Checker):
    name = "paused"

    def __init__(self) -> None:
        self._paused: dict[str, int] = {}
        self._still: set[str] = set()
        self._closed: set[str] = set()
        """Runs that are paused, and have not been told to commit since."""
        self._begun: set[str] = set()
        """Transactions that a coordinator has asked for so far."""

    def ordered(self, driver: Driver, number: int, order: Order) -> None:
        if order.action == PAUSE:
            self._paused.setdefault(driver.run, number)
            self._closed.add(driver.run)
        elif order.action == RESUME:
            self._paused.pop(driver.run, None)
            self._still.discard(driver.run)
            self._closed.discard(driver.run)
        elif order.action == COMMIT and driver.run in self._paused:  # it stands still again when that is done
            self._paused[driver.run] = number
            self._still.discard(driver.run)
            self._closed.discard(driver.run)

    def served(self, driver: Driver, call: ev.Call, answer: Answer) -> None:
        """What somebody has ordered to be committed before the pause is no reason to begin anything."""
        if not isinstance(call, ev.Begin) or call.transaction in self._begun:
            return
        self._begun.add(call.transaction)
        is_begun = answer.result is Result.OK and not driver.ledger.stopping
        if is_begun and driver.run in self._closed | self._still:
            self.violated(f"run {driver.run} is paused, and transaction {call.transaction[:4]} begins")

    def orders_done(self, driver: Driver) -> None:
        if driver.ledger.orders.settled >= self._paused.get(driver.run, 1 << 60):
            self._still.add(driver.run)

    def ended(self, driver: Driver) -> None:
        self._still.discard(driver.run)

    def committed(self, instant: MemoryInstant, state: TableState) -> None:
        driver = next(one for one in self.world.drivers if one.run == state.run)
        if state.run in self._still and state.kind in ("data", "admission") and not driver.ledger.stopping:
            self.violated(f"run {state.run} is paused, and instant {instant.time} is completed")

    def coordinator_handled(
        self, claims: Claims, event: ev.Event, before: State, actions: list[ev.Action]
    ) -> None:
        machine = claims.core.machine
        if machine.mode is ev.RunMode.PAUSE and machine.state is State.STARTED:
            self.violated("a transaction is not ended, and the run is paused")

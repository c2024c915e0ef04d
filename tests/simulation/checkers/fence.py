"""S6, at the table service: once an epoch is registered, no call of a lower one does anything."""

from coordinator import events as ev
from table.service.calls import Answer, Result
from tests.simulation.checkers.base import Checker
from tests.simulation.driver import Driver

EFFECTS = (ev.Recover, ev.Begin, ev.Commit, ev.Abort)


class StaleCallsAreRefused(Checker):
    """A commit that proves to have been made before may still be answered so: that changes nothing."""

    name = "fence"

    def __init__(self) -> None:
        self._registered: dict[str, int] = {}

    def served(self, driver: Driver, call: ev.Call, answer: Answer) -> None:
        registered = self._registered.get(driver.run, 0)
        if isinstance(call, ev.Register) and answer.result is Result.OK:
            self.require(
                call.epoch >= registered, f"{driver.run} registers epoch {call.epoch} after {registered}"
            )
            self._registered[driver.run] = call.epoch
        if isinstance(call, EFFECTS) and call.epoch < registered and answer.result is Result.OK:
            done = isinstance(call, ev.Commit) and self._is_done(call)
            self.require(
                done,
                f"{driver.run} knows epoch {registered} and did {type(call).__name__} of epoch {call.epoch}",
            )

    def _is_done(self, call: ev.Commit) -> bool:
        return any(i.transaction == call.transaction for i in self.world.storage.timeline.completed)

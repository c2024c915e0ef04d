"""L2: an idle source partition, or one that nobody owns, delays nobody."""

from coordinator import events as ev
from coordinator.transitions import State
from tests.simulation.checkers.base import Checker
from tests.simulation.claims import Claims

SETTLING_MS = 25_000
"""By then, after the last fault, every worker that died is replaced and the group agrees."""


class NobodyIsWaitedForInVain(Checker):
    name = "L2"

    def coordinator_acts(
        self, claims: Claims, event: ev.Event, before: State, actions: list[ev.Action]
    ) -> None:
        world = self.world
        if world.tail_began_ms is None or world.scheduler.now_ms - world.tail_began_ms < SETTLING_MS:
            return
        if world.ending.obstacles():
            return
        for action in actions:
            if isinstance(action, ev.Abort):
                self.require(
                    action.fault is ev.Fault.NONE, f"with all well, a transaction is aborted: {action.reason}"
                )

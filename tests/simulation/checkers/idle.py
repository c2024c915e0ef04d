"""An idle pipeline holds no open instant: it would hold back archiving."""

from table.memory import Phase
from tests.simulation.checkers.base import Checker


class IdleHoldsNoInstant(Checker):
    name = "idle"

    def at_end(self) -> None:
        held = [
            instant.time
            for instant in self.world.storage.timeline.instants.values()
            if instant.phase is Phase.INFLIGHT and instant.pipeline
        ]
        self.require(not held, f"nothing is left to do and instants {held} are open")

"""An idle pipeline holds no open instant: it would hold back archiving.

An instant that a superseded run opened after its successor recovered stays until somebody recovers again;
what is required here is that the living run holds none.
"""

from tests.simulation.checkers.base import Checker


class IdleHoldsNoInstant(Checker):
    name = "idle"

    def at_end(self) -> None:
        if self.world.ending.obstacles():
            return  # halted, and perhaps in the middle of it
        held = self.world.open_instants()
        self.require(not held, f"nothing is left to do and instants {held} are open")

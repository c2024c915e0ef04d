"""L3: after the last fault, lag returns to zero without a human."""

from tests.simulation.checkers.base import Checker


class LagReturnsToZero(Checker):
    name = "L3"

    def at_end(self) -> None:
        lag = {str(p): records for p, records in self.world.lag().items()}
        self.require(not lag, f"the lag is still {lag}")

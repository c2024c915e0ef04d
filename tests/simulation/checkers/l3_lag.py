"""L3: after the last fault, lag returns to zero without a human.

Where a human is needed by design (retention took what the table lacks, a record is poison, the dead-letter
topic refuses one, the source is another one) a run halts and says so; where a human has mended that, lag
returns to zero again.
"""

from tests.simulation.checkers.base import Checker


class LagReturnsToZero(Checker):
    name = "L3"

    def settled(self) -> None:
        self.at_end()

    def at_end(self) -> None:
        world = self.world
        obstacles = world.ending.obstacles()
        if not obstacles:
            lag = {str(p): records for p, records in world.lag().items()}
            self.require(not lag, f"the lag is still {lag}")
            return
        ends = [str(d.outcome.reason) for d in world.drivers if d.outcome is not None][-3:]
        self.require(
            bool(world.ending.refusals()), f"no run halts over {obstacles[:3]}; they ended with {ends}"
        )

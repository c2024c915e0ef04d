"""S11: an instant is completed or rolled back, never both."""

from table.memory import Phase
from tests.simulation.checkers.base import Checker


class CompletedOrRolledBack(Checker):
    name = "S11"

    def at_end(self) -> None:
        timeline = self.world.storage.timeline
        times = [instant.time for instant in timeline.completed]
        self.require(len(set(times)) == len(times), "an instant was completed twice")
        for instant in timeline.completed:
            self.require(
                instant.phase is Phase.COMPLETED,
                f"instant {instant.time} was completed and then {instant.phase.value}",
            )

"""S11: an instant is completed or rolled back, never both."""

from table.memory.timeline import InstantPhase
from tests.simulation.checkers.base import Checker


class CompletedOrRolledBack(Checker):
    name = "S11"

    def at_end(self) -> None:
        """What was rolled back is not among the completed any more: its completion time tells."""
        for instant in self.world.storage.timeline.instants.values():
            self.require(
                not instant.completed_at or instant.phase is InstantPhase.COMPLETED,
                f"instant {instant.time} was completed and then {instant.phase.value}",
            )

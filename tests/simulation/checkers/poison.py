"""A run that halts over a bad record has everything before it in the table, as its halt says.

An operator skips the record by that sentence: what the table lacks before it would be skipped, too.
"""

from tests.simulation.checkers.base import Checker
from tests.simulation.driver import Driver
from tests.simulation.plane import BAD


class HaltsAfterEverythingBefore(Checker):
    name = "poison"

    def ended(self, driver: Driver) -> None:
        assert driver.outcome is not None
        world = self.world
        for partition, offsets in world.log.bad.items():
            for offset in offsets:
                if driver.outcome.reason.startswith(f"{partition} at offset {offset}: {BAD}"):
                    committed = world.committed.get(partition, 0)
                    self.require(
                        committed >= offset,  # more where retention has taken the record since
                        f"{driver.run} halts over {partition} at {offset}, committed up to {committed} only",
                    )

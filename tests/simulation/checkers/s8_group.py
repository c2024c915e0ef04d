"""S8: the group's offsets never pass the table's."""

from control_topic.messages import SourcePartition
from tests.simulation.checkers.base import Checker


class GroupBehindTable(Checker):
    name = "S8"

    def group_committed(self, partition: SourcePartition, offset: int) -> None:
        committed = self.world.committed.get(partition, 0)
        if offset > committed:
            self.violated(f"{partition}: the group is at {offset}, the table at {committed}")

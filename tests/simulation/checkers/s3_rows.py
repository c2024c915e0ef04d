"""S3: the table holds exactly the records of the committed ranges."""

from collections import Counter

from tests.simulation.checkers.base import Checker
from tests.simulation.lake import Row


class RowsAreTheRecords(Checker):
    name = "S3"

    def at_end(self) -> None:
        world = self.world
        rows: Counter[Row] = Counter()
        for instant in world.storage.timeline.completed:
            for file in instant.files:
                rows.update(world.storage.rows[file.path])
        wanted = {
            (partition, offset)
            for partition, committed in world.committed.items()
            for offset in world.log.between(partition, 0, committed)
        }
        doubled = sorted(row for row, count in rows.items() if count > 1)
        missing, unexpected = sorted(wanted - rows.keys()), sorted(rows.keys() - wanted)
        self.require(not doubled, f"rows that are there twice: {doubled[:5]}")
        self.require(not missing, f"records that are missing: {missing[:5]}")
        self.require(not unexpected, f"rows that nobody asked for: {unexpected[:5]}")

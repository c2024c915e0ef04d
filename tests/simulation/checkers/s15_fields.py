"""S15: no row lacks a field that its record's schema has, and no commit takes a column away."""

from table.memory.timeline import MemoryInstant
from table.state import TableState
from tests.simulation.checkers.base import Checker
from tests.simulation.source_log import fields_of_ddl


class NoFieldIsLost(Checker):
    name = "S15"

    def committed(self, instant: MemoryInstant, state: TableState) -> None:
        log, storage = self.world.log, self.world.storage
        had = frozenset[str]().union(
            *(fields_of_ddl(one.columns) for one in storage.timeline.instants.values() if one.complete)
        )
        has = fields_of_ddl(instant.columns)
        if had - has:
            self.violated(f"instant {instant.time} takes {sorted(had - has)} away from the table")
        if not log.newer:
            return  # no record has any field beside those that all have
        for file in instant.files:
            columns = storage.columns[file.path]
            for partition, offset, life in storage.rows[file.path]:
                if not life and (lost := log.fields(partition, offset) - columns):
                    self.violated(
                        f"the row of {partition} at offset {offset} is in {file.path} without {sorted(lost)}"
                    )

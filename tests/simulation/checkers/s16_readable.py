"""S16: a commit's columns cover those of every file in it, so that all of its rows are read whole."""

from table.memory.timeline import MemoryInstant
from table.state import TableState
from tests.simulation.checkers.base import Checker
from tests.simulation.source_log import fields_of_ddl


class CommitsCoverTheirFiles(Checker):
    name = "S16"

    def committed(self, instant: MemoryInstant, state: TableState) -> None:
        has = fields_of_ddl(instant.columns)
        for file in instant.files:
            if unread := self.world.storage.columns[file.path] - has:
                self.violated(
                    f"instant {instant.time} has {file.path}, and of its columns not {sorted(unread)}"
                )

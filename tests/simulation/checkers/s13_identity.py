"""S13: offsets of another Kafka cluster, or of a topic made anew, are refused.

After such a replacement nothing is committed, but for a call that was under way and whose records are of the
log that the table knows; no record of the new log is ever in the table; and the runs end, saying why.
"""

from table.memory.timeline import MemoryInstant
from table.state import TableState
from tests.simulation.checkers.base import Checker


class ReplacedSourcesAreRefused(Checker):
    name = "S13"

    def __init__(self) -> None:
        self._topics: dict[str, str] = {}

    def committed(self, instant: MemoryInstant, state: TableState) -> None:
        known = self._topics
        identity = {"": state.cluster, **state.topics}
        self._topics = {**identity, **known}  # a topic may be added; none may be another one
        self.require(
            identity == self._topics,
            f"instant {instant.time} is of {identity}, the table's offsets are of {known}",
        )
        world = self.world
        if not world.log.replaced:
            return
        self.require(
            state.run in world.replaced_during_calls_of,
            f"run {state.run} committed instant {instant.time} after the source was replaced",
        )
        world.replaced_during_calls_of.discard(state.run)
        rows = [row for file in instant.files for row in world.storage.rows[file.path] if row[2]]
        self.require(not rows, f"instant {instant.time} holds records of the new log: {rows[:5]}")

    def at_end(self) -> None:
        if self.world.log.replaced:
            ends = [str(d.outcome.reason) for d in self.world.drivers if d.outcome is not None][-3:]
            self.require(bool(self.world.ending.refusals()), f"no run has refused the new source: {ends}")

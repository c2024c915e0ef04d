"""A record that is rejected is in the dead-letter topic before its offset moves, and is counted once."""

from control_topic.messages import SourcePartition
from table.memory import MemoryInstant
from table.state import TableState
from tests.simulation.checkers.base import Checker


class RejectsAreKept(Checker):
    name = "dead letters"

    def __init__(self) -> None:
        self._counted: set[tuple[SourcePartition, int]] = set()

    def committed(self, instant: MemoryInstant, state: TableState) -> None:
        world = self.world
        rejects = [(reject.partition, reject.offset) for reject in state.rejects]
        twice = sorted({r for r in rejects if rejects.count(r) > 1 or r in self._counted})
        self.require(not twice, f"instant {instant.time} counts rejects again: {twice[:5]}")
        self._counted.update(rejects)
        self.require(
            state.reject_count == len(rejects),
            f"instant {instant.time} counts {state.reject_count} rejects and names {len(rejects)}",
        )
        allowed = world.rejects_max.count
        self.require(
            allowed is None or len(rejects) <= allowed,
            f"instant {instant.time} passes {len(rejects)} rejects, where {allowed} are allowed",
        )
        unsent = [r for r in rejects if r not in world.letters.taken]
        self.require(not unsent, f"instant {instant.time} passes rejects that were never sent: {unsent[:5]}")
        self.require(
            world.on_error == "dead_letter" or not rejects,
            f"instant {instant.time} passes {rejects[:5]}, where a bad record must stop the pipeline",
        )
        bad = {
            (r.partition, offset)
            for r in state.ranges
            for offset in world.log.bad.get(r.partition, ())
            if r.start <= offset < r.next
            and not any(x.partition == r.partition and x.start <= offset < x.next for x in state.lost)
        }
        if bad != set(rejects):
            self.violated(
                f"instant {instant.time} counts {len(rejects)} rejects where {len(bad)} records are bad: "
                f"{sorted(bad ^ set(rejects))[:5]}"
            )

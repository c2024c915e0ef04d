"""A record that is rejected is in the dead-letter topic before its offset moves, and is counted once.

A commit names the first of them only, up to a limit. No more are passed than `record.max_rejects` allows.
"""

from collections.abc import Iterable

from control_topic.messages import Lost, Range, SourcePartition, WriteStatus
from coordinator import events as ev
from coordinator.transitions import State
from table.memory.timeline import MemoryInstant
from table.state import TableState
from tests.simulation.checkers.base import Checker
from tests.simulation.claims import Claims


class RejectsAreKept(Checker):
    name = "dead letters"

    def __init__(self) -> None:
        self._counted: set[tuple[SourcePartition, int]] = set()

    def committed(self, instant: MemoryInstant, state: TableState) -> None:
        world, bad = self.world, self._bad(state.ranges, state.lost)
        named = [(reject.partition, reject.offset) for reject in state.rejects]
        twice = sorted({r for r in named if named.count(r) > 1 or r in self._counted})
        self.require(not twice, f"instant {instant.time} counts rejects again: {twice[:5]}")
        self._counted |= bad
        allowed = world.rejects_max.count
        self.require(
            allowed is None or len(bad) <= allowed,
            f"instant {instant.time} passes {len(bad)} rejects, where {allowed} are allowed",
        )
        self.require(
            world.on_error == "dead_letter" or not bad,
            f"instant {instant.time} passes {sorted(bad)[:5]}, where a bad record must stop the pipeline",
        )
        if state.reject_count != len(bad) or not bad.issuperset(named):
            self.violated(
                f"instant {instant.time} counts {state.reject_count} rejects, where {len(bad)} records are "
                f"bad: {sorted(bad ^ set(named))[:5]}"
            )
        most = min(len(bad), world.rejects_listed_max)
        self.require(
            len(named) == most,
            f"instant {instant.time} names {len(named)} of {len(bad)} rejects, where {most} are to be named",
        )
        unsent = sorted(r for r in bad if r not in world.letters.taken)
        self.require(not unsent, f"instant {instant.time} passes rejects that were never sent: {unsent[:5]}")

    def coordinator_heard(
        self, claims: Claims, event: ev.Received, before: State, actions: list[ev.Action]
    ) -> None:
        """A share is of what one worker has in one transaction.

        Of a topic made anew it may have read other records at these offsets; they are refused (S13).
        """
        body, limit = event.message.body, self.world.rejects_max
        if limit.share is None or not isinstance(body, WriteStatus) or self.world.log.replaced:
            return
        bad, records = len(self._bad(body.ranges, body.lost)), sum(r.records for r in body.ranges)
        self.require(
            bad < limit.share_judged_from or bad <= limit.share * records,
            f"a worker passes {bad} rejects among {records} records, where {limit} are allowed",
        )

    def _bad(self, ranges: Iterable[Range], lost: Iterable[Lost]) -> set[tuple[SourcePartition, int]]:
        """What these ranges pass that does not decode. What is lost is neither row nor reject."""
        gone = list(lost)
        return {
            (p, offset)
            for p, offset in self.world.log.bad_in(ranges)
            if not any(x.partition == p and x.start <= offset < x.next for x in gone)
        }

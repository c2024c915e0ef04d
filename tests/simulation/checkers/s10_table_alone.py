"""S10: a restart needs the table alone.

Whatever a run forgot, and wherever its offsets came from: a START names what the table said, at a moment
between the call that began its transaction and the START itself. And a pipeline of which nothing is left but
the table catches up (`World.restarted`).
"""

from collections.abc import Mapping

from control_topic.messages import SourcePartition, StartCommit
from coordinator import events as ev
from coordinator.transitions import State
from table.memory.timeline import MemoryInstant
from table.state import TableState
from tests.simulation.checkers.base import Checker
from tests.simulation.claims import Claims


class ARestartNeedsTheTableAlone(Checker):
    name = "S10"

    def __init__(self) -> None:
        self._said: list[Mapping[SourcePartition, int]] = []
        self._known_at_begin: dict[str, int] = {}

    def committed(self, instant: MemoryInstant, state: TableState) -> None:
        self._said.append(dict(state.offsets))

    def coordinator_acts(
        self, claims: Claims, event: ev.Event, before: State, actions: list[ev.Action]
    ) -> None:
        for action in actions:
            if isinstance(action, ev.Begin):
                self._known_at_begin.setdefault(action.transaction, len(self._said))

    def coordinator_sent(self, claims: Claims, action: ev.Send) -> None:
        body = action.body
        if not isinstance(body, StartCommit):
            return
        known = self._known_at_begin[body.transaction]
        if dict(body.committed) not in self._said[max(0, known - 1) :]:
            self.violated(
                f"START of {body.transaction} names {dict(body.committed)}, which the table has not said "
                f"since the transaction began; the table says {self._said[-1] if self._said else 'nothing'}"
            )

    def at_end(self) -> None:
        if self.world.restarted and not self.world.ending.obstacles():
            lag = {str(p): records for p, records in self.world.lag().items()}
            self.require(not lag, f"after a restart with nothing but the table the lag is still {lag}")

"""What is said to be aborted is never committed, neither before it is said nor after.

The other half of S7: a commit whose outcome is unknown is neither acknowledged nor given up.
"""

from control_topic.messages import AbortCommit
from coordinator.events import Send
from table.memory.timeline import MemoryInstant
from table.state import TableState
from tests.simulation.checkers.base import Checker
from tests.simulation.claims import Claims


class AbortedIsNeverCommitted(Checker):
    name = "aborted"

    def __init__(self) -> None:
        self._aborted: set[str] = set()
        self._committed: dict[str, str] = {}

    def committed(self, instant: MemoryInstant, state: TableState) -> None:
        self._committed[state.transaction] = instant.time
        self.require(
            state.transaction not in self._aborted,
            f"instant {instant.time} commits {state.transaction}, which was said to be aborted",
        )

    def coordinator_sent(self, claims: Claims, action: Send) -> None:
        body = action.body
        if isinstance(body, AbortCommit):
            self._aborted.add(body.transaction)
            self.require(
                body.transaction not in self._committed,
                f"ABORT of {body.transaction}, which is committed as {self._committed.get(body.transaction)}",
            )

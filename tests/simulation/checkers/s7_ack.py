"""S7: ACK only after a durable commit, and it says what the table says."""

from control_topic.messages import AckCommit
from coordinator.events import Send
from tests.simulation.checkers.base import Checker
from tests.simulation.claims import Claims


class AckAfterCommit(Checker):
    name = "S7"

    def coordinator_sent(self, claims: Claims, action: Send) -> None:
        body = action.body
        if not isinstance(body, AckCommit):
            return
        timeline = self.world.storage.timeline
        states = [i.state for i in timeline.completed if i.transaction == body.transaction]
        self.require(bool(states), f"transaction {body.transaction} is acknowledged and was never committed")
        for state in states:
            assert state is not None
            if dict(state.offsets) != dict(body.committed):
                self.violated(
                    f"ACK of {body.transaction} names {dict(body.committed)}, "
                    f"the table has {dict(state.offsets)}"
                )

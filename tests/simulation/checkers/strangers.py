"""S9, of other runs: what is said in another run has no effect, beyond the epoch that it names."""

from control_topic.messages import CoordinatorClaim
from coordinator import events as cev
from coordinator.transitions import State as CoordinatorState
from participant import events as ev
from participant.transitions import State
from tests.simulation.checkers.base import Checker
from tests.simulation.claims import Claims
from tests.simulation.worker import Worker


class OtherRunsHaveNoEffect(Checker):
    name = "other runs"

    def participant_heard(
        self, worker: Worker, event: ev.Received, before: State, epoch_before: int, actions: list[ev.Action]
    ) -> None:
        if event.message.run == worker.core.settings.run:
            return
        message = event.message
        if message.epoch <= epoch_before:
            self.require(
                not actions and worker.core.state is before,
                f"{worker.name} of {worker.core.settings.run} obeyed {message.type_name} of {message.run}",
            )

    def coordinator_heard(
        self, claims: Claims, event: cev.Received, before: CoordinatorState, actions: list[cev.Action]
    ) -> None:
        core = claims.core
        if event.message.run == core.settings.run:
            return
        message = event.message
        if message.epoch <= core.epoch and not isinstance(message.body, CoordinatorClaim):
            self.require(
                not actions and core.state is before,
                f"the coordinator of {core.settings.run} obeyed {message.type_name} of {message.run}",
            )

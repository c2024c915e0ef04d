"""S9: what is heard again changes nothing: a decision at a participant, anything at a coordinator."""

from coordinator import events as cev
from coordinator.transitions import State as CoordinatorState
from participant import events as ev
from participant.transitions import State
from tests.simulation.checkers.base import Checker
from tests.simulation.claims import Claims
from tests.simulation.worker import Worker


class RepeatsAreNoOps(Checker):
    name = "S9"

    def __init__(self) -> None:
        self._heard: dict[str, set[tuple[str, int]]] = {}

    def decision_heard(
        self, worker: Worker, event: ev.Received, before: State, epoch_before: int, actions: list[ev.Action]
    ) -> None:
        key = (event.message.incarnation, event.message.sequence)
        heard = self._heard.setdefault(worker.incarnation, set())
        if key in heard:
            effects = [a for a in actions if not isinstance(a, ev.Send)]
            self.require(
                not effects and worker.core.state is before,
                f"{worker.name} heard {event.message.type_name} #{key[1]} again and did "
                f"{', '.join(type(a).__name__ for a in effects) or worker.core.state.value}",
            )
        heard.add(key)

    def coordinator_heard(
        self, claims: Claims, event: cev.Received, before: CoordinatorState, actions: list[cev.Action]
    ) -> None:
        key = (event.message.incarnation, event.message.sequence)
        heard = self._heard.setdefault(claims.incarnation, set())
        if key in heard:
            self.require(
                not actions and claims.core.state is before,
                f"the coordinator heard {event.message.type_name} #{key[1]} of {event.message.sender} again "
                f"and did {', '.join(type(a).__name__ for a in actions) or claims.core.state.value}",
            )
        heard.add(key)

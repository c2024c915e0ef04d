"""S9: a decision that is heard again changes nothing."""

from participant import events as ev
from participant.core import DECISIONS
from participant.transitions import State
from tests.simulation.checkers.base import Checker
from tests.simulation.worker import Worker


class RepeatsAreNoOps(Checker):
    name = "S9"

    def __init__(self) -> None:
        self._heard: dict[str, set[tuple[str, int]]] = {}

    def participant_handled(
        self, worker: Worker, event: ev.Event, before: State, epoch_before: int, actions: list[ev.Action]
    ) -> None:
        if not isinstance(event, ev.Received) or not isinstance(event.message.body, DECISIONS):
            return
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

"""Which (state, event) pairs a world's cores meet: production's cores, which note what they are given."""

from __future__ import annotations

from typing import Any

from coordinator import transitions as coordinator_transitions
from coordinator.core import Coordinator
from coordinator.events import Action as CoordinatorAction
from coordinator.events import Event as CoordinatorEvent
from coordinator.events import Received as CoordinatorReceived
from participant import transitions as participant_transitions
from participant.core import Participant
from participant.events import Action as ParticipantAction
from participant.events import Event as ParticipantEvent
from participant.events import Received as ParticipantReceived
from tests.simulation.cores import Cores

_seen: set[tuple[Any, type[Any]]] = set()


class _Coordinator(Coordinator):
    def handle(self, event: CoordinatorEvent) -> list[CoordinatorAction]:
        kind = type(event.message.body) if isinstance(event, CoordinatorReceived) else type(event)
        _seen.add((self.state, kind))
        return super().handle(event)


class _Participant(Participant):
    def handle(self, event: ParticipantEvent) -> list[ParticipantAction]:
        kind = type(event.message.body) if isinstance(event, ParticipantReceived) else type(event)
        _seen.add((self.state, kind))
        return super().handle(event)


WATCHED = Cores(coordinator=_Coordinator, participant=_Participant)


def seen() -> list[str]:
    """The pairs that watched cores of this process met, and the table knows as legal."""
    return sorted(_name(state, kind) for state, kind in _seen)


def legal() -> list[str]:
    """All that the transition tables allow. Others are errors, which no schedule may meet."""
    tables = (coordinator_transitions.TABLE, participant_transitions.TABLE)
    return sorted(_name(state, kind) for table in tables for state, row in table.items() for kind in row)


def _name(state: Any, kind: type[Any]) -> str:
    core = "coordinator" if isinstance(state, coordinator_transitions.State) else "participant"
    return f"{core}: {kind.__name__} in {state.name}"

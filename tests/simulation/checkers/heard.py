"""No message is made of parts of two.

What a coordinator is heard to say it has said, word for word; and a WRITE_STATUS names files of its own
sender only, written for its own transaction's instant.
"""

from control_topic.messages import AckCommit, Body, Message, StartCommit, WriteStatus
from coordinator import events as cev
from coordinator.transitions import State as CoordinatorState
from participant import events as ev
from participant.transitions import State
from tests.simulation.checkers.base import Checker
from tests.simulation.claims import Claims
from tests.simulation.worker import Worker

SAID = (StartCommit, AckCommit)


class WhatIsHeardWasSaid(Checker):
    name = "heard"

    def __init__(self) -> None:
        self._said: dict[str, list[Body]] = {}

    def participant_heard(
        self, worker: Worker, event: ev.Received, before: State, epoch_before: int, actions: list[ev.Action]
    ) -> None:
        self._check(event.message, worker.name)

    def coordinator_acts(
        self, claims: Claims, event: cev.Event, before: CoordinatorState, actions: list[cev.Action]
    ) -> None:
        for action in actions:
            if isinstance(action, cev.Send) and isinstance(action.body, SAID):
                self._said.setdefault(claims.incarnation, []).append(action.body)

    def coordinator_heard(
        self, claims: Claims, event: cev.Received, before: CoordinatorState, actions: list[cev.Action]
    ) -> None:
        self._check(event.message, "the coordinator")

    def _check(self, message: Message, who: str) -> None:
        body, sender = message.body, message.incarnation
        if isinstance(body, SAID):
            if body not in reversed(self._said.get(sender, [])):
                self.violated(f"{who} heard what {sender} never said: {body}")
        elif isinstance(body, WriteStatus):
            for file in body.files:
                instant, _slash, name = file.path.partition("/")
                written_for = self.world.storage.timeline.instants[instant].transaction
                if written_for != body.transaction or not name.startswith(sender):
                    self.violated(
                        f"{who} heard {sender} report {file.path} of transaction {written_for} "
                        f"in transaction {body.transaction}"
                    )

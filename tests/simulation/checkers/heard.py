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


class WhatIsHeardWasSaid(Checker):
    name = "heard"

    def __init__(self) -> None:
        self._said: dict[str, list[Body]] = {}

    def participant_heard(
        self, worker: Worker, event: ev.Received, before: State, epoch_before: int, actions: list[ev.Action]
    ) -> None:
        self._check(event.message, worker.name)

    def coordinator_handled(
        self, claims: Claims, event: cev.Event, before: CoordinatorState, actions: list[cev.Action]
    ) -> None:
        for action in actions:
            if isinstance(action, cev.Send) and isinstance(action.body, StartCommit | AckCommit):
                self._said.setdefault(claims.incarnation, []).append(action.body)
        if isinstance(event, cev.Received):
            self._check(event.message, "the coordinator")

    def _check(self, message: Message, who: str) -> None:
        body, sender = message.body, message.incarnation
        if isinstance(body, StartCommit | AckCommit):
            said = self._said.get(sender, ())
            self.require(
                any(body is one for one in said) or body in said,
                f"{who} heard what {sender} never said: {body}",
            )
        elif isinstance(body, WriteStatus):
            for file in body.files:
                instant, _slash, name = file.path.partition("/")
                written_for = self.world.storage.timeline.instants[instant].transaction
                self.require(
                    written_for == body.transaction and name.startswith(sender),
                    f"{who} heard {sender} report {file.path} of transaction {written_for} "
                    f"in transaction {body.transaction}",
                )

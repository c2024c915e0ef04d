"""A transaction that cannot succeed is aborted at once, not at a timeout, where that is known."""

from control_topic.messages import Message, ParticipantJoin, ParticipantLeave
from coordinator import events as ev
from coordinator.transaction import Transaction
from coordinator.transitions import State
from tests.simulation.checkers.base import Checker
from tests.simulation.claims import Claims

OPEN = (State.STARTED, State.ENDED)


class AbortsArePrompt(Checker):
    name = "prompt"

    def __init__(self) -> None:
        self._heard: dict[tuple[str, str], int] = {}

    def coordinator_lost(
        self, claims: Claims, event: ev.WorkerDied, before: State, actions: list[ev.Action]
    ) -> None:
        transaction = self._open(claims, before)
        if transaction is not None:
            self.require(event.incarnation not in transaction.missing(), "who owes a WRITE_STATUS is dead")

    def coordinator_heard(
        self, claims: Claims, event: ev.Received, before: State, actions: list[ev.Action]
    ) -> None:
        core, again = claims.core, self._is_repeat(claims, event.message)
        transaction = self._open(claims, before)
        if again or transaction is None or event.message.incarnation in core.dead:
            return
        body, who = event.message.body, event.message.incarnation
        if event.message.run != core.settings.run:
            return
        if isinstance(body, ParticipantLeave) and body.transaction == transaction.id:
            self.require(who not in transaction.missing(), f"{event.message.sender} has left with open data")
        if (
            isinstance(body, ParticipantJoin)
            and body.partitions
            and core.owners.get(body.partitions[0]) == who
        ):
            missing = transaction.missing()
            taken = [p for p in body.partitions if transaction.writers.get(p, who) in missing - {who}]
            self.require(not set(taken) & transaction.expected, f"{event.message.sender} has taken {taken}")

    def _open(self, claims: Claims, before: State) -> Transaction | None:
        """The transaction that was open before the event and is after it."""
        both_open = before in OPEN and claims.core.machine.state in OPEN
        return claims.core.rounds.transaction if both_open else None

    def _is_repeat(self, claims: Claims, message: Message) -> bool:
        """Whether the sender has said something later already: then this is the past."""
        key = (claims.incarnation, message.incarnation)
        last = self._heard.get(key, -1)
        self._heard[key] = max(last, message.sequence)
        return message.sequence <= last

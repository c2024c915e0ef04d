"""Whose decisions the participant takes, and whether they are news. Pure."""

from __future__ import annotations

from control_topic.messages import (
    AbortCommit,
    AckCommit,
    CoordinatorClaim,
    EndCommit,
    Message,
    StartCommit,
)
from participant.machine import Machine

DECISIONS = (CoordinatorClaim, StartCommit, EndCommit, AckCommit, AbortCommit)
"""What only the coordinator of the highest epoch may say."""


class Hearing:
    """Fed with every message of the run, in topic order."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.last_sequences: dict[str, int] = {}
        """By incarnation, of the epoch that rules: each claim of it was authenticated."""

    def outranked(self) -> None:
        """Another epoch rules: nobody was heard yet."""
        self.last_sequences.clear()

    def concerns_us(self, message: Message) -> bool:
        """Another run is never obeyed; who decides only once, and only while nobody rules after it."""
        if message.run != self._machine.settings.run:
            return False
        return not isinstance(message.body, DECISIONS) or self.is_news(message)

    def is_news(self, message: Message) -> bool:
        """A decision counts once, and only while nobody is known to rule after its sender."""
        ignored = self._machine.ignored
        if message.epoch < self._machine.epoch:
            ignored[f"{message.type_name} of a lower epoch"] += 1
            return False
        if message.sequence <= self.last_sequences.get(message.incarnation, -1):
            ignored[f"{message.type_name} again"] += 1
            return False
        self.last_sequences[message.incarnation] = message.sequence
        return True

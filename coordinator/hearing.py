"""Whose word the coordinator takes, and whether it is news. Pure."""

from __future__ import annotations

from control_topic.messages import Message
from coordinator.voices import Voices

SENDERS_MAX = 1_000
"""Senders whose last sequence number is remembered; who has been silent longest is forgotten first."""


class Hearing:
    """Fed with every message of the pipeline, in topic order."""

    def __init__(self, run: str) -> None:
        self._run = run
        self.highest_epoch = 0
        """Of all messages, whoever sent them."""
        self.last_sequences: dict[str, int] = {}
        """By incarnation, of those heard last."""
        self.voices = Voices()

    def refusal(self, message: Message, now_ms: int) -> str:
        """Why this message says nothing to us, or an empty string; then it is remembered."""
        if message.run != self._run:
            return "another run"
        if not self.is_news(message):
            return "heard before"
        self.voices.heard(message, now_ms)
        return ""

    def is_news(self, message: Message) -> bool:
        """A sender's messages count once, in its own order: a topic read again says nothing new."""
        last = self.last_sequences.pop(message.incarnation, -1)
        while len(self.last_sequences) >= SENDERS_MAX:
            del self.last_sequences[next(iter(self.last_sequences))]
        self.last_sequences[message.incarnation] = max(last, message.sequence)
        return message.sequence > last

"""Who is who: what each incarnation calls itself, what it last said, what it died of. Pure.

The protocol fences by incarnation; people know workers by their names.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from control_topic.messages import Message

VOICES_MAX = 1_000
"""Incarnations remembered; who has been silent longest is forgotten first."""

SHORT = 8
"""An incarnation that nobody knows by name is shown by so much of it."""


@dataclass(frozen=True, slots=True)
class Voice:
    name: str
    said: str
    """The type of its last message."""
    at_ms: int


class Voices:
    """Fed with every message of the run and every death that the driver tells of."""

    def __init__(self) -> None:
        self._voices: dict[str, Voice] = {}

    def heard(self, message: Message, now_ms: int) -> None:
        """Remember who said it, and when."""
        self._voices.pop(message.incarnation, None)
        while len(self._voices) >= VOICES_MAX:
            del self._voices[next(iter(self._voices))]
        self._voices[message.incarnation] = Voice(message.sender, message.type_name, now_ms)

    def name(self, incarnation: str) -> str:
        """What its worker is called."""
        voice = self._voices.get(incarnation)
        return voice.name if voice is not None else f"a worker ({incarnation[:SHORT]})"

    def last_words(self, incarnations: Iterable[str], now_ms: int) -> str:
        """`worker-0 (last said WRITE_PROGRESS 3.2 s before), …`, by name."""
        return ", ".join(sorted(self._last_words(who, now_ms) for who in incarnations))

    def _last_words(self, who: str, now_ms: int) -> str:
        voice = self._voices.get(who)
        if voice is None:
            return f"{self.name(who)} (has never been heard)"
        return f"{voice.name} (last said {voice.said} {(now_ms - voice.at_ms) / 1000:.1f} s before)"

"""What a hook is: a sink of commits. A new one implements `Sink`, and `sinks.py` makes it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from lockstep.hooks.commits import Commit


class SinkError(Exception):
    """It was not taken, or nobody knows: it is tried again. What it says is shown, and holds no secret."""


class HowEnded(Enum):
    WELL = "well"
    HALTED = "halted"
    SUPERSEDED = "superseded"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    how: HowEnded
    reason: str


class Sink(Protocol):
    """Used by one thread, which nothing else waits for. All calls raise `SinkError`, and end by themselves
    within `patience_s`, about: one that does not is said in the status.
    """

    @property
    def name(self) -> str:
        """As in its settings, and its note's; lower-case letters."""

    @property
    def place(self) -> str:
        """Where it goes, for people; without secrets."""

    @property
    def newest_only(self) -> bool:
        """Whether a commit may be left out where a later one is delivered."""

    @property
    def every_ms(self) -> int:
        """Not more often than that."""

    @property
    def patience_s(self) -> float: ...

    def begin(self) -> None:
        """Once, before anything is delivered."""

    def deliver(self, commit: Commit) -> None:
        """It has been taken when this returns."""

    def end(self, ending: Ending) -> None:
        """The run has ended, and all that it committed was delivered."""

    def close(self) -> None:
        """Let go of what it holds. Raises nothing, and waits for nobody."""

"""What the control topic tells of: messages as they were heard, transactions, workers, news. Pure.

Times are the broker's, in milliseconds of the Unix epoch, and 0 where a thing has not happened.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from control_topic.messages import Message, SourcePartition, WriteProgress


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """A readable message of one pipeline."""

    offset: int
    time_ms: int
    message: Message
    marked: bool = True
    """It carries a mark of some run, which nobody has checked here."""


class Phase(Enum):
    WRITING = "writing"
    ENDING = "ending"
    COMMITTED = "committed"
    ABORTED = "aborted"


@dataclass(slots=True, kw_only=True)
class Transaction:
    """One transaction, from its START to what became of it."""

    id: str
    instant: str
    epoch: int
    writers: frozenset[str]
    """The incarnations that write in it."""

    started_ms: int
    end_ms: int = 0
    """END was first said."""

    ended_ms: int = 0
    """It was committed or aborted, or is known to have been."""

    phase: Phase = Phase.WRITING
    announced: bool = False
    """An ACK or ABORT told its end; else the next START did."""

    orphaned: bool = False
    """A newer coordinator or run has come, and what becomes of it is not known yet."""

    reason: str = ""
    """Why it was aborted, or how its commit was found."""

    answered: dict[str, int] = field(default_factory=dict)
    """Incarnation -> when its first WRITE_STATUS was heard."""

    progress: dict[str, WriteProgress] = field(default_factory=dict)
    """Incarnation -> how far it said that it is with its files."""

    progress_ms: int = 0
    """Somebody last said so."""

    records: int = 0
    """Offsets that held a record, of those who have answered."""

    files: int = 0
    size_bytes: int = 0
    next: dict[SourcePartition, int] = field(default_factory=dict)
    """Where those who have answered came to."""

    @property
    def is_open(self) -> bool:
        return self.phase in (Phase.WRITING, Phase.ENDING)


@dataclass(slots=True, kw_only=True)
class WorkerSeen:
    """A worker, as its last JOIN and LEAVE tell."""

    name: str
    incarnation: str
    partitions: tuple[SourcePartition, ...] = ()


@dataclass(frozen=True, slots=True)
class RunIsUp:
    run: str


@dataclass(frozen=True, slots=True)
class Claimed:
    coordinator: str
    epoch: int


@dataclass(frozen=True, slots=True)
class Joined:
    worker: str
    fresh: bool
    """A new incarnation; else it only owns other source partitions than before."""

    partitions: tuple[SourcePartition, ...]


@dataclass(frozen=True, slots=True)
class Committed:
    transaction: Transaction


@dataclass(frozen=True, slots=True)
class Aborted:
    transaction: Transaction


@dataclass(frozen=True, slots=True)
class RunHalted:
    reason: str


News: TypeAlias = RunIsUp | Claimed | Joined | Committed | Aborted | RunHalted
"""What somebody who looks on would want to be told. Repeats are no news."""

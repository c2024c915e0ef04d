"""What goes into the participant's core and what comes out. Frozen values, standard library only.

Offsets and sizes only: records stay in the shell. A chunk is a run of decoded records of one source
partition; the core numbers each stretch that it has read of a source partition with a `generation`, and
whatever belongs to an older generation is void.

What is awaited is a call: it has a number, and exactly one completion with that number answers it, with an
`Outcome`. The other actions are orders, obeyed in the order in which they are given; the first that fails
ends the worker (`EffectFailed`), and whatever it left behind is found by others: records in the log, files by
the sweep. What is said to the bus, the group and the driver may be lost, and is said again where it matters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from control_topic.controls import Tuning
from control_topic.messages import (
    Body,
    DataFile,
    EventTimes,
    Lost,
    Message,
    Offsets,
    Reject,
    SourcePartition,
    Witness,
)
from participant.rejects_max import NO_LIMIT, RejectsMax


class Outcome(Enum):
    """How a call ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    """Provably without effect."""
    UNKNOWN = "unknown"
    """Nobody knows: what it was to do may be done, or in part."""


# --- events -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    now_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick(Event):
    """Time passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assigned(Event):
    """The group gave us these source partitions, consumed from here; None: the offset is not known yet."""

    offsets: Mapping[SourcePartition, int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Revoked(Event):
    """The group took these source partitions away, in peace or not."""

    partitions: tuple[SourcePartition, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsFetched(Event):
    """The answer to `FetchOffsets`. A question has no effect: FAILED and UNKNOWN mean the same."""

    call: int
    outcome: Outcome = Outcome.SUCCEEDED
    committed: Offsets = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffered(Event):
    """Offsets `[start, next)` of a source partition are decoded and in memory."""

    partition: SourcePartition
    generation: int
    start: int
    next: int
    records: int
    """0 where the log has none there. Those that are no rows are counted, too."""
    size_bytes: int
    lost: tuple[Lost, ...] = ()
    """The part that retention had removed."""
    rejects: int = 0
    """How many of the records are no rows and go to the dead-letter topic."""
    reject_bytes: int = 0
    """Of `size_bytes`, held until they are there."""
    first_reject: Reject | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked(Event):
    """A record at `next` cannot be passed by configuration: nothing more comes from this source partition."""

    partition: SourcePartition
    generation: int
    reason: str = ""
    """A sentence for the operator, who may skip the record by it once all before it is committed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Received(Event):
    """A message was read from the control topic, in topic order."""

    message: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrote(Event):
    """The open transaction's files got on."""

    transaction: str
    files: int
    """Finished."""
    size_bytes: int
    """Encoded."""
    steps: int
    """Whatever was done, counted: pieces, files, folders, dead letters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenAway(Event):
    """The open transaction's files are gone before END, or can never be whole: nothing more is written."""

    transaction: str
    reason: str
    """A sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flushed(Event):
    """The answer to `Flush`.

    SUCCEEDED: the files are closed and whole, rejects are in the dead-letter topic. FAILED: none is reported.
    UNKNOWN: some may be there.
    """

    call: int
    outcome: Outcome = Outcome.SUCCEEDED
    final: bool = False
    """Of FAILED: whoever tries again meets the same, since the dead-letter topic refuses a reject for good.
    Else the transaction was given up, or its files were taken away, as its rollback does."""
    reason: str = ""
    """A sentence, where it did not succeed."""
    files: tuple[DataFile, ...] = ()
    rejects: tuple[Reject, ...] = ()
    """REJECTS_LISTED_MAX of them at most."""
    reject_count: int = 0
    """All of them."""
    witnesses: tuple[Witness, ...] = ()
    """Of each source partition of which records were written the last one."""
    event_times: tuple[EventTimes, ...] = ()
    """Of each of which a record has one."""
    columns: str = ""
    """As of `WriteStatus`; and those that follow likewise."""
    columns_from: str = ""
    handed: Mapping[str, int] = field(default_factory=dict)
    taken: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectFailed(Event):
    """An effect failed in a way that this worker cannot go on from; a fresh worker may."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave(Event):
    """The driver wants this worker to end."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned(Event):
    """Operators have set this: it counts from the next transaction on."""

    tuning: Tuning


@dataclass(frozen=True, slots=True, kw_only=True)
class Outranked(Event):
    """A message shows that a higher epoch rules. The core says so to itself."""

    epoch: int


# --- actions ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """Produce to the control topic. May be lost: whatever matters is repeated."""

    body: Body
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchOffsets:
    """Ask the table service for the committed offsets. Answered by `OffsetsFetched`."""

    call: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewind:
    """Drop what is buffered of the source partition and consume it again from `offset`."""

    partition: SourcePartition
    offset: int
    generation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """Drop what is buffered of a source partition that is no longer ours."""

    partition: SourcePartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """Writing may begin: a writer for this transaction's files."""

    transaction: str
    instant: str
    watermark_ms: int | None = None
    """The table's: rows behind it are late. None where it has none."""
    takers: Mapping[str, str] = field(default_factory=dict)
    """As of `StartCommit`: ourselves among them; empty where we write what we read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """Move what is buffered of a source partition, up to `upto`, into the open transaction's files."""

    transaction: str
    partition: SourcePartition
    generation: int
    upto: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Flush:
    """Close the transaction's files, with the dead letters before them. Answered by `Flushed`."""

    call: int
    transaction: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Discard:
    """Remove the open transaction's files: none of them was reported."""

    transaction: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitGroup:
    """A courtesy to lag tools: the group's offsets, never beyond the table's."""

    offsets: Offsets


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Stop consuming: memory is at its cap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume:
    """Consume again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Poison:
    """Tell the driver that the run cannot go on. Whatever came before is in the table by now."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """This worker ends."""

    reason: str
    failed: bool
    """The driver may start another in its slot."""


Action: TypeAlias = (
    Send
    | FetchOffsets
    | Rewind
    | Drop
    | Open
    | Write
    | Flush
    | Discard
    | CommitGroup
    | Pause
    | Resume
    | Poison
    | Stop
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Limits of 0 mean none. Times in milliseconds, sizes in bytes."""

    pipeline: str
    run: str
    incarnation: str
    interval_ms: int
    """Progress without records (markers, aborted tails) waits so long before it is worth a transaction."""
    memory_bytes_max: int
    """Of what is decoded and in no file, while a transaction's files are open."""
    idle_bytes_max: int = 0
    """The same while none is, and its memory is free for what the next one will hold; at least the former."""
    records_max: int = 0
    """Of a transaction, all its writers together; as `bytes_max`."""
    bytes_max: int = 0
    until: Offsets = field(default_factory=dict)
    """Consume exactly to these offsets, then wait. Empty: for ever."""
    repeat_ms: int = 1_000
    """What is not answered is said again after so long, and then twice as long each time."""
    repeat_max_ms: int = 30_000
    commit_wait_ms: int = 5_000
    """A commit may take so long before its outcome is asked for."""
    progress_ms: int = 1_000
    """How far the files are that are being closed is said no oftener."""
    piece_records: int = 1_000
    """What is decoded is remembered in pieces of about so many; a limited transaction takes whole ones."""
    rejects_max: RejectsMax = NO_LIMIT
    """Beyond it the run halts."""
    takes_at: str = ""
    """Where we take rows that others hand over; empty where we take none, and hand none over."""

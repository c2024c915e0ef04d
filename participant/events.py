"""What goes into the participant's core and what comes out. Frozen values, standard library only.

Offsets and sizes only: records stay in the shell. A chunk is a run of decoded records of one source
partition; the shell numbers an assignment of a source partition with a `generation`, and whatever belongs
to an older generation is void.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from control_topic.messages import (
    Body,
    DataFile,
    Lost,
    Message,
    Offsets,
    Range,
    Reject,
    SourcePartition,
)
from participant.rejects_max import NO_LIMIT, RejectsMax

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
    """The answer to `FetchOffsets`; None where the table service could not say."""

    committed: Offsets | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffered(Event):
    """Offsets `[start, next)` of a source partition are decoded and in memory.

    `records` may be 0: the log has none there. `lost`: the part that retention had removed. `rejects`: how
    many of the records are no rows and go to the dead-letter topic; `reject_bytes` of `size_bytes` are
    theirs, and held until they are there. `first_reject`: None where there is none.
    """

    partition: SourcePartition
    generation: int
    start: int
    next: int
    records: int
    size_bytes: int
    lost: tuple[Lost, ...] = ()
    rejects: int = 0
    reject_bytes: int = 0
    first_reject: Reject | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocked(Event):
    """A record at `next` cannot be passed by configuration: nothing more comes from this source partition.

    `reason`: a sentence for the operator, who may skip the record by it once all before it is committed.
    """

    partition: SourcePartition
    generation: int
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Received(Event):
    """A message was read from the control topic, in topic order."""

    message: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrote(Event):
    """The open transaction's files got on: `steps` in all, of which `files` are finished; bytes encoded."""

    transaction: str
    files: int
    size_bytes: int
    steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Flushed(Event):
    """The answer to `Flush`: the files are closed and whole, rejects are in the dead-letter topic.

    `reject_count`: all rejects, of which `rejects` names REJECTS_LISTED_MAX at most.
    """

    transaction: str
    files: tuple[DataFile, ...] = ()
    rejects: tuple[Reject, ...] = ()
    reject_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Undeliverable(Event):
    """The answer to `Flush` where the dead-letter topic refuses a reject, whoever sends it: a sentence."""

    transaction: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectFailed(Event):
    """An effect failed in a way that this worker cannot go on from; a fresh worker may."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave(Event):
    """The driver wants this worker to end."""

    reason: str


# --- actions ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """Produce to the control topic. May be lost: whatever matters is repeated."""

    body: Body
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchOffsets:
    """Ask the table service for the committed offsets. Answered by `OffsetsFetched`."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """Move what is buffered of a source partition, up to `upto`, into the open transaction's files."""

    transaction: str
    partition: SourcePartition
    generation: int
    upto: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Flush:
    """Close the transaction's files and answer with `Flushed`."""

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
    """This worker ends. `failed`: the driver may start another in its slot."""

    reason: str
    failed: bool


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
    """Limits of 0 mean none. Times in milliseconds, sizes in bytes.

    `until`: consume exactly to these offsets, then wait. `interval_ms`: how long progress without records
    (markers, aborted tails) may wait before it is worth a transaction of its own. `commit_wait_ms`: how
    long a commit may take before its outcome is asked for. `progress_ms`: how often at most is said how far
    files are that are being closed. `piece_records`: what is decoded is remembered in pieces of about so
    many, and a transaction that may not take everything takes whole ones. `rejects_max`: beyond it the
    run halts.
    """

    pipeline: str
    run: str
    incarnation: str
    interval_ms: int
    memory_bytes_max: int
    records_max: int = 0
    bytes_max: int = 0
    until: Offsets = field(default_factory=dict)
    repeat_ms: int = 1_000
    commit_wait_ms: int = 5_000
    repeat_max_ms: int = 30_000
    progress_ms: int = 1_000
    piece_records: int = 1_000
    rejects_max: RejectsMax = NO_LIMIT


# --- the participant's own memory -------------------------------------------------------------


@dataclass(slots=True)
class Held:
    """A stretch of what is decoded and not written, up to `next`."""

    next: int
    records: int
    size_bytes: int
    rejects: int = 0
    reject_bytes: int = 0
    first_reject: Reject | None = None


@dataclass(slots=True, kw_only=True)
class Owned:
    """A source partition of ours.

    `start`: the first offset that no commit of ours covers, what START must name. `written`: up to where
    the open transaction's files hold it. `next`: up to where it is decoded. Always start <= written <= next.
    `committed`: the table's offset, as far as we were told. `reason`: why it is blocked, until that is said.
    `held`: what is decoded and not written, in order; `records` and `size_bytes` of it all.
    """

    generation: int = 0
    resolved: bool = False
    start: int = 0
    written: int = 0
    next: int = 0
    records: int = 0
    size_bytes: int = 0
    held: deque[Held] = field(default_factory=deque)
    written_records: int = 0
    lost: list[Lost] = field(default_factory=list)
    committed: int = 0
    blocked: bool = False
    reason: str = ""
    progress_ms: int | None = None


@dataclass(slots=True, kw_only=True)
class Work:
    """The transaction this participant takes part in. `records_max`: what we may take into it; 0: all.

    `rejects`: how many, by source partition; `first_rejects`: the first of each. `reject_bytes`: what they
    hold of memory until they are in the dead-letter topic.
    """

    id: str
    instant: str
    partitions: set[SourcePartition]
    writers: int
    records_max: int = 0
    opened_ms: int = 0
    told_ms: int = 0
    records: int = 0
    size_bytes: int = 0
    rejects: dict[SourcePartition, int] = field(default_factory=dict)
    first_rejects: dict[SourcePartition, Reject] = field(default_factory=dict)
    reject_bytes: int = 0
    ranges: tuple[Range, ...] = ()
    end_asked: str = ""
    end_asked_ms: int = 0

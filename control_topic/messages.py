"""What travels on the control topic, as frozen values. Pure: standard library only.

The topic is a lossy bus with a total order. Nothing here is trusted because it arrived: the cores
decide by epoch, run, incarnation and transaction what a message may still change.

Source of the names: Apache Hudi RFC-32 where it has one (START_COMMIT, END_COMMIT, WRITE_STATUS,
ACK_COMMIT); the rest is described in docs/protocol.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from control_topic.controls import Setting

PROTOCOL_VERSION = 1
REJECTS_LISTED_MAX = 1_000
"""More rejects than this are counted, not named, in a WRITE_STATUS and in a commit: a flood of them must not
make either too large to be sent."""

EPOCH_MAX = 2**64 - 1
"""The highest epoch that a message can carry."""

EPOCH_LEAD_MAX = 1_000_000
"""An epoch that leads the table's by more is nobody's: each claim takes one more than the highest known.

So the last epoch is never reached: each commit brings the table this much nearer to it at most.
"""


EVENT_TIME_MAX_MS = 2**62
"""Of event times, before 1970 or after: beyond what any type of a column can say."""


class SourcePartition(NamedTuple):
    """One partition of one Kafka topic. Never to be confused with a table partition."""

    topic: str
    number: int

    def __str__(self) -> str:
        return f"{self.topic}:{self.number}"


Offsets: TypeAlias = Mapping[SourcePartition, int]
"""Source partition -> next offset to be committed. An absent partition has no offset yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """The offsets `[start, next)` of one source partition, of which `records` held a record."""

    partition: SourcePartition
    start: int
    next: int
    records: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.next:
            raise ValueError(f"{self.partition}: range [{self.start}, {self.next}) is not a range")
        if not 0 <= self.records <= self.next - self.start:
            raise ValueError(f"{self.partition}: {self.records} records in [{self.start}, {self.next})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """Offsets `[start, next)` that retention removed before anybody read them."""

    partition: SourcePartition
    start: int
    next: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """A record that was read, and what tells it from another: where the log has it at this offset, it is
    the log that was read."""

    partition: SourcePartition
    offset: int
    fingerprint: int
    """64 bits, of `participant.source.witnesses`."""


Witnesses: TypeAlias = Mapping[SourcePartition, Witness]
"""Source partition -> the last record that was read before the table's offset. Not every one has any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTimes:
    """What the records of one source partition in a transaction say of their event times, in milliseconds
    since 1970."""

    partition: SourcePartition
    greatest_ms: int | None
    """Of those that count; None where none does."""
    late: int = 0
    """So many are behind the watermark that the table had when the transaction began."""
    absurd: int = 0
    """So many are too far ahead to count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reject:
    """A record that did not become a row, and where it went instead (the dead-letter topic)."""

    partition: SourcePartition
    offset: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A finished file that a participant wrote."""

    path: str
    """Relative to the table's base path."""

    body: str
    """What else the kind's half in a worker tells that in the driver, in its own words."""

    table_partition: str
    rows: int
    size_bytes: int
    deletes: int = 0
    """Keys that it deletes, on top of its rows."""


# --- bodies -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAnnounce:
    """A run of a driver, said when it starts and again when another run asks who is newer."""

    address: str = ""
    """Where its live status answers, host:port, or empty."""

    table_epoch: int = 0
    """The newest epoch that the table had when the run started."""

    started_at_ms: int = 0
    """The run's wall clock when it started, Unix epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorClaim:
    """The sender claims the envelope's epoch. Of equal claims the first in topic order wins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParticipantJoin:
    """All source partitions that the sender owns now. Replaces what it said before."""

    partitions: tuple[SourcePartition, ...]
    takes_at: str = ""
    """Where it takes rows that others hand over, host:port; empty where it takes none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParticipantLeave:
    """Source partitions given up."""

    partitions: tuple[SourcePartition, ...]
    transaction: str = ""
    """Set where open data of it was dropped."""

    reason: str = ""
    """Why the sender ends, where it failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParticipantReady:
    """The sender holds records and no transaction is open for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartCommit:
    """A transaction begins: who (incarnation) writes which source partition, from which offset."""

    transaction: str
    instant: str
    committed: Offsets
    writers: Mapping[SourcePartition, str]
    records_max: int = 0
    """What all writers together may take into it, 0 for no limit but their own."""

    witnesses: Witnesses = field(default_factory=dict)
    """Of source partitions whose writer has committed none of them before: who begins to read looks whether
    the log still has it."""

    watermark_ms: int | None = None
    """The table's: records behind it are late. None where it has none."""

    takers: Mapping[str, str] = field(default_factory=dict)
    """Incarnation -> where it takes rows: of every writer; empty where each writes what it reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndRequest:
    """The sender asks for END_COMMIT now. Reasons: records, bytes, memory, reached_end."""

    transaction: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EndCommit:
    transaction: str
    reason: str = ""
    """Why it was ended when it was, of `control_topic.causes.END_REASONS`, or `OTHER`; the same each time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteProgress:
    """How far the sender has come with its files of a transaction that was ended. Each figure counts up."""

    transaction: str
    records: int
    """Taken into the transaction."""

    files: int
    """Finished and durable."""

    size_bytes: int
    """Encoded."""

    steps: int
    """Pieces encoded, files finished, folders made durable: it grows as long as anything is written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteStatus:
    """What one participant wrote in a transaction. Taken or refused whole."""

    transaction: str
    ranges: tuple[Range, ...]
    files: tuple[DataFile, ...] = ()
    rejects: tuple[Reject, ...] = ()
    """By name: REJECTS_LISTED_MAX at most."""

    lost: tuple[Lost, ...] = ()
    reject_count: int = 0
    """All of them."""

    witnesses: tuple[Witness, ...] = ()
    """The last record of each range that has any."""

    columns: str = ""
    """Of the record, in Spark DDL, as the files have them: all of them, where they are more than those that
    the run began with, and empty where they are not. COLUMNS_CHARS_MAX."""

    columns_from: str = ""
    """Which schemas the last of them are of, for people."""

    event_times: tuple[EventTimes, ...] = ()
    """Of ranges with a record that has one."""

    handed: Mapping[str, int] = field(default_factory=dict)
    """Incarnation -> rows of these ranges that were handed over to it, and are in its files; none is 0."""

    taken: Mapping[str, int] = field(default_factory=dict)
    """Incarnation -> rows of its ranges that are in these files; none is 0."""

    behind: Offsets = field(default_factory=dict)
    """Up to where the sender had read before it went back, of those that it has not read as far again. The
    coordinator is told that; the table is not."""

    def __post_init__(self) -> None:
        if self.reject_count < len(self.rejects):
            object.__setattr__(self, "reject_count", len(self.rejects))


@dataclass(frozen=True, slots=True, kw_only=True)
class AckCommit:
    transaction: str
    instant: str
    committed: Offsets
    took_ms: Mapping[str, int] = field(default_factory=dict)
    """Part of the commit (`control_topic.causes.COMMIT_PARTS`) -> its time; empty where nobody knows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortCommit:
    transaction: str
    reason: str
    cause: str = ""
    """The reason's class, of `control_topic.causes.ABORT_CAUSES`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Halt:
    """The run named in the envelope stops and says why. A later run is not stopped by it."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """What an operator has ordered of the run, for people: nobody acts on it."""

    number: int
    """Of the run's orders, from 1."""
    action: str
    """Of `control_topic.controls.ACTIONS`."""
    settings: Mapping[str, Setting] = field(default_factory=dict)
    """What was set, of `control_topic.controls.SETTINGS`, in base units."""
    who: str = ""
    why: str = ""


Body: TypeAlias = (
    RunAnnounce
    | CoordinatorClaim
    | ParticipantJoin
    | ParticipantLeave
    | ParticipantReady
    | StartCommit
    | EndRequest
    | EndCommit
    | WriteProgress
    | WriteStatus
    | AckCommit
    | AbortCommit
    | Halt
    | Control
)

TYPE_NAMES: Mapping[type, str] = {
    RunAnnounce: "RUN_ANNOUNCE",
    CoordinatorClaim: "COORDINATOR_CLAIM",
    ParticipantJoin: "PARTICIPANT_JOIN",
    ParticipantLeave: "PARTICIPANT_LEAVE",
    ParticipantReady: "PARTICIPANT_READY",
    StartCommit: "START_COMMIT",
    EndRequest: "END_REQUEST",
    EndCommit: "END_COMMIT",
    WriteProgress: "WRITE_PROGRESS",
    WriteStatus: "WRITE_STATUS",
    AckCommit: "ACK_COMMIT",
    AbortCommit: "ABORT_COMMIT",
    Halt: "HALT",
    Control: "CONTROL",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A body in its envelope."""

    pipeline: str
    run: str
    """One for each start of a driver."""

    epoch: int
    """The sender's own for a coordinator's messages, the highest it knows for everybody else's."""

    sender: str
    """Readable: `coordinator@worker-0`, `worker-1`, `driver`."""

    incarnation: str
    """Random, one for each start of a worker, coordinator or driver; the protocol fences by it."""

    sequence: int
    """Counts the sender's messages from 0."""

    sent_at_ms: int
    """The sender's wall clock, Unix epoch."""

    body: Body
    version: int = PROTOCOL_VERSION

    @property
    def type_name(self) -> str:
        return TYPE_NAMES[type(self.body)]

    @property
    def transaction(self) -> str:
        return getattr(self.body, "transaction", "")

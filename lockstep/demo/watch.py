"""What a run does, told from its control topic alone. Pure: messages in, rows and sentences out.

The topic is a lossy bus: an ACK may never come because its coordinator died after the commit. The next START
says where the table stands, and so what became of the transaction before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from control_topic.announcements import run_order
from control_topic.messages import (
    AbortCommit,
    AckCommit,
    Body,
    CoordinatorClaim,
    EndCommit,
    Halt,
    Message,
    ParticipantJoin,
    ParticipantLeave,
    RunAnnounce,
    SourcePartition,
    StartCommit,
    WriteStatus,
)

DECISIONS = (StartCommit, EndCommit, AckCommit, AbortCommit)
"""What only the coordinator of the highest epoch may say."""


class Phase(Enum):
    WRITING = "writing"
    ENDING = "ending"
    COMMITTED = "committed"
    ABORTED = "aborted"


@dataclass(slots=True, kw_only=True)
class Transaction:
    """One transaction. Times in milliseconds of the Unix epoch; `ended_ms` is 0 while it is open.

    `records` counts offsets that held a record. `reason`: why it was aborted, or how its commit was found.
    """

    id: str
    instant: str
    epoch: int
    started_ms: int
    phase: Phase = Phase.WRITING
    ended_ms: int = 0
    records: int = 0
    files: int = 0
    size_bytes: int = 0
    reason: str = ""
    answered: set[str] = field(default_factory=set)
    next: dict[SourcePartition, int] = field(default_factory=dict)

    @property
    def is_open(self) -> bool:
        return self.phase in (Phase.WRITING, Phase.ENDING)


@dataclass(slots=True, kw_only=True)
class Member:
    """A worker as the control topic shows it."""

    name: str
    incarnation: str
    partitions: tuple[SourcePartition, ...] = ()


class Watch:
    """Folds the messages of one pipeline's control topic, in topic order.

    `committed`: source partition -> next offset, as far as it is known to be durable.
    """

    def __init__(self, pipeline: str) -> None:
        self._pipeline = pipeline
        self.run = ""
        self.address = ""
        self.epoch = 0
        self.halted = ""
        self._claim = (0, "")
        self._run_order = (-1, 0, "")
        self._names: dict[str, str] = {}
        self.members: dict[str, Member] = {}
        self.transactions: list[Transaction] = []
        self.committed: dict[SourcePartition, int] = {}
        self.last_commit_ms = 0

    @property
    def commits(self) -> list[Transaction]:
        return [t for t in self.transactions if t.phase is Phase.COMMITTED]

    @property
    def aborts(self) -> list[Transaction]:
        return [t for t in self.transactions if t.phase is Phase.ABORTED]

    @property
    def open_transaction(self) -> Transaction | None:
        last = self.transactions[-1] if self.transactions else None
        return last if last is not None and last.is_open else None

    @property
    def committed_total(self) -> int:
        return sum(self.committed.values())

    def take(self, message: Message, time_ms: int) -> list[str]:
        """Take one message, give the sentences that a person who looks on would want to read."""
        if message.pipeline != self._pipeline:
            return []
        body = message.body
        if isinstance(body, RunAnnounce):
            return self._announced(message, body)
        if message.run != self.run:
            return []
        self.epoch = max(self.epoch, message.epoch)
        if message.epoch < self.epoch and isinstance(body, DECISIONS):
            return []
        return self._take(message, body, time_ms)

    def _take(self, message: Message, body: Body, time_ms: int) -> list[str]:
        match body:
            case CoordinatorClaim():
                return self._claimed(message)
            case ParticipantJoin():
                return self._joined(message, body)
            case ParticipantLeave():
                self._left(message, body)
            case StartCommit():
                return self._started(message, body, time_ms)
            case EndCommit():
                transaction = self._find(body.transaction)
                if transaction is not None and transaction.is_open:
                    transaction.phase = Phase.ENDING
            case WriteStatus():
                self._reported(message, body)
            case AckCommit():
                return self._acknowledged(body.transaction, body.committed, time_ms)
            case AbortCommit():
                return self._aborted(body.transaction, body.reason, time_ms)
            case Halt():
                self.halted = body.reason
                return [f"the run halts: {body.reason}"]
        return []

    # --- who is there ---------------------------------------------------------------------------

    def _announced(self, message: Message, body: RunAnnounce) -> list[str]:
        order = run_order(message.run, body)
        if order <= self._run_order:  # said again, or an older run asks who is newer
            return []
        self._run_order = order
        self.run, self.address = message.run, body.address
        self.members.clear()
        return [f"run {message.run} is up"]

    def _claimed(self, message: Message) -> list[str]:
        claim = (message.epoch, message.sender)
        if message.epoch < self.epoch or claim == self._claim:
            return []
        self._claim = claim
        return [f"{message.sender} takes over with epoch {message.epoch}: nobody obeys a lower one any more"]

    def _joined(self, message: Message, body: ParticipantJoin) -> list[str]:
        known = self.members.get(message.sender)
        if known is not None and (known.incarnation, known.partitions) == (
            message.incarnation,
            body.partitions,
        ):
            return []
        self._names[message.incarnation] = message.sender
        fresh = known is None or known.incarnation != message.incarnation
        self.members[message.sender] = Member(
            name=message.sender, incarnation=message.incarnation, partitions=body.partitions
        )
        for member in self.members.values():
            if member.name != message.sender:
                member.partitions = tuple(p for p in member.partitions if p not in body.partitions)
        owned = ", ".join(map(str, body.partitions)) or "no source partition yet"
        return [f"{message.sender} {'joins' if fresh else 'now'} with {owned}"]

    def _left(self, message: Message, body: ParticipantLeave) -> None:
        known = self.members.get(message.sender)
        if known is not None and known.incarnation == message.incarnation:
            known.partitions = tuple(p for p in known.partitions if p not in body.partitions)

    # --- transactions ---------------------------------------------------------------------------

    def _started(self, message: Message, body: StartCommit, time_ms: int) -> list[str]:
        if self._find(body.transaction) is not None:
            return []  # a repeat for a worker that had not heard it
        said = self._settle(body.committed, time_ms)
        self._advance(body.committed)
        self.transactions.append(
            Transaction(id=body.transaction, instant=body.instant, epoch=message.epoch, started_ms=time_ms)
        )
        return said

    def _settle(self, committed: Mapping[SourcePartition, int], time_ms: int) -> list[str]:
        """What became of a transaction whose end was never announced."""
        earlier = self.open_transaction
        if earlier is None:
            return []
        landed = all(committed.get(place, 0) >= following for place, following in earlier.next.items())
        if earlier.next and landed:
            said = self._acknowledged(earlier.id, earlier.next, time_ms)
            earlier.reason = "its coordinator was lost after the commit; the next one found it in the table"
            return said
        return self._aborted(earlier.id, "its coordinator was lost; the next one rolled it back", time_ms)

    def _reported(self, message: Message, body: WriteStatus) -> None:
        transaction = self._find(body.transaction)
        if transaction is None or not transaction.is_open or message.incarnation in transaction.answered:
            return
        transaction.answered.add(message.incarnation)
        transaction.records += sum(r.records for r in body.ranges)
        transaction.files += len(body.files)
        transaction.size_bytes += sum(f.size_bytes for f in body.files)
        transaction.next.update({r.partition: r.next for r in body.ranges})

    def _acknowledged(self, wanted: str, committed: Mapping[SourcePartition, int], time_ms: int) -> list[str]:
        transaction = self._find(wanted)
        self._advance(committed)
        if transaction is None or not transaction.is_open:
            return []
        transaction.phase, transaction.ended_ms = Phase.COMMITTED, time_ms
        self.last_commit_ms = time_ms
        return []

    def _aborted(self, wanted: str, reason: str, time_ms: int) -> list[str]:
        transaction = self._find(wanted)
        if transaction is None or not transaction.is_open:
            return []
        reason = self._with_names(reason)
        transaction.phase, transaction.ended_ms, transaction.reason = Phase.ABORTED, time_ms, reason
        return [f"transaction {wanted[:8]} is aborted: {reason}"]

    def _with_names(self, reason: str) -> str:
        """The protocol knows incarnations; people know workers."""
        for incarnation, name in self._names.items():
            for spelled in (
                f"{name} ({incarnation})",
                incarnation,
            ):
                reason = reason.replace(spelled, name)
        return reason

    def _advance(self, committed: Mapping[SourcePartition, int]) -> None:
        for partition, following in committed.items():
            self.committed[partition] = max(following, self.committed.get(partition, 0))

    def _find(self, wanted: str) -> Transaction | None:
        """The newest first: what is looked for is nearly always the last."""
        return next((t for t in reversed(self.transactions) if t.id == wanted), None)

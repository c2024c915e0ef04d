"""What the control topic says of a pipeline's newest run: one fold over its messages. Pure.

The topic is a lossy bus: an ACK may never come because its coordinator died after the commit. The next START
says where the table stands, and so what became of the transaction before it.

Anybody may write to the topic, and nobody here can check a mark. What is certainly no run's is counted and
ignored: a message without any mark, or of an epoch that no run can have reached. Times are the broker's, in
milliseconds of the Unix epoch, and 0 where a thing has not happened.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from control_topic.announcements import run_order
from control_topic.causes import NOTHING
from control_topic.controls import PAUSE, RESUME
from control_topic.messages import (
    EPOCH_LEAD_MAX,
    AbortCommit,
    AckCommit,
    Control,
    CoordinatorClaim,
    EndCommit,
    EndRequest,
    Halt,
    Message,
    ParticipantJoin,
    ParticipantLeave,
    ParticipantReady,
    RunAnnounce,
    SourcePartition,
    StartCommit,
    WriteProgress,
    WriteStatus,
)
from coordinator.owners import Owners
from lockstep.watch.book import Book
from lockstep.watch.told import (
    REASON_LENGTH_MAX,
    Claimed,
    Heard,
    Joined,
    Left,
    News,
    Phase,
    RunHalted,
    RunIsUp,
    Transaction,
    WorkerSeen,
    named,
)

NAMES_MAX = 4_096
"""Incarnations, and workers, by name. Anybody may write to the topic."""

DECISIONS = (StartCommit, EndCommit, AckCommit, AbortCommit)
"""What only the coordinator of the highest epoch may say."""


@dataclass(slots=True)
class Fold:
    """What has been heard of the newest run so far."""

    placed: str = ""
    """The run that the table's folder says started last, where it says so: no other is listened to."""

    table_epoch: int = 0
    """The newest epoch that the table has."""

    ignored: int = 0
    """Messages that are certainly no run's."""

    run: str = ""
    run_ms: int = 0
    """It was announced."""

    run_order: tuple[int, int, str] = (-1, 0, "")
    epoch: int = 0
    coordinator: str = ""
    claim: tuple[int, str] = (0, "")
    """The newest: its epoch, and who made it."""

    driver_ms: int = 0
    """A driver or coordinator was last heard."""

    heard_ms: int = 0
    """Anybody was last heard."""

    waiting_ms: int = 0
    """A worker has held records since then, and no transaction was open."""

    workers: dict[str, WorkerSeen] = field(default_factory=dict)
    """By name."""

    owners: Owners = field(default_factory=Owners)
    """Source partition -> the name of the worker that said so last."""

    names: dict[str, str] = field(default_factory=dict)
    """Incarnation -> sender."""

    restarts: dict[str, int] = field(default_factory=dict)
    """Of each worker, by name: how often another incarnation of it came."""

    transactions_max: int = 0
    """So many transactions are kept, 0 for all."""

    book: Book = field(init=False)
    aborts: int = 0
    """In a row, up to now."""

    abort_reason: str = ""
    halted: tuple[str, int] | None = None
    """The run's last word, and when."""

    paused: tuple[Control, int] | None = None
    """The order that paused the run, and when; None where none is known, or it was resumed."""

    resumed_ms: int = 0
    """It was resumed, since it was last paused."""

    def __post_init__(self) -> None:
        self.book = Book(names=self.names, transactions_max=self.transactions_max)

    @property
    def transactions(self) -> list[Transaction]:
        """Of this run, oldest first: those whose START was heard."""
        return self.book.transactions

    @property
    def committed(self) -> dict[SourcePartition, int]:
        """Next offset, as far as it is known to be durable."""
        return self.book.committed

    @property
    def last_commit_ms(self) -> int:
        return self.book.last_commit_ms

    @property
    def commits(self) -> list[Transaction]:
        return [one for one in self.transactions if one.phase is Phase.COMMITTED]

    @property
    def given_up(self) -> list[Transaction]:
        return [one for one in self.transactions if one.phase is Phase.ABORTED]

    @property
    def open_transaction(self) -> Transaction | None:
        """The newest transaction while its end is not known."""
        return self.book.open_transaction

    @property
    def led_transaction(self) -> Transaction | None:
        """The open transaction while the coordinator that started it leads."""
        last = self.open_transaction
        return last if last is not None and not last.orphaned else None

    @property
    def left_in_peace(self) -> bool:
        """Whether every worker has gone, and none of them because it failed."""
        return bool(self.workers) and all(one.left for one in self.workers.values())

    @property
    def committed_total(self) -> int:
        """Offsets, of all source partitions together."""
        return sum(self.committed.values())

    def named(self, text: str) -> str:
        """The protocol knows incarnations; people know workers."""
        return named(text, self.names)

    def hear(self, heard: Heard) -> list[News]:
        """The next message, in topic order. What a coordinator of a lower epoch says is stale: ignored."""
        message, body = heard.message, heard.message.body
        if not heard.marked or message.epoch > self.table_epoch + EPOCH_LEAD_MAX:
            self.ignored += 1
            return []
        if self.placed and message.run != self.placed:
            return []
        if isinstance(body, RunAnnounce):
            self._note_sender(heard)
            return self._announced(heard, body)
        if self.run and message.run != self.run:
            return []
        self._note_sender(heard)
        if isinstance(body, Halt):  # the run's, whoever claims what epoch
            self.halted = (body.reason, heard.time_ms)
            self._orphan()
            return [RunHalted(body.reason)]
        from_coordinator = message.sender.startswith("coordinator")
        if message.epoch < self.epoch and (from_coordinator or isinstance(body, DECISIONS)):
            return []
        if from_coordinator:
            if message.epoch > self.epoch and isinstance(body, CoordinatorClaim):
                self._orphan()
            self.epoch, self.coordinator = message.epoch, message.sender
            self.run = self.run or message.run  # its announcement is older than all that is read here
            self.driver_ms = heard.time_ms
        return self._hear_body(heard)

    def _note_sender(self, heard: Heard) -> None:
        self.names[heard.message.incarnation] = heard.message.sender
        if len(self.names) > NAMES_MAX:
            del self.names[next(iter(self.names))]
        self.heard_ms = heard.time_ms

    def _hear_body(self, heard: Heard) -> list[News]:
        message, body, time_ms = heard.message, heard.message.body, heard.time_ms
        match body:
            case CoordinatorClaim():
                return self._claimed(message)
            case ParticipantJoin():
                return self._joined(message, body)
            case ParticipantLeave():
                return self._left(message, body)
            case ParticipantReady():
                self.waiting_ms = self.waiting_ms or time_ms
            case Control():
                self._ordered(body, time_ms)
            case _:
                return self._of_a_transaction(heard)
        return []

    def _of_a_transaction(self, heard: Heard) -> list[News]:
        message, body, time_ms = heard.message, heard.message.body, heard.time_ms
        match body:
            case StartCommit():
                self.waiting_ms = 0
                return self.book.started(message, body, time_ms)
            case EndRequest():
                self.book.asked(message, body, time_ms)
            case EndCommit():
                self.book.ending(body, time_ms)
            case WriteProgress():
                self.book.progressed(message, body, time_ms)
            case WriteStatus():
                self.book.reported(message, body, time_ms)
            case AckCommit():
                self.waiting_ms, self.aborts, self.abort_reason = 0, 0, ""
                return self.book.acknowledged(body, time_ms)
            case AbortCommit():
                return self._aborted(body, time_ms)
        return []

    def _aborted(self, body: AbortCommit, time_ms: int) -> list[News]:
        self.waiting_ms = 0
        if body.cause != NOTHING:  # which is no trouble: an operator's commit may find so
            self.aborts, self.abort_reason = self.aborts + 1, body.reason[:REASON_LENGTH_MAX]
        return self.book.aborted(body, time_ms)

    def _ordered(self, body: Control, time_ms: int) -> None:
        if body.action in (PAUSE, RESUME):
            self.paused = (body, time_ms) if body.action == PAUSE else None
            self.resumed_ms = time_ms if body.action == RESUME else 0

    # --- who is there ---------------------------------------------------------------------------

    def _announced(self, heard: Heard, body: RunAnnounce) -> list[News]:
        order = run_order(heard.message.run, body)
        said_again = bool(self.run_ms) and heard.message.run == self.run
        if said_again or order <= self.run_order:  # an older run asks who is newer
            return []
        if heard.message.run != self.run:
            self.workers.clear()
            self.owners = Owners()
            self.restarts.clear()
            self.transactions.clear()
            self.halted, self.paused, self.resumed_ms, self.waiting_ms = None, None, 0, 0
        self.run_order = order
        self.run, self.run_ms, self.driver_ms = heard.message.run, heard.time_ms, heard.time_ms
        return [RunIsUp(self.run)]

    def _orphan(self) -> None:
        if self.transactions:
            self.transactions[-1].orphaned = True

    def _claimed(self, message: Message) -> list[News]:
        claim = (message.epoch, message.sender)
        if claim == self.claim:
            return []
        self.claim = claim
        return [Claimed(message.sender, message.epoch)]

    def _joined(self, message: Message, body: ParticipantJoin) -> list[News]:
        name, known = message.sender, self.workers.get(message.sender)
        fresh = known is None or known.incarnation != message.incarnation
        if not fresh and self.owners.of(name) == frozenset(body.partitions):
            return []
        if known is None and len(self.workers) >= NAMES_MAX:
            return []
        if known is not None and fresh:
            self.restarts[name] = self.restarts.get(name, 0) + 1
        partitions = self._owns(name, body.partitions)
        self.workers[name] = WorkerSeen(name=name, incarnation=message.incarnation)
        return [Joined(name, fresh, partitions)]

    def _owns(self, name: str, places: Sequence[SourcePartition]) -> tuple[SourcePartition, ...]:
        """A worker owns these and no others, as far as there is room; nobody else owns them any more.

        Takes as long as what it says, not as what all others own: a message of a few bytes is soon forged.
        """
        for place in places:
            if (other := self.owners.get(place, name)) != name:
                self.owners.release(other, (place,))
        room = self.book.places_max - (len(self.owners) - len(self.owners.of(name)))
        partitions = tuple(places[: max(0, room)])
        self.owners.assign(name, partitions)
        return partitions

    def forget_places(self, count_max: int) -> None:
        """Another run is the newest: nobody asks for more of this one's source partitions than so many."""
        self.book.places_max = count_max
        if len(self.owners) > count_max:
            self.owners = Owners()
        if len(self.book.committed) > count_max:
            self.book.committed.clear()

    def _left(self, message: Message, body: ParticipantLeave) -> list[News]:
        known = self.workers.get(message.sender)
        if known is not None and known.incarnation == message.incarnation:
            self.owners.release(message.sender, body.partitions)
            known.left = not self.owners.of(message.sender) and not body.reason
        return [Left(message.sender, body.reason[:REASON_LENGTH_MAX])] if body.reason else []


def fold(messages: Iterable[Heard], *, placed: str = "", table_epoch: int = 0) -> Fold:
    """All of them, in topic order."""
    state = Fold(placed=placed, table_epoch=table_epoch, run=placed)
    for heard in messages:
        state.hear(heard)
    return state

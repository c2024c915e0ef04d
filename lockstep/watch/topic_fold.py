"""What the control topic's tail says of a pipeline's newest run: a fold over its messages. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from control_topic.announcements import run_order
from control_topic.messages import (
    EPOCH_LEAD_MAX,
    AbortCommit,
    AckCommit,
    CoordinatorClaim,
    EndCommit,
    Halt,
    ParticipantReady,
    RunAnnounce,
    StartCommit,
    WriteProgress,
    WriteStatus,
)
from lockstep.watch.tail import Heard


@dataclass(slots=True)
class Open:
    """A transaction that was started and neither committed nor aborted, as far as the topic tells."""

    transaction: str
    instant: str
    started_ms: int
    expected: set[str]
    ended: bool = False
    answered: set[str] = field(default_factory=set)
    progress: dict[str, WriteProgress] = field(default_factory=dict)
    progress_ms: int = 0


@dataclass(slots=True)
class Fold:
    """What the control topic's tail says. Times are the broker's, Unix epoch.

    `names`: incarnation -> sender. `driver_ms`: a driver or coordinator was last heard; `heard_ms`: anybody
    was. `waiting_ms`: a worker has held records since then and no transaction was open. `aborts`: in a row.

    Anybody may write to the topic, and nobody here can check a mark. What is certainly no run's is `ignored`
    (counted): a message without any mark, or of an epoch that no run can have reached. `placed`: the run that
    the table's folder says started last, where it says so: then no other run is listened to.
    """

    placed: str = ""
    table_epoch: int = 0
    ignored: int = 0

    run: str = ""
    run_ms: int = 0
    run_order: tuple[int, int, str] = (-1, 0, "")
    epoch: int = 0
    coordinator: str = ""
    coordinator_ms: int = 0
    driver_ms: int = 0
    open: Open | None = None
    committed: tuple[str, str, int] | None = None
    aborts: int = 0
    abort_reason: str = ""
    halted: tuple[str, int] | None = None
    names: dict[str, str] = field(default_factory=dict)
    heard_ms: int = 0
    waiting_ms: int = 0

    def take(self, heard: Heard) -> None:
        """The next message, in topic order. A coordinator's message of a lower epoch is stale: ignored."""
        message, body = heard.message, heard.message.body
        if not heard.marked or message.epoch > self.table_epoch + EPOCH_LEAD_MAX:
            self.ignored += 1
            return
        if self.placed and message.run != self.placed:
            return
        self.names[message.incarnation] = message.sender
        self.heard_ms = heard.time_ms
        if isinstance(body, RunAnnounce):
            order = run_order(message.run, body)
            said_again = bool(self.run_ms) and message.run == self.run
            if said_again or order <= self.run_order:
                return
            self.run_order = order
            self.run, self.run_ms, self.driver_ms = message.run, heard.time_ms, heard.time_ms
            self.halted, self.open, self.waiting_ms = None, None, 0
            return
        if isinstance(body, Halt):  # the run's, whoever claims what epoch
            if not self.run or message.run == self.run:
                self.halted, self.open = (body.reason, heard.time_ms), None
            return
        if message.sender.startswith("coordinator"):
            if message.epoch < self.epoch:
                return
            if message.epoch > self.epoch and isinstance(body, CoordinatorClaim):
                self.open = None
            self.epoch = message.epoch
            self.run = self.run or message.run
            self.coordinator, self.coordinator_ms = message.sender, heard.time_ms
            self.driver_ms = heard.time_ms
        self._take_body(heard)

    def _take_body(self, heard: Heard) -> None:
        message, body = heard.message, heard.message.body
        match body:
            case StartCommit():
                self._start(body, heard.time_ms)
            case EndCommit():
                if self.open is not None and self.open.transaction == body.transaction:
                    self.open.ended = True
            case WriteProgress():
                if self.open is not None and self.open.transaction == body.transaction:
                    self.open.progress[message.incarnation] = body
                    self.open.progress_ms = heard.time_ms
            case WriteStatus():
                if self.open is not None and self.open.transaction == body.transaction:
                    self.open.answered.add(message.incarnation)
            case ParticipantReady():
                self.waiting_ms = self.waiting_ms or heard.time_ms
            case AckCommit() | AbortCommit():
                self._end(body, heard.time_ms)
            case _:
                pass  # JOIN, LEAVE, END_REQUEST and repeated claims change nothing that is shown

    def _start(self, body: StartCommit, time_ms: int) -> None:
        self.waiting_ms = 0
        if self.open is None or self.open.transaction != body.transaction:
            self.open = Open(
                transaction=body.transaction,
                instant=body.instant,
                started_ms=time_ms,
                expected=set(body.writers.values()),
            )

    def _end(self, body: AckCommit | AbortCommit, time_ms: int) -> None:
        self.waiting_ms = 0
        if isinstance(body, AckCommit):
            self.committed = (body.transaction, body.instant, time_ms)
            self.aborts, self.abort_reason = 0, ""
        else:
            self.aborts += 1
            self.abort_reason = body.reason
        if self.open is not None and self.open.transaction == body.transaction:
            self.open = None


def fold(messages: Iterable[Heard], *, placed: str = "", table_epoch: int = 0) -> Fold:
    """All of them, in topic order."""
    state = Fold(placed=placed, table_epoch=table_epoch, run=placed)
    for heard in messages:
        state.take(heard)
    return state

"""The coordinator's machine: its memory, its one `handle(event)`, and what every event passes first.

Pure, like all of the core. The handlers are in coordinator/election.py (earning an epoch) and
coordinator/core.py (transactions).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from control_topic.messages import (
    AbortCommit,
    AckCommit,
    CoordinatorClaim,
    Halt,
    Message,
    SourcePartition,
    WriteStatus,
)
from coordinator.events import (
    Action,
    Call,
    Completed,
    Event,
    Mode,
    Received,
    Result,
    Send,
    Settings,
    Snapshot,
    Stop,
)
from coordinator.owners import Owners
from coordinator.pace import Pace
from coordinator.transaction import Transaction
from coordinator.transitions import IGNORED, TABLE, IllegalEvent, State
from coordinator.voices import Voices

SENDERS_MAX = 1_000
"""Senders whose last sequence number is remembered; who has been silent longest is forgotten first."""


class Machine:
    """What every state shares. The handlers that the table names are in the subclasses.

    `unplaced`: source partitions that somebody has owned and that the table had no offset of.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.state = State.NEW
        self.epoch = 0
        self.highest_epoch = 0
        self.committed: dict[SourcePartition, int] = {}
        self.partitions: frozenset[SourcePartition] = frozenset()
        self.owners = Owners()
        self.unplaced: set[SourcePartition] = set()
        self.admit_at_ms = 0
        self.vacated_ms: int | None = None
        self.dead: dict[str, str] = {}
        self.voices = Voices()
        self.heard: dict[str, int] = {}
        self.ready: set[str] = set()
        self.ready_ms = 0
        self.transaction: Transaction | None = None
        self.decided: dict[str, AckCommit | AbortCommit] = {}
        self.mode = Mode.RUN
        self.mode_ms = 0
        self.halt_reason = ""
        self.final = False
        self.pace = Pace(settings.write_timeout_ms, settings.records_min)
        self.hold_until_ms = 0
        self.next_due_ms = 0
        self.claim_ms = 0
        self.claims = 0
        self.calls = 0
        self.pending: Call | None = None
        self.retry_ms: int | None = None
        self.recover_next = False
        self.ignored: Counter[str] = Counter()
        self._out: list[Action] = []

    # --- the one entry --------------------------------------------------------------------------

    def handle(self, event: Event) -> list[Action]:
        """Take one event, give the actions it causes, in order. Raises `IllegalEvent` on a shell's bug."""
        self._out = []
        kind: type[Any] = type(event.message.body) if isinstance(event, Received) else type(event)
        row = TABLE[self.state]
        if kind not in row:
            raise IllegalEvent(f"{kind.__name__} in {self.state.name}")
        if isinstance(event, Received) and not self._concerns_us(event, event.message):
            return self._out
        if isinstance(event, Completed) and not self._answers_pending(event):
            return self._out
        name = TABLE[self.state][kind]
        if name != IGNORED:
            handler: Callable[[Any], None] = getattr(self, name)
            handler(event)
        elif isinstance(event, Received) and event.message.incarnation != self.settings.incarnation:
            self.ignored[f"{event.message.type_name} in {self.state.name}"] += 1
        return self._out

    def snapshot(self) -> Snapshot:
        """What people want to know about it."""
        open_one = self.transaction
        return Snapshot(
            state=self.state.value,
            epoch=self.epoch,
            transaction=open_one.id if open_one else "",
            instant=open_one.instant if open_one else "",
            started_at_ms=open_one.started_ms if open_one else 0,
            answered=tuple(sorted(open_one.statuses)) if open_one else (),
            missing=tuple(sorted(open_one.missing())) if open_one else (),
            ignored=dict(self.ignored),
        )

    # --- what every event passes ----------------------------------------------------------------

    def _concerns_us(self, event: Received, message: Message) -> bool:
        """Epochs first: whoever knows a higher one fences us. Then only our own run is listened to."""
        if message.pipeline != self.settings.pipeline or self.state in (State.FENCED, State.HALTED):
            return False
        self.highest_epoch = max(self.highest_epoch, message.epoch)
        if self.state not in (State.NEW, State.SURVEYING) and message.epoch > self.epoch:
            self._fence(
                f"{message.sender} ({message.incarnation}) knows epoch {message.epoch}, ours is {self.epoch}"
            )
            return False
        if isinstance(message.body, CoordinatorClaim):
            return True
        if message.run != self.settings.run:
            self.ignored["another run"] += 1
            return False
        if not self._is_news(message):
            self.ignored["heard before"] += 1
            return False
        self.voices.heard(message, event.now_ms)
        return message.incarnation not in self.dead or isinstance(message.body, WriteStatus)

    def _is_news(self, message: Message) -> bool:
        """A sender's messages count once, in its own order: a topic read again says nothing new."""
        last = self.heard.pop(message.incarnation, -1)
        while len(self.heard) >= SENDERS_MAX:
            del self.heard[next(iter(self.heard))]
        self.heard[message.incarnation] = max(last, message.sequence)
        return message.sequence > last

    def _answers_pending(self, event: Completed) -> bool:
        if event.call > self.calls:
            raise IllegalEvent(f"completion of call {event.call}, only {self.calls} were made")
        if self.pending is None or event.call != self.pending.call:
            self.ignored["stale completion"] += 1
            return False
        if event.result is Result.STALE:
            self._fence(event.reason or "the table service knows a newer epoch")
            return False
        return True

    def _send(self, body: Any) -> None:
        self._out.append(Send(body=body, epoch=self.epoch))

    def _call(self, state: State, call: Call) -> None:
        self.state = state
        self.pending = call
        self.retry_ms = None
        self._out.append(call)

    def _next_call(self) -> int:
        self.calls += 1
        return self.calls

    def _retry_later(self, event: Completed) -> None:
        self.retry_ms = event.now_ms + (event.wait_ms or self.settings.retry_ms)

    def on_retry(self, event: Event) -> None:
        """Ask again what went unanswered; a repeated call has a new number, the same meaning."""
        if self.pending is not None and self.retry_ms is not None and event.now_ms >= self.retry_ms:
            self._call(self.state, replace(self.pending, call=self._next_call()))

    def _settled(self) -> None:
        self.pending = None
        self.retry_ms = None

    def _fence(self, reason: str) -> None:
        self.state = State.FENCED
        self.transaction = None
        self._settled()
        self._out.append(Stop(reason=reason, fenced=True))

    def _halt(self, reason: str) -> None:
        self._send(Halt(reason=reason))
        self.state = State.HALTED
        self.halt_reason = reason
        self.transaction = None
        self._settled()
        self._out.append(Stop(reason=reason, fenced=False))

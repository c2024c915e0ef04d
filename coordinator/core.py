"""The coordinator's protocol: a pure state machine with one public `handle(event)`.

No clock, thread, socket, random or log. Which event is legal in which state, and where it leads, is in
coordinator/transitions.py; the messages in control_topic/messages.py; how an epoch is earned in
coordinator/election.py; transactions in coordinator/rounds.py; the theory in docs/protocol.md.

Parts know only those before them: machine, hearing, members, orders; opening, rounds; election; and this,
which knows all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any

from control_topic.messages import (
    CoordinatorClaim,
    Message,
    ParticipantJoin,
    ParticipantLeave,
    SourcePartition,
    WriteStatus,
)
from coordinator.election import Election
from coordinator.events import (
    Action,
    Call,
    Completed,
    Directed,
    Event,
    Outranked,
    Received,
    Result,
    RunMode,
    Settings,
    Snapshot,
    WorkerDied,
)
from coordinator.hearing import Hearing
from coordinator.machine import Machine
from coordinator.members import Members
from coordinator.owners import Owners
from coordinator.pace import Pace
from coordinator.rounds import Rounds
from coordinator.transaction import Transaction
from coordinator.transitions import IGNORED, TABLE, IllegalEvent, IllegalStep, State, Step


class Coordinator:
    """One claim on one epoch, from the survey to its end. A new claim is a new object."""

    def __init__(
        self,
        settings: Settings,
        *,
        hearing: Callable[[str], Hearing] = Hearing,
        pace: Callable[[int, int], Pace] = Pace,
        rounds: Callable[[Machine, Members, Hearing, Pace], Rounds] = Rounds,
    ) -> None:
        self.machine = Machine(settings)
        self.hearing = hearing(settings.run)
        self.members = Members()
        self.rounds = rounds(
            self.machine, self.members, self.hearing, pace(settings.write_timeout_ms, settings.records_min)
        )
        self.election = Election(self.machine, self.hearing, self.rounds)
        self._methods: dict[str, Callable[[Any], None]] = {}

    # --- the one entry --------------------------------------------------------------------------

    def handle(self, event: Event) -> list[Action]:
        """Take one event, give the actions it causes, in order.

        Raises `IllegalEvent` on a shell's bug, `IllegalStep` on one of the core's own.
        """
        machine = self.machine
        machine.out = []
        self.rounds.look_at_the_clock(event)
        kind = type(event.message.body) if isinstance(event, Received) else type(event)
        row = TABLE[machine.state]
        if kind not in row:
            raise IllegalEvent(f"{kind.__name__} in {machine.state.name}")
        if isinstance(event, Received) and not self._concerns_us(event, event.message):
            return machine.out
        if isinstance(event, Completed):
            machine.check_answer(event)
            if event.result is Result.STALE:
                self._outranked(event, event.reason or "the table service knows a newer epoch")
                return machine.out
        step = row[kind]
        if step.method != IGNORED:
            self._follow(step, event, kind)
        elif isinstance(event, Received) and event.message.incarnation != machine.settings.incarnation:
            machine.ignored[f"{event.message.type_name} in {machine.state.name}"] += 1
        return machine.out

    def _follow(self, step: Step, event: Event, kind: type[Any]) -> None:
        before = self.machine.state
        method = self._methods.get(step.method)
        if method is None:
            method = self._methods[step.method] = attrgetter(step.method)(self)
        method(event)
        self._check_step(step, before, kind)
        if not TABLE[self.machine.state]:
            self.rounds.close()

    def _check_step(self, step: Step, before: State, kind: type[Any]) -> None:
        after = self.machine.state
        if after is not before and after not in step.to:
            raise IllegalStep(f"{kind.__name__} led from {before.name} to {after.name}")

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
            ignored=dict(self.machine.ignored),
            settled=self.rounds.orders.settled,
        )

    # --- what every message passes ----------------------------------------------------------------

    def _concerns_us(self, event: Received, message: Message) -> bool:
        """Epochs first: whoever knows a higher one fences us. Then only our own run is listened to."""
        machine, hearing = self.machine, self.hearing
        if message.pipeline != machine.settings.pipeline:
            return False
        hearing.highest_epoch = max(hearing.highest_epoch, message.epoch)
        if machine.epoch and message.epoch > machine.epoch:
            who = f"{message.sender} ({message.incarnation})"
            self._outranked(event, f"{who} knows epoch {message.epoch}, ours is {machine.epoch}")
            return False
        if isinstance(message.body, CoordinatorClaim):
            return True
        refusal = hearing.refusal(message, event.now_ms)
        if refusal:
            machine.ignored[refusal] += 1
            return False
        return message.incarnation not in self.members.dead or isinstance(message.body, WriteStatus)

    def _outranked(self, event: Event, reason: str) -> None:
        step = TABLE[self.machine.state][Outranked]
        outranked = Outranked(now_ms=event.now_ms, nonce=event.nonce, wall_ms=event.wall_ms, reason=reason)
        self._follow(step, outranked, Outranked)

    def on_outranked(self, event: Outranked) -> None:
        self.machine.fence(event.reason)

    # --- who is there ---------------------------------------------------------------------------

    def on_join(self, event: Received) -> None:
        body, who = event.message.body, event.message.incarnation
        assert isinstance(body, ParticipantJoin)
        rounds = self.rounds
        self.members.joined(who, body.partitions, event.now_ms, body.takes_at)
        rounds.unplaced.update(p for p in body.partitions if p not in rounds.committed)
        unheard = self.members.unheard(who)
        if rounds.transaction is None and unheard is not None:
            self.machine.send(unheard)
        if self.state is State.IDLE:
            rounds.maybe_begin(event)

    def on_join_open(self, event: Received) -> None:
        assert isinstance(event.message.body, ParticipantJoin)
        self.on_join(event)
        self.rounds.joined(event, event.message.body)

    def on_leave(self, event: Received) -> None:
        body = event.message.body
        assert isinstance(body, ParticipantLeave)
        self.members.left(event.message.incarnation, body.partitions, event.now_ms)

    def on_leave_open(self, event: Received) -> None:
        assert isinstance(event.message.body, ParticipantLeave)
        self.on_leave(event)
        self.rounds.left(event, event.message.body)

    def on_ready(self, event: Received) -> None:
        self.members.is_ready(event.message.incarnation, event.now_ms)
        if self.state is State.IDLE:
            self.rounds.maybe_begin(event)

    def on_ready_open(self, event: Received) -> None:
        """A writer that says so has not seen START: say it again. Anybody else is ready for the next one."""
        if not self.rounds.answer(event.message.incarnation):
            self.on_ready(event)

    def on_worker_died(self, event: WorkerDied) -> None:
        self.members.died(event.incarnation, event.reason, event.now_ms)

    def on_worker_died_open(self, event: WorkerDied) -> None:
        self.on_worker_died(event)
        self.rounds.died(event)

    def on_directed(self, event: Directed) -> None:
        machine, orders = self.machine, self.rounds.orders
        if event.controls is not None and orders.knows_better(event.controls):
            return  # an answer that is late: its mode is as old
        ordered = event.controls is not None and orders.hear(event.controls, event.now_ms, event.by_the_clock)
        if event.mode is machine.mode and not ordered:
            return
        fresh, machine.mode = event.mode is not machine.mode, event.mode
        if fresh and event.mode is RunMode.HALT:
            machine.halt(event.reason)
            return
        if fresh and event.mode is RunMode.STOP:
            machine.fence(event.reason or "the run stops")
            return
        if fresh and event.mode is RunMode.DRAIN:
            self.rounds.drain(event)
        self.rounds.ordered(event)
        if self.state is State.IDLE:
            self.rounds.maybe_begin(event)

    # --- for shells and people --------------------------------------------------------------------

    @property
    def settings(self) -> Settings:
        return self.machine.settings

    @property
    def state(self) -> State:
        return self.machine.state

    @property
    def epoch(self) -> int:
        """Ours; 0 before it is claimed."""
        return self.machine.epoch

    @property
    def pending(self) -> Call | None:
        """The call that is not answered for good."""
        return self.machine.pending

    @property
    def transaction(self) -> Transaction | None:
        """The one that is open."""
        return self.rounds.transaction

    @property
    def owners(self) -> Owners:
        return self.members.owners

    @property
    def dead(self) -> Mapping[str, str]:
        """Incarnation -> of what it died."""
        return self.members.dead

    @property
    def committed(self) -> Mapping[SourcePartition, int]:
        """The table's offsets, as far as we were told."""
        return self.rounds.committed

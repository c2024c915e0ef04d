"""The participant's protocol: a pure state machine with one public `handle(event)`.

No clock, thread, socket, random or log. It knows offsets and sizes; records stay in the shell. Which event is
legal in which state, and where it leads, is in participant/transitions.py; transactions in
participant/rounds.py; the theory in docs/protocol.md.

Parts know only those before them: machine; hearing, intake; repeats; rounds; and this, which knows all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any

from control_topic.messages import Halt, ParticipantLeave, SourcePartition
from participant.events import (
    Action,
    Assigned,
    Blocked,
    Buffered,
    EffectFailed,
    Event,
    Flushed,
    Leave,
    OffsetsFetched,
    Outcome,
    Outranked,
    Received,
    Revoked,
    Settings,
    Tuned,
)
from participant.hearing import Hearing
from participant.intake import Intake, Owned
from participant.machine import Machine
from participant.repeats import Repeats
from participant.rounds import Rounds
from participant.transitions import IGNORED, TABLE, IllegalEvent, IllegalStep, State, Step
from participant.work import Work


class Participant:
    """One incarnation of one worker, from its first assignment to its end."""

    def __init__(
        self,
        settings: Settings,
        *,
        hearing: Callable[[Machine], Hearing] = Hearing,
        intake: Callable[[Machine], Intake] = Intake,
        repeats: Callable[[Machine, Intake], Repeats] = Repeats,
        rounds: Callable[[Machine, Intake, Repeats], Rounds] = Rounds,
    ) -> None:
        self.machine = Machine(settings)
        self.hearing = hearing(self.machine)
        self.intake = intake(self.machine)
        self.repeats = repeats(self.machine, self.intake)
        self.rounds = rounds(self.machine, self.intake, self.repeats)
        self._methods: dict[str, Callable[[Any], None]] = {}

    # --- the one entry --------------------------------------------------------------------------

    def handle(self, event: Event) -> list[Action]:
        """Take one event, give the actions it causes, in order.

        Raises `IllegalEvent` on a shell's bug, `IllegalStep` on one of the core's own.
        """
        machine = self.machine
        machine.out = []
        kind = type(event.message.body) if isinstance(event, Received) else type(event)
        if kind not in TABLE[machine.state]:
            raise IllegalEvent(f"{kind.__name__} in {machine.state.name}")
        if isinstance(event, Received):
            if not self._concerns_us(event):
                return machine.out
        elif isinstance(event, (OffsetsFetched, Flushed)):
            machine.answered(event.call)
        self._follow(TABLE[machine.state][kind], event, kind)
        return machine.out

    def _follow(self, step: Step, event: Event, kind: type[Any]) -> None:
        if step.method == IGNORED:
            return
        before = self.machine.state
        method = self._methods.get(step.method)
        if method is None:
            method = self._methods[step.method] = attrgetter(step.method)(self)
        method(event)
        after = self.machine.state
        if after is not before and after not in step.to:
            raise IllegalStep(f"{kind.__name__} led from {before.name} to {after.name}")

    def _concerns_us(self, event: Received) -> bool:
        """A higher epoch is always learned; a lower one, or another run, never obeyed."""
        message = event.message
        if message.pipeline != self.machine.settings.pipeline:
            return False
        if message.epoch > self.machine.epoch:
            outranked = Outranked(now_ms=event.now_ms, epoch=message.epoch)
            self._follow(TABLE[self.state][Outranked], outranked, Outranked)
        return self.hearing.concerns_us(message)

    def on_outranked(self, event: Outranked) -> None:
        self.machine.epoch = event.epoch
        self.hearing.outranked()
        if self.rounds.work is not None:
            self.rounds.outlive(event)

    # --- membership -----------------------------------------------------------------------------

    def on_assigned(self, event: Assigned) -> None:
        """Raises `IllegalEvent` for what is owned already: its records would count as read from elsewhere."""
        again = sorted(event.offsets.keys() & self.owned.keys())
        if again:
            raise IllegalEvent(
                f"{', '.join(map(str, again))}: assigned, but not given up since the last time"
            )
        for partition, offset in sorted(event.offsets.items()):
            self.intake.own(partition, offset)
            self.repeats.unlisted.add(partition)
        if self.intake.unresolved:
            self.repeats.fetch()
        self._join_anew()
        self.repeats.join(event.now_ms)
        self.intake.meter(self.rounds.open_work)

    def on_offsets_fetched(self, event: OffsetsFetched) -> None:
        """A source partition that the table has no offset of is not read: its log may begin anywhere."""
        committed = event.committed if event.outcome is Outcome.SUCCEEDED else {}
        for partition, owned in sorted(self.owned.items()):
            if not owned.resolved and partition in committed:
                self.intake.place(partition, committed[partition])
        self.repeats.fetched(event)

    def on_revoked(self, event: Revoked) -> None:
        """Open data dies with its source partition; what is reported belongs to the transaction."""
        gone = tuple(p for p in event.partitions if p in self.owned)
        transaction = self.rounds.revoked(gone)
        self.repeats.unlisted.difference_update(gone)
        for partition in gone:
            self.intake.drop(partition)
        work = self.rounds.open_work
        if work is not None and (transaction or not work.partitions):
            self.rounds.abandon()
        if gone:
            self.machine.send(ParticipantLeave(partitions=tuple(sorted(gone)), transaction=transaction))
        if not self.owned:
            self._join_anew()
        self.intake.meter(self.rounds.open_work)

    def on_claim(self, event: Received) -> None:
        """Tell the new coordinator who is there, without waiting for it to ask."""
        self._join_anew()
        self.repeats.all_unlisted()
        self.repeats.soon(event.now_ms)
        self.repeats.join(event.now_ms)
        self._maybe_ready(event)

    def _join_anew(self) -> None:
        if self.state is State.WAITING:
            self.machine.state = State.JOINING

    # --- chunks and time --------------------------------------------------------------------------

    def on_buffered(self, event: Buffered) -> None:
        if self.intake.add(event):
            self.rounds.buffered(event)
            self.intake.meter(self.rounds.open_work)
            self._maybe_ready(event)

    def on_blocked(self, event: Blocked) -> None:
        if self.intake.block(event):
            self._maybe_ready(event)

    def on_tick(self, event: Event) -> None:
        self.repeats.refetch(event.now_ms)
        if self.repeats.unlisted:
            self.repeats.join_again(event.now_ms)
        self._maybe_ready(event)

    def _maybe_ready(self, event: Event) -> None:
        if self.work is None:
            self.repeats.ready(event.now_ms)

    # --- the end --------------------------------------------------------------------------------

    def on_halt(self, event: Received) -> None:
        body = event.message.body
        assert isinstance(body, Halt)
        self.rounds.stop(body.reason, failed=False)

    def on_tuned(self, event: Tuned) -> None:
        self.machine.tuning = event.tuning
        if self.work is None:
            self.machine.tune()

    def on_leave(self, event: Leave) -> None:
        self.rounds.stop(event.reason, failed=False)

    def on_effect_failed(self, event: EffectFailed) -> None:
        self.rounds.stop(event.reason, failed=True)

    # --- for shells and people --------------------------------------------------------------------

    @property
    def state(self) -> State:
        return self.machine.state

    @property
    def epoch(self) -> int:
        """The highest that was heard of."""
        return self.machine.epoch

    @property
    def settings(self) -> Settings:
        return self.machine.settings

    @property
    def owned(self) -> Mapping[SourcePartition, Owned]:
        """Our source partitions."""
        return self.intake.owned

    @property
    def work(self) -> Work | None:
        """The transaction that we take part in."""
        return self.rounds.work

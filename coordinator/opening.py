"""How a transaction begins, and is ended or given up: the first half of `coordinator.rounds`. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from control_topic import causes
from control_topic.messages import EndCommit, SourcePartition, StartCommit, Witnesses
from coordinator.appointments import Appointments
from coordinator.events import Abort, Begin, Completed, Event, Fault, Result, RunMode, Settings
from coordinator.exchange import Exchange
from coordinator.hearing import Hearing
from coordinator.machine import Machine
from coordinator.members import Members
from coordinator.orders import Orders
from coordinator.pace import Pace
from coordinator.transaction import Transaction
from coordinator.transitions import State

SHORTEST = 4
"""A transaction that is due when it begins still lasts this part of the interval."""

FAULTS: Mapping[str, Fault] = {
    causes.NOTHING: Fault.NONE,
    causes.WORKER_LEFT: Fault.NONE,
    causes.TAKEN_OVER: Fault.NONE,
    causes.WORKER_DIED: Fault.PIPELINE,
    causes.SILENT: Fault.PIPELINE,
    causes.TOO_LONG: Fault.PIPELINE,
    causes.NOT_TAKEN: Fault.PIPELINE,
    causes.REFUSED: Fault.PIPELINE,
    causes.NOT_LANDED: Fault.ENVIRONMENT,
}
"""Whose fault an abort is, by its cause."""


class Opening:
    """From IDLE to an open transaction, and how one is ended or given up."""

    def __init__(self, machine: Machine, members: Members, hearing: Hearing, pace: Pace) -> None:
        self.machine = machine
        self.members = members
        self.pace = pace
        self._hearing = hearing
        self.orders = Orders(machine)
        self.appointments = Appointments(machine.settings)
        self.exchange = Exchange()
        self.committed: dict[SourcePartition, int] = {}
        """The table's offsets, as recovery, START or a commit of ours gave them."""
        self.partitions: frozenset[SourcePartition] = frozenset()
        """All that the source has."""
        self.unplaced: set[SourcePartition] = set()
        """Those that somebody has owned and that the table had no offset of."""
        self.writers: Mapping[SourcePartition, str] = {}
        """Who wrote what in the last transaction that was committed: they know what they read."""
        self.transaction: Transaction | None = None
        self.hold_until_ms = 0
        """Nothing begins before."""
        self.recover_next = False
        """The table is not as it was believed to be: it is read anew before anything else."""
        self._admit_at_ms = 0
        self._next_due_ms = 0
        self._idle_ms = 0
        self._drained_ms = 0
        self._is_last = False
        """A drain's own transaction was ended: none comes after it."""

    @property
    def _settings(self) -> Settings:
        return self.machine.settings

    def drain(self, event: Event) -> None:
        """One more transaction for whoever still holds records."""
        self._drained_ms = event.now_ms
        if self.machine.state is State.STARTED:
            self.end(event, causes.DRAIN)

    def ordered(self, event: Event) -> None:
        """An operator may want what is open to end."""
        if self.machine.state is State.STARTED and (reason := self._ends_at_once(event)):
            self.end(event, reason)

    def _ends_at_once(self, event: Event) -> str:
        """Why a transaction is ended as soon as it has started; empty where it is not."""
        if self.machine.mode is RunMode.DRAIN:
            return causes.DRAIN
        wanted = self.machine.mode is RunMode.PAUSE or self.orders.wants_commit(event.now_ms)
        return causes.REQUESTED if wanted else ""

    def close(self) -> None:
        """The coordinator's end: what is open is a successor's to settle."""
        self.transaction = None

    # --- a transaction begins -------------------------------------------------------------------

    def begin_from(self, event: Completed) -> None:
        """The table is ours, and this is where it stands."""
        self.committed = dict(event.committed)
        self.partitions = event.partitions
        self.unplaced = set(self.members.owners.keys() - self.committed.keys())
        self.recover_next = False
        self.orders.taken_over(event.now_ms)
        self.go_idle(event)

    def go_idle(self, event: Event) -> None:
        """Nothing is open, and nothing is asked."""
        self.machine.state = State.IDLE
        self._idle_ms = event.now_ms
        self.maybe_begin(event)

    def look_at_the_clock(self, event: Event) -> None:
        """Before every event. Whoever says READY holds records, and so may everybody while a transaction is
        under way, or nobody is heard yet.
        """
        unheard = (
            self.machine.state is not State.IDLE or event.now_ms < self._idle_ms + self._settings.settle_ms
        )
        self.appointments.look(event, held=unheard or bool(self.members.ready))

    def on_idle_tick(self, event: Event) -> None:
        self.maybe_begin(event)

    def maybe_begin(self, event: Event) -> None:
        """Begin on the first READY, once every source partition has an owner or has had time to find one.

        A draining coordinator runs one more transaction for whoever still holds records, then is DRAINED. One
        that is paused begins none. An operator's commit begins one whoever is ready: that nobody says READY
        proves nothing, for words get lost.
        """
        if self.machine.mode is RunMode.DRAIN and (self._is_last or self._nobody_is_left(event)):
            self.machine.state = State.DRAINED
            return
        if self._admits(event) or event.now_ms < self.hold_until_ms:
            return
        wanted = self.orders.wants_commit(event.now_ms)
        if not wanted and (self.machine.mode is RunMode.PAUSE or not self.members.ready):
            return
        complete = bool(self.partitions) and self.members.owners.cover(self.partitions)
        since_ms = self.members.waiting_since_ms() if self.members.ready else self.orders.since_ms
        if not complete and event.now_ms - since_ms < self._settings.settle_ms:
            return
        self.appointments.follow(self.orders.by_the_clock, event)
        if not self.members.owners or self.appointments.is_at_an_edge(event):
            return
        self.transaction = Transaction(id=event.nonce, stretch=self.appointments.stretch(event))
        epoch, transaction = self.machine.epoch, event.nonce
        self.machine.call(
            State.BEGINNING, lambda call: Begin(call=call, epoch=epoch, transaction=transaction)
        )

    def _nobody_is_left(self, event: Event) -> bool:
        """Whether nobody has said that it holds records for long enough since the drain began."""
        return not self.members.ready and event.now_ms - self._drained_ms >= self._settings.settle_ms

    def _admits(self, event: Event) -> bool:
        """Whether source partitions are new to the table: recovery gives them a place before any START does.

        One that the broker does not name either is nobody's to write, and is asked for again later.
        """
        self.unplaced = {p for p in self.unplaced if p in self.members.owners and p not in self.committed}
        due = event.now_ms >= max(self.hold_until_ms, self._admit_at_ms)
        if not self.unplaced or not due or self.machine.mode is not RunMode.RUN:
            return False
        self._admit_at_ms = event.now_ms + self._settings.admit_ms
        self.machine.recover()
        return True

    def on_begun(self, event: Completed) -> None:
        transaction = self._open()
        if event.result is Result.OK:
            self._start(event, transaction)
        elif event.result is Result.HALTED:
            self.machine.halt(event.reason)
        elif event.result is Result.REFUSED:
            self.machine.settled()
            self.transaction = None
            self.hold_until_ms = event.now_ms + (event.wait_ms or self._settings.retry_ms)
            self.machine.recover()
        else:
            # The same again: an attempt before this one may have opened an instant.
            self.machine.retry_later(event)

    def _start(self, event: Completed, transaction: Transaction) -> None:
        self.machine.settled()
        self.committed = dict(event.committed)
        transaction.instant = event.instant
        if not self.appointments.may_start(event, transaction.stretch):
            self.abort(
                event,
                causes.NOTHING,
                "it was begun in one stretch of transaction.align, and began in the next",
            )
            return
        self._tune()
        transaction.started_ms = event.now_ms
        transaction.due_ms = self._due_ms(event)
        transaction.committed = dict(self.committed)
        transaction.expect(self._writers())
        transaction.witnesses = self._witnesses(event, transaction)
        transaction.takers = self.exchange.takers(transaction.owed, self.members.takes_at)
        transaction.watermark_ms = event.watermark_ms
        transaction.records_max = self.pace.records_max
        self.members.ready.clear()
        if not transaction.owed:
            self.abort(event, causes.WORKER_LEFT, "everybody left before the transaction began")
            return
        self.machine.state = State.STARTED
        self._send_start(transaction)
        if reason := self._ends_at_once(event):
            self.end(event, reason)

    def _tune(self) -> None:
        """What operators have set counts from here on."""
        before, now = self._settings, self.orders.tune(self._settings)
        if now != before:
            self.machine.settings = now
            self._next_due_ms += now.interval_ms - before.interval_ms
            self.pace.be_patient(now.write_timeout_ms)

    def _writers(self) -> dict[SourcePartition, str]:
        """Who writes what: only source partitions that the table has a place for."""
        return {p: who for p, who in self.members.owners.items() if p in self.committed}

    def _witnesses(self, event: Completed, transaction: Transaction) -> Witnesses:
        """For whoever may begin to read: of all the table's they would be most of START."""
        return {
            witness.partition: witness
            for witness in event.witnesses
            if (who := transaction.writers.get(witness.partition))
            and who != self.writers.get(witness.partition)
        }

    def _due_ms(self, event: Event) -> int:
        """One interval after the end of the one before: its records have been collected since then.

        What an abort sent back has waited already, and is due when it was; so has what was there before this
        coordinator.
        """
        soonest_ms = event.now_ms + self._settings.interval_ms // SHORTEST
        latest_ms = event.now_ms + self._settings.interval_ms
        return min(latest_ms, max(soonest_ms, self._next_due_ms))

    def _soon_ms(self) -> int:
        """How long a transaction lasts that makes a scheduled time good: its writers may have gone back."""
        return min(self._settings.interval_ms // SHORTEST, self._settings.settle_ms)

    def _send_start(self, transaction: Transaction) -> None:
        self.machine.send(
            StartCommit(
                transaction=transaction.id,
                instant=transaction.instant,
                committed=transaction.committed,
                writers=transaction.writers,
                records_max=transaction.records_max,
                witnesses=transaction.witnesses,
                watermark_ms=transaction.watermark_ms,
                takers=transaction.takers,
            )
        )

    def _open(self) -> Transaction:
        """The one that is open. Its states have one: an assertion, no case."""
        assert self.transaction is not None, f"no transaction in {self.machine.state.name}"
        return self.transaction

    # --- it is ended, or given up ---------------------------------------------------------------

    def end(self, event: Event, reason: str) -> None:
        """`reason`: of `control_topic.causes.END_REASONS`, or `OTHER`."""
        transaction = self._open()
        self.machine.state = State.ENDED
        transaction.end_reason = reason
        transaction.settles = self.orders.commit
        transaction.makes_good, self.appointments.owed = self.appointments.owed, False
        self._is_last = self.machine.mode is RunMode.DRAIN
        transaction.ended_ms = transaction.repeated_ms = event.now_ms
        self._next_due_ms = event.now_ms + self._settings.interval_ms
        self._send_end(transaction)

    def _send_end(self, transaction: Transaction) -> None:
        self.machine.send(EndCommit(transaction=transaction.id, reason=transaction.end_reason))

    def abort(self, event: Event, cause: str, reason: str) -> None:
        """Give it up: its instant is rolled back before anybody is told."""
        transaction, epoch = self._open(), self.machine.epoch
        self.machine.call(
            State.ABORTING,
            lambda call: Abort(
                call=call,
                epoch=epoch,
                transaction=transaction.id,
                instant=transaction.instant,
                reason=reason,
                fault=FAULTS[cause],
                cause=cause,
            ),
        )

"""The coordinator's protocol: a pure state machine with one public `handle(event)`.

No clock, thread, socket, random or log. The legal events are in coordinator/transitions.py; the messages
in control_topic/messages.py; how an epoch is earned in coordinator/election.py; the theory in
docs/protocol.md.
"""

from __future__ import annotations

from control_topic.messages import (
    AbortCommit,
    AckCommit,
    EndCommit,
    EndRequest,
    ParticipantJoin,
    ParticipantLeave,
    SourcePartition,
    StartCommit,
    WriteProgress,
    WriteStatus,
)
from coordinator.election import Election
from coordinator.events import (
    Abort,
    Begin,
    Commit,
    Completed,
    Directed,
    Event,
    Fault,
    Find,
    Mode,
    Received,
    Recover,
    Result,
    WorkerDied,
)
from coordinator.transaction import Transaction
from coordinator.transitions import State

DEAD_MAX = 1_000
"""Dead incarnations remembered; the oldest are forgotten first."""

SHORTEST = 4
"""A transaction that is due when it begins still lasts this part of the interval."""


PROGRESS_REPEATS = 3
"""Who was writing and has said nothing for so many repeats is asked again."""


class Coordinator(Election):
    """One claim on one epoch, from the survey to its end. A new claim is a new object."""

    # --- who is there ---------------------------------------------------------------------------

    def on_join(self, event: Received) -> None:
        body, who = event.message.body, event.message.incarnation
        assert isinstance(body, ParticipantJoin)
        self._vacated(event, self.owners.assign(who, body.partitions))
        self.unplaced.update(p for p in body.partitions if p not in self.committed)
        if self.transaction is None and who in self.decided:
            self._send(self.decided[who])
        if self.state is State.IDLE:
            self._maybe_begin(event)

    def on_leave(self, event: Received) -> None:
        body, who = event.message.body, event.message.incarnation
        assert isinstance(body, ParticipantLeave)
        self._vacated(event, self.owners.release(who, body.partitions))
        if who not in self.owners.incarnations():
            self.ready.discard(who)

    def on_ready(self, event: Received) -> None:
        if not self.ready:
            self.ready_ms = event.now_ms
        self.ready.add(event.message.incarnation)
        self.decided.pop(event.message.incarnation, None)
        if self.state is State.IDLE:
            self._maybe_begin(event)

    def on_worker_died(self, event: WorkerDied) -> None:
        while len(self.dead) >= DEAD_MAX:
            del self.dead[next(iter(self.dead))]
        self.dead[event.incarnation] = event.reason
        self.ready.discard(event.incarnation)
        self._vacated(event, self.owners.remove(event.incarnation))

    def _vacated(self, event: Event, vacated: bool) -> None:
        """Whether a source partition has just lost its owner."""
        if vacated:
            self.vacated_ms = event.now_ms

    def on_directed(self, event: Directed) -> None:
        if event.mode is self.mode:
            return
        self.mode, self.mode_ms = event.mode, event.now_ms
        if event.mode is Mode.HALT:
            self._halt(event.reason)
        elif event.mode is Mode.STOP:
            self._fence(event.reason or "the run stops")
        elif event.mode is Mode.DRAIN and self.state is State.STARTED:
            self._end(event)
        elif self.state is State.IDLE:
            self._maybe_begin(event)

    # --- a transaction begins -------------------------------------------------------------------

    def on_idle_tick(self, event: Event) -> None:
        self._maybe_begin(event)

    def _maybe_begin(self, event: Event) -> None:
        """Begin on the first READY, once every source partition has an owner or has had time to find one.

        A draining coordinator runs one more transaction for whoever still holds records, then is DRAINED.
        """
        if self.mode is Mode.DRAIN and (
            self.final or (not self.ready and event.now_ms - self.mode_ms >= self.settings.settle_ms)
        ):
            self.state = State.DRAINED
            return
        if self._admits(event):
            return
        if not self.ready or event.now_ms < self.hold_until_ms:
            return
        complete = bool(self.partitions) and self.owners.cover(self.partitions)
        since_ms = min(at for at in (self.ready_ms, self.vacated_ms) if at is not None)
        if not complete and event.now_ms - since_ms < self.settings.settle_ms:
            return
        if not self.owners:
            return
        self.transaction = Transaction(id=event.nonce)
        self._call(State.BEGINNING, Begin(call=self._next_call(), epoch=self.epoch, transaction=event.nonce))

    def _admits(self, event: Event) -> bool:
        """Whether source partitions are new to the table: recovery gives them a place before any START does.

        One that the broker does not name either is nobody's to write, and is asked for again later.
        """
        self.unplaced = {p for p in self.unplaced if p in self.owners and p not in self.committed}
        due = event.now_ms >= max(self.hold_until_ms, self.admit_at_ms)
        if not self.unplaced or not due or self.mode is not Mode.RUN:
            return False
        self.admit_at_ms = event.now_ms + self.settings.admit_ms
        self._call(State.RECOVERING, Recover(call=self._next_call(), epoch=self.epoch))
        return True

    def on_begun(self, event: Completed) -> None:
        transaction = self._open()
        if event.result is Result.OK:
            self._start(event, transaction)
        elif event.result is Result.HALTED:
            self._halt(event.reason)
        elif event.result is Result.REFUSED:
            self._settled()
            self.transaction = None
            self.hold_until_ms = event.now_ms + (event.wait_ms or self.settings.retry_ms)
            self._call(State.RECOVERING, Recover(call=self._next_call(), epoch=self.epoch))
        else:
            self._retry_later(event)  # the same again: an attempt before this one may have opened an instant

    def _start(self, event: Completed, transaction: Transaction) -> None:
        self._settled()
        self.committed = dict(event.committed)
        transaction.instant = event.instant
        transaction.started_ms = event.now_ms
        transaction.due_ms = self._due_ms(event)
        transaction.committed = dict(self.committed)
        transaction.expect(self._writers())
        transaction.records_max = self.pace.records_max
        self.ready.clear()
        if not transaction.owed:
            self._abort(event, "everybody left before the transaction began", Fault.NONE)
            return
        self.state = State.STARTED
        self._send_start(transaction)
        if self.mode is Mode.DRAIN:
            self._end(event)

    def _writers(self) -> dict[SourcePartition, str]:
        """Who writes what: only source partitions that the table has a place for."""
        return {p: who for p, who in self.owners.items() if p in self.committed}

    def _due_ms(self, event: Event) -> int:
        """One interval after the end of the one before: its records have been collected since then.

        What an abort sent back has waited already, and is due when it was; so has what was there before this
        coordinator.
        """
        soonest_ms = event.now_ms + self.settings.interval_ms // SHORTEST
        latest_ms = event.now_ms + self.settings.interval_ms
        return min(latest_ms, max(soonest_ms, self.next_due_ms))

    def _send_start(self, transaction: Transaction) -> None:
        self._send(
            StartCommit(
                transaction=transaction.id,
                instant=transaction.instant,
                committed=transaction.committed,
                writers=transaction.writers,
                records_max=transaction.records_max,
            )
        )

    def _open(self) -> Transaction:
        assert self.transaction is not None, f"no transaction in {self.state.name}"
        return self.transaction

    # --- while it is open -----------------------------------------------------------------------

    def on_started_tick(self, event: Event) -> None:
        if event.now_ms >= self._open().due_ms:
            self._end(event)

    def on_end_request(self, event: Received) -> None:
        body, who, transaction = event.message.body, event.message.incarnation, self._open()
        assert isinstance(body, EndRequest)
        if body.transaction != transaction.id or who not in transaction.incarnations():
            self.ignored["END_REQUEST of another transaction"] += 1
            return
        if body.reason == "reached_end":
            transaction.at_end.add(who)
            if not transaction.incarnations() <= transaction.at_end:
                return
        self._end(event)

    def _end(self, event: Event) -> None:
        transaction = self._open()
        self.state = State.ENDED
        self.final = self.mode is Mode.DRAIN
        transaction.ended_ms = transaction.repeated_ms = event.now_ms
        self.next_due_ms = event.now_ms + self.settings.interval_ms
        self._send(EndCommit(transaction=transaction.id))

    def on_join_open(self, event: Received) -> None:
        """A new incarnation on a partition still owed ends the transaction; the listed one is answered."""
        body, who, transaction = event.message.body, event.message.incarnation, self._open()
        assert isinstance(body, ParticipantJoin)
        self.on_join(event)
        taken = [p for p in body.partitions if transaction.owing(p) not in ("", who)]
        if taken:
            self._abort(event, f"{taken[0]} was taken over by a new {event.message.sender}", Fault.NONE)
        else:
            self._answer(who, transaction)

    def on_ready_open(self, event: Received) -> None:
        """A writer that says so has not seen START: say it again. Anybody else is ready for the next one."""
        who, transaction = event.message.incarnation, self._open()
        if who in transaction.missing():
            self._answer(who, transaction)
        else:
            self.on_ready(event)

    def _answer(self, who: str, transaction: Transaction) -> None:
        if who in transaction.missing():
            self._send_start(transaction)
            if self.state is State.ENDED:
                self._send(EndCommit(transaction=transaction.id))

    def on_leave_open(self, event: Received) -> None:
        body, who, transaction = event.message.body, event.message.incarnation, self._open()
        assert isinstance(body, ParticipantLeave)
        self.on_leave(event)
        if who in transaction.statuses:
            return  # its files belong to the transaction
        left = transaction.owed_by(who)
        if body.transaction == transaction.id and left:
            why = f": {body.reason}" if body.reason else ""
            self._abort(event, f"{event.message.sender} left {min(left)} with open data{why}", Fault.NONE)
            return
        transaction.excuse(left & set(body.partitions))
        if not transaction.owed:
            self._abort(event, "everybody left", Fault.NONE)
        elif self.state is State.ENDED:
            self._maybe_commit(event)

    def on_worker_died_open(self, event: WorkerDied) -> None:
        self.on_worker_died(event)
        transaction = self._open()
        if event.incarnation in transaction.missing():
            reason = event.reason or f"{self.voices.name(event.incarnation)} died"
            self._abort(event, reason, Fault.PIPELINE)

    def on_write_status(self, event: Received) -> None:
        body, who, transaction = event.message.body, event.message.incarnation, self._open()
        assert isinstance(body, WriteStatus)
        refusal = "a repeat" if who in transaction.statuses else transaction.refusal(who, body)
        if refusal:
            self.ignored[f"WRITE_STATUS: {refusal}"] += 1
            return
        transaction.take(who, body)
        self._maybe_commit(event)

    def on_write_progress(self, event: Received) -> None:
        """It is waited for as long as it gets on."""
        body, who, transaction = event.message.body, event.message.incarnation, self._open()
        assert isinstance(body, WriteProgress)
        if body.transaction != transaction.id or not transaction.advance(who, body, event.now_ms):
            self.ignored["WRITE_PROGRESS: no step further"] += 1

    def on_ended_tick(self, event: Event) -> None:
        """Silence ends a transaction, length only at the limit."""
        transaction, settings = self._open(), self.settings
        waited_ms = event.now_ms - transaction.ended_ms
        silent = transaction.silent(event.now_ms, settings.write_timeout_ms)
        if silent:
            who = self.voices.last_words(silent, event.now_ms)
            self._give_up_writing(event, f"no WRITE_STATUS from {who} within {waited_ms / 1000:.1f} s")
        elif waited_ms >= settings.write_limit_ms:
            who = self.voices.last_words(transaction.missing(), event.now_ms)
            self._give_up_writing(
                event,
                f"{who} still wrote files after {waited_ms / 1000:.1f} s (transaction.write_limit); the next "
                "transactions are made smaller",
            )
        elif event.now_ms - transaction.repeated_ms >= settings.repeat_ms and self._is_quiet(event):
            transaction.repeated_ms = event.now_ms
            self._send(EndCommit(transaction=transaction.id))

    def _is_quiet(self, event: Event) -> bool:
        """Whether somebody may not have heard END, or its WRITE_STATUS was lost.

        While all who are awaited say how far they are, a repeat would only have the others report again.
        """
        transaction, repeat_ms = self._open(), self.settings.repeat_ms
        unheard = transaction.missing() - transaction.progress.keys()
        return bool(unheard or transaction.silent(event.now_ms, PROGRESS_REPEATS * repeat_ms))

    def _give_up_writing(self, event: Event, reason: str) -> None:
        transaction = self._open()
        if transaction.progress:
            self.pace.given_up(transaction.records())
        self._abort(event, reason, Fault.PIPELINE)

    # --- commit, or not -------------------------------------------------------------------------

    def _maybe_commit(self, event: Event) -> None:
        transaction = self._open()
        if transaction.missing():
            return
        self.pace.written(event.now_ms - transaction.ended_ms, transaction.records())
        if transaction.is_empty():
            self._abort(event, "nothing to commit", Fault.NONE)
            return
        self._call(
            State.COMMITTING,
            Commit(
                call=self._next_call(),
                epoch=self.epoch,
                transaction=transaction.id,
                instant=transaction.instant,
                expected=transaction.committed,
                statuses=tuple(transaction.statuses[who] for who in sorted(transaction.statuses)),
            ),
        )

    def on_commit_completed(self, event: Completed) -> None:
        transaction = self._open()
        if event.result in (Result.OK, Result.COMMITTED):
            self._committed(event)
        elif event.result is Result.UNAVAILABLE:
            self._retry_later(event)
        elif event.result in (Result.REFUSED, Result.HALTED):
            self.recover_next = True
            self._abort(event, f"the table refused the commit: {event.reason}", Fault.PIPELINE)
        else:
            call = Find(call=self._next_call(), transaction=transaction.id, ranges=transaction.ranges())
            self._call(State.RESOLVING, call)

    def on_found(self, event: Completed) -> None:
        if event.result is Result.COMMITTED:
            self._committed(event)
        elif event.result is Result.HALTED:  # whether it was looked for, nobody says
            self.recover_next = True
            self._abort(event, f"what became of the commit is not known: {event.reason}", Fault.ENVIRONMENT)
        elif event.result in (Result.ABSENT, Result.REFUSED):
            self.recover_next = True
            self._abort(event, "the commit did not land", Fault.ENVIRONMENT)
        else:
            self._retry_later(event)

    def _committed(self, event: Completed) -> None:
        """Durable and seen to be: only now is it acknowledged."""
        transaction = self._open()
        self._settled()
        for status in transaction.statuses.values():
            self.committed.update({r.partition: r.next for r in status.ranges})
        ack = AckCommit(
            transaction=transaction.id, instant=transaction.instant, committed=dict(self.committed)
        )
        self.hold_until_ms = 0
        self._decide(transaction, ack)
        self._next(event)

    def _decide(self, transaction: Transaction, decision: AckCommit | AbortCommit) -> None:
        """Say what became of it, and keep it for each writer until it is heard of again: words get lost."""
        present = self.owners.incarnations()
        self.decided = {who: earlier for who, earlier in self.decided.items() if who in present}
        self.decided.update(dict.fromkeys(transaction.writers.values(), decision))
        self.transaction = None
        self._send(decision)

    def _abort(self, event: Event, reason: str, fault: Fault) -> None:
        transaction = self._open()
        self._call(
            State.ABORTING,
            Abort(
                call=self._next_call(),
                epoch=self.epoch,
                transaction=transaction.id,
                instant=transaction.instant,
                reason=reason,
                fault=fault,
            ),
        )

    def on_aborted(self, event: Completed) -> None:
        call = self.pending
        assert isinstance(call, Abort)
        if event.result is Result.COMMITTED:
            self._committed(event)
        elif event.result is Result.HALTED:
            # Maybe not rolled back: a commit that is late may land, so nobody is told that it was aborted.
            # Whoever recovers the table sees what became of it.
            self._halt(event.reason)
        elif event.result is Result.OK:
            self._settled()
            self.final = False
            self.mode_ms = event.now_ms  # a drain gives its writers time to say READY again
            self.hold_until_ms = event.now_ms + event.wait_ms
            if not self._open().came_to_nothing():
                self.next_due_ms = self._open().due_ms
            self._decide(self._open(), AbortCommit(transaction=call.transaction, reason=call.reason))
            self._next(event)
        else:
            self._retry_later(event)

    def _next(self, event: Event) -> None:
        if self.recover_next:
            self._call(State.RECOVERING, Recover(call=self._next_call(), epoch=self.epoch))
        else:
            self.state = State.IDLE
            self._maybe_begin(event)

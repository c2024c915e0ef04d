"""Transactions, one after the other: begun (`coordinator.opening`), ended, committed or aborted. The
coordinator's core, without the election that comes before and the members that come and go. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping

from control_topic import causes
from control_topic.messages import (
    AbortCommit,
    AckCommit,
    EndRequest,
    ParticipantJoin,
    ParticipantLeave,
    WriteProgress,
    WriteStatus,
)
from coordinator.events import (
    Abort,
    Commit,
    Completed,
    Event,
    Find,
    Received,
    Result,
    WorkerDied,
)
from coordinator.exchange import disagreement
from coordinator.opening import Opening
from coordinator.transaction import Transaction
from coordinator.transitions import State

PROGRESS_REPEATS = 3
"""Who was writing and has said nothing for so many repeats is asked again."""

UNTIMED: Mapping[str, int] = {}
"""Of a commit that was found, and not seen."""


class Rounds(Opening):
    """IDLE to IDLE, again and again."""

    # --- while it is open -----------------------------------------------------------------------

    def on_started_tick(self, event: Event) -> None:
        transaction = self._open()
        if self.appointments.is_over(event, transaction.stretch):
            self.end(event, causes.ALIGN)
        elif self.appointments.owed and event.now_ms >= transaction.started_ms + self._soon_ms():
            self.end(event, causes.SCHEDULE)
        elif event.now_ms >= transaction.due_ms:
            self.end(event, causes.INTERVAL)
        else:
            self.ordered(event)  # a commit that failed waits before it is tried again

    def on_end_request(self, event: Received) -> None:
        body, who, transaction = event.message.body, event.message.incarnation, self._open()
        assert isinstance(body, EndRequest)
        if body.transaction != transaction.id or who not in transaction.incarnations():
            self.machine.ignored["END_REQUEST of another transaction"] += 1
            return
        if body.reason == causes.REACHED_END:
            transaction.at_end.add(who)
            if not transaction.incarnations() <= transaction.at_end:
                return
        self.end(event, causes.known(body.reason, causes.END_REASONS) or causes.OTHER)

    def joined(self, event: Received, body: ParticipantJoin) -> None:
        """A new incarnation on a partition still owed ends the transaction; the listed one is answered."""
        who, transaction = event.message.incarnation, self._open()
        taken = [p for p in body.partitions if transaction.owing(p) not in ("", who)]
        if taken:
            said = f"{taken[0]} was taken over by a new {event.message.sender}"
            self.abort(event, causes.TAKEN_OVER, said)
        else:
            self.answer(who)

    def answer(self, who: str) -> bool:
        """Tell a writer again what is asked of it. False where nothing is."""
        transaction = self._open()
        if who not in transaction.missing():
            return False
        self._send_start(transaction)
        if self.machine.state is State.ENDED:
            self._send_end(transaction)
        return True

    def left(self, event: Received, body: ParticipantLeave) -> None:
        """What it had open is missing; what it has reported belongs to the transaction."""
        who, transaction = event.message.incarnation, self._open()
        if who in transaction.statuses:
            return
        owed = frozenset(transaction.owed_by(who))
        if body.transaction == transaction.id and owed:
            why = f": {body.reason}" if body.reason else ""
            said = f"{event.message.sender} left {min(owed)} with open data{why}"
            self.abort(event, causes.WORKER_LEFT, said)
            return
        transaction.excuse(owed & set(body.partitions))
        if not transaction.owed:
            self.abort(event, causes.WORKER_LEFT, "everybody left")
        elif transaction.takers and who not in transaction.owed and owed:
            said = f"{event.message.sender} left, and others wait for rows that it was to hand over"
            self.abort(event, causes.WORKER_LEFT, said)
        elif self.machine.state is State.ENDED:
            self._maybe_commit(event)

    def died(self, event: WorkerDied) -> None:
        """Whoever is awaited and is dead will not answer."""
        if event.incarnation in self._open().missing():
            reason = event.reason or f"{self._hearing.voices.name(event.incarnation)} died"
            self.abort(event, causes.WORKER_DIED, reason)

    def on_write_status(self, event: Received) -> None:
        body, who, transaction = event.message.body, event.message.incarnation, self._open()
        assert isinstance(body, WriteStatus)
        refusal = "a repeat" if who in transaction.statuses else transaction.refusal(who, body)
        if refusal:
            self.machine.ignored[f"WRITE_STATUS: {refusal}"] += 1
            return
        transaction.accept(who, body)
        self._maybe_commit(event)

    def on_write_progress(self, event: Received) -> None:
        """It is waited for as long as it gets on."""
        body, who, transaction = event.message.body, event.message.incarnation, self._open()
        assert isinstance(body, WriteProgress)
        if body.transaction != transaction.id or not transaction.advance(who, body, event.now_ms):
            self.machine.ignored["WRITE_PROGRESS: no step further"] += 1

    def on_ended_tick(self, event: Event) -> None:
        """Silence ends a transaction, length only at the limit."""
        transaction, settings = self._open(), self._settings
        waited_ms = event.now_ms - transaction.ended_ms
        silent = transaction.silent(event.now_ms, settings.write_timeout_ms)
        if silent:
            who = self._hearing.voices.last_words(silent, event.now_ms)
            said = f"no WRITE_STATUS from {who} within {waited_ms / 1000:.1f} s"
            self._give_up_writing(event, causes.SILENT, said)
        elif waited_ms >= settings.write_limit_ms:
            who = self._hearing.voices.last_words(transaction.missing(), event.now_ms)
            self._give_up_writing(
                event,
                causes.TOO_LONG,
                f"{who} still wrote files after {waited_ms / 1000:.1f} s (transaction.write_limit); the next "
                "transactions are made smaller",
            )
        elif event.now_ms - transaction.repeated_ms >= settings.repeat_ms and self._is_quiet(event):
            transaction.repeated_ms = event.now_ms
            self._send_end(transaction)

    def _is_quiet(self, event: Event) -> bool:
        """Whether somebody may not have heard END, or its WRITE_STATUS was lost.

        While all who are awaited say how far they are, a repeat would only have the others report again.
        """
        transaction, repeat_ms = self._open(), self._settings.repeat_ms
        unheard = transaction.missing() - transaction.progress.keys()
        return bool(unheard or transaction.silent(event.now_ms, PROGRESS_REPEATS * repeat_ms))

    def _give_up_writing(self, event: Event, cause: str, reason: str) -> None:
        transaction = self._open()
        if transaction.progress:
            self.pace.given_up(transaction.records())
        self.abort(event, cause, reason)

    # --- commit, or not -------------------------------------------------------------------------

    def _maybe_commit(self, event: Event) -> None:
        transaction = self._open()
        if transaction.missing():
            return
        self.pace.written(event.now_ms - transaction.ended_ms, transaction.records())
        if differs := self._disagreement(transaction):
            self._not_taken(event, *differs)
            return
        if transaction.is_empty():
            self.abort(event, causes.NOTHING, "nothing to commit")
            return
        epoch, statuses = self.machine.epoch, transaction.statuses
        self.machine.call(
            State.COMMITTING,
            lambda call: Commit(
                call=call,
                epoch=epoch,
                transaction=transaction.id,
                instant=transaction.instant,
                expected=transaction.committed,
                statuses=tuple(statuses[who] for who in sorted(statuses)),
            ),
        )

    def _disagreement(self, transaction: Transaction) -> tuple[str, str, int, int] | None:
        return disagreement(transaction.statuses)

    def _not_taken(self, event: Event, who: str, other: str, handed: int, taken: int) -> None:
        """Rows are nowhere, or twice: whichever it is, nothing of it is committed."""
        name = self._hearing.voices.name
        said = f"{name(who)} handed {handed:,} rows over to {name(other)}, which took {taken:,} of them"
        self.abort(event, causes.NOT_TAKEN, said)

    def on_commit_completed(self, event: Completed) -> None:
        transaction = self._open()
        if event.result in (Result.OK, Result.COMMITTED):
            self._committed(event, event.took_ms)
        elif event.result is Result.UNAVAILABLE:
            self.machine.retry_later(event)
        elif event.result in (Result.REFUSED, Result.HALTED):
            self.recover_next = True
            self.abort(event, causes.REFUSED, f"the table refused the commit: {event.reason}")
        else:
            self.machine.call(
                State.RESOLVING,
                lambda call: Find(call=call, transaction=transaction.id, ranges=transaction.ranges()),
            )

    def on_found(self, event: Completed) -> None:
        if event.result is Result.COMMITTED:
            self._committed(event)
        elif event.result is Result.HALTED:  # whether it was looked for, nobody says
            self.recover_next = True
            self.abort(event, causes.NOT_LANDED, f"what became of the commit is not known: {event.reason}")
        elif event.result in (Result.ABSENT, Result.REFUSED):
            self.recover_next = True
            self.abort(event, causes.NOT_LANDED, "the commit did not land")
        else:
            self.machine.retry_later(event)

    def _committed(self, event: Completed, took_ms: Mapping[str, int] = UNTIMED) -> None:
        """Durable and seen to be: only now is it acknowledged."""
        transaction = self._open()
        self.machine.settled()
        for status in transaction.statuses.values():
            self.committed.update({r.partition: r.next for r in status.ranges})
        self.writers = transaction.writers
        self.exchange.committed(bool(transaction.takers))
        ack = AckCommit(
            transaction=transaction.id,
            instant=transaction.instant,
            committed=dict(self.committed),
            took_ms=took_ms,
        )
        self.hold_until_ms = 0
        self._makes_good(transaction)
        self._settles_orders(event, transaction)
        self._decide(transaction, ack)
        self._next(event)

    def _makes_good(self, transaction: Transaction) -> None:
        """It is decided. Whether its writers had read more, or held more, when it was ended: then what was
        owed still is."""
        behind = any(self.committed.get(p, 0) < end for p, end in transaction.read_before().items())
        self.appointments.owed |= transaction.makes_good and (behind or not transaction.took_all())

    def _settles_orders(self, event: Event, transaction: Transaction) -> None:
        """It is committed, or had nothing in it."""
        if not self.orders.decided(transaction, self.members.owners, self.partitions, self.committed):
            self.orders.again(event.now_ms)

    def _decide(self, transaction: Transaction, decision: AckCommit | AbortCommit) -> None:
        """Say what became of it."""
        self.members.decided(transaction, decision)
        self.transaction = None
        self.machine.send(decision)

    def on_aborted(self, event: Completed) -> None:
        call = self.machine.pending
        assert isinstance(call, Abort)
        if event.result is Result.COMMITTED:
            self._committed(event)
        elif event.result is Result.HALTED:
            # Maybe not rolled back: a commit that is late may land, so nobody is told that it was aborted.
            # Whoever recovers the table sees what became of it.
            self.machine.halt(event.reason)
        elif event.result is Result.OK:
            self.machine.settled()
            self._is_last = False
            self._drained_ms = event.now_ms  # a drain gives its writers time to say READY again
            self.hold_until_ms = event.now_ms + event.wait_ms
            self.appointments.owed |= self._open().makes_good and call.cause != causes.NOTHING
            if self._open().came_to_nothing():
                self._makes_good(self._open())
                self._settles_orders(event, self._open())
            else:
                self.orders.given_up(self._open(), event.now_ms)
                self.exchange.aborted(bool(self._open().takers))
                self._next_due_ms = self._open().due_ms
            said = AbortCommit(transaction=call.transaction, reason=call.reason, cause=call.cause)
            self._decide(self._open(), said)
            self._next(event)
        else:
            self.machine.retry_later(event)

    def _next(self, event: Event) -> None:
        if self.recover_next:
            self.machine.recover()
        else:
            self.go_idle(event)

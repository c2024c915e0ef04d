"""Bugs of the coordinator's core."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from control_topic.causes import NOT_LANDED, WORKER_DIED
from control_topic.messages import (
    AbortCommit,
    AckCommit,
    Message,
    ParticipantJoin,
    ParticipantLeave,
    SourcePartition,
    WriteStatus,
)
from coordinator.core import Coordinator
from coordinator.events import Completed, Event, Received, Result, RunMode, WorkerDied
from coordinator.hearing import Hearing
from coordinator.machine import Machine
from coordinator.members import Members
from coordinator.orders import Orders
from coordinator.pace import Pace
from coordinator.rounds import Rounds
from coordinator.transaction import Transaction
from coordinator.transitions import State, Step


class AckBeforeCommit(Rounds):
    """ACK goes out as soon as every range is in, before the table was asked."""

    def _maybe_commit(self, event: Event) -> None:
        transaction = self._open()
        if not transaction.missing():
            committed = {**self.committed, **{r.partition: r.next for r in transaction.ranges()}}
            self.machine.send(
                AckCommit(transaction=transaction.id, instant=transaction.instant, committed=committed)
            )
        super()._maybe_commit(event)


class UnknownTakenAsCommitted(Rounds):
    """A commit call without an answer is taken for done."""

    def on_commit_completed(self, event: Completed) -> None:
        if event.result is Result.UNKNOWN:
            self._committed(event)
        else:
            super().on_commit_completed(event)


class UnknownTakenAsFailed(Rounds):
    """A commit call without an answer is taken for failed: ABORT is said, without a look at the timeline."""

    def on_commit_completed(self, event: Completed) -> None:
        if event.result is Result.UNKNOWN:
            transaction = self._open()
            self.machine.settled()
            self._decide(transaction, AbortCommit(transaction=transaction.id, reason=event.reason or "?"))
            self._next(event)
        else:
            super().on_commit_completed(event)


class CommittedTwice(UnknownTakenAsFailed):
    """A commit call without an answer is taken for failed, and its records are committed again.

    With it goes the table's comparison of offsets, which would refuse the second commit.
    """


class UnknownIsRolledBack(Rounds):
    """A commit call without an answer is followed by an abort, without a look at the timeline."""

    def on_commit_completed(self, event: Completed) -> None:
        if event.result is Result.UNKNOWN:
            self.abort(event, NOT_LANDED, "no answer")
        else:
            super().on_commit_completed(event)


class CountInsteadOfSet(Rounds):
    """So many WRITE_STATUS as there are writers complete a transaction, whoever sent them."""

    def on_write_status(self, event: Received) -> None:
        body, transaction = event.message.body, self._open()
        assert isinstance(body, WriteStatus)
        key = f"{event.message.incarnation}{len(transaction.statuses)}"
        transaction.accept(key if event.message.incarnation in transaction.statuses else key[:-1], body)
        if len(transaction.statuses) >= len(transaction.incarnations()):
            transaction.excuse(transaction.expected - {r.partition for r in transaction.ranges()})
            self._maybe_commit(event)


class LateWriteStatusAccepted(Rounds):
    """A WRITE_STATUS of an earlier transaction counts for the one that is open."""

    def on_write_status(self, event: Received) -> None:
        body, who, transaction = event.message.body, event.message.incarnation, self._open()
        assert isinstance(body, WriteStatus)
        if transaction.owed_by(who) and who not in transaction.statuses:
            transaction.accept(who, body)
            self._maybe_commit(event)


class UnlistedIncarnationTaken(Rounds):
    """A WRITE_STATUS of an incarnation that START does not list joins the commit, files and all."""

    def on_write_status(self, event: Received) -> None:
        body, who, transaction = event.message.body, event.message.incarnation, self._open()
        assert isinstance(body, WriteStatus)
        if who not in transaction.incarnations() and body.ranges:
            covered = {r.partition for r in body.ranges}
            transaction.accept(who, body)
            transaction.excuse(covered & transaction.writers.keys())
            self._maybe_commit(event)
        else:
            super().on_write_status(event)


class LeaveIgnored(Rounds):
    """A participant that leaves with open data is waited for until the write timeout."""

    def left(self, event: Received, body: ParticipantLeave) -> None:
        """Not noted."""


class NewIncarnationIgnored(Rounds):
    """A JOIN that takes an expected source partition over is noted and no more."""

    def joined(self, event: Received, body: ParticipantJoin) -> None:
        """Not noted."""


class IdlePartitionWaitedFor(Rounds):
    """Every source partition must bring records, or the transaction waits for it."""

    def on_write_status(self, event: Received) -> None:
        body = event.message.body
        assert isinstance(body, WriteStatus)
        if all(r.next > r.start for r in body.ranges):
            super().on_write_status(event)


class ProgressNotCounted(Rounds):
    """A writer that says how far it is is given up as if it had said nothing."""

    def on_write_progress(self, event: Received) -> None:
        """Heard, and forgotten."""


class WritesForEver(Rounds):
    """A writer that gets on is waited for without a limit."""

    def on_ended_tick(self, event: Event) -> None:
        waited_ms = event.now_ms - self._open().ended_ms
        if waited_ms < self._settings.write_limit_ms:
            super().on_ended_tick(event)


class LongRoundsForgotten(Pace):
    """A round that took longer than the write timeout is followed by one as large."""

    def written(self, took_ms: int, records: int) -> None:
        super().written(min(took_ms, self._patience_ms), records)


class GivenUpRoundsForgotten(Pace):
    """A round that was given up while its files were being written is followed by one as large."""

    def given_up(self, records: int) -> None:
        """Not noted."""


class SmallForEver(Pace):
    """Once a round took too long, all that follow are small, however quick they are."""

    def _grow(self) -> None:
        """Not noted."""


class IntervalForgotten(Rounds):
    """A transaction ends where somebody asks for its end, and never because its interval is over."""

    def on_started_tick(self, event: Event) -> None:
        self.machine.on_retry(event)


class ForgetsWhatItDecided(Coordinator):
    """An ACK or ABORT that got lost is never said again."""

    def on_join(self, event: Received) -> None:
        self.members.decisions.clear()
        super().on_join(event)


class NewTransactionAfterUnknownBegin(Rounds):
    """A begin without an answer is given up for another one, and its instant stays open.

    With it goes the core's comparison with its own table, which leads there from no begin.
    """

    def on_begun(self, event: Completed) -> None:
        if event.result in (Result.UNKNOWN, Result.UNAVAILABLE):
            self.machine.settled()
            self.transaction = None
            self.hold_until_ms = event.now_ms + 500
            self.machine.state = State.IDLE
        else:
            super().on_begun(event)


class CoordinatorObeysReplays(Hearing):
    """What a participant said is heard again where the topic is read again."""

    def is_news(self, message: Message) -> bool:
        return True


class CoordinatorHearsAnotherRun(Hearing):
    """Workers of another run are taken for its own."""

    def refusal(self, message: Message, now_ms: int) -> str:
        return super().refusal(replace(message, run=self._run), now_ms)


class NoStepChecked(Coordinator):
    """The core goes where its table does not lead, and nobody objects."""

    def _check_step(self, step: Step, before: State, kind: type[Any]) -> None:
        """Not compared."""


class AbortsAfterTheCommitCall(NoStepChecked):
    """A worker that dies while the commit is out: nothing is to be done, and the transaction is aborted.

    With it goes the core's comparison with its own table, which lets nothing abort there.
    """

    def on_worker_died(self, event: WorkerDied) -> None:
        super().on_worker_died(event)
        transaction = self.rounds.transaction
        if self.state is State.COMMITTING and transaction and event.incarnation in transaction.statuses:
            self.rounds.abort(event, WORKER_DIED, "a worker died")


class StartsWithoutAPlace(Rounds):
    """A source partition that the table has no offset of is begun at 0, wherever its log begins."""

    def _admits(self, event: Event) -> bool:
        return False

    def _writers(self) -> dict[SourcePartition, str]:
        return dict(self.members.owners)


class PauseUnheard(Rounds):
    """A run that is paused begins transactions as ever.

    With it goes the table service's refusal.
    """

    def maybe_begin(self, event: Event) -> None:
        mode = self.machine.mode
        if mode is RunMode.PAUSE:
            self.machine.mode = RunMode.RUN
        super().maybe_begin(event)
        self.machine.mode = mode


class PauseLeavesItOpen(Rounds):
    """A pause begins nothing more, and lets what is open last for its interval."""

    def _ends_at_once(self, event: Event) -> str:
        return super()._ends_at_once(event) if self.machine.mode is not RunMode.PAUSE else ""


class AnyCommitSettles(Rounds):
    """An order to commit is done with the next commit, be it of a transaction that had ended before."""

    def _settles_orders(self, event: Event, transaction: Transaction) -> None:
        transaction.settles = self.orders.commit
        super()._settles_orders(event, transaction)


class CommitNeedsReady(Rounds):
    """An order to commit waits until somebody says READY, which in an idle pipeline nobody does."""

    def maybe_begin(self, event: Event) -> None:
        if self.members.ready or self.machine.mode is RunMode.DRAIN:
            super().maybe_begin(event)


class SettingsUnheard(Rounds):
    """What operators set is noted, and changes nothing."""

    def _tune(self) -> None:
        """Not looked at."""


class _CommitsBeforeThePause(Orders):
    def wants_commit(self, now_ms: int) -> bool:
        return bool(self.commit) and now_ms >= self._not_before_ms


class CommitBeforeThePauseBegins(Rounds):
    """An order to commit that is open as a pause comes begins transactions as ever, for as long as it lives.

    With it goes what the table service does: it gives such orders up, and refuses to begin anything for them.
    """

    def __init__(self, machine: Machine, members: Members, hearing: Hearing, pace: Pace) -> None:
        super().__init__(machine, members, hearing, pace)
        self.orders = _CommitsBeforeThePause(machine)


class _SettledWithTheNewest(Orders):
    @property
    def settled(self) -> int:
        return self._done if self.commit else super().settled


class SettledWithTheNewest(Rounds):
    """An order to commit that is done is said to be so when the newest one is: where another comes with each
    transaction, never."""

    def __init__(self, machine: Machine, members: Members, hearing: Hearing, pace: Pace) -> None:
        super().__init__(machine, members, hearing, pace)
        self.orders = _SettledWithTheNewest(machine)

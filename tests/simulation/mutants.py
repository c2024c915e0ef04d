"""Bugs put into the cores on purpose, one each: the simulator must find them, or it proves nothing.

Some protections are doubled (the table service checks again what the coordinator checked), so that a bug may
be harmless to the table and still be one: then a checker of the conversation has to see it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from control_topic.messages import AckCommit, DataFile, Message, Offsets, Range, SourcePartition, WriteStatus
from coordinator import events as cev
from coordinator.core import Coordinator
from coordinator.events import Completed, Event, Received, Result
from coordinator.transaction import Transaction
from coordinator.transitions import State
from participant import events as pev
from participant.core import Participant
from participant.events import Flushed
from tests.simulation.world import Cores


class AckBeforeCommit(Coordinator):
    def _maybe_commit(self, event: Event) -> None:
        transaction = self._open()
        if not transaction.missing():
            committed = {**self.committed, **{r.partition: r.next for r in transaction.ranges()}}
            self._send(
                AckCommit(transaction=transaction.id, instant=transaction.instant, committed=committed)
            )
        super()._maybe_commit(event)


class UnknownIsCommitted(Coordinator):
    def on_commit_completed(self, event: Completed) -> None:
        if event.result is Result.UNKNOWN:
            self._committed(event)
        else:
            super().on_commit_completed(event)


class UnknownIsFailed(Coordinator):
    """Gives the transaction up without looking, and without rolling it back."""

    def on_commit_completed(self, event: Completed) -> None:
        if event.result is Result.UNKNOWN:
            self._settled()
            self.transaction = None
            self._next(event)
        else:
            super().on_commit_completed(event)


class CountsInsteadOfSet(Coordinator):
    """So many WRITE_STATUS as there are writers, whoever sent them."""

    def on_write_status(self, event: Received) -> None:
        body, transaction = event.message.body, self._open()
        assert isinstance(body, WriteStatus)
        key = f"{event.message.incarnation}{len(transaction.statuses)}"
        transaction.statuses[key if event.message.incarnation in transaction.statuses else key[:-1]] = body
        if len(transaction.statuses) >= len(transaction.incarnations()):
            transaction.expected = {r.partition for r in transaction.ranges()} & transaction.expected
            self._maybe_commit(event)


class _AnyStatus(Transaction):
    def refusal(self, incarnation: str, status: WriteStatus) -> str:
        return "" if self.owed_by(incarnation) else super().refusal(incarnation, status)


class LateStatusAccepted(Coordinator):
    """A WRITE_STATUS of an earlier transaction counts for this one."""

    def _start(self, event: Completed, transaction: Transaction) -> None:
        self.transaction = _AnyStatus(id=transaction.id)
        super()._start(event, self.transaction)


class LeaveIgnored(Coordinator):
    def on_leave_open(self, event: Received) -> None:
        self.on_leave(event)


class NewIncarnationIgnored(Coordinator):
    def on_join_open(self, event: Received) -> None:
        self.on_join(event)


class IdlePartitionWaitedFor(Coordinator):
    """Every source partition must bring records."""

    def on_write_status(self, event: Received) -> None:
        body = event.message.body
        assert isinstance(body, WriteStatus)
        if all(r.next > r.start for r in body.ranges):
            super().on_write_status(event)


class ForgetsWhatItDecided(Coordinator):
    def on_join(self, event: Received) -> None:
        self.decided.clear()
        super().on_join(event)


class NewTransactionAfterUnknownBegin(Coordinator):
    def on_begun(self, event: Completed) -> None:
        if event.result in (Result.UNKNOWN, Result.UNAVAILABLE):
            self._settled()
            self.transaction = None
            self.hold_until_ms = event.now_ms + 500
            self.state = State.IDLE
        else:
            super().on_begun(event)


class CoordinatorObeysReplays(Coordinator):
    def _is_news(self, message: Message) -> bool:
        return True


class AbortsAfterTheCommitCall(Coordinator):
    """A worker that dies while the commit is out: nothing to be done, and it says ABORT."""

    def on_worker_died(self, event: cev.WorkerDied) -> None:
        super().on_worker_died(event)
        if self.state is State.COMMITTING and event.incarnation in self._open().statuses:
            self._abort(event, "a worker died", cev.Fault.PIPELINE)


class OldClaimObeyed(Participant):
    """A coordinator that was superseded is obeyed still."""

    def _is_news(self, message: Message) -> bool:
        return super()._is_news(replace(message, epoch=max(message.epoch, self.epoch)))


class ParticipantObeysReplays(Participant):
    """A decision that is read again is taken again."""

    def _is_news(self, message: Message) -> bool:
        self.heard = ("", -1)
        return super()._is_news(message)


class RangeOffByOne(Participant):
    def _range(self, partition: SourcePartition) -> Range:
        exact = super()._range(partition)
        return replace(exact, next=exact.next + 1) if exact.records else exact


class WrittenNotCounted(Participant):
    """What was buffered before START is written and not reported."""

    def _open_work(self, event: pev.Event, body: object, mine: set[SourcePartition]) -> None:
        super()._open_work(event, body, mine)  # type: ignore[arg-type]
        for partition in mine:
            self.owned[partition].written = self.owned[partition].start
            self.owned[partition].written_records = 0


class FilesOfAnEarlierTransaction(Participant):
    """Files of the transaction before are reported again."""

    earlier: tuple[DataFile, ...] = ()

    def on_flushed(self, event: Flushed) -> None:
        reported = replace(event, files=(*self.earlier, *event.files))
        self.earlier = event.files
        super().on_flushed(reported)


class RewindsNothingOnAbort(Participant):
    """Keeps what it holds after ABORT, and believes START's offsets to be its own."""

    def _rewind(self, partition: SourcePartition, offset: int) -> None:
        if self.owned[partition].resolved:
            self.owned[partition].start = offset
        else:
            super()._rewind(partition, offset)


class GroupBeforeAck(Participant):
    def on_flushed(self, event: Flushed) -> None:
        super().on_flushed(event)
        if self.status is not None:
            ends: Offsets = {r.partition: r.next for r in self.status.ranges}
            self._commit_group(ends, ends)


class ZeroRowRangesLeftOut(Participant):
    def on_flushed(self, event: Flushed) -> None:
        if self.work is not None:
            self.work.ranges = tuple(r for r in self.work.ranges if r.records)
        super().on_flushed(event)


class PauseNeverEnds(Participant):
    def _meter(self) -> None:
        if not self.paused:
            super()._meter()


class SilentWhileItWaits(Participant):
    """Asks nobody what became of its transaction."""

    def _repeat_join(self, event: pev.Event) -> None:
        if self.work is None:
            super()._repeat_join(event)


def _coordinator(core: Callable[[cev.Settings], Coordinator]) -> Cores:
    return Cores(coordinator=core)


MUTANTS: dict[str, Cores] = {
    **{
        core.__name__: _coordinator(core)
        for core in (
            AckBeforeCommit,
            UnknownIsCommitted,
            UnknownIsFailed,
            CountsInsteadOfSet,
            LateStatusAccepted,
            LeaveIgnored,
            NewIncarnationIgnored,
            IdlePartitionWaitedFor,
            ForgetsWhatItDecided,
            NewTransactionAfterUnknownBegin,
            CoordinatorObeysReplays,
            AbortsAfterTheCommitCall,
        )
    },
    **{
        core.__name__: Cores(participant=core)
        for core in (
            OldClaimObeyed,
            ParticipantObeysReplays,
            RangeOffByOne,
            WrittenNotCounted,
            FilesOfAnEarlierTransaction,
            RewindsNothingOnAbort,
            GroupBeforeAck,
            ZeroRowRangesLeftOut,
            PauseNeverEnds,
            SilentWhileItWaits,
        )
    },
}

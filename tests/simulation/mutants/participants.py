"""Bugs of the participant's core."""

from __future__ import annotations

from dataclasses import replace

from control_topic.messages import DataFile, Halt, Lost, Message, Offsets, Range, SourcePartition, StartCommit
from participant.core import Participant
from participant.events import (
    Blocked,
    Buffered,
    Event,
    Flushed,
    OffsetsFetched,
    Open,
    Poison,
    Received,
    Undeliverable,
    Work,
)
from participant.transitions import State


class OldClaimObeyed(Participant):
    """A coordinator that was superseded is obeyed still."""

    def _is_news(self, message: Message) -> bool:
        return super()._is_news(replace(message, epoch=max(message.epoch, self.epoch)))


class ParticipantObeysReplays(Participant):
    """A decision that is read again is taken again."""

    def _is_news(self, message: Message) -> bool:
        self.heard.clear()
        return super()._is_news(message)


class OldHaltObeyed(Participant):
    """The HALT of an earlier run, read again from the topic's tail, stops this one's workers."""

    def _concerns_us(self, event: Received) -> bool:
        return super()._concerns_us(event) or (
            isinstance(event.message.body, Halt) and self.state is not State.STOPPED
        )


class RangeOffByOne(Participant):
    """A range ends one after where it ends."""

    def _range(self, partition: SourcePartition) -> Range:
        owned = self.owned[partition]
        owned.written = max(owned.written, owned.start)  # which it passed by one the time before
        exact = super()._range(partition)
        return replace(exact, next=exact.next + 1) if exact.records else exact


class GapTakenAsLoss(Participant):
    """Offsets without a record, which transactions and compaction leave, are reported as lost."""

    def on_buffered(self, event: Buffered) -> None:
        missing = event.next - event.start - event.records
        if missing and not event.lost:
            gap = Lost(partition=event.partition, start=event.start, next=event.start + missing)
            event = replace(event, lost=(gap,))
        super().on_buffered(event)


class LossUnreported(Participant):
    """What retention took is passed over without a word."""

    def on_buffered(self, event: Buffered) -> None:
        super().on_buffered(replace(event, lost=()))


class RejectsUnreported(Participant):
    """Records that did not decode are set aside and not counted in the commit."""

    def on_flushed(self, event: Flushed) -> None:
        super().on_flushed(replace(event, rejects=(), reject_count=0))


class RejectsHoldNoMemory(Participant):
    """What was rejected is forgotten once its source partition's rows are in the transaction's files."""

    def _write(self, partition: SourcePartition, records_max: int) -> None:
        super()._write(partition, records_max)
        if self.work is not None:
            self.work.reject_bytes = 0


class RejectsWithoutEnd(Participant):
    """However many records are bad, they are set aside."""

    def _refuses(self, work: Work, *, complete: bool) -> bool:
        return False


class ShareNeverJudged(Participant):
    """Rejects are compared with a number and never with a share of the records."""

    def _refuses(self, work: Work, *, complete: bool) -> bool:
        return super()._refuses(work, complete=False)


class NamedRejectsReported(Participant):
    """WRITE_STATUS counts the rejects that it names. The table service would miss the rows of the others.

    With it goes its comparison of rows and records.
    """

    def on_flushed(self, event: Flushed) -> None:
        super().on_flushed(replace(event, reject_count=len(event.rejects)))


class UndeliverablePassed(Participant):
    """A reject that the dead-letter topic refuses for good is passed, with what the transaction held.

    The table service would miss the rows. With it goes its comparison of rows and records.
    """

    def on_undeliverable(self, event: Undeliverable) -> None:
        self.on_flushed(
            Flushed(now_ms=event.now_ms, transaction=event.transaction, files=(), rejects=(), reject_count=0)
        )


class UndeliverableUnheard(Participant):
    """That the dead-letter topic refuses a reject for good is told nobody: it is tried again and again."""

    def on_undeliverable(self, event: Undeliverable) -> None:
        if self.work is not None and event.transaction == self.work.id:
            self._abandon()
            self._leave_again(event.transaction)


class BufferedButNotWritten(Participant):
    """What was buffered before START is in the range and not in the files."""

    def _write(self, partition: SourcePartition, records_max: int) -> None:
        first = self.owned[partition].written == self.owned[partition].start
        asked = len(self._out)
        super()._write(partition, records_max)
        if first:
            del self._out[asked:]


class FileLeftOut(Participant):
    """Of several files the last is not reported."""

    def on_flushed(self, event: Flushed) -> None:
        super().on_flushed(replace(event, files=event.files[: max(1, len(event.files) - 1)]))


class FilesOfAnEarlierTransaction(Participant):
    """Files of the transaction before are reported again.

    The table service would refuse more rows than records: the files say that they hold none. With it goes the
    table's look whether the files are of the commit's instant.
    """

    def on_flushed(self, event: Flushed) -> None:
        earlier: tuple[DataFile, ...] = self.__dict__.setdefault("earlier", ())
        self.__dict__["earlier"] = event.files
        super().on_flushed(replace(event, files=(*(replace(f, rows=0) for f in earlier), *event.files)))


class LimitUnheard(Participant):
    """How many records START allows is not heard: a writer takes all that it has."""

    def _open_work(self, event: Event, body: StartCommit, mine: set[SourcePartition]) -> None:
        super()._open_work(event, replace(body, records_max=0), mine)


class AbortWithoutRewind(Participant):
    """After ABORT it keeps what it holds, and believes START's offsets to be its own."""

    def _rewind(self, partition: SourcePartition, offset: int) -> None:
        if self.owned[partition].resolved:
            self.owned[partition].start = offset
        else:
            super()._rewind(partition, offset)


class GroupBeforeAck(Participant):
    """The group's offsets move with WRITE_STATUS, before anything is committed."""

    def on_flushed(self, event: Flushed) -> None:
        super().on_flushed(event)
        if self.status is not None:
            ends: Offsets = {r.partition: r.next for r in self.status.ranges}
            self._commit_group(ends, ends)


class ZeroRowRangesLeftOut(Participant):
    """A source partition without records is left out of WRITE_STATUS."""

    def on_flushed(self, event: Flushed) -> None:
        if self.work is not None:
            self.work.ranges = tuple(r for r in self.work.ranges if r.records)
        super().on_flushed(event)


class PauseNeverEnds(Participant):
    """Once memory was short, nothing is consumed any more."""

    def _meter(self) -> None:
        if not self.paused:
            super()._meter()


class SilentWhileItWaits(Participant):
    """It asks nobody what became of its transaction."""

    def _repeat_join(self, event: Event) -> None:
        if self.work is None:
            super()._repeat_join(event)


class FilesWithoutTheirInstant(Participant):
    """Data files do not name the instant that they are written for: no rollback or sweep knows them.

    With it goes the table's look whether the files are of the commit's instant.
    """

    def _open_work(self, event: Event, body: StartCommit, mine: set[SourcePartition]) -> None:
        super()._open_work(event, body, mine)
        self._out = [replace(a, instant="0") if isinstance(a, Open) else a for a in self._out]


class PoisonToldAtOnce(Participant):
    """That a record cannot be passed is told before all that comes before it is in the table."""

    def on_blocked(self, event: Blocked) -> None:
        super().on_blocked(event)
        if event.reason:
            self._out.append(Poison(reason=event.reason))


class ReportTakenForCommitted(Participant):
    """What was reported counts as committed, so that nobody asks where it was never decided."""

    def _prepared(self, r: Range) -> None:
        super()._prepared(r)
        self.owned[r.partition].committed = r.next


class NoOffsetIsZero(Participant):
    """What the table has no offset of is read from 0 on."""

    def on_offsets_fetched(self, event: OffsetsFetched) -> None:
        if event.committed is not None:
            unknown = dict.fromkeys(self.owned.keys() - event.committed.keys(), 0)
            event = replace(event, committed={**event.committed, **unknown})
        super().on_offsets_fetched(event)


class BlockedUnheard(Participant):
    """That a source partition cannot be read any further is told nobody: it stands still for ever."""

    def on_blocked(self, event: Blocked) -> None:
        return None

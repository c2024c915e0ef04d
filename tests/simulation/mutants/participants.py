"""Bugs of the participant's core."""

from __future__ import annotations

from collections.abc import Iterable
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
)
from participant.hearing import Hearing
from participant.intake import Intake
from participant.repeats import Repeats
from participant.rounds import Rounds
from participant.transitions import State
from participant.work import Work


class OldClaimObeyed(Hearing):
    """A coordinator that was superseded is obeyed still."""

    def is_news(self, message: Message) -> bool:
        return super().is_news(replace(message, epoch=max(message.epoch, self._machine.epoch)))


class ParticipantObeysReplays(Hearing):
    """A decision that is read again is taken again."""

    def is_news(self, message: Message) -> bool:
        self.last_sequences.clear()
        return super().is_news(message)


class OldHaltObeyed(Hearing):
    """The HALT of an earlier run, read again from the topic's tail, stops this one's workers."""

    def concerns_us(self, message: Message) -> bool:
        return super().concerns_us(message) or isinstance(message.body, Halt)


class RangeOffByOne(Intake):
    """A range ends one after where it ends."""

    def range_of(self, partition: SourcePartition) -> Range:
        owned = self.owned[partition]
        owned.written = max(owned.written, owned.start)  # which it passed by one the time before
        exact = super().range_of(partition)
        return replace(exact, next=exact.next + 1) if exact.records else exact


class GapTakenAsLoss(Intake):
    """Offsets without a record, which transactions and compaction leave, are reported as lost."""

    def add(self, event: Buffered) -> bool:
        missing = event.next - event.start - event.records
        if missing and not event.lost:
            gap = Lost(partition=event.partition, start=event.start, next=event.start + missing)
            event = replace(event, lost=(gap,))
        return super().add(event)


class LossUnreported(Intake):
    """What retention took is passed over without a word."""

    def add(self, event: Buffered) -> bool:
        return super().add(replace(event, lost=()))


class RejectsUnreported(Rounds):
    """Records that did not decode are set aside and not counted in the commit."""

    def on_flushed(self, event: Flushed) -> None:
        super().on_flushed(replace(event, rejects=(), reject_count=0))


class RejectsHoldNoMemory(Intake):
    """What was rejected is forgotten once its source partition's rows are in the transaction's files."""

    def write(self, work: Work, partition: SourcePartition, records_max: int) -> None:
        super().write(work, partition, records_max)
        work.reject_bytes = 0


class RejectsWithoutEnd(Rounds):
    """However many records are bad, they are set aside."""

    def _refuses(self, work: Work, *, complete: bool) -> bool:
        return False


class ShareNeverJudged(Rounds):
    """Rejects are compared with a number and never with a share of the records."""

    def _refuses(self, work: Work, *, complete: bool) -> bool:
        return super()._refuses(work, complete=False)


class NamedRejectsReported(Rounds):
    """WRITE_STATUS counts the rejects that it names. The table service would miss the rows of the others.

    With it goes its comparison of rows and records.
    """

    def on_flushed(self, event: Flushed) -> None:
        super().on_flushed(replace(event, reject_count=len(event.rejects)))


class LastRecordUnsaid(Rounds):
    """WRITE_STATUS names no last record: whoever reads on has nothing to look for."""

    def on_flushed(self, event: Flushed) -> None:
        super().on_flushed(replace(event, witnesses=()))


class UndeliverablePassed(Rounds):
    """A reject that the dead-letter topic refuses for good is passed, with what the transaction held.

    The table service would miss the rows. With it goes its comparison of rows and records.
    """

    def on_flushed(self, event: Flushed) -> None:
        if event.final:
            event = Flushed(now_ms=event.now_ms, call=event.call)
        super().on_flushed(event)


class UndeliverableUnheard(Rounds):
    """That the dead-letter topic refuses a reject for good is told nobody: it is tried again and again."""

    def on_flushed(self, event: Flushed) -> None:
        super().on_flushed(replace(event, final=False))


class BufferedButNotWritten(Intake):
    """What was buffered before START is in the range and not in the files."""

    def write(self, work: Work, partition: SourcePartition, records_max: int) -> None:
        first = self.owned[partition].written == self.owned[partition].start
        asked = len(self._machine.out)
        super().write(work, partition, records_max)
        if first:
            del self._machine.out[asked:]


class FileLeftOut(Rounds):
    """Of several files the last is not reported."""

    def on_flushed(self, event: Flushed) -> None:
        super().on_flushed(replace(event, files=event.files[: max(1, len(event.files) - 1)]))


class FilesOfAnEarlierTransaction(Rounds):
    """Files of the transaction before are reported again.

    The table service would refuse more rows than records: the files say that they hold none. With it goes the
    table's look whether the files are of the commit's instant.
    """

    def on_flushed(self, event: Flushed) -> None:
        earlier: tuple[DataFile, ...] = self.__dict__.setdefault("earlier", ())
        self.__dict__["earlier"] = event.files
        super().on_flushed(replace(event, files=(*(replace(f, rows=0) for f in earlier), *event.files)))


class LimitUnheard(Rounds):
    """How many records START allows is not heard: a writer takes all that it has."""

    def _open(self, event: Event, body: StartCommit, mine: set[SourcePartition]) -> None:
        super()._open(event, replace(body, records_max=0), mine)


class AbortWithoutRewind(Intake):
    """After ABORT it keeps what it holds, and believes START's offsets to be its own."""

    def rewind(self, partition: SourcePartition, offset: int) -> None:
        if self.owned[partition].resolved:
            self.owned[partition].start = offset
        else:
            super().rewind(partition, offset)


class GroupBeforeAck(Rounds):
    """The group's offsets move with WRITE_STATUS, before anything is committed."""

    def on_flushed(self, event: Flushed) -> None:
        super().on_flushed(event)
        if self.status is not None:
            ends: Offsets = {r.partition: r.next for r in self.status.ranges}
            self._commit_group(ends, ends)


class ZeroRowRangesLeftOut(Rounds):
    """A source partition without records is left out of WRITE_STATUS."""

    def on_flushed(self, event: Flushed) -> None:
        if self.work is not None:
            self.work.ranges = tuple(r for r in self.work.ranges if r.records)
        super().on_flushed(event)


class PauseNeverEnds(Intake):
    """Once memory was short, nothing is consumed any more."""

    def meter(self, work: Work | None) -> None:
        if not self.paused:
            super().meter(work)


class SilentWhileItWaits(Repeats):
    """It asks nobody what became of its transaction."""

    def join_again(self, now_ms: int) -> None:
        if self._machine.state in (State.JOINING, State.WAITING):
            super().join_again(now_ms)


class FilesWithoutTheirInstant(Rounds):
    """Data files do not name the instant that they are written for: no rollback or sweep knows them.

    With it goes the table's look whether the files are of the commit's instant.
    """

    def _open(self, event: Event, body: StartCommit, mine: set[SourcePartition]) -> None:
        super()._open(event, body, mine)
        out = self.machine.out
        out[:] = [replace(a, instant="0") if isinstance(a, Open) else a for a in out]


class PoisonToldAtOnce(Intake):
    """That a record cannot be passed is told before all that comes before it is in the table."""

    def block(self, event: Blocked) -> bool:
        if event.reason:
            self._machine.do(Poison(reason=event.reason))
        return super().block(event)


class ReportTakenForCommitted(Intake):
    """What was reported counts as committed, so that nobody asks where it was never decided."""

    def reported(self, r: Range) -> None:
        super().reported(r)
        self.owned[r.partition].committed = r.next


class NoOffsetIsZero(Participant):
    """What the table has no offset of is read from 0 on."""

    def on_offsets_fetched(self, event: OffsetsFetched) -> None:
        unknown = dict.fromkeys(self.owned.keys() - event.committed.keys(), 0)
        event = replace(event, committed={**event.committed, **unknown})
        super().on_offsets_fetched(event)


class BlockedUnheard(Intake):
    """That a source partition cannot be read any further is told nobody: it stands still for ever."""

    def block(self, event: Blocked) -> bool:
        return False


class GoneBackUnsaid(Intake):
    """Who goes back, as behind a new coordinator, does not say how far it had been."""

    def behind(self, ranges: Iterable[Range]) -> Offsets:
        return {}


class ColumnsSaidOnce(Rounds):
    """A worker says columns with the first WRITE_STATUS that has them, and not when it is done again."""

    _told: frozenset[str] = frozenset()

    def _report(self, event: Flushed, work: Work) -> None:
        told = event.columns in self._told
        self._told |= {event.columns}
        super()._report(replace(event, columns="") if told else event, work)

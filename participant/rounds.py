"""Transactions as a participant sees them: opened by START, flushed at END, reported, decided. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from control_topic.messages import (
    AbortCommit,
    AckCommit,
    EndCommit,
    EndRequest,
    Offsets,
    ParticipantLeave,
    SourcePartition,
    StartCommit,
    WriteProgress,
    WriteStatus,
)
from participant.events import (
    Buffered,
    CommitGroup,
    Discard,
    Event,
    Flush,
    Flushed,
    Open,
    Outcome,
    Poison,
    Received,
    Settings,
    Stop,
    TakenAway,
    Wrote,
)
from participant.intake import Intake
from participant.machine import Machine
from participant.repeats import Repeats
from participant.transitions import State
from participant.work import Work


class Rounds:
    """One after the other, and what becomes of each."""

    def __init__(self, machine: Machine, intake: Intake, repeats: Repeats) -> None:
        self.machine = machine
        self.intake = intake
        self.repeats = repeats
        self.work: Work | None = None
        """In WRITING, FLUSHING and PREPARED: there is one."""
        self.status: WriteStatus | None = None
        """What was reported last, to be said again."""
        self.abandoned = ""
        """The transaction that was given up last."""

    @property
    def _settings(self) -> Settings:
        return self.machine.settings

    @property
    def open_work(self) -> Work | None:
        """What would be lost with us: nothing of it was reported."""
        return self.work if self.machine.state in (State.WRITING, State.FLUSHING) else None

    def _work(self) -> Work:
        assert self.work is not None, f"no transaction in {self.machine.state.name}"
        return self.work

    # --- it begins ------------------------------------------------------------------------------

    def on_start(self, event: Received) -> None:
        body = event.message.body
        assert isinstance(body, StartCommit)
        if self.work is not None and body.transaction == self.work.id:
            return
        if body.transaction == self.abandoned:
            self._leave_again(body.transaction)
            return
        self._settle(body.committed)
        owned = self.intake.owned
        mine = {p for p, writer in body.writers.items() if writer == self._settings.incarnation}
        strangers = tuple(sorted(mine - owned.keys()))
        if strangers:
            self.machine.send(ParticipantLeave(partitions=strangers))
        mine &= owned.keys()
        self.repeats.unlisted = owned.keys() - mine
        if not mine:
            self.repeats.soon(event.now_ms)
            return
        for partition in sorted(mine):
            self.intake.align(partition, body.committed.get(partition, 0))
        self._open(event, body, mine)

    def _open(self, event: Event, body: StartCommit, mine: set[SourcePartition]) -> None:
        self.machine.state = State.WRITING
        self.machine.tune()
        writers = len(set(body.writers.values()))
        self.work = Work(
            id=body.transaction,
            instant=body.instant,
            partitions=mine,
            writers=writers,
            records_max=-(-body.records_max // writers),
            opened_ms=event.now_ms,
        )
        self.status = None
        self.machine.do(
            Open(
                transaction=body.transaction,
                instant=body.instant,
                watermark_ms=body.watermark_ms,
                takers=body.takers,
            )
        )
        self.intake.write_all(self.work)
        self.intake.meter(self.work)
        self._maybe_end(event)

    def _settle(self, committed: Offsets) -> None:
        """A START of a later transaction decides about the earlier one, whose ACK or ABORT may be lost."""
        if self.work is None:
            return
        if self.machine.state is State.PREPARED:
            ranges = self.work.ranges
            if all(committed.get(r.partition, 0) == r.next for r in ranges):
                self._commit_group(committed, (r.partition for r in ranges))
            self.work = None
            self.machine.state = State.WAITING
        else:
            self.abandon()

    # --- it is written --------------------------------------------------------------------------

    def buffered(self, event: Buffered) -> None:
        """More is decoded. What belongs to the transaction that is being written goes to its files."""
        work = self.work
        if work is None or self.machine.state is not State.WRITING or event.partition not in work.partitions:
            return
        self.intake.write(work, event.partition, work.records_max)
        self._maybe_end(event)

    def on_tick_writing(self, event: Event) -> None:
        """END is overdue: a JOIN makes the coordinator say again what it wants, or what became of it."""
        overdue_ms = event.now_ms - self._work().opened_ms - self._settings.interval_ms
        self.repeats.refetch(event.now_ms)
        if self.repeats.unlisted or overdue_ms > self._settings.repeat_ms:
            self.repeats.join_again(event.now_ms)
        self._maybe_end(event)

    def _maybe_end(self, event: Event) -> None:
        """Ask for the end: a limit is reached, memory runs short, or there is nothing more to come."""
        work = self._work()
        if self._refuses(work, complete=False):
            return
        reason = self.intake.end_reason(work)
        if not reason:
            return
        if work.end_asked == reason and event.now_ms - work.end_asked_ms < self._settings.repeat_ms:
            return
        work.end_asked, work.end_asked_ms = reason, event.now_ms
        self.machine.send(EndRequest(transaction=work.id, reason=reason))

    # --- it ends --------------------------------------------------------------------------------

    def on_end(self, event: Received) -> None:
        body, work = event.message.body, self._work()
        assert isinstance(body, EndCommit)
        if body.transaction != work.id:
            self.on_end_unknown(event)
            return
        if self._refuses(work, complete=True):
            return
        work.ranges = tuple(self.intake.range_of(p) for p in sorted(work.partitions))
        work.told_ms = event.now_ms
        self.machine.state = State.FLUSHING
        work.flush = self.machine.call(lambda call: Flush(call=call, transaction=work.id))

    def on_end_flushing(self, event: Received) -> None:
        """A repeat of the END that is being obeyed, or one of a transaction that is not ours."""
        body = event.message.body
        assert isinstance(body, EndCommit)
        if body.transaction != self._work().id:
            self.on_end_unknown(event)

    def on_end_unknown(self, event: Received) -> None:
        """We never saw its START, or gave it up: answer, so that nobody waits for a timeout."""
        body = event.message.body
        assert isinstance(body, EndCommit)
        if body.transaction == self.abandoned:
            self._leave_again(body.transaction)
        else:
            self.repeats.join(event.now_ms)

    def on_end_again(self, event: Received) -> None:
        body = event.message.body
        assert isinstance(body, EndCommit)
        if self.status is not None and body.transaction == self.status.transaction:
            self.machine.send(self.status)
        else:
            self.on_end_unknown(event)

    def on_wrote(self, event: Wrote) -> None:
        """Whoever waits for the files hears now and then that they get on."""
        work = self._work()
        if event.transaction != work.id or event.now_ms - work.told_ms < self._settings.progress_ms:
            return
        work.told_ms = event.now_ms
        self.machine.send(
            WriteProgress(
                transaction=work.id,
                records=work.records,
                files=event.files,
                size_bytes=event.size_bytes,
                steps=event.steps,
            )
        )

    def on_flushed(self, event: Flushed) -> None:
        work = self._work()
        if event.call != work.flush:
            return  # of one that was given up
        if event.outcome is Outcome.FAILED and event.final:
            self._refuse(work, event.reason)
        elif event.outcome is Outcome.FAILED:
            self._taken_away(work, event, event.reason)
        elif event.outcome is Outcome.UNKNOWN:
            self.stop(event.reason, failed=True)
        else:
            self._report(event, work)

    def on_taken_away(self, event: TakenAway) -> None:
        """Before END. Until that is heard here, what goes to its files goes nowhere, and stays in memory."""
        work = self._work()
        if event.transaction == work.id:
            self._taken_away(work, event, event.reason)

    def _taken_away(self, work: Work, event: Event, reason: str) -> None:
        """Its files are gone: it is rolled back, which we have not heard yet, or can never be committed."""
        self.abandon()
        self._leave_again(work.id, reason)
        self.repeats.soon(event.now_ms)

    def _report(self, event: Flushed, work: Work) -> None:
        work.ranges = tuple(r for r in work.ranges if r.partition in work.partitions)
        lost = tuple(x for p in sorted(work.partitions) for x in self.intake.lost_in(p))
        self.status = WriteStatus(
            transaction=work.id,
            ranges=work.ranges,
            files=event.files,
            rejects=event.rejects,
            lost=lost,
            reject_count=event.reject_count,
            witnesses=tuple(w for w in event.witnesses if w.partition in work.partitions),
            event_times=tuple(t for t in event.event_times if t.partition in work.partitions),
            columns=event.columns,
            columns_from=event.columns_from,
            handed=event.handed,
            taken=event.taken,
            behind=self.intake.behind(work.ranges),
        )
        for r in work.ranges:
            self.intake.reported(r)
        work.reject_bytes = 0
        self.intake.meter(None)
        self.machine.state = State.PREPARED
        self.repeats.soon(event.now_ms)
        self.repeats.wait_for_the_commit()
        self.machine.send(self.status)

    # --- it is decided --------------------------------------------------------------------------

    def on_tick_prepared(self, event: Event) -> None:
        """No word since WRITE_STATUS: a JOIN makes the coordinator say again what became of it."""
        self.repeats.refetch(event.now_ms)
        self.repeats.join_again(event.now_ms)

    def on_ack(self, event: Received) -> None:
        body, work = event.message.body, self._work()
        assert isinstance(body, AckCommit)
        if body.transaction != work.id:
            self.outlive(event)
            return
        self._commit_group(body.committed, (r.partition for r in work.ranges))
        for r in work.ranges:
            offset = body.committed.get(r.partition, 0)
            if r.partition in self.intake.owned and offset != r.next:  # it went on without our WRITE_STATUS
                self.intake.rewind(r.partition, offset)
        self._decided(event)
        self.repeats.ready(event.now_ms)

    def on_abort(self, event: Received) -> None:
        """The transaction never was. Files are removed by whoever rolls it back, unless still unreported."""
        body, work = event.message.body, self._work()
        assert isinstance(body, AbortCommit)
        if body.transaction != work.id:
            self.outlive(event)
        elif self.machine.state is State.PREPARED:
            for r in work.ranges:
                if r.partition in self.intake.owned and r.next > r.start:
                    self.intake.rewind(r.partition, r.start)
            self._decided(event)
        else:
            self.abandon()
            self.repeats.soon(event.now_ms)

    def _decided(self, event: Event) -> None:
        self.work = None
        self.machine.state = State.WAITING
        self.intake.meter(None)
        self.repeats.soon(event.now_ms)

    def outlive(self, event: Event) -> None:
        """Another coordinator rules, or has decided about a later transaction: ours is over.

        What is open dies with it; what is reported awaits START.
        """
        if self.machine.state is State.PREPARED:
            self.work = None
            self.machine.state = State.JOINING
            self.repeats.all_unlisted()
        else:
            self.abandon()
        self.repeats.soon(event.now_ms)

    def _commit_group(self, committed: Offsets, partitions: Iterable[SourcePartition]) -> None:
        offsets = {p: committed[p] for p in partitions if p in self.intake.owned and p in committed}
        for partition, offset in offsets.items():
            self.intake.stands(partition, offset)
        if offsets:
            self.machine.do(CommitGroup(offsets=offsets))

    # --- it is given up -------------------------------------------------------------------------

    def revoked(self, partitions: Iterable[SourcePartition]) -> str:
        """These are no longer ours. Answers which transaction loses open data by that; empty where none.

        What is decoded and in none of its files is not its data.
        """
        work, owned = self.open_work, self.intake.owned
        if work is None:
            return ""
        gone = work.partitions.intersection(partitions)
        dies = any(owned[p].written > owned[p].start for p in gone)
        work.partitions -= gone
        return work.id if dies else ""

    def abandon(self) -> None:
        """Give up the open transaction: its files go, and what they held is consumed again."""
        work = self._work()
        self._give_up(work)
        for partition in sorted(work.partitions & self.intake.owned.keys()):
            owned = self.intake.owned[partition]
            if owned.written > owned.start:
                self.intake.rewind(partition, owned.start)
        self.intake.meter(None)

    def _give_up(self, work: Work) -> None:
        self.abandoned = work.id
        self.machine.do(Discard(transaction=work.id))
        self.work = None
        self.machine.state = State.JOINING
        self.repeats.all_unlisted()

    def _refuses(self, work: Work, *, complete: bool) -> bool:
        """Whether there are more rejects than allowed; then none of them is set aside, and the run halts."""
        reason = work.over_limit(self._settings.rejects_max, complete=complete)
        if reason:
            self._refuse(work, reason)
        return bool(reason)

    def _refuse(self, work: Work, reason: str) -> None:
        """Tell it, give up what is open, so that the others' drain does not wait for it, and read no more."""
        self.machine.do(Poison(reason=reason))
        self._give_up(work)
        self.intake.stop_reading()
        self.intake.meter(None)
        self._leave_again(work.id)

    def _leave_again(self, transaction: str, reason: str = "") -> None:
        partitions = tuple(sorted(self.intake.owned))
        self.machine.send(ParticipantLeave(partitions=partitions, transaction=transaction, reason=reason))
        self.machine.send(self.repeats.joining)

    def stop(self, reason: str, *, failed: bool) -> None:
        """The worker ends: what is open goes, and the others hear of it."""
        open_one = self.open_work
        if open_one is not None:
            self.machine.do(Discard(transaction=open_one.id))
        if self.intake.owned:
            self.machine.send(
                ParticipantLeave(
                    partitions=tuple(sorted(self.intake.owned)),
                    transaction=open_one.id if open_one is not None else "",
                    reason=reason if failed else "",
                )
            )
        self.machine.state = State.STOPPED
        self.work = None
        self.machine.do(Stop(reason=reason, failed=failed))

"""The participant's protocol: a pure state machine with one public `handle(event)`.

No clock, thread, socket, random or log. It knows offsets and sizes; records stay in the shell. The legal
events are in participant/transitions.py, the theory in docs/protocol.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from control_topic.messages import (
    AbortCommit,
    AckCommit,
    CoordinatorClaim,
    EndCommit,
    EndRequest,
    Halt,
    Message,
    Offsets,
    ParticipantLeave,
    SourcePartition,
    StartCommit,
    WriteProgress,
    WriteStatus,
)
from participant.events import (
    Action,
    Assigned,
    CommitGroup,
    Discard,
    Drop,
    EffectFailed,
    Event,
    Flush,
    Flushed,
    Leave,
    OffsetsFetched,
    Open,
    Owned,
    Received,
    Revoked,
    Settings,
    Stop,
    Work,
    Wrote,
)
from participant.refusals import Refusals
from participant.transitions import IGNORED, TABLE, IllegalEvent, State

DECISIONS = (CoordinatorClaim, StartCommit, EndCommit, AckCommit, AbortCommit)
"""What only the coordinator of the highest epoch may say."""


class Participant(Refusals):
    """One incarnation of one worker, from its first assignment to its end."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.heard: dict[str, int] = {}  # by incarnation, of the epoch: each claim of it was authenticated
        self.status: WriteStatus | None = None
        self.ignored: Counter[str] = Counter()

    # --- the one entry --------------------------------------------------------------------------

    def handle(self, event: Event) -> list[Action]:
        """Take one event, give the actions it causes, in order. Raises `IllegalEvent` on a shell's bug."""
        self._out = []
        kind: type[Any] = type(event.message.body) if isinstance(event, Received) else type(event)
        if kind not in TABLE[self.state]:
            raise IllegalEvent(f"{kind.__name__} in {self.state.name}")
        if isinstance(event, Received) and not self._concerns_us(event):
            return self._out
        name = TABLE[self.state][kind]
        if name != IGNORED:
            handler: Callable[[Any], None] = getattr(self, name)
            handler(event)
        return self._out

    def _concerns_us(self, event: Received) -> bool:
        """A higher epoch is always learned; a lower one, or another run, never obeyed."""
        message = event.message
        if message.pipeline != self.settings.pipeline or self.state is State.STOPPED:
            return False
        if message.epoch > self.epoch:
            self.epoch = message.epoch
            self.heard.clear()
            if self.work is not None:
                self._outlive(event)
        if message.run != self.settings.run:
            return False
        return not isinstance(message.body, DECISIONS) or self._is_news(message)

    def _is_news(self, message: Message) -> bool:
        """A decision counts once, and only while nobody is known to rule after its sender."""
        if message.epoch < self.epoch:
            self.ignored[f"{message.type_name} of a lower epoch"] += 1
            return False
        if message.sequence <= self.heard.get(message.incarnation, -1):
            self.ignored[f"{message.type_name} again"] += 1
            return False
        self.heard[message.incarnation] = message.sequence
        return True

    def _outlive(self, event: Event) -> None:
        """Another coordinator rules, or has decided about a later transaction: ours is over.

        What is open dies with it; what is reported awaits START.
        """
        if self.state is State.PREPARED:
            self.work = None
            self.state = State.JOINING
            self.unlisted = set(self.owned)
        else:
            self._abandon()
        self._repeat_soon(event)

    # --- membership -----------------------------------------------------------------------------

    def on_assigned(self, event: Assigned) -> None:
        """Raises `IllegalEvent` for what is owned already: its records would count as read from elsewhere."""
        again = sorted(event.offsets.keys() & self.owned.keys())
        if again:
            raise IllegalEvent(
                f"{', '.join(map(str, again))}: assigned, but not given up since the last time"
            )
        for partition, offset in sorted(event.offsets.items()):
            owned = Owned(generation=self._next_generation())
            self.owned[partition] = owned
            self.unlisted.add(partition)
            if offset is not None:
                self._place(partition, owned, offset)
        if any(not o.resolved for o in self.owned.values()):
            self._fetch(event)
        if self.state is State.WAITING:
            self.state = State.JOINING
        self._join(event)
        self._meter()

    def on_offsets_fetched(self, event: OffsetsFetched) -> None:
        """A source partition that the table has no offset of is not read: its log may begin anywhere."""
        committed = event.committed or {}
        for partition, owned in sorted(self.owned.items()):
            if not owned.resolved and partition in committed:
                self._place(partition, owned, committed[partition])
        unresolved = any(not owned.resolved for owned in self.owned.values())
        self.fetch_ms = event.now_ms if unresolved else None

    def on_revoked(self, event: Revoked) -> None:
        """Open data dies with its source partition; what is reported belongs to the transaction."""
        gone = tuple(p for p in event.partitions if p in self.owned)
        work = self.work
        transaction = ""
        if work is not None and self.state in (State.WRITING, State.FLUSHING):
            if any(self.owned[p].next > self.owned[p].start for p in gone if p in work.partitions):
                transaction = work.id
            work.partitions.difference_update(gone)
        self.unlisted.difference_update(gone)
        for partition in gone:
            del self.owned[partition]
            self._out.append(Drop(partition=partition))
        if (
            work is not None
            and self.state in (State.WRITING, State.FLUSHING)
            and (transaction or not work.partitions)
        ):
            self._abandon()
        if gone:
            self._send(ParticipantLeave(partitions=tuple(sorted(gone)), transaction=transaction))
        if not self.owned and self.state is State.WAITING:
            self.state = State.JOINING
        self._meter()

    def on_claim(self, event: Received) -> None:
        """Tell the new coordinator who is there, without waiting for it to ask."""
        if self.state is State.WAITING:
            self.state = State.JOINING
        self.unlisted = set(self.owned)
        self._repeat_soon(event)
        self._join(event)
        self._maybe_ready(event)

    def on_halt(self, event: Received) -> None:
        body = event.message.body
        assert isinstance(body, Halt)
        self._stop(body.reason, failed=False)

    def on_leave(self, event: Leave) -> None:
        self._stop(event.reason, failed=False)

    def on_effect_failed(self, event: EffectFailed) -> None:
        self._stop(event.reason, failed=True)

    def _stop(self, reason: str, *, failed: bool) -> None:
        if self.work is not None and self.state in (State.WRITING, State.FLUSHING):
            self._out.append(Discard(transaction=self.work.id))
        if self.owned:
            open_one = self.work.id if self.work and self.state is not State.PREPARED else ""
            why = reason if failed else ""
            partitions = tuple(sorted(self.owned))
            self._send(ParticipantLeave(partitions=partitions, transaction=open_one, reason=why))
        self.state = State.STOPPED
        self.work = None
        self._out.append(Stop(reason=reason, failed=failed))

    # --- a transaction begins -------------------------------------------------------------------

    def on_start(self, event: Received) -> None:
        body = event.message.body
        assert isinstance(body, StartCommit)
        if self.work is not None and body.transaction == self.work.id:
            return
        if body.transaction == self.abandoned:
            self._leave_again(body.transaction)
            return
        self._settle(body.committed)
        mine = {p for p, writer in body.writers.items() if writer == self.settings.incarnation}
        strangers = tuple(sorted(mine - self.owned.keys()))
        if strangers:
            self._send(ParticipantLeave(partitions=strangers))
        mine &= self.owned.keys()
        self.unlisted = self.owned.keys() - mine
        if not mine:
            self._repeat_soon(event)
            return
        for partition in sorted(mine):
            self._align(partition, body.committed)
        self._open_work(event, body, mine)

    def _open_work(self, event: Event, body: StartCommit, mine: set[SourcePartition]) -> None:
        self.state = State.WRITING
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
        self._out.append(Open(transaction=body.transaction, instant=body.instant))
        self._write_all(mine)
        self._meter()
        self._maybe_end(event)

    def _settle(self, committed: Offsets) -> None:
        """A START of a later transaction decides about the earlier one, whose ACK or ABORT may be lost."""
        if self.work is None:
            return
        if self.state is State.PREPARED:
            ranges = self.work.ranges
            if all(committed.get(r.partition, 0) == r.next for r in ranges):
                self._commit_group(committed, (r.partition for r in ranges))
            self.work = None
            self.state = State.WAITING
        else:
            self._abandon()

    def _align(self, partition: SourcePartition, committed: Offsets) -> None:
        """START names where the table stands; what we hold must begin exactly there, or is taken again."""
        owned = self.owned[partition]
        offset = committed.get(partition, 0)
        if not owned.resolved or owned.start != offset:
            self._rewind(partition, offset)
        else:
            self._committed(partition, offset)

    # --- it ends --------------------------------------------------------------------------------

    def on_tick_writing(self, event: Event) -> None:
        """END is overdue: a JOIN makes the coordinator say again what it wants, or what became of it."""
        work = self.work
        assert work is not None
        self._refetch(event)
        if (
            self.unlisted
            or event.now_ms - work.opened_ms > self.settings.interval_ms + self.settings.repeat_ms
        ):
            self._repeat_join(event)
        self._maybe_end(event)

    def _maybe_end(self, event: Event) -> None:
        """Ask for the end: a limit is reached, memory runs short, or there is nothing more to come."""
        work = self.work
        assert work is not None
        if self._refuses(work, complete=False):
            return
        reason = self._end_reason(work)
        if not reason:
            return
        if work.end_asked == reason and event.now_ms - work.end_asked_ms < self.settings.repeat_ms:
            return
        work.end_asked, work.end_asked_ms = reason, event.now_ms
        self._send(EndRequest(transaction=work.id, reason=reason))

    def on_end(self, event: Received) -> None:
        body, work = event.message.body, self.work
        assert isinstance(body, EndCommit) and work is not None
        if body.transaction != work.id:
            self.on_end_unknown(event)
            return
        if self._refuses(work, complete=True):
            return
        work.ranges = tuple(self._range(p) for p in sorted(work.partitions))
        work.told_ms = event.now_ms
        self.state = State.FLUSHING
        self._out.append(Flush(transaction=work.id))

    def on_end_flushing(self, event: Received) -> None:
        """A repeat of the END that is being obeyed, or one of a transaction that is not ours."""
        body, work = event.message.body, self.work
        assert isinstance(body, EndCommit) and work is not None
        if body.transaction != work.id:
            self.on_end_unknown(event)

    def on_end_unknown(self, event: Received) -> None:
        """We never saw its START, or gave it up: answer, so that nobody waits for a timeout."""
        body = event.message.body
        assert isinstance(body, EndCommit)
        if body.transaction == self.abandoned:
            self._leave_again(body.transaction)
        else:
            self._join(event)

    def on_end_again(self, event: Received) -> None:
        body = event.message.body
        assert isinstance(body, EndCommit)
        if self.status is not None and body.transaction == self.status.transaction:
            self._send(self.status)
        else:
            self.on_end_unknown(event)

    def on_wrote(self, event: Wrote) -> None:
        """Whoever waits for the files hears now and then that they get on."""
        work = self.work
        assert work is not None
        if event.transaction != work.id or event.now_ms - work.told_ms < self.settings.progress_ms:
            return
        work.told_ms = event.now_ms
        self._send(
            WriteProgress(
                transaction=work.id,
                records=work.records,
                files=event.files,
                size_bytes=event.size_bytes,
                steps=event.steps,
            )
        )

    def on_flushed(self, event: Flushed) -> None:
        work = self.work
        assert work is not None
        if event.transaction != work.id:
            return
        work.ranges = tuple(r for r in work.ranges if r.partition in work.partitions)
        lost = tuple(x for p in sorted(work.partitions) for x in self._lost_in(p))
        self.status = WriteStatus(
            transaction=work.id,
            ranges=work.ranges,
            files=event.files,
            rejects=event.rejects,
            lost=lost,
            reject_count=event.reject_count,
        )
        for r in work.ranges:
            self._prepared(r)
        work.reject_bytes = 0
        self._meter()
        self.state = State.PREPARED
        self._repeat_soon(event)
        self.join_wait_ms = self.settings.commit_wait_ms
        self._send(self.status)

    def on_tick_prepared(self, event: Event) -> None:
        """No word since WRITE_STATUS: a JOIN makes the coordinator say again what became of it."""
        self._refetch(event)
        self._repeat_join(event)

    def on_ack(self, event: Received) -> None:
        body, work = event.message.body, self.work
        assert isinstance(body, AckCommit) and work is not None
        if body.transaction != work.id:
            self._outlive(event)
            return
        self._commit_group(body.committed, (r.partition for r in work.ranges))
        for r in work.ranges:
            offset = body.committed.get(r.partition, 0)
            if r.partition in self.owned and offset != r.next:  # it went on without our WRITE_STATUS
                self._rewind(r.partition, offset)
        self.work = None
        self.state = State.WAITING
        self._meter()
        self._repeat_soon(event)
        self._maybe_ready(event)

    def on_abort(self, event: Received) -> None:
        """The transaction never was. Files are removed by whoever rolls it back, unless still unreported."""
        body, work = event.message.body, self.work
        assert isinstance(body, AbortCommit) and work is not None
        if body.transaction != work.id:
            self._outlive(event)
            return
        if self.state is State.PREPARED:
            for r in work.ranges:
                if r.partition in self.owned and r.next > r.start:
                    self._rewind(r.partition, r.start)
            self.work = None
            self.state = State.WAITING
            self._meter()
        else:
            self._abandon()
        self._repeat_soon(event)

    def _abandon(self) -> None:
        """Give up the open transaction: its files go, and what they held is consumed again."""
        work = self.work
        assert work is not None
        self.abandoned = work.id
        self._out.append(Discard(transaction=work.id))
        self.work = None
        self.state = State.JOINING
        self.unlisted = set(self.owned)
        for partition in sorted(work.partitions & self.owned.keys()):
            owned = self.owned[partition]
            if owned.written > owned.start:
                self._rewind(partition, owned.start)
        self._meter()

    def _commit_group(self, committed: Offsets, partitions: Iterable[SourcePartition]) -> None:
        offsets = {p: committed[p] for p in partitions if p in self.owned and p in committed}
        for partition, offset in offsets.items():
            self._committed(partition, offset)
        if offsets:
            self._out.append(CommitGroup(offsets=offsets))

    # --- time -----------------------------------------------------------------------------------

    def on_tick(self, event: Event) -> None:
        self._refetch(event)
        if self.unlisted:
            self._repeat_join(event)
        if self.state in (State.JOINING, State.WAITING):
            self._maybe_ready(event)

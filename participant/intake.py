"""What a participant holds: owned source partitions, decoded chunks, memory, and the limits on them. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from control_topic import causes
from control_topic.messages import Lost, Offsets, Range, Reject, SourcePartition
from participant.events import Blocked, Buffered, Drop, Pause, Poison, Resume, Rewind, Settings, Write
from participant.machine import Machine
from participant.transitions import IllegalEvent
from participant.work import Work


@dataclass(slots=True)
class Held:
    """A stretch of what is decoded and not written, up to `next`."""

    next: int
    records: int
    size_bytes: int
    rejects: int = 0
    reject_bytes: int = 0
    first_reject: Reject | None = None


@dataclass(slots=True, kw_only=True)
class Owned:
    """A source partition of ours. Always start <= written <= next."""

    generation: int = 0
    resolved: bool = False
    """Whether we know where it is consumed from."""
    start: int = 0
    """The first offset that no commit of ours covers: what START must name."""
    written: int = 0
    """Up to where the open transaction's files hold it."""
    next: int = 0
    """Up to where it is decoded."""
    been: int = 0
    """Up to where it was, before it was taken again."""
    records: int = 0
    """Of all that is held, as `size_bytes`."""
    size_bytes: int = 0
    held: deque[Held] = field(default_factory=deque)
    """What is decoded and not written, in order."""
    written_records: int = 0
    lost: list[Lost] = field(default_factory=list)
    committed: int = 0
    """The table's offset, as far as we were told."""
    blocked: bool = False
    reason: str = ""
    """Why it is blocked, until that is said."""
    progress_ms: int | None = None
    """Since when it has progress that is not reported."""


class Intake:
    """The participant's memory of what it consumes. It knows no protocol."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.owned: dict[SourcePartition, Owned] = {}
        self.paused = False
        self.stopped = False
        self._generation = 0

    @property
    def _settings(self) -> Settings:
        return self._machine.settings

    # --- chunks ---------------------------------------------------------------------------------

    def add(self, event: Buffered) -> bool:
        """Whether it is ours. Raises `IllegalEvent` for a chunk that does not go on from the last."""
        owned = self.owned.get(event.partition)
        if owned is None or owned.generation != event.generation:
            return False
        if event.start != owned.next or event.next < event.start:
            raise IllegalEvent(
                f"{event.partition}: chunk [{event.start}, {event.next}) where {owned.next} comes next"
            )
        owned.next = event.next
        self._hold(owned, event)
        owned.lost.extend(event.lost)
        if owned.progress_ms is None and event.next > event.start:
            owned.progress_ms = event.now_ms
        return True

    def _hold(self, owned: Owned, event: Buffered) -> None:
        owned.records += event.records
        owned.size_bytes += event.size_bytes
        last = owned.held[-1] if owned.held else None
        room = self._settings.piece_records - last.records if last is not None else 0
        if last is not None and (not event.records or event.records <= room):
            last.next = event.next
            last.records += event.records
            last.size_bytes += event.size_bytes
        else:
            last = Held(event.next, event.records, event.size_bytes)
            owned.held.append(last)
        last.rejects += event.rejects
        last.reject_bytes += event.reject_bytes
        last.first_reject = last.first_reject or event.first_reject

    def block(self, event: Blocked) -> bool:
        """Whether it is ours."""
        owned = self.owned.get(event.partition)
        if owned is None or owned.generation != event.generation:
            return False
        owned.blocked, owned.reason = True, event.reason
        self.stands(event.partition, owned.committed)
        return True

    def stands(self, partition: SourcePartition, offset: int) -> None:
        """What the table holds. Where that is all there is before a block, the block may be told.

        Not earlier: an operator who skips the record would skip what the table lacks before it, too.
        """
        owned = self.owned[partition]
        owned.committed = offset
        if owned.blocked and owned.reason and owned.next == offset:
            self._machine.do(Poison(reason=owned.reason))
            owned.reason = ""

    def write_all(self, work: Work) -> None:
        """A transaction that may not take everything takes of each source partition, of the fullest first."""
        order = sorted(work.partitions, key=lambda p: (-self.owned[p].records, p))
        for place, partition in enumerate(order):
            share = -(-(work.records_max - work.records) // (len(order) - place))
            self.write(work, partition, work.records + share)

    def write(self, work: Work, partition: SourcePartition, records_max: int) -> None:
        """What is decoded goes to the open transaction's files; from here on memory no longer holds it.

        But it does hold what was rejected, until that is in the dead-letter topic.

        Where the transaction is limited, only until it holds `records_max`: the rest waits for the next one.
        """
        owned = self.owned[partition]
        before = owned.written
        while owned.held and (
            not work.records_max or work.records < records_max or not owned.held[0].records
        ):
            piece = owned.held.popleft()
            owned.written = piece.next
            owned.written_records += piece.records
            owned.records -= piece.records
            owned.size_bytes -= piece.size_bytes
            work.records += piece.records
            work.size_bytes += piece.size_bytes
            if piece.first_reject is not None:
                work.add_rejects(partition, piece.rejects, piece.reject_bytes, piece.first_reject)
        if owned.written > before:
            self._machine.do(
                Write(
                    transaction=work.id,
                    partition=partition,
                    generation=owned.generation,
                    upto=owned.written,
                )
            )

    def range_of(self, partition: SourcePartition) -> Range:
        owned = self.owned[partition]
        return Range(
            partition=partition, start=owned.start, next=owned.written, records=owned.written_records
        )

    def lost_in(self, partition: SourcePartition) -> list[Lost]:
        """What retention had removed of the range."""
        owned = self.owned[partition]
        return [x for x in owned.lost if x.start < owned.written]

    def behind(self, ranges: Iterable[Range]) -> Offsets:
        """Those that were decoded further before they were taken again, and up to where: an operator may have
        been promised that it will be committed."""
        return {r.partition: been for r in ranges if (been := self.owned[r.partition].been) > r.next}

    def reported(self, r: Range) -> None:
        """The range is reported: what comes next must begin where it ends."""
        owned = self.owned[r.partition]
        owned.start = r.next
        owned.written_records = 0
        owned.lost = [x for x in owned.lost if x.start >= r.next]
        if owned.next == owned.start:
            owned.progress_ms = None

    # --- positions ------------------------------------------------------------------------------

    @property
    def unresolved(self) -> bool:
        """Whether there is a source partition whose offset nobody has told us yet."""
        return any(not owned.resolved for owned in self.owned.values())

    def own(self, partition: SourcePartition, offset: int | None) -> None:
        """It is ours now, consumed from here. None: the offset is not known yet."""
        self.owned[partition] = Owned(generation=self._next_generation())
        if offset is not None:
            self.place(partition, offset)

    def drop(self, partition: SourcePartition) -> None:
        """It is ours no more."""
        del self.owned[partition]
        self._machine.do(Drop(partition=partition))

    def stop_reading(self) -> None:
        """The run is to halt over what was read: nothing more is, and what is held is let go."""
        self.stopped = True
        for partition, before in sorted(self.owned.items()):
            self.owned[partition] = Owned(
                generation=self._next_generation(),
                resolved=before.resolved,
                start=before.start,
                written=before.start,
                next=before.start,
                committed=before.committed,
                been=max(before.been, before.next),
            )
            self._machine.do(Drop(partition=partition))

    def rewind(self, partition: SourcePartition, offset: int) -> None:
        """It is consumed again from here."""
        before = self.owned[partition]
        been = max(before.been, before.next)
        self.owned[partition] = Owned(generation=self._next_generation(), been=been)
        self.place(partition, offset)

    def place(self, partition: SourcePartition, offset: int) -> None:
        """Where it is consumed from."""
        owned = self.owned[partition]
        owned.resolved = True
        owned.start = owned.written = owned.next = owned.committed = offset
        self._machine.do(Rewind(partition=partition, offset=offset, generation=owned.generation))

    def align(self, partition: SourcePartition, offset: int) -> None:
        """START names where the table stands; what we hold must begin exactly there, or is taken again."""
        owned = self.owned[partition]
        if not owned.resolved or owned.start != offset:
            self.rewind(partition, offset)
        else:
            self.stands(partition, offset)

    def _next_generation(self) -> int:
        self._generation += 1
        return self._generation

    # --- limits ---------------------------------------------------------------------------------

    def meter(self, work: Work | None) -> None:
        """Consumption pauses at the memory cap and goes on at half of it. `work`: whose files are open.

        Once they are no longer open, what filled the memory beside them is no reason to wait for the commit:
        there is more room, of which half must be left.
        """
        held_bytes = sum(o.size_bytes for o in self.owned.values())
        bytes_max = self._settings.memory_bytes_max
        enough_bytes = bytes_max // 2
        if work is not None:
            held_bytes += work.reject_bytes
        else:
            room_bytes = max(0, self._settings.idle_bytes_max - bytes_max)
            if room_bytes:
                enough_bytes = bytes_max + room_bytes // 2
            bytes_max += room_bytes
        if not self.paused and (held_bytes >= bytes_max or self.stopped):
            self.paused = True
            self._machine.do(Pause())
        elif self.paused and not self.stopped and held_bytes <= enough_bytes:
            self.paused = False
            self._machine.do(Resume())

    def end_reason(self, work: Work) -> str:
        """Why the transaction should end, if at all. Limits are its own; each writer asks at its share."""
        limits = self._settings
        if limits.records_max and work.records * work.writers >= limits.records_max:
            return causes.RECORDS
        if work.records_max and work.records >= work.records_max:
            return causes.RECORDS
        if limits.bytes_max and work.size_bytes * work.writers >= limits.bytes_max:
            return causes.BYTES
        if self.paused:
            return causes.MEMORY
        if limits.until and all(self._at_end(p) for p in work.partitions):
            return causes.REACHED_END
        return ""

    def _at_end(self, partition: SourcePartition) -> bool:
        owned = self.owned[partition]
        return owned.resolved and owned.next >= self._settings.until.get(partition, 0)

    def is_worth_a_transaction(self, now_ms: int) -> bool:
        """Records are worth a transaction at once; progress without any, at the end or when it is old.

        So is what was reported and never decided, since only a START can tell whether it must be taken again.
        """
        for partition, owned in self.owned.items():
            if owned.records or owned.reason or owned.start > owned.committed:
                return True
            if owned.next > owned.start and (
                owned.blocked
                or (self._settings.until and self._at_end(partition))
                or (
                    owned.progress_ms is not None and now_ms - owned.progress_ms >= self._settings.interval_ms
                )
            ):
                return True
        return False

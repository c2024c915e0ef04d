"""What the participant holds: offsets consumed, decoded and written, memory, and the limits on them. Pure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from control_topic.messages import Lost, Range, SourcePartition
from participant.events import (
    Action,
    Blocked,
    Buffered,
    Event,
    Held,
    Owned,
    Pause,
    Poison,
    Resume,
    Rewind,
    Send,
    Settings,
    Work,
    Write,
)
from participant.transitions import IllegalEvent, State


class Intake(ABC):
    """The participant's memory. `Participant` adds the protocol."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.state = State.JOINING
        self.epoch = 0
        self.owned: dict[SourcePartition, Owned] = {}
        self.work: Work | None = None
        self.generation = 0
        self.paused = False
        self.refused = False
        """The run is to halt over what was read: nothing more is."""
        self._out: list[Action] = []

    def _send(self, body: Any) -> None:
        self._out.append(Send(body=body, epoch=self.epoch))

    # --- chunks ---------------------------------------------------------------------------------

    def on_buffered(self, event: Buffered) -> None:
        owned = self.owned.get(event.partition)
        if owned is None or owned.generation != event.generation:
            return
        if event.start != owned.next or event.next < event.start:
            raise IllegalEvent(
                f"{event.partition}: chunk [{event.start}, {event.next}) where {owned.next} comes next"
            )
        owned.next = event.next
        self._hold(owned, event)
        owned.lost.extend(event.lost)
        if owned.progress_ms is None and event.next > event.start:
            owned.progress_ms = event.now_ms
        if self.work is not None and self.state is State.WRITING and event.partition in self.work.partitions:
            self._write(event.partition, self.work.records_max)
            self._maybe_end(event)
        self._meter()
        self._maybe_ready(event)

    def _hold(self, owned: Owned, event: Buffered) -> None:
        owned.records += event.records
        owned.size_bytes += event.size_bytes
        last = owned.held[-1] if owned.held else None
        room = self.settings.piece_records - last.records if last is not None else 0
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

    def on_blocked(self, event: Blocked) -> None:
        owned = self.owned.get(event.partition)
        if owned is not None and owned.generation == event.generation:
            owned.blocked, owned.reason = True, event.reason
            self._committed(event.partition, owned.committed)
            self._maybe_ready(event)

    def _committed(self, partition: SourcePartition, offset: int) -> None:
        """What the table holds. Where that is all there is before a block, the block may be told.

        Not earlier: an operator who skips the record would skip what the table lacks before it, too.
        """
        owned = self.owned[partition]
        owned.committed = offset
        if owned.blocked and owned.reason and owned.next == offset:
            self._out.append(Poison(reason=owned.reason))
            owned.reason = ""

    def _write_all(self, partitions: set[SourcePartition]) -> None:
        """A transaction that may not take everything takes of each source partition, of the fullest first."""
        work = self.work
        assert work is not None
        order = sorted(partitions, key=lambda p: (-self.owned[p].records, p))
        for place, partition in enumerate(order):
            share = -(-(work.records_max - work.records) // (len(order) - place))
            self._write(partition, work.records + share)

    def _write(self, partition: SourcePartition, records_max: int) -> None:
        """What is decoded goes to the open transaction's files; from here on memory no longer holds it.

        But it does hold what was rejected, until that is in the dead-letter topic.

        Where the transaction is limited, only until it holds `records_max`: the rest waits for the next one.
        """
        work, owned = self.work, self.owned[partition]
        assert work is not None
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
                work.rejects[partition] = work.rejects.get(partition, 0) + piece.rejects
                work.first_rejects.setdefault(partition, piece.first_reject)
                work.reject_bytes += piece.reject_bytes
        if owned.written > before:
            self._out.append(
                Write(
                    transaction=work.id,
                    partition=partition,
                    generation=owned.generation,
                    upto=owned.written,
                )
            )

    def _range(self, partition: SourcePartition) -> Range:
        owned = self.owned[partition]
        return Range(
            partition=partition, start=owned.start, next=owned.written, records=owned.written_records
        )

    def _lost_in(self, partition: SourcePartition) -> list[Lost]:
        owned = self.owned[partition]
        return [x for x in owned.lost if x.start < owned.written]

    def _prepared(self, r: Range) -> None:
        """The range is reported: what comes next must begin where it ends."""
        owned = self.owned[r.partition]
        owned.start = r.next
        owned.written_records = 0
        owned.lost = [x for x in owned.lost if x.start >= r.next]
        if owned.next == owned.start:
            owned.progress_ms = None

    # --- positions ------------------------------------------------------------------------------

    def _next_generation(self) -> int:
        self.generation += 1
        return self.generation

    def _rewind(self, partition: SourcePartition, offset: int) -> None:
        owned = Owned(generation=self._next_generation())
        self.owned[partition] = owned
        self._place(partition, owned, offset)

    def _place(self, partition: SourcePartition, owned: Owned, offset: int) -> None:
        owned.resolved = True
        owned.start = owned.written = owned.next = owned.committed = offset
        self._out.append(Rewind(partition=partition, offset=offset, generation=owned.generation))

    # --- limits ---------------------------------------------------------------------------------

    def _meter(self) -> None:
        """Consumption pauses at the memory cap and goes on at half of it."""
        held_bytes = sum(o.size_bytes for o in self.owned.values())
        if self.work is not None:
            held_bytes += self.work.reject_bytes
        if not self.paused and (held_bytes >= self.settings.memory_bytes_max or self.refused):
            self.paused = True
            self._out.append(Pause())
        elif self.paused and not self.refused and held_bytes <= self.settings.memory_bytes_max // 2:
            self.paused = False
            self._out.append(Resume())

    def _end_reason(self, work: Work) -> str:
        """Limits are the transaction's; each of its writers asks at its own share."""
        limits = self.settings
        if limits.records_max and work.records * work.writers >= limits.records_max:
            return "records"
        if work.records_max and work.records >= work.records_max:
            return "records"
        if limits.bytes_max and work.size_bytes * work.writers >= limits.bytes_max:
            return "bytes"
        if self.paused:
            return "memory"
        if limits.until and all(self._at_end(p) for p in work.partitions):
            return "reached_end"
        return ""

    def _at_end(self, partition: SourcePartition) -> bool:
        owned = self.owned[partition]
        return owned.resolved and owned.next >= self.settings.until.get(partition, 0)

    def _holds_work(self, event: Event) -> bool:
        """Records are worth a transaction at once; progress without any, at the end or when it is old.

        So is what was reported and never decided, since only a START can tell whether it must be taken again.
        """
        for partition, owned in self.owned.items():
            if owned.records or owned.reason or owned.start > owned.committed:
                return True
            if owned.next > owned.start and (
                owned.blocked
                or (self.settings.until and self._at_end(partition))
                or (
                    owned.progress_ms is not None
                    and event.now_ms - owned.progress_ms >= self.settings.interval_ms
                )
            ):
                return True
        return False

    # --- what follows from it ---------------------------------------------------------------------

    @abstractmethod
    def _maybe_ready(self, event: Event) -> None:
        """Say READY where what is held is worth a transaction."""

    @abstractmethod
    def _maybe_end(self, event: Event) -> None:
        """Ask for the end of the open transaction where there is a reason to."""

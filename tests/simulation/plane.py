"""A worker's data plane and consumer: positions, chunks in memory, the open transaction's files."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from control_topic.messages import DataFile, SourcePartition
from participant import events as ev
from tests.simulation.lake import Row
from tests.simulation.scheduler import Channel

if TYPE_CHECKING:
    from tests.simulation.worker import Worker

RECORD_BYTES = 10
POLL_MS = 150


@dataclass(slots=True)
class Position:
    """Where the consumer stands. Nothing is delivered before a generation is set."""

    generation: int = 0
    next: int = 0


@dataclass(slots=True)
class Lane:
    """What is buffered of one source partition: (next offset, rows) of each chunk, in offset order."""

    generation: int
    chunks: deque[tuple[int, list[int]]] = field(default_factory=deque)


class Plane:
    """Chunks and orders pass through one queue, so that an order finds what was delivered before it."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._world = worker.world
        self.positions: dict[SourcePartition, Position] = {}
        self._lanes: dict[SourcePartition, Lane] = {}
        self._queue = Channel()
        self._paused = False
        self._stopped = False
        self._transaction = ""
        self._instant = ""
        self._rows: list[Row] = []
        self._files = 0
        self._delay_ms = self._world.chance.random.choice((0, 0, 50, 400))
        self._world.scheduler.at(POLL_MS, worker, self._poll)

    def stop(self) -> None:
        self._stopped = True

    # --- the consumer -----------------------------------------------------------------------------

    def assign(self, partitions: tuple[SourcePartition, ...]) -> None:
        for partition in partitions:
            self.positions[partition] = Position()

    def _poll(self) -> None:
        if self._stopped:
            return
        world, worker = self._world, self._worker
        if not self._paused:
            for partition, position in self.positions.items():
                if position.generation:
                    self._fetch(partition, position)
        world.scheduler.at(world.chance.between(POLL_MS // 2, POLL_MS), worker, self._poll)

    def _fetch(self, partition: SourcePartition, position: Position) -> None:
        world = self._world
        until = worker_until(self._worker, partition)
        end = world.log.ends[partition] if until is None else min(until, world.log.ends[partition])
        if position.next >= end:
            return
        next_offset, offsets = world.log.fetch(partition, position.next, world.chance.between(1, 60))
        if next_offset > end:
            next_offset = end
            offsets = [offset for offset in offsets if offset < end]
        start, position.next = position.next, next_offset
        self._through(self._take, partition, position.generation, start, next_offset, offsets)

    # --- orders -----------------------------------------------------------------------------------

    def order(self, order: ev.Action) -> None:
        match order:
            case ev.Pause():
                self._paused = True
            case ev.Resume():
                self._paused = False
            case ev.Rewind():
                self._through(self._rewind_lane, order)
                if order.partition in self.positions:
                    self.positions[order.partition] = Position(order.generation, order.offset)
            case ev.Drop():
                self._through(self._lanes_drop, order)
            case ev.Open():
                self._through(self._open, order)
            case ev.Write():
                self._through(self._write, order)
            case ev.Flush():
                self._through(self._flush, order)
            case ev.Discard():
                self._through(self._discard, order)

    def _through(self, do, *args) -> None:  # type: ignore[no-untyped-def]
        delay_ms = self._world.chance.upto(self._delay_ms) if self._delay_ms else 0
        self._world.scheduler.through(self._queue, delay_ms, self._worker, do, *args)

    # --- the plane's thread -----------------------------------------------------------------------

    def _take(
        self, partition: SourcePartition, generation: int, start: int, next_offset: int, offsets: list[int]
    ) -> None:
        lane = self._lanes.get(partition)
        if lane is None or lane.generation != generation:
            return
        lane.chunks.append((next_offset, offsets))
        self._worker.post(
            ev.Buffered(
                now_ms=self._worker.clock_ms(),
                partition=partition,
                generation=generation,
                start=start,
                next=next_offset,
                records=len(offsets),
                size_bytes=len(offsets) * RECORD_BYTES,
            )
        )

    def _rewind_lane(self, order: ev.Rewind) -> None:
        self._lanes[order.partition] = Lane(order.generation)

    def _lanes_drop(self, order: ev.Drop) -> None:
        self._lanes.pop(order.partition, None)

    def _open(self, order: ev.Open) -> None:
        self._transaction, self._instant = order.transaction, order.instant
        self._rows = []

    def _write(self, order: ev.Write) -> None:
        lane = self._lanes.get(order.partition)
        if lane is None or lane.generation != order.generation or order.transaction != self._transaction:
            return
        while lane.chunks and lane.chunks[0][0] <= order.upto:
            _next, offsets = lane.chunks.popleft()
            self._rows.extend((order.partition, offset) for offset in offsets)

    def _flush(self, order: ev.Flush) -> None:
        """Files are closed one by one, which takes a while; the worker may die in between."""
        if order.transaction != self._transaction:
            return
        slow_ms = self._world.chance.upto(self._world.flush_ms)
        self._world.scheduler.through(self._queue, slow_ms, self._worker, self._close, order.transaction)

    def _close(self, transaction: str) -> None:
        if transaction != self._transaction:
            return
        rows, self._rows, self._transaction = self._rows, [], ""
        files: list[DataFile] = []
        cut = self._world.chance.upto(len(rows)) if len(rows) > 3 else 0
        for part in (rows[:cut], rows[cut:]):
            if part:
                self._files += 1
                path = f"{self._instant}/{self._worker.incarnation}-{self._files}"
                files.append(self._world.storage.write(path, self._instant, tuple(part)))
        self._worker.post(
            ev.Flushed(now_ms=self._worker.clock_ms(), transaction=transaction, files=tuple(files))
        )

    def _discard(self, order: ev.Discard) -> None:
        if order.transaction == self._transaction:
            self._rows, self._transaction = [], ""


def worker_until(worker: Worker, partition: SourcePartition) -> int | None:
    """Where a run that has targets stops reading this source partition."""
    until = worker.driver.until
    return None if until is None else until.get(partition, 0)

"""A worker's data plane and consumer: positions, chunks in memory, the open transaction's files."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from control_topic.messages import DataFile, EventTimes, Lost, Reject, SourcePartition, Witness
from participant import events as ev
from participant.source.witnesses import Known
from table.faults import WorkerFault
from table.memory.timeline import InstantPhase
from tests.simulation.exchange import Exchange
from tests.simulation.lake import Row
from tests.simulation.scheduler import Channel
from tests.simulation.source_log import ddl_of_fields, event_time_ms, is_absurd

if TYPE_CHECKING:
    from tests.simulation.worker import Worker

RECORD_BYTES = 10
FETCH_MAX_RECORDS = 60
POLL_MS = 150
STEP_MAX_MS = 300
"""A step of a long flush is never longer: a fifth of the shortest write timeout."""

ENDING_BESIDE = range(8_000_000, 9_000_000)
"""Seeds of worlds whose workers decode while files of theirs are being ended. In all others they wait for the
end of their files: their schedules are as they were."""

SLACK_MS = 600
"""For an order and its answer to be heard, beside a flush."""

BAD = "is not JSON"


@dataclass(slots=True)
class Position:
    """Where the consumer stands. Nothing is delivered before a generation is set.

    `cuts`: how often the log had lost its end when a record was read last. A record has its leader's epoch,
    by which the client knows that one was lost since; where none was read it does not.
    """

    generation: int = 0
    next: int = 0
    stuck: bool = False
    cuts: int | None = None
    known: Known | None = None

    def is_cut_off(self, cuts: list[int]) -> bool:
        if self.cuts is None or self.cuts == len(cuts):
            return False
        return any(cut < self.next for cut in cuts[self.cuts :])


@dataclass(slots=True, kw_only=True)
class Chunk:
    """Offsets `[start, next)`: those that became rows, those that were rejected, those that are gone.

    `taken_ms`: since when, by the world's time, memory holds it.
    """

    start: int
    next: int
    life: int
    rows: list[int]
    rejected: list[int]
    witness: Witness | None = None
    lost: tuple[Lost, ...] = ()
    taken_ms: int = 0


@dataclass(slots=True)
class Lane:
    """What is buffered of one source partition, in offset order."""

    generation: int
    chunks: deque[Chunk] = field(default_factory=deque)
    blocked: bool = False


class Plane:
    """Orders are obeyed in the order they were given, and before whatever was consumed after them.

    They may overtake what was consumed before them, as in the data plane of production.
    """

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._world = worker.world
        network = worker.world.network
        self.exchange = Exchange(worker, network, self._exchange_broke) if network is not None else None
        self.positions: dict[SourcePartition, Position] = {}
        self._lanes: dict[SourcePartition, Lane] = {}
        self._orders = Channel()
        self._records = Channel()
        self._paused = False
        self._stopped = False
        self.fault = WorkerFault.PIPELINE
        self._transaction = ""
        self._opened_ms = 0
        self._instant = ""
        self._rows: list[Row] = []
        self._ended: list[tuple[frozenset[str], list[Row]]] = []
        self._columns = self._begun = self._writes = worker.driver.columns
        self._set_aside: list[tuple[SourcePartition, Chunk]] = []
        self._last: dict[SourcePartition, Witness] = {}
        self._times: dict[SourcePartition, EventTimes] = {}
        self._watermark_ms: int | None = None
        self._files = 0
        self._began_open = False
        self._writing: ev.Flush | None = None
        self._closing = False
        self._ending: ev.Flush | None = None
        """Its files are being ended, and other things are done meanwhile."""
        self._ends_ms = 0
        self._given_up: set[str] = set()
        self._went_on_ms = 0
        self._queued: dict[Channel, deque[tuple[Any, tuple[Any, ...]]]] = {
            self._orders: deque(),
            self._records: deque(),
        }
        self._due: dict[Channel, int] = {self._orders: 0, self._records: 0}
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
        world, worker, log = self._world, self._worker, self._world.log
        world.checks.held(worker, self)
        if self.exchange is not None:
            self.exchange.look()
        if not self._paused and log.available:
            for partition, position in self.positions.items():
                if position.generation and not position.stuck and not self._is_at_end(partition, position):
                    self._fetch(partition, position)
        world.scheduler.at(world.chance.between(POLL_MS // 2, POLL_MS), worker, self._poll)

    @property
    def still_ms(self) -> int:
        """Until when it was paused, or wrote and obeyed no order, by the world's time."""
        return self._world.scheduler.now_ms if self._paused or self._busy else self._went_on_ms

    @property
    def open_since_ms(self) -> int | None:
        """Since when a transaction's files are open; None where none are."""
        return self._opened_ms if self._transaction else None

    def held_bytes(self, until_ms: int) -> int:
        """What memory holds of what it held by then.

        All that waits for a transaction, and of an open one what was rejected.
        """
        records = 0
        for lane in self._lanes.values():
            for c in lane.chunks:
                if c.taken_ms <= until_ms:
                    records += len(c.rows) + len(c.rejected)
        for _, c in self._set_aside:
            if c.taken_ms <= until_ms:
                records += len(c.rejected)
        return RECORD_BYTES * records

    def _is_at_end(self, partition: SourcePartition, position: Position) -> bool:
        """Whether there is plainly nothing to read: the log ends there, and always ended behind it."""
        log = self._world.log
        return (
            log.ends.get(partition) == position.next
            and position.known is None
            and partition not in log.cuts
            and log.lows[partition] <= position.next
            and partition.topic != log.missing
        )

    def _fetch(self, partition: SourcePartition, position: Position) -> None:
        world = self._world
        log, start = world.log, position.next
        until = None
        if self._worker.driver.until is not None:
            until = self._worker.driver.until.get(partition, 0)
            if start >= until:
                return
        if not log.has(partition):
            self._stick(partition, position, "the topic or partition no longer exists at the broker")
            return
        end = log.stable(partition)
        known, position.known = position.known, None
        if known is not None and log.denies(known):
            self._stick(partition, position, f"the log lost its end and goes on to {end} again")
            return
        cuts = log.cuts.get(partition)
        if (cuts and position.is_cut_off(cuts)) or start > log.ends[partition] or start < log.lows[partition]:
            position.stuck = True  # the broker's answer is on its way, and the log may change meanwhile
            delay_ms = world.chance.upto(300)
            world.scheduler.at(delay_ms, self._worker, self._out_of_range, partition, position)
        elif start < end and start == log.damaged.get(partition):
            position.stuck = True  # it is read again a few times
            world.scheduler.at(world.chance.upto(900), self._worker, self._damaged, partition, position)
        elif start < end:
            if until is not None and until < end:
                end = until
            next_offset, offsets = log.fetch(partition, start, world.chance.between(1, FETCH_MAX_RECORDS))
            if next_offset > end:
                next_offset = end
                offsets = [offset for offset in offsets if offset < end]
            if offsets:
                position.cuts = len(log.cuts.get(partition, []))
            self._deliver(partition, position, next_offset, offsets)

    def _out_of_range(self, partition: SourcePartition, position: Position) -> None:
        """As `participant.source.reading` decides it."""
        log, start = self._world.log, position.next
        if self.positions.get(partition) is not position or self._stopped:
            return
        if not log.has(partition):
            self._stick(partition, position, "the topic or partition no longer exists at the broker")
            return
        low, end = log.lows[partition], log.ends[partition]
        if low <= start <= end:
            self._stick(partition, position, f"the log lost its end and goes on to {end} again")
        elif start > end:
            self._stick(partition, position, f"offset {start} is beyond the log's end {end}")
        elif self._world.on_data_loss == "earliest":
            position.stuck = False
            lost = Lost(partition=partition, start=start, next=low)
            self._world.note(self._worker.name, "lost", lost)
            self._deliver(partition, position, low, [], (lost,))
        else:
            self._stick(partition, position, f"retention removed the offsets from {start} to {low - 1}")

    def _damaged(self, partition: SourcePartition, position: Position) -> None:
        """As `participant.source.reading` decides it: damage that is there each time is final."""
        if self.positions.get(partition) is position and not self._stopped:
            self._stick(partition, position, "the log cannot be read there, at each attempt")

    def _stick(self, partition: SourcePartition, position: Position, reason: str) -> None:
        position.stuck = True
        self._block(partition, position.generation, f"{partition} at offset {position.next}: {reason}")

    def _block(self, partition: SourcePartition, generation: int, reason: str) -> None:
        worker = self._worker
        self._world.note(worker.name, "stuck", reason)
        now_ms = worker.clock_ms()
        worker.post(ev.Blocked(now_ms=now_ms, partition=partition, generation=generation, reason=reason))

    def _deliver(
        self,
        partition: SourcePartition,
        position: Position,
        next_offset: int,
        offsets: list[int],
        lost: tuple[Lost, ...] = (),
    ) -> None:
        log = self._world.log
        chunk = Chunk(
            start=position.next,
            next=next_offset,
            life=log.lives[partition.topic],
            rows=offsets,
            rejected=[],
            witness=log.witness(partition, offsets[-1]) if offsets else None,
            lost=lost,
        )
        position.next = next_offset
        self._through(self._records, self._receive, partition, position.generation, chunk)

    # --- orders -----------------------------------------------------------------------------------

    def order(self, order: ev.Action) -> None:
        match order:
            case ev.Pause():
                self._paused = True
            case ev.Resume():
                self._paused, self._went_on_ms = False, self._world.scheduler.now_ms
            case ev.Rewind():
                self._through(self._orders, self._rewind_lane, order)
                if order.partition in self.positions:
                    known = self._worker.witnesses.before(order.partition, order.offset)
                    self.positions[order.partition] = Position(order.generation, order.offset, known=known)
            case ev.Drop():
                self._through(self._orders, self._lanes_drop, order)
            case ev.Open():
                self._through(self._orders, self._open, order)
            case ev.Write():
                self._through(self._orders, self._write, order)
            case ev.Flush():
                self._through(self._orders, self._flush, order)
            case ev.Discard():
                self._given_up.add(order.transaction)
                self._through(self._orders, self._discard, order)
                writing = self._writing
                if writing and order.transaction == writing.transaction:  # not written to its end first
                    self._not_flushed(writing, ev.Outcome.FAILED, "given up")
                    self._end_writing()

    def _through(self, channel: Channel, do: Any, *args: Any) -> None:
        self._queued[channel].append((do, args))
        if channel is self._records:
            channel.last_ms = max(channel.last_ms, self._orders.last_ms)
        delay_ms = self._world.chance.upto(self._delay_ms) if self._delay_ms else 0
        self._world.scheduler.through(channel, delay_ms, self._worker, self._turn, channel)

    # --- the plane's thread -----------------------------------------------------------------------

    @property
    def _busy(self) -> bool:
        """It writes, and does nothing else: it is one thread."""
        return self._writing is not None or self._closing

    def _turn(self, channel: Channel) -> None:
        """The next of a channel; while it is busy, when it is done."""
        if self._busy:
            self._due[channel] += 1
            return
        do, args = self._queued[channel].popleft()
        do(*args)

    def _receive(self, partition: SourcePartition, generation: int, chunk: Chunk) -> None:
        lane = self._lanes.get(partition)
        if lane is None or lane.generation != generation or lane.blocked:
            return
        poison = self._decode(partition, chunk) if self._world.log.bad.get(partition) else ""
        self._meet_schemas(partition, chunk)
        if chunk.next > chunk.start:
            chunk.taken_ms = self._world.scheduler.now_ms
            lane.chunks.append(chunk)
            records = len(chunk.rows) + len(chunk.rejected)
            self._worker.post(
                ev.Buffered(
                    now_ms=self._worker.clock_ms(),
                    partition=partition,
                    generation=generation,
                    start=chunk.start,
                    next=chunk.next,
                    records=records,
                    size_bytes=records * RECORD_BYTES,
                    lost=chunk.lost,
                    rejects=len(chunk.rejected),
                    reject_bytes=len(chunk.rejected) * RECORD_BYTES,
                    first_reject=next(
                        (Reject(partition=partition, offset=o, reason=BAD) for o in chunk.rejected), None
                    ),
                )
            )
        if poison:
            lane.blocked = True
            self._block(partition, generation, poison)

    def _decode(self, partition: SourcePartition, chunk: Chunk) -> str:
        """Set the bad records aside, or cut the chunk before the first and say why."""
        log = self._world.log
        bad = [] if chunk.life else log.bad_among(partition, chunk.rows)
        if not bad:
            return ""
        if self._world.on_error == "dead_letter":
            chunk.rejected = bad
            chunk.rows = [offset for offset in chunk.rows if offset not in bad]
            return ""
        chunk.next = bad[0]
        chunk.rows = [offset for offset in chunk.rows if offset < bad[0]]
        chunk.witness = log.witness(partition, chunk.rows[-1]) if chunk.rows else None
        return f"{partition} at offset {bad[0]}: {BAD}. Everything before it is committed"

    def _meet_schemas(self, partition: SourcePartition, chunk: Chunk) -> None:
        """What is decoded from here on has all their fields."""
        log = self._world.log
        if log.newer.get(partition) and not chunk.life:
            self._columns = self._columns.union(*(log.fields(partition, offset) for offset in chunk.rows))

    def _rewind_lane(self, order: ev.Rewind) -> None:
        self._lanes[order.partition] = Lane(order.generation)

    def _lanes_drop(self, order: ev.Drop) -> None:
        self._lanes.pop(order.partition, None)

    def _open(self, order: ev.Open) -> None:
        self._transaction, self._instant = order.transaction, order.instant
        self._opened_ms = self._world.scheduler.now_ms
        self._rows, self._set_aside, self._last = [], [], {}
        self._times, self._watermark_ms = {}, order.watermark_ms
        self._ended, self._writes = [], self._columns
        self.fault = WorkerFault.PIPELINE
        if self.exchange is not None:
            self.exchange.open(order)

    def _write(self, order: ev.Write) -> None:
        partition = order.partition
        lane = self._lanes.get(partition)
        if lane is None or lane.generation != order.generation or order.transaction != self._transaction:
            return
        while lane.chunks and lane.chunks[0].next <= order.upto:
            chunk = lane.chunks.popleft()
            life = chunk.life
            if chunk.rows and self._writes != self._columns:  # files with fewer columns are ended
                self._ended.append((self._writes, self._rows))
                self._rows, self._writes = [], self._columns
            rows = [(partition, offset, life) for offset in chunk.rows]
            self._rows.extend(rows if self.exchange is None else self.exchange.divided(rows))
            if self._taken_away():
                return
            if chunk.rejected:
                self._set_aside.append((partition, chunk))
            if chunk.witness is not None:
                self._last[partition] = chunk.witness
            if self._world.mark_rule is not None:
                self._note_times(partition, chunk.rows)

    def _exchange_broke(self) -> None:
        """Orders that are there come first."""
        self._through(self._orders, self._taken_away)

    def _taken_away(self) -> bool:
        """Whether what others hand over, or take, is of no use any more: it is told at once, before END."""
        exchange = self.exchange
        if exchange is None or not exchange.transaction or not exchange.broken:
            return False
        transaction = self._transaction
        self._forget()
        now_ms = self._worker.clock_ms()
        self._worker.post(ev.TakenAway(now_ms=now_ms, transaction=transaction, reason=exchange.broken))
        return True

    def _note_times(self, partition: SourcePartition, offsets: list[int]) -> None:
        """Of rows, and of those the ones whose event time counts."""
        before = self._times.get(partition, EventTimes(partition=partition, greatest_ms=None))
        timed = [(o, at) for o in offsets if (at := event_time_ms(partition, o)) is not None]
        times = [at for o, at in timed if not is_absurd(o)]
        late_ms = self._watermark_ms
        if timed:
            known = times if before.greatest_ms is None else [before.greatest_ms, *times]
            self._times[partition] = EventTimes(
                partition=partition,
                greatest_ms=max(known, default=None),
                late=before.late + (sum(at < late_ms for at in times) if late_ms is not None else 0),
                absurd=before.absurd + len(timed) - len(times),
            )

    def _flush(self, order: ev.Flush) -> None:
        """Files are closed one by one, which takes a while; the worker may die in between."""
        if order.transaction != self._transaction:
            self._not_flushed(order, ev.Outcome.FAILED, "given up")
            return
        if self.exchange is not None and self.exchange.transaction:
            self.exchange.finish()
            self._writing = order
            self._await_others(order, self.exchange, 1)
        else:
            self._write_files(order, 1)

    def _await_others(self, order: ev.Flush, exchange: Exchange, steps: int) -> None:
        """All that they hand over is here before files are closed."""
        if order is not self._writing:
            return
        world, worker = self._world, self._worker
        exchange.look()
        if order.transaction in self._given_up:
            self._not_flushed(order, ev.Outcome.FAILED, "given up")
            self._end_writing()
        elif exchange.broken:
            self._forget()
            self._not_flushed(order, ev.Outcome.FAILED, exchange.broken)
            self._end_writing()
        elif exchange.awaited:
            self._step(order, steps)
            delay_ms = exchange.wait_ms()
            world.scheduler.at(delay_ms, worker, self._await_others, order, exchange, steps + 1)
        else:
            self._writing = None
            self._rows.extend(exchange.rows)
            self._write_files(order, steps)

    def _forget(self) -> None:
        self._rows, self._ended, self._set_aside, self._transaction = [], [], [], ""
        if self.exchange is not None:
            self.exchange.close()

    def _write_files(self, order: ev.Flush, steps: int) -> None:
        self._began_open = not self._is_rolled_back()
        world = self._world
        slow_ms = world.chance.upto(world.flush_ms)
        if world.tail_began_ms is not None:  # in peace nobody is silent for as long as the write timeout
            timeout_ms = min(world.write_timeout_ms, self._worker.write_timeout_ms)
            slow_ms = min(slow_ms, timeout_ms - SLACK_MS)
        if world.ends_beside:
            self._ends_ms = slow_ms - slow_ms // 4
            slow_ms //= 4
        rows = len(self._rows) + sum(len(ended) for _, ended in self._ended)
        row_ms = min(world.row_ms * rows, world.write_limit_ms // 2)
        endless = world.chance.of(world.faults.endless_writer)
        if endless:
            row_ms = world.write_limit_ms + world.chance.upto(4_000)
        if not row_ms:
            self._closing = True
            world.scheduler.at(slow_ms, self._worker, self._close_in_one_step, order)
            return
        self._writing = order
        self._write_on(order, world.scheduler.now_ms + slow_ms + row_ms, steps, endless)

    def _close_in_one_step(self, order: ev.Flush) -> None:
        """What is too short to be given up in between."""
        self._end_files(order)
        self._end_writing()

    def _end_files(self, order: ev.Flush) -> None:
        """Now, or in a while, and other things are done meanwhile."""
        world = self._world
        if not world.ends_beside:
            self._close(order)
            return
        self._ending = order
        world.scheduler.at(self._ends_ms, self._worker, self._ended_beside, order)

    def _ended_beside(self, order: ev.Flush) -> None:
        if order is self._ending:
            self._ending = None
            self._close(order)

    def _write_on(self, order: ev.Flush, ends_ms: int, steps: int, endless: bool) -> None:
        """A step of a long flush, and word of it; beyond the limit, unless the faults are over before."""
        if order is not self._writing:
            return
        if order.transaction in self._given_up:
            self._not_flushed(order, ev.Outcome.FAILED, "given up")
            self._end_writing()
            return
        world, worker = self._world, self._worker
        if world.scheduler.now_ms >= ends_ms or (endless and not world.faults.endless_writer):
            self._end_files(order)
            self._end_writing()
            return
        self._step(order, steps)
        step_ms = world.chance.between(50, STEP_MAX_MS)
        world.scheduler.at(step_ms, worker, self._write_on, order, ends_ms, steps + 1, endless)

    def _step(self, order: ev.Flush, steps: int) -> None:
        self._worker.post(
            ev.Wrote(
                now_ms=self._worker.clock_ms(),
                transaction=order.transaction,
                files=steps // 2,
                size_bytes=steps,
                steps=steps,
            )
        )

    def _end_writing(self) -> None:
        """What was due meanwhile has its turn, orders first."""
        self._writing, self._closing, self._went_on_ms = None, False, self._world.scheduler.now_ms
        for channel in (self._orders, self._records):
            while self._due[channel] and not self._busy:
                self._due[channel] -= 1
                self._turn(channel)

    def _close(self, order: ev.Flush) -> None:
        if order.transaction != self._transaction:
            self._not_flushed(order, ev.Outcome.FAILED, "given up")
            return
        if refusal := self._world.letters.refusal([(r.partition, r.offset) for r in self._rejects()]):
            self._not_flushed(order, ev.Outcome.FAILED, refusal, final=True)
            return
        if (self._rows or self._ended) and self._began_open and self._is_rolled_back():
            self._forget()
            self._not_flushed(order, ev.Outcome.FAILED, "its files were taken away")
            return
        rows, self._rows, self._transaction = self._rows, [], ""
        ended, self._ended = self._ended, []
        exchange = self.exchange
        exchanged = exchange is not None and bool(exchange.transaction)
        handed = dict(exchange.handed) if exchange is not None and exchanged else {}
        taken = dict(exchange.taken) if exchange is not None and exchanged else {}
        if exchange is not None:
            exchange.close()
        if (rows or ended) and not self._world.storage.timeline.available:
            self._give_up(order, "the table's storage is away", environment=True)
            return
        world, files = self._world, list[DataFile]()
        cut = world.chance.upto(len(rows)) if len(rows) > 3 else 0
        for columns, part in (*ended, (self._writes, rows[:cut]), (self._writes, rows[cut:])):
            if part:
                self._files += 1
                path = f"{self._instant}/{self._worker.incarnation}-{self._files}"
                files.append(self._world.storage.write(path, self._instant, tuple(part), columns))
        worker = self._worker
        rejects = self._rejects()
        if rejects and not self._send_dead_letters(rejects):
            # it refuses what it is sent, or is away as any broker may be
            self._give_up(order, "no dead-letter topic", environment=self._world.chance.of(0.5))
            return
        worker.post(
            ev.Flushed(
                now_ms=worker.clock_ms(),
                call=order.call,
                files=tuple(files),
                rejects=tuple(rejects[: world.rejects_listed_max]),
                reject_count=len(rejects),
                witnesses=tuple(self._last[p] for p in sorted(self._last)),
                event_times=tuple(self._times[p] for p in sorted(self._times)),
                columns=ddl_of_fields(self._writes) if self._writes != self._begun else "",
                handed={who: rows for who, rows in handed.items() if rows},
                taken={who: rows for who, rows in taken.items() if rows},
            )
        )
        self._set_aside = []

    def _give_up(self, order: ev.Flush, reason: str, *, environment: bool) -> None:
        """What was to be kept was not. A core that waits for it ends the worker, whose end says whose fault
        that is; one that has given the transaction up hears it too late, and consumer and plane go on.
        """
        self.fault = WorkerFault.STORAGE if environment else WorkerFault.PIPELINE
        self._not_flushed(order, ev.Outcome.UNKNOWN, reason)

    def _not_flushed(self, order: ev.Flush, outcome: ev.Outcome, reason: str, *, final: bool = False) -> None:
        worker, now_ms = self._worker, self._worker.clock_ms()
        worker.post(ev.Flushed(now_ms=now_ms, call=order.call, outcome=outcome, reason=reason, final=final))

    def _is_rolled_back(self) -> bool:
        """Then the files that were begun before are gone; one that is begun later is closed, an orphan."""
        instant = self._world.storage.timeline.instants.get(self._instant)
        return instant is not None and instant.phase is InstantPhase.ROLLED_BACK

    def _rejects(self) -> list[Reject]:
        return [Reject(partition=p, offset=o, reason=BAD) for p, c in self._set_aside for o in c.rejected]

    def _send_dead_letters(self, rejects: list[Reject]) -> bool:
        """All of them, or some and then no more: then their offsets do not move."""
        world = self._world
        fails = world.chance.of(world.faults.dead_letters_fail)
        sent = rejects[: world.chance.upto(len(rejects) - 1)] if fails else rejects
        world.letters.taken.update((reject.partition, reject.offset) for reject in sent)
        return not fails

    def _discard(self, order: ev.Discard) -> None:
        self._given_up.discard(order.transaction)
        if self._ending is not None and self._ending.transaction == order.transaction:
            self._not_flushed(self._ending, ev.Outcome.FAILED, "given up")
            self._ending = None
        if order.transaction == self._transaction:
            self._forget()

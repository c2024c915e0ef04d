"""The data plane: one thread that decodes what was consumed, buffers it, and writes it to files.

Orders overtake what was consumed before them and is not decoded yet: they name what they mean by generation
and offset, and the protocol orders only what it was told of, so that END never waits for a queue of records.
Decoding and encoding happen in Rust and in Arrow's C++, without the interpreter's lock.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from control_topic.messages import SourcePartition
from control_topic.threads import guarded
from participant import events as ev
from participant.exchange.exchange import Exchange
from participant.records.errors import BatchTooLarge, SchemasPending, SchemasUnavailable
from participant.records.event_time import BatchTimes
from participant.records.port import Decoded
from participant.records.raw import RawBatch
from participant.records.rejects import HeldRejects, Rejects
from participant.source.dead_letters import DeadLetters
from participant.source.fetched import Fetched
from participant.source.witnesses import last_before
from participant.worker.buffers import BufferedBytes, Chunk, Meters, PartitionBuffer
from participant.worker.holds import LONGEST_S, Holds
from participant.worker.queues import ByteQueue
from participant.worker.stages import Stages
from participant.worker.writing import FAILURES, Writing
from table.faults import WorkerFault
from table.port import Shaped
from table.schema import record_schema

log = logging.getLogger("lockstep.plane")


class Arrived:
    """Others have handed over rows, or will not take ours."""


class Ended:
    """Files may be durable that were being ended."""


Order = Fetched | ev.Rewind | ev.Drop | ev.Open | ev.Write | ev.Flush | ev.Discard | Arrived | Ended

IDLE_S = 1.0


def _kinds_of(columns: pa.Schema) -> tuple[list[str], list[pa.DataType]]:
    return columns.names, columns.types


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaneCallbacks:
    """What a plane asks of whoever reads the topic, by source partition and generation.

    `hold(…, why)`: bring no more of it, since what came cannot be read yet. `release`: go on.
    """

    hold: Callable[[SourcePartition, int, str], None]
    release: Callable[[SourcePartition, int], None]


class Plane:
    """`post` takes the participant's events."""

    def __init__(
        self,
        *,
        stages: Stages,
        queued_bytes_max: int,
        dead_letters: DeadLetters | None,
        post: Callable[[ev.Event], None],
        now_ms: Callable[[], int],
        callbacks: PlaneCallbacks,
        exchange: Exchange | None = None,
        buffered_bytes_max: int = sys.maxsize,
    ) -> None:
        self._buffered_bytes_max = buffered_bytes_max
        self._buffered = BufferedBytes()
        self._parts: deque[Fetched] = deque()
        """Parts of a run that is too large to be decoded at once, in order. They precede what came later."""
        self._callbacks = callbacks
        self._holds = Holds()
        self._dead_letters = dead_letters
        self._post = post
        self._now_ms = now_ms
        self._queue: ByteQueue[Order | None] = ByteQueue(queued_bytes_max)
        self._buffers: dict[SourcePartition, PartitionBuffer] = {}
        self._stages = stages
        self._files = stages.files
        self._columns = _kinds_of(record_schema(stages.files.schema))
        self.meters = Meters()
        self._writing = Writing(
            stages=stages,
            dead_letters=dead_letters,
            exchange=exchange,
            post=post,
            now_ms=now_ms,
            meters=self.meters,
            wake=self._files_ended,
        )
        self._woken = False
        self._stopping = threading.Event()
        self._thread = threading.Thread(
            target=guarded("plane", self._run, self._failed), name="plane", daemon=True
        )

    # --- from other threads -----------------------------------------------------------------------

    @property
    def records_max(self) -> int:
        """So many records are best delivered at once, and no more."""
        return self._stages.records_max

    def start(self) -> None:
        self._thread.start()

    def deliver(self, fetched: Fetched) -> bool:
        """Take a consumed run; False while there is no room for it."""
        return self._queue.put(fetched, fetched.size_bytes + 1)

    def order(self, order: Order) -> None:
        """Take an order; it is obeyed before anything that is delivered after it, or sooner.

        A transaction that is given up is not written to its end first.
        """
        if isinstance(order, ev.Discard):
            self._writing.to_discard(order.transaction)
        self._queue.put(order)

    def stop(self, timeout_s: float) -> bool:
        """End the thread after the orders that it has; True when it ended in time."""
        self._stopping.set()
        self._queue.put(None)
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _files_ended(self) -> None:
        """In any thread, for each of what may be thousands."""
        if not self._woken:
            self._woken = True
            self._queue.put(Ended())

    @property
    def fault(self) -> WorkerFault:
        """Whose it was, where the thread has ended."""
        return self._writing.fault

    @property
    def queued_bytes(self) -> int:
        parts_bytes = sum(part.size_bytes for part in tuple(self._parts))
        return self._queue.held_bytes + self._holds.size_bytes + parts_bytes

    # --- the thread -------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while True:
                began = time.monotonic()
                is_full = self._buffered.total >= self._buffered_bytes_max
                wait_s = 0.0 if self._parts and not is_full else self._holds.wait_s(began, IDLE_S)
                order = self._queue.get(timeout_s=wait_s, orders_only=is_full or bool(self._parts))
                # with nothing else to do it is storage that is waited for
                waited_for = "upload" if self._writing.is_ending else "wait"
                self.meters.seconds[waited_for] += time.monotonic() - began
                if order is not None:
                    self._obey(order)
                elif self._stopping.is_set():
                    self._writing.go_on(wait=True)
                    return
                self._go_on()
        except FAILURES as error:
            self._failed(self._writing.blamed(error))
        finally:
            self._writing.stop()
            if self._dead_letters is not None:
                self._dead_letters.close()

    def _go_on(self) -> None:
        """Decode one part, and one run that was held, where the buffers have room."""
        if self._buffered.total >= self._buffered_bytes_max:
            return
        if self._parts:
            self._receive(self._parts.popleft())
        if self._buffered.total < self._buffered_bytes_max:
            self._try_held()

    def _failed(self, reason: str) -> None:
        log.debug("the data plane stops: %s", reason)  # the driver says it when the worker has ended
        self._post(ev.EffectFailed(now_ms=self._now_ms(), reason=reason))

    def _obey(self, order: Order) -> None:
        match order:
            case Fetched():
                self._receive(order)
            case ev.Rewind():
                self._drop(order.partition)
                self._buffers[order.partition] = PartitionBuffer(
                    generation=order.generation, buffered=self._buffered
                )
            case ev.Drop():
                self._drop(order.partition)
            case ev.Open():
                self._writing.open(order, self._files)
            case ev.Write():
                self._writing.write(order, self._buffers.get(order.partition), self._files)
            case ev.Flush():
                self._writing.flush(order)
            case ev.Discard():
                self._writing.discard(order.transaction)
            case Arrived():
                self._writing.take_from_others()
            case Ended():
                self._woken = False  # first: what ends from here on wakes again
                self._writing.go_on()

    def _drop(self, partition: SourcePartition) -> None:
        """Let go of what waits and what is buffered."""
        self._holds.drop(partition)
        buffer = self._buffers.pop(partition, None)
        if buffer is not None:
            buffer.clear()

    # --- decoding ---------------------------------------------------------------------------------

    def _receive(self, fetched: Fetched) -> None:
        buffer = self._buffers.get(fetched.partition)
        if buffer is None or buffer.generation != fetched.generation or buffer.blocked:
            return
        if self._holds.add(fetched):
            return
        try:
            self._take(fetched, buffer)
        except BatchTooLarge:
            self._parts.extendleft(reversed(fetched.halves))
        except SchemasUnavailable as why:
            self._holds.begin(fetched, time.monotonic())
            said = f"{fetched.partition} waits at offset {fetched.start}, and it alone: {why}"
            self._callbacks.hold(fetched.partition, fetched.generation, said)

    def _try_held(self) -> None:
        """Once more, what could not be read. Orders and others' records come between two attempts."""
        now_s = time.monotonic()
        fetched = self._holds.due(now_s)
        if fetched is None:
            return
        partition, buffer = fetched.partition, self._buffers[fetched.partition]
        try:
            if not buffer.blocked:
                self._take(fetched, buffer)
        except BatchTooLarge:
            self._holds.split(partition, fetched.halves)
            return
        except SchemasPending:
            self._holds.postpone(partition, now_s)
            return
        except SchemasUnavailable as why:
            if not self._holds.put_off(partition, now_s):
                return
            reason = (
                f"{partition} at offset {fetched.start}: {why}, and has been asked for {LONGEST_S:.0f} s. "
                "Everything before it is committed, and nothing is lost: start again once it answers"
            )
            self._block(fetched, buffer, reason)
        if self._holds.passed(partition, now_s):
            self._callbacks.release(partition, fetched.generation)

    def _take(self, fetched: Fetched, buffer: PartitionBuffer) -> None:
        """Decode it, and tell. Raises `SchemasUnavailable`, `BatchTooLarge`, and has changed nothing then."""
        chunk = Chunk(next=fetched.next, shaped=None)
        poison = ""
        if fetched.raw is not None:
            chunk, poison = self._decode(fetched)
            chunk.witness = last_before(fetched.raw, chunk.next)
        held = chunk.held
        rejects = len(held) if held is not None else 0
        reject_bytes = held.size_bytes if held is not None else 0
        rows, size_bytes = 0, reject_bytes
        if chunk.shaped is not None:
            rows = chunk.shaped.count
            size_bytes += chunk.shaped.nbytes + (chunk.times.nbytes if chunk.times is not None else 0)
        if chunk.next > fetched.start:
            chunk.size_bytes = size_bytes
            buffer.append(chunk)
            self._post(
                ev.Buffered(
                    now_ms=self._now_ms(),
                    partition=fetched.partition,
                    generation=fetched.generation,
                    start=fetched.start,
                    next=chunk.next,
                    records=rows + rejects,
                    size_bytes=size_bytes,
                    lost=fetched.lost,
                    rejects=rejects,
                    reject_bytes=reject_bytes,
                    first_reject=held.named(1)[0] if held is not None else None,
                )
            )
        if poison:
            self._block(fetched, buffer, poison)

    def _block(self, fetched: Fetched, buffer: PartitionBuffer, reason: str) -> None:
        buffer.blocked = True
        self._post(
            ev.Blocked(
                now_ms=self._now_ms(),
                partition=fetched.partition,
                generation=fetched.generation,
                reason=reason,
            )
        )

    def _decode(self, fetched: Fetched) -> tuple[Chunk, str]:
        """The chunk, and why it stops early where a record may neither pass nor be set aside."""
        raw = fetched.raw
        assert raw is not None
        decoded = self._decoded(raw)
        self.meters.records += len(raw.offsets)
        self.meters.size_bytes += fetched.size_bytes
        if decoded.stop is None:
            return self._shape(fetched, raw, decoded, fetched.next)
        index, why = decoded.stop
        offset = int(raw.offsets[index])
        chunk, poison = Chunk(next=offset, shaped=None), ""
        if index:
            before = raw.head(index)
            chunk, poison = self._shape(fetched, before, self._decoded(before), offset)
        why = f"{fetched.partition} at offset {offset}: {why}. Everything before it is committed"
        return chunk, poison or why

    def _decoded(self, raw: RawBatch) -> Decoded:
        began = time.monotonic()
        decoded = self._stages.decoder.decode(raw)
        self.meters.seconds["decode"] += time.monotonic() - began
        return decoded

    def _shape(self, fetched: Fetched, raw: RawBatch, decoded: Decoded, following: int) -> tuple[Chunk, str]:
        """As `_decode`, of what is decoded; `following` is the offset behind it."""
        began = time.monotonic()
        shaped, times = self._shaped_of(decoded, raw)
        self.meters.seconds["derive"] += time.monotonic() - began
        rejects = Rejects.joined([decoded.rejects, Rejects.of(shaped.refused, raw.offsets)])
        if not len(rejects):
            return Chunk(next=following, shaped=shaped, times=times), ""
        if self._dead_letters is not None:
            held = HeldRejects.of(raw, rejects)
            return Chunk(next=following, shaped=shaped, held=held, times=times), ""
        first = rejects[0]
        reason = (
            f"{fetched.partition} at offset {first.offset}: {first.reason}. Everything before it is "
            f"committed. Mend the producer and skip the record with "
            f"lockstep offsets --set {fetched.partition}={first.offset + 1}, "
            f'or set record.on_error = "dead_letter"'
        )
        before = raw.head(first.index)
        kept, times = self._shaped(before) if first.index else (None, None)
        return Chunk(next=first.offset, shaped=kept, times=times), reason

    def _shaped(self, raw: RawBatch) -> tuple[Shaped, BatchTimes | None]:
        return self._shaped_of(self._stages.decoder.decode(raw), raw)

    def _shaped_of(self, decoded: Decoded, raw: RawBatch) -> tuple[Shaped, BatchTimes | None]:
        """From the first rows on that have more columns than those before, all that follows has them.

        Where records bring their order, its column is ours and none of theirs.
        """
        columns = record_schema(decoded.table.schema)
        if (kinds := _kinds_of(columns)) != self._columns:
            self._files, self._columns = self._files.widened(columns), kinds
        rows = decoded.rows(raw)
        shaped = self._files.shape(rows)
        times = self._stages.times
        if times is None:
            return shaped, None
        return shaped, times.read(rows, raw, [*shaped.refused, *shaped.echoes])

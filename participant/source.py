"""The source consumer: one Kafka consumer of the pipeline's group, on a thread of its own.

It delivers runs of records of one source partition in offset order, each tagged with the generation of its
position, and takes orders (rewind, pause, resume, commit, prove, leave) from the protocol's thread. It holds
no protocol state: who may write what is decided elsewhere, and a wrong belief here costs only work.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from confluent_kafka import OFFSET_INVALID, Consumer, KafkaError, KafkaException, Message, TopicPartition
from tenacity import retry, retry_if_exception_type, stop_after_delay, wait_exponential

from control_topic.messages import Lost, Offsets, SourcePartition
from control_topic.threads import guarded
from participant.decode import RawBatch
from participant.errors import SourceError
from participant.fetched import Callbacks, Fetched, Position, runs, sentence

log = logging.getLogger("lockstep.source")

BATCH_RECORDS = 50_000
CONSUME_S = 0.1
"""The longest that an order waits behind a quiet source."""
STALL_S = 1.0
"""A consumer that cannot hand over for so long pauses, and goes on polling so that it stays a member."""
METADATA_MS = 30_000
"""How soon source partitions that were added are known."""
SEEK_DEADLINE_S = 15
PROOF_S = 10
LEAVE_S = 8


class Source:
    """The consumer and its thread. Orders may come from any thread."""

    def __init__(
        self,
        *,
        kafka: Mapping[str, str],
        group: str,
        instance: str,
        topics: Sequence[str],
        until: Offsets | None,
        on_data_loss: str,
        session_timeout_ms: int,
        queue_bytes_max: int,
        callbacks: Callbacks,
    ) -> None:
        self._topics = list(topics)
        self._until = until
        self._on_data_loss = on_data_loss
        self._callbacks = callbacks
        self._orders: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._positions: dict[SourcePartition, Position] = {}
        self._dead: set[SourcePartition] = set()  # out of range, and fetched no more: no seek revives them
        self._backlog: list[Message] = []
        self._paused = False
        self._leaving = False
        self._leave_asked = threading.Event()
        self._start_lock = threading.Lock()
        self._consumer = Consumer(
            {
                "session.timeout.ms": session_timeout_ms,
                "heartbeat.interval.ms": max(300, session_timeout_ms // 20),  # rebalances are learned by it
                "queued.max.messages.kbytes": max(1_024, queue_bytes_max // 1_024),
                "queued.min.messages": 200_000,
                "fetch.max.bytes": 50 * 1024 * 1024,
                "max.partition.fetch.bytes": 8 * 1024 * 1024,
                "fetch.wait.max.ms": 100,
                "topic.metadata.refresh.interval.ms": METADATA_MS,
                **kafka,
                "group.id": group,
                "group.instance.id": instance,
                "partition.assignment.strategy": "cooperative-sticky",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "error",
                "enable.partition.eof": True,
                "error_cb": self._on_error,
            },
            logger=log,
        )
        self._thread = threading.Thread(
            target=guarded("source", self._run, callbacks.failed), name="source", daemon=True
        )

    # --- orders -----------------------------------------------------------------------------------

    def start(self) -> None:
        """Join the group: once, and not after `leave`."""
        with self._start_lock:
            if not self._has_started() and not self._leave_asked.is_set():
                self._thread.start()

    def rewind(self, partition: SourcePartition, offset: int, generation: int) -> None:
        """Consume from `offset` on; everything delivered from now on carries `generation`."""
        self._orders.put(lambda: self._rewind(partition, offset, generation))

    def pause(self) -> None:
        self._orders.put(lambda: self._set_paused(True))

    def resume(self) -> None:
        self._orders.put(lambda: self._set_paused(False))

    def commit(self, offsets: Offsets) -> None:
        """Commit the group's offsets. A courtesy to lag tools: a failure is logged and forgotten."""
        self._orders.put(lambda: self._commit(offsets))

    def prove(
        self, partition: SourcePartition, offset: int | None, answer: Callable[[bool, str], None]
    ) -> None:
        """Answer whether the group itself still counts us as the owner, by a synchronous commit.

        `offset`: the table's; where it has none yet the group's own is committed again, or 0.
        """
        self._orders.put(lambda: self._prove(partition, offset, answer))

    def leave(self, timeout_s: float) -> bool:
        """Leave the group: unsubscribe, await the revocation, close. True when it was done in time."""
        with self._start_lock:
            self._leave_asked.set()
            if not self._has_started():
                self._close()
                return True
        self._orders.put(self._leave)
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _has_started(self) -> bool:
        return self._thread.ident is not None

    # --- the thread -------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._consumer.subscribe(
                self._topics, on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_revoke
            )
            while not self._leaving:
                self._obey()
                backlog, self._backlog = self._backlog, []
                self._take(backlog or self._consumer.consume(BATCH_RECORDS, CONSUME_S))
        except (KafkaException, SourceError) as error:
            self._callbacks.failed(f"the source consumer failed: {sentence(error)}")
        finally:
            self._close()

    def _obey(self) -> None:
        while True:
            try:
                order = self._orders.get_nowait()
            except queue.Empty:
                return
            order()

    def _leave(self) -> None:
        """A static member's close alone leaves nothing: the group would wait for its session to end.

        It has left when it has no member id any more; a close before that would take the leave back.
        """
        self._consumer.unsubscribe()
        deadline = time.monotonic() + LEAVE_S
        while (self._positions or self._consumer.memberid()) and time.monotonic() < deadline:
            self._consumer.poll(0.02)
        if self._consumer.memberid():
            log.warning("the group did not answer the leave within %d s", LEAVE_S)
        self._leaving = True

    def _close(self) -> None:
        try:
            self._consumer.close()
        except (KafkaException, RuntimeError) as error:
            log.warning("closing the source consumer: %s", sentence(error))

    # --- membership -------------------------------------------------------------------------------

    def _on_assign(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Start offsets come from the table and are part of the assignment itself, never the group's."""
        committed = self._callbacks.committed() if partitions else {}
        offsets: dict[SourcePartition, int | None] = {}
        places: list[TopicPartition] = []
        for place in partitions:
            partition = SourcePartition(place.topic, place.partition)
            offset = None if committed is None else committed.get(partition, 0)
            offsets[partition] = offset
            self._positions[partition] = Position(assigned=offset)
            self._dead.discard(partition)
            places.append(TopicPartition(place.topic, place.partition, offset or 0))
        self._consumer.incremental_assign(places)
        if places:
            self._consumer.pause(places)  # until the protocol has given them a generation
            self._callbacks.assigned(offsets)

    def _on_revoke(self, _consumer: Consumer, partitions: list[TopicPartition]) -> None:
        gone = [SourcePartition(p.topic, p.partition) for p in partitions]
        for partition in gone:
            self._positions.pop(partition, None)
        if gone:
            self._callbacks.revoked(gone)

    def _on_error(self, error: KafkaError) -> None:
        if not self._is_final(error):
            log.warning("source broker: %s", error.str())

    def _is_final(self, error: KafkaError) -> bool:
        """Whether this consumer can never go on; then everybody concerned has been told.

        librdkafka wraps the cause of a fatal error in its text: a fenced static member is known by it only.
        """
        if error.code() == KafkaError.FENCED_INSTANCE_ID or "fenced" in error.str():
            self._callbacks.fenced(error.str())
        elif error.fatal() or error.code() == KafkaError._FATAL:
            self._callbacks.failed(f"the source consumer failed for good: {error.str()}")
        else:
            return False
        return True

    # --- positions --------------------------------------------------------------------------------

    def _rewind(self, partition: SourcePartition, offset: int, generation: int) -> None:
        position = self._positions.get(partition)
        if position is None:
            return  # revoked meanwhile
        place = TopicPartition(partition.topic, partition.number, offset)
        if partition in self._dead:
            self._take_again(partition, place)
        elif position.assigned != offset:
            self._seek(place)
        self._positions[partition] = Position(generation=generation, next=offset)
        until = self._end_of(partition)
        if until is not None and offset >= until:
            self._positions[partition].at_end = True
        elif not self._paused:
            self._consumer.resume([place])

    @retry(
        retry=retry_if_exception_type(KafkaException),
        stop=stop_after_delay(SEEK_DEADLINE_S),
        wait=wait_exponential(0.02, max=1),
        reraise=True,
    )
    def _seek(self, place: TopicPartition) -> None:
        """A partition that was only just assigned refuses to be moved for an instant."""
        self._consumer.seek(place)

    def _take_again(self, partition: SourcePartition, place: TopicPartition) -> None:
        """Assign a dead source partition anew: its fetcher has stopped, and a seek is refused for good."""
        self._dead.discard(partition)
        self._consumer.incremental_unassign([place])
        self._consumer.incremental_assign([place])
        if self._paused:
            self._consumer.pause([place])

    def _end_of(self, partition: SourcePartition) -> int | None:
        return None if self._until is None else self._until.get(partition, 0)

    def _live(self) -> list[TopicPartition]:
        return [
            TopicPartition(p.topic, p.number)
            for p, position in self._positions.items()
            if position.generation and not position.at_end and not position.stuck
        ]

    def _set_paused(self, paused: bool) -> None:
        self._paused = paused
        live = self._live()
        if live:
            (self._consumer.pause if paused else self._consumer.resume)(live)

    def _commit(self, offsets: Offsets) -> None:
        places = [TopicPartition(p.topic, p.number, o) for p, o in offsets.items() if p in self._positions]
        if not places:
            return
        try:
            self._consumer.commit(offsets=places, asynchronous=True)
        except KafkaException as error:
            log.warning("the group's offsets were not committed (the table's are): %s", sentence(error))

    def _prove(
        self, partition: SourcePartition, offset: int | None, answer: Callable[[bool, str], None]
    ) -> None:
        if partition not in self._positions:
            answer(False, f"{partition} is no longer assigned here")
            return
        place = TopicPartition(partition.topic, partition.number)
        try:
            if offset is None:
                offset = max(0, self._consumer.committed([place], timeout=PROOF_S)[0].offset)
            place.offset = offset
            self._consumer.commit(offsets=[place], asynchronous=False)
        except KafkaException as error:
            answer(False, sentence(error))
        else:
            answer(True, "")

    # --- records ----------------------------------------------------------------------------------

    def _take(self, messages: list[Message]) -> None:
        records = [m for m in messages if m.error() is None]
        if records:
            for partition, run in runs(records, single_topic=len(self._topics) == 1):
                self._deliver_records(partition, run)
        if len(records) < len(messages):
            for message in messages:
                error = message.error()
                if error is not None:
                    self._take_error(message, error)

    def _deliver_records(self, partition: SourcePartition, run: list[Message]) -> None:
        position = self._positions.get(partition)
        if position is None or not position.generation or position.at_end or position.stuck:
            return
        offsets = np.fromiter((m.offset() for m in run), dtype=np.int64, count=len(run))
        until = self._end_of(partition)
        next_offset = int(offsets[-1]) + 1
        if until is not None and next_offset >= until:
            kept = int(np.searchsorted(offsets, until))
            run, offsets, next_offset = run[:kept], offsets[:kept], until
        if len(offsets) and offsets[0] < position.next:
            raise SourceError(
                f"{partition}: the consumer delivered offset {offsets[0]} where {position.next} or later "
                "was due; the worker is restarted"
            )
        raw, size_bytes = None, 0
        if run:
            values = [m.value() for m in run]
            size_bytes = sum(map(len, filter(None, values)))
            raw = RawBatch(
                partition=partition,
                offsets=offsets,
                timestamps_ms=np.fromiter((m.timestamp()[1] for m in run), dtype=np.int64, count=len(run)),
                values=values,
            )
        self._advance(partition, position, next_offset, raw=raw, size_bytes=size_bytes)

    def _advance(
        self,
        partition: SourcePartition,
        position: Position,
        next_offset: int,
        *,
        raw: RawBatch | None = None,
        size_bytes: int = 0,
        lost: tuple[Lost, ...] = (),
    ) -> None:
        fetched = Fetched(
            partition=partition,
            generation=position.generation,
            start=position.next,
            next=next_offset,
            raw=raw,
            size_bytes=size_bytes,
            lost=lost,
        )
        position.next = next_offset
        until = self._end_of(partition)
        if until is not None and next_offset >= until:
            position.at_end = True
            self._consumer.pause([TopicPartition(partition.topic, partition.number)])
        self._hand_over(fetched)

    def _hand_over(self, fetched: Fetched) -> None:
        """Wait for room. A long wait pauses the source and goes on polling, so that the membership lives."""
        stalled_at = time.monotonic() + STALL_S
        stalled = False
        while not self._callbacks.deliver(fetched):
            if self._leave_asked.is_set() or fetched.partition not in self._positions:
                return
            if time.monotonic() < stalled_at:
                continue
            live = self._live()
            if live and not stalled:
                self._consumer.pause(live)
                stalled = True
            self._backlog += self._consumer.consume(1, 0)
        if stalled and not self._paused and (live := self._live()):
            self._consumer.resume(live)

    def _take_error(self, message: Message, error: KafkaError) -> None:
        if self._is_final(error):
            return
        partition = SourcePartition(message.topic() or "", message.partition() or 0)
        position = self._positions.get(partition)
        out_of_range = error.code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE)
        if position is not None and out_of_range:
            self._dead.add(partition)
        if position is None or not position.generation or position.at_end or position.stuck:
            return
        elif error.code() == KafkaError._PARTITION_EOF:
            self._take_end(partition, position, message.offset())
        elif out_of_range:
            self._take_out_of_range(partition, position)
        elif error.code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION):
            self._stick(partition, position, "the topic or partition no longer exists at the broker")
        else:
            log.warning("%s at offset %d: %s", partition, position.next, error.str())

    def _take_end(self, partition: SourcePartition, position: Position, end: int | None) -> None:
        """The end of the log: what lies between is markers and aborted records, a range without rows."""
        until = self._end_of(partition)
        if end is None or end in (OFFSET_INVALID,) or end <= position.next:
            return
        self._advance(partition, position, end if until is None else min(end, until))

    def _take_out_of_range(self, partition: SourcePartition, position: Position) -> None:
        place = TopicPartition(partition.topic, partition.number)
        try:
            low, high = self._consumer.get_watermark_offsets(place, timeout=10)
        except KafkaException as error:
            raise SourceError(f"{partition}: the log's bounds cannot be read: {sentence(error)}") from error
        if position.next < low and self._on_data_loss == "earliest":
            log.warning(
                "%s: retention removed offsets %d to %d; going on at %d",
                partition,
                position.next,
                low - 1,
                low,
            )
            lost = Lost(partition=partition, start=position.next, next=low)
            self._take_again(partition, TopicPartition(partition.topic, partition.number, low))
            self._advance(partition, position, low, lost=(lost,))
        elif position.next < low:
            self._stick(
                partition,
                position,
                f"retention removed the offsets from {position.next} to {low - 1} before they were read; "
                f'accept the loss with source.on_data_loss = "earliest" or '
                f"lockstep offsets --set {partition}={low}",
            )
        elif position.next > high:
            self._stick(
                partition,
                position,
                f"offset {position.next} is beyond the log's end {high}: the topic was truncated or made "
                "anew; see lockstep offsets --adopt",
            )
        else:  # the log has grown up to it since the broker refused the offset
            place.offset = position.next
            self._take_again(partition, place)

    def _stick(self, partition: SourcePartition, position: Position, reason: str) -> None:
        position.stuck = True
        self._consumer.pause([TopicPartition(partition.topic, partition.number)])
        self._callbacks.stuck(
            partition, position.generation, f"{partition} at offset {position.next}: {reason}"
        )

"""The control topic in Kafka: making sure that it is there, reading it, writing it.

One partition gives the total order. It is read by assignment, never by subscription, so that nobody's
membership decides who sees what; nothing is committed to any group.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka import Message as Record

from control_topic.codec import Incomplete, Unreadable
from control_topic.complaints import Complaints
from control_topic.end_watch import EndWatch
from control_topic.errors import ControlTopicUnavailable
from control_topic.messages import Body
from control_topic.record_headers import headers_of
from control_topic.refused_writes import RefusedWrites
from control_topic.topic import ControlTopic, TopicFacts
from control_topic.topic_watch import TopicWatch
from control_topic.transport import (
    BYTES_PER_POLL_MAX,
    MESSAGES_PER_POLL_MAX,
    TAIL_MESSAGES,
    Envelopes,
    Received,
    Receiver,
    Start,
    start_offset,
)
from control_topic.trust import HEADER, Trust
from control_topic.unreadable import UNREADABLE

__all__ = [
    "ControlReader",
    "ControlTopic",
    "ControlWriter",
    "Incomplete",
    "Received",
    "TopicFacts",
    "Unreadable",
]

log = logging.getLogger(__name__)
_client_log = logging.getLogger(f"{__name__}.librdkafka")

PARTITION = 0
RESOLVE_MIN_S = 1.0
"""A broker that is busy for a moment is not worth a complaint."""
RESOLVE_TIMEOUT_S = 5.0
RETRY_S = 0.25
CLOSE_S = 10.0
"""A consumer that does not close within this time hangs, and is left to its thread."""
FORGERY_INTERVAL_S = 60.0
MESSAGE_TIMEOUT_MS = 10_000
"""A message that did not get out by then is given up: its sender has repeated it since."""

QUEUE_MESSAGES_MAX = 10_000
QUEUE_KBYTES_MAX = 64 * 1024
FETCHED_KBYTES_MAX = 4 * 1024
"""What waits in the client to be read; one answer of the broker may be more."""
FETCH_WAIT_MAX_MS = 100
"""New data is answered at once whatever this is; the end of the topic is reported this late at most."""

_POSITION_LOST = frozenset(
    {
        KafkaError._AUTO_OFFSET_RESET,
        KafkaError.OFFSET_OUT_OF_RANGE,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.UNKNOWN_TOPIC_ID,
    }
)
"""The log is not the one that was being read: deleted, made again, or cut off on either side."""
UNREADABLE_MAX = 3
"""So often in a row before it is passed over: the topic may lose, and what matters is said again."""


class ControlReader:
    """A `control_topic.transport.Reader` of a Kafka topic.

    With `trust`, what is not that run's own word is given to nobody. Connects when first polled. Where the
    log is not the one that was being read any more, it goes on with the tail of what is there and counts a
    recovery.
    """

    def __init__(
        self,
        kafka: Mapping[str, Any],
        topic: str,
        *,
        start: Start = "tail",
        tail_messages: int = TAIL_MESSAGES,
        pipeline: str = "",
        surface_parts: bool = False,
        trust: Trust | None = None,
    ) -> None:
        self._topic = topic
        self._start: Start = start
        self._tail_messages = tail_messages
        self._receiver = Receiver(pipeline=pipeline, surface_parts=surface_parts, trust=trust)
        self._forged_said = (0, 0.0)  # how many, and when that was said last
        self._complaints = Complaints(f"reading the control topic {topic}")
        self._position: int | None = None  # None: not assigned
        self._end: int | None = None  # as last asked for; None: not known yet
        self._reached = 0  # all before it was read, or is nothing that can be
        self._caught_up = False
        self._retry_at = 0.0
        self._in_the_way = 0
        self.recoveries = 0
        self.partitions = 0  # of the topic, as last looked up; anything but 1 is wrong, and only 0 is read
        self._kafka = dict(kafka)
        self._watch = TopicWatch(kafka, topic)
        self._end_watch = EndWatch(kafka, topic, PARTITION)
        self._closing: threading.Thread | None = None
        self._consumer = self._open_consumer()

    @property
    def caught_up(self) -> bool:
        return self._caught_up

    @property
    def bodies_bytes(self) -> int:
        """Of all bodies that were read, each whole."""
        return self._receiver.bodies_bytes

    def ask_for_end(self, timeout_s: float) -> None:
        """From here on `caught_up` is said of the end that the log has now.

        Raises `ControlTopicUnavailable` where the broker does not say.
        """
        self._caught_up = False
        if self._position is None:
            return  # where reading begins is not known either: its end will be asked for
        try:
            place = TopicPartition(self._topic, PARTITION)
            _, self._end = self._consumer.get_watermark_offsets(place, timeout=timeout_s, cached=False)
        except KafkaException as error:
            raise ControlTopicUnavailable(
                f"Where the control topic {self._topic} ends the broker does not say: {error.args[0].str()}."
            ) from error
        self._note_progress(self._reached)

    @property
    def highest_epoch(self) -> int:
        return self._receiver.highest_epoch

    @property
    def unreadable(self) -> int:
        """Records read that were no messages of this version."""
        return self._receiver.unreadable

    @property
    def untrusted(self) -> int:
        """Records that were not the run's own word: other runs' mostly, as every run leaves some."""
        return self._receiver.untrusted

    @property
    def forged(self) -> int:
        """Those of them that somebody wrote in this run's name."""
        return self._receiver.forged

    @property
    def errors(self) -> int:
        """Errors that the broker or the connection answered with. The last is in `last_error`."""
        return self._complaints.count

    @property
    def last_error(self) -> str:
        return self._complaints.last

    def poll(self, timeout_s: float) -> list[Received]:
        deadline = time.monotonic() + timeout_s
        while True:
            remaining_s = max(0.0, deadline - time.monotonic())
            if self._position is not None and self._watch.is_another():
                self._lose_position("the topic has another id")
            if self._position is not None and self._end_watch.hangs(max(self._position, self._reached)):
                self._renew()
            if self._position is None:
                self._resolve(remaining_s)
            try:
                taken = self._fetch(remaining_s)
            except KafkaException as error:
                self._complaints.hear(error.args[0])
                taken = []
            if taken or time.monotonic() >= deadline:
                return taken

    def _fetch(self, timeout_s: float) -> list[Received]:
        record = self._consumer.poll(timeout_s if self._position is not None else min(timeout_s, RETRY_S))
        taken = []
        looked_at, enough_bytes = 0, self.bodies_bytes + BYTES_PER_POLL_MAX
        while record is not None:  # one by one: a record's headers take sixty times their bytes
            if (received := self._receive(record)) is not None:
                taken.append(received)
            looked_at += 1
            more = looked_at < MESSAGES_PER_POLL_MAX and self.bodies_bytes < enough_bytes
            record = self._consumer.poll(0) if more else None
        if looked_at and self._position is not None:
            self._note_progress(self._position)
        return taken

    def close(self) -> None:
        self._close_in_thread(CLOSE_S)
        self._watch.close()
        self._end_watch.close()

    def _renew(self) -> None:
        """Replace a consumer that returns nothing although the log has more records."""
        if self._position is None or (self._closing is not None and self._closing.is_alive()):
            return
        log.warning(
            "Created another consumer of the control topic %s: the previous one returned nothing from"
            " offset %d on, and the log has more records.",
            self._topic,
            self._position,
        )
        self._close_in_thread(0.0)
        self._consumer = self._open_consumer()
        self._consumer.assign([TopicPartition(self._topic, PARTITION, self._position)])

    def _close_in_thread(self, timeout_s: float) -> None:
        """Close the consumer in another thread and wait at most `timeout_s`: a hanging one never closes."""
        self._closing = threading.Thread(target=self._consumer.close, name="control-reader-end", daemon=True)
        self._closing.start()
        self._closing.join(timeout_s)

    def _open_consumer(self) -> Consumer:
        return Consumer(
            {
                "group.id": "lockstep-control-reader",  # asked for by the client; nothing is committed to it
                **self._kafka,
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
                "allow.auto.create.topics": False,
                # Marks say who is believed; a stranger's transaction that stays open would hide all else.
                "isolation.level": "read_uncommitted",
                "fetch.wait.max.ms": FETCH_WAIT_MAX_MS,
                "fetch.min.bytes": 1,
                "queued.max.messages.kbytes": FETCHED_KBYTES_MAX,
                "error_cb": self._complaints.hear,
            },
            logger=_client_log,
        )

    def _receive(self, record: Record) -> Received | None:
        error = record.error()
        if error is not None:
            if error.code() == KafkaError._PARTITION_EOF:
                if self._position is not None:  # what is behind it is no message: a transaction's marks
                    self._note_progress(max(self._position, record.offset() or 0))
            elif error.code() in _POSITION_LOST:
                self._lose_position(f"{error.name()}: {error.str()}")
            else:
                self._complaints.hear(error)
                if error.code() in UNREADABLE:
                    self._pass_over()
            return None
        offset = record.offset()
        if self._position is None or offset is None:
            return None  # fetched before the position was lost
        self._position, self._in_the_way = offset + 1, 0
        received = self._receiver.receive(
            offset=offset, time_ms=record.timestamp()[1], raw=record.value(), mac=_mac(record)
        )
        self._complain_of_forgery()
        return received

    def _complain_of_forgery(self) -> None:
        """Now and then: whoever forges messages may forge many."""
        forged, (said, said_s) = self._receiver.forged, self._forged_said
        if forged == said or time.monotonic() - said_s < FORGERY_INTERVAL_S:
            return
        self._forged_said = (forged, time.monotonic())
        log.warning(
            "%d messages on the control topic %s are in this run's name and not of it (the last at offset"
            " %d): they are ignored. See who may write to the topic.",
            forged,
            self._topic,
            self._receiver.last_forged,
        )

    def _note_progress(self, reached: int) -> None:
        self._reached = max(self._reached, reached)
        self._caught_up = self._caught_up or (self._end is not None and self._reached >= self._end)

    def _pass_over(self) -> None:
        """Go on behind what cannot be read, by ever longer steps: where its batch ends nobody says."""
        self._in_the_way += 1
        if self._position is None or self._in_the_way < UNREADABLE_MAX:
            return
        step = 1 << (self._in_the_way - UNREADABLE_MAX)
        log.warning(
            "The control topic %s cannot be read at offset %d; it is passed over. See who may write there.",
            self._topic,
            self._position,
        )
        self._position += step
        self._consumer.assign([TopicPartition(self._topic, PARTITION, self._position)])

    def _lose_position(self, why: str) -> None:
        """With a new consumer: the one that there is may know an epoch by which the new log is outdated."""
        self.recoveries += 1
        self._position, self._reached, self._retry_at = None, 0, 0.0
        self._start = "tail"
        self._close_in_thread(CLOSE_S)
        self._consumer = self._open_consumer()
        self._complaints.count += 1
        self._complaints.last = why
        log.warning(
            "The control topic %s is not what it was: deleted, made again or cut off. Reading goes on with"
            " what it holds now; what matters is said again.",
            self._topic,
        )

    def _resolve(self, timeout_s: float) -> None:
        """Find out what the log holds and go to where reading begins; left for later where nobody answers."""
        if time.monotonic() < self._retry_at:
            return
        patience_s = min(max(timeout_s, RESOLVE_MIN_S), RESOLVE_TIMEOUT_S)
        try:
            self._watch.begin(patience_s)
            low, high = self._consumer.get_watermark_offsets(
                TopicPartition(self._topic, PARTITION), timeout=patience_s, cached=False
            )
            metadata = self._consumer.list_topics(self._topic, timeout=patience_s)
            position = start_offset(self._start, tail_messages=self._tail_messages, low=low, high=high)
            self._consumer.assign([TopicPartition(self._topic, PARTITION, position)])
        except KafkaException as error:
            self._retry_at = time.monotonic() + RETRY_S
            self._complaints.hear(error.args[0])
            return
        self.partitions = len(metadata.topics[self._topic].partitions)
        if self.partitions != 1:
            log.warning(
                "The control topic %s has %d partitions now and must have exactly 1; only partition 0 is"
                " used. Delete it, also while runs go on: it is made again, and no record is lost by that.",
                self._topic,
                self.partitions,
            )
        self._position, self._end = position, high
        self._note_progress(position)


def _mac(record: Record) -> bytes | None:
    """The record's mark; none where the client cannot read its headers, such as names that are no text."""
    marks = (value for name, value in headers_of(record) or () if name == HEADER)
    return next((mark for mark in marks if isinstance(mark, bytes)), None)


class ControlWriter:
    """A `control_topic.transport.Writer` to a Kafka topic.

    `key`: the run's, which marks what is written. A message that the broker does not take in time is
    counted in `failures` and logged, not raised; one that it refuses is noted in `refused`.
    """

    def __init__(
        self,
        kafka: Mapping[str, Any],
        topic: str,
        *,
        pipeline: str,
        run: str,
        sender: str,
        incarnation: str,
        clock_ms: Callable[[], int],
        key: bytes,
        refused: RefusedWrites | None = None,
    ) -> None:
        self._topic = topic
        self._refused = refused or RefusedWrites(topic)
        self._envelopes = Envelopes(
            pipeline=pipeline, run=run, sender=sender, incarnation=incarnation, clock_ms=clock_ms, key=key
        )
        self._complaints = Complaints(f"writing to the control topic {topic}")
        self.failures = 0
        self._producer = Producer(
            {
                **kafka,
                "acks": "all",
                # In order without the idempotent producer, which a deleted topic can stop for good.
                "enable.idempotence": False,
                "max.in.flight.requests.per.connection": 1,
                "linger.ms": 0,
                "message.timeout.ms": MESSAGE_TIMEOUT_MS,
                "queue.buffering.max.messages": QUEUE_MESSAGES_MAX,
                "queue.buffering.max.kbytes": QUEUE_KBYTES_MAX,
                "delivery.report.only.error": True,
                "error_cb": self._complaints.hear,
            },
            logger=_client_log,
        )

    @property
    def last_error(self) -> str:
        return self._complaints.last

    def send(self, body: Body, *, epoch: int) -> None:
        for raw, mac in self._envelopes.seal(body, epoch=epoch):
            try:
                self._producer.produce(
                    self._topic,
                    raw,
                    partition=PARTITION,
                    headers=[(HEADER, mac)],
                    on_delivery=self._on_delivery,
                )
            except BufferError:
                self._fail("the queue is full: the broker has not taken messages for a while")
            except KafkaException as error:
                self._fail(str(error.args[0]))
        self._producer.poll(0)

    def flush(self, timeout_s: float) -> bool:
        return int(self._producer.flush(timeout_s)) == 0

    def close(self) -> None:
        """Let go of what has not left; `flush` first where that matters."""
        self._producer.purge()
        self._producer.flush(1.0)

    def _on_delivery(self, error: KafkaError | None, record: Record) -> None:
        if error is not None:
            self._refused.met(time.monotonic(), error.code(), error.str())
            self._fail(str(error))

    def _fail(self, reason: str) -> None:
        self.failures += 1
        self._complaints.say(reason)

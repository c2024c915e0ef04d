"""Rejected records go to the dead-letter topic, durable before their offset can move.

A dead letter is the record as it came: its value, its headers, and in headers of ours its key, its timestamp,
where it was and why it is no row. Its own key is `topic-partition-offset`: it is sent at least once, and a
reader tells by it what was sent again. Its own timestamp is when it was rejected, so that the topic's
retention counts from there, however old the record is.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from control_topic.messages import SourcePartition
from participant.errors import DeadLetterError, DeadLetterRefused, SourceError
from participant.fetcher import sentence
from participant.headers import sendable
from participant.native import native_module, texts
from participant.raw import Values
from participant.rejects import HeldRejects

log = logging.getLogger("lockstep.dead_letters")

FLUSH_S = 30
BATCH_BYTES_MAX = 1_000_000
RECORD_BYTES = 1_024
"""What librdkafka holds of a record beyond its content: the message, a list of headers and their copies."""
FINAL = frozenset(
    {
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.POLICY_VIOLATION,
        KafkaError.INVALID_RECORD,
    }
)
"""What every fresh worker would be told again, until somebody changes the topic or the rights."""
FAILURES_KEPT = 10
MESSAGE_BYTES_DEFAULT = 1_048_588
"""Kafka's, of a topic that says nothing."""
MESSAGE_BYTES_MAX = 2**31 - 1


class Failure(Exception):
    """The first record that did not become durable: its key, the size of its value, and librdkafka's word."""

    def __init__(self, code: int, key: str, text: str, size_bytes: int) -> None:
        super().__init__(text)
        self.code, self.key, self.size_bytes = code, key, size_bytes


class Sender(Protocol):
    """Not for several threads. At most `bytes_max` are on their way at once."""

    def send(self, topic: str, held: HeldRejects) -> None:
        """Hand them over; what fails is known at the next flush."""

    def flush(self) -> None:
        """Wait until the broker has them all. Raises `Failure`."""

    def close(self) -> None: ...


def producer_settings(kafka: Mapping[str, str], *, batch_bytes_max: int) -> dict[str, object]:
    """librdkafka's settings. How much may be on its way the senders bound themselves, since librdkafka's own
    queue refuses for ever a record that is larger than all of it. Headers repeat, and compress well.

    A topic that somebody deletes is not made by asking for it, with the broker's own retention: the driver
    makes it again, to be kept.
    """
    return {
        "linger.ms": 5,
        "compression.type": "lz4",
        **kafka,
        "acks": "all",
        "enable.idempotence": True,
        "delivery.timeout.ms": FLUSH_S * 1_000,
        "message.max.bytes": 1_000_000_000,
        "allow.auto.create.topics": False,
        "batch.size": max(1, min(BATCH_BYTES_MAX, batch_bytes_max)),
        "queue.buffering.max.messages": 10_000_000,
        "queue.buffering.max.kbytes": 2_097_151,
    }


class NativeSender:
    """Without a Python object per record: the Python side of `Sender` in participant/_fetcher.c."""

    def __init__(self, settings: Mapping[str, object], *, bytes_max: int) -> None:
        self._module = native_module()
        self._bytes_max = bytes_max
        try:
            self._sender = self._module.Sender(texts(settings))
        except self._module.Failure as error:
            raise DeadLetterError(f"the dead letters' producer cannot be made: {error}") from error

    def send(self, topic: str, held: HeldRejects) -> None:
        self._sender.send(
            topic,
            held.partition.topic,
            held.partition.number,
            len(held),
            held.offsets.tobytes(),
            held.timestamps_ms.tobytes(),
            held.codes.tobytes(),
            tuple(reason.encode("utf-8", "replace") for reason in held.reasons),
            _column(held.values),
            _column(held.keys),
            _column(held.headers),
            self._bytes_max,
        )

    def flush(self) -> None:
        left, code, key, text, size_bytes = self._sender.flush(FLUSH_S * 1_000 + 5_000)
        if code:
            raise Failure(code, _readable(key), _readable(text), size_bytes)
        if left:
            raise _unanswered(left)

    def close(self) -> None:
        self._sender.close()


def _column(column: Values | None) -> tuple[bytes, bytes, bytes | None] | None:
    if column is None:
        return None
    return column.data, column.starts.tobytes(), None if column.nulls is None else column.nulls.tobytes()


class PlainSender:
    """With nothing but confluent-kafka."""

    def __init__(self, settings: Mapping[str, object], *, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._sent_bytes = 0
        self._failed: Failure | None = None
        self._producer = Producer(dict(settings))

    def send(self, topic: str, held: HeldRejects) -> None:
        place = f"{held.partition.topic}-{held.partition.number}"
        where: list[tuple[str, str | bytes | None]] = [
            ("lockstep.topic", held.partition.topic),
            ("lockstep.partition", str(held.partition.number)),
        ]
        sizes = held.record_bytes()
        numbers = zip(held.offsets.tolist(), held.timestamps_ms.tolist(), held.codes.tolist(), strict=True)
        for i, (offset, timestamp_ms, code) in enumerate(numbers):
            if self._failed is not None:
                return
            key = held.keys[i] if held.keys is not None else None
            headers = [
                *sendable((held.headers[i] if held.headers is not None else None) or b""),
                *where,
                ("lockstep.offset", str(offset)),
                ("lockstep.timestamp", str(timestamp_ms)),
                *([("lockstep.key", key)] if key is not None else ()),
                ("lockstep.reason", held.reasons[code]),
            ]
            self._produce(topic, f"{place}-{offset}", held.values[i], headers, int(sizes[i]))

    def _produce(
        self,
        topic: str,
        key: str,
        value: bytes | None,
        headers: list[tuple[str, str | bytes | None]],
        record_bytes: int,
    ) -> None:
        size_bytes = RECORD_BYTES + record_bytes

        def delivered(error: KafkaError | None, _: Message) -> None:
            self._sent_bytes -= size_bytes
            if error is not None:
                self._fail(error, key, value)

        while self._sent_bytes >= self._bytes_max:
            self._producer.poll(0.1)
        while True:
            try:
                self._producer.produce(topic, key=key, value=value, headers=headers, on_delivery=delivered)
            except BufferError:
                self._producer.poll(0.1)
            except KafkaException as error:
                self._fail(error.args[0], key, value)
                return
            else:
                self._sent_bytes += size_bytes
                return

    def _fail(self, error: KafkaError, key: str, value: bytes | None) -> None:
        self._failed = self._failed or Failure(error.code(), key, sentence(error), len(value or b""))

    def flush(self) -> None:
        left = self._producer.flush(FLUSH_S + 5)
        failed, self._failed = self._failed, None
        if failed is not None:
            raise failed
        if left:
            raise _unanswered(left)

    def close(self) -> None:
        self._producer.purge()
        self._producer.flush(1)


def _unanswered(left: int) -> Failure:
    return Failure(0, f"{left} records", f"unanswered after {FLUSH_S} s", 0)


def _readable(text: bytes) -> str:
    return text.decode("utf-8", "replace")


def open_sender(settings: Mapping[str, object], *, bytes_max: int) -> Sender:
    """The faster one where it can be had."""
    try:
        return NativeSender(settings, bytes_max=bytes_max)
    except (ImportError, SourceError) as error:
        log.debug("dead letters are sent by confluent-kafka alone: %s", error)
        return PlainSender(settings, bytes_max=bytes_max)


def wanted_bytes(size_bytes: int) -> int:
    """What a topic is to take so that a record of this size passes; never less than Kafka's own default."""
    return min(MESSAGE_BYTES_MAX, max(2 * size_bytes + 65_536, MESSAGE_BYTES_DEFAULT))


class DeadLetters:
    """`topic` empty: `<source topic>.dlq` per source topic.

    `bytes_max`: so many may be on their way at once. `message_bytes_max`: of what the topics take, 0 where
    that is not known.
    """

    def __init__(
        self, kafka: Mapping[str, str], topic: str, *, bytes_max: int, message_bytes_max: int = 0
    ) -> None:
        self._topic = topic
        self._settings = producer_settings(kafka, batch_bytes_max=message_bytes_max or BATCH_BYTES_MAX)
        self._bytes_max = bytes_max
        self._sender: Sender | None = None
        self._durable: dict[SourcePartition, int] = {}

    def send(self, rejected: Iterable[HeldRejects], step: Callable[[], None] = lambda: None) -> None:
        """Send all and wait until the broker has them; `step` is called now and then.

        Raises `DeadLetterError` when it does not, `DeadLetterRefused` where it never will.
        """
        ends: dict[SourcePartition, int] = {}
        sent: list[HeldRejects] = []
        for held in rejected:
            rest = held.since(self._durable.get(held.partition, 0))
            if len(rest):
                self._open().send(self.topic_for(held.partition), rest)
                ends[held.partition] = int(rest.offsets[-1]) + 1
                sent.append(held)
                step()
        if not ends:
            return
        try:
            self._open().flush()
        except Failure as failure:
            about = next(
                (p for p in ends if failure.key.startswith(f"{p.topic}-{p.number}-")), next(iter(ends))
            )
            if failure.code == KafkaError.MSG_SIZE_TOO_LARGE:
                raise self._too_large(self.topic_for(about), sent) from failure
            raise self._error(failure, about) from failure
        self._durable.update(ends)

    def _open(self) -> Sender:
        """Made when there is something to send: most workers never have."""
        if self._sender is None:
            self._sender = open_sender(self._settings, bytes_max=self._bytes_max)
        return self._sender

    def _too_large(self, topic: str, sent: Iterable[HeldRejects]) -> DeadLetterRefused:
        """Of the largest record, with its key and headers: a broker refuses a batch, and names none in it."""
        size_bytes, key = max(held.largest() for held in sent if self.topic_for(held.partition) == topic)
        return DeadLetterRefused(
            f"the rejected record {key} ({size_bytes:,} bytes) is larger than the dead-letter topic {topic} "
            f"takes: its offset does not move. Set the topic's max.message.bytes to "
            f"{wanted_bytes(size_bytes)} (kafka-configs.sh --alter --entity-type topics "
            f"--entity-name {topic} --add-config ...) and start again"
        )

    def _error(self, failure: Failure, partition: SourcePartition) -> DeadLetterError:
        topic = self.topic_for(partition)
        about = f"the rejected record {failure.key} ({failure.size_bytes:,} bytes)"
        if failure.code in FINAL:
            return DeadLetterRefused(
                f"{about} is refused by the dead-letter topic {topic}: {failure}. Its offset does not move. "
                "Mend the topic or the rights to it, and start again"
            )
        return DeadLetterError(
            f"rejected records did not reach the dead-letter topic {topic} ({failure.key}: {failure}); their "
            "offsets do not move. See that the topic is there and the broker well"
        )

    def topic_for(self, partition: SourcePartition) -> str:
        return self._topic or f"{partition.topic}.dlq"

    def close(self) -> None:
        if self._sender is not None:
            self._sender.close()

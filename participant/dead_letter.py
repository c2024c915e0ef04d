"""Rejected records go to the dead-letter topic, durable before their offset can move.

At least once: a transaction that is done again sends its rejects again, under the same key
`topic-partition-offset`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from control_topic.messages import Reject, SourcePartition
from participant.errors import DeadLetterError

FLUSH_S = 30
OUTSTANDING_MAX = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """A record that did not become a row, with its raw value (None: it had none)."""

    reject: Reject
    value: bytes | None

    @property
    def size_bytes(self) -> int:
        return len(self.value or b"") + len(self.reject.reason) + 64


class DeadLetters:
    """`topic` empty: `<source topic>.dlq` per source topic."""

    def __init__(self, kafka: Mapping[str, str], topic: str) -> None:
        self._topic = topic
        self._failed: list[str] = []
        self._producer = Producer(
            {
                **kafka,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 5,
                "delivery.timeout.ms": FLUSH_S * 1_000,
            }
        )

    def send(self, rejected: Iterable[Rejected]) -> None:
        """Send all and wait until the broker has them. Raises `DeadLetterError` when it does not."""
        self._failed = []
        for number, one in enumerate(rejected):
            self._produce(one)
            if number % OUTSTANDING_MAX == OUTSTANDING_MAX - 1:
                self._flush()
        self._flush()

    def _produce(self, one: Rejected) -> None:
        partition, offset = one.reject.partition, one.reject.offset
        topic = self.topic_for(partition)
        try:
            self._producer.produce(
                topic,
                key=f"{partition.topic}-{partition.number}-{offset}",
                value=one.value,
                headers=[
                    ("lockstep.topic", partition.topic),
                    ("lockstep.partition", str(partition.number)),
                    ("lockstep.offset", str(offset)),
                    ("lockstep.reason", one.reject.reason),
                ],
                on_delivery=self._delivered,
            )
        except (KafkaException, BufferError) as error:
            raise DeadLetterError(
                f"{partition} at offset {offset}: not accepted by {topic}: {error}"
            ) from error

    def topic_for(self, partition: SourcePartition) -> str:
        return self._topic or f"{partition.topic}.dlq"

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None and len(self._failed) < 10:
            key = (message.key() or b"").decode(errors="replace")
            self._failed.append(f"{key} to {message.topic()}: {error.str()}")

    def _flush(self) -> None:
        left = self._producer.flush(FLUSH_S)
        if left or self._failed:
            what = self._failed[0] if self._failed else f"{left} records unanswered after {FLUSH_S} s"
            raise DeadLetterError(
                f"rejected records did not reach the dead-letter topic ({what}); their offsets do not move. "
                "Create the topic, or see that the broker is well"
            )

    def close(self) -> None:
        self._producer.flush(1)

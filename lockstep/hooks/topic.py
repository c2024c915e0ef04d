"""Each commit as a message on a Kafka topic, which whoever comes after it waits for."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicCollection
from confluent_kafka.admin import AdminClient

from control_topic.creation import WantedTopic, create_topic, replicas_for
from control_topic.topic import without_settings
from lockstep.hooks.commits import Commit, TableTold, message
from lockstep.hooks.port import Ending, SinkError

log = logging.getLogger("lockstep.hooks")
_client_log = logging.getLogger(f"{__name__}.librdkafka")

DELIVERY_S = 10.0
ANSWER_MARGIN_S = 5.0
ASK_S = 10.0
POLL_S = 0.1
METADATA_MS = 2_000
"""A topic that is gone is not waited for: it is made again."""
MISSING = frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError.UNKNOWN_TOPIC_ID,
    }
)


class NotificationTopic:
    """The topic itself. `kafka`: librdkafka's properties, secrets resolved."""

    def __init__(self, kafka: Mapping[str, str], topic: str) -> None:
        self._topic = topic
        self._admin = AdminClient(dict(kafka), logger=_client_log)

    def partitions(self) -> int:
        """0 where it is not there. Raises `SinkError`."""
        request = self._admin.describe_topics(TopicCollection([self._topic]), request_timeout=ASK_S)
        try:
            return len(request[self._topic].result(ASK_S).partitions)
        except KafkaException as error:
            if error.args[0].code() in MISSING:
                return 0
            raise self._failed("be described", error.args[0].str()) from error
        except FutureTimeout as error:
            raise self._failed("be described", f"no answer within {ASK_S:.0f} s") from error

    def ensure(self) -> None:
        """Make it where it is missing, of one source partition: its order is that of the commits."""
        deadline = time.monotonic() + ASK_S
        if self.partitions():
            return
        self._create()
        while not self.partitions():
            if time.monotonic() > deadline:
                raise self._failed("be found after it was created", "no answer in time")
            time.sleep(POLL_S)
        log.info("made the topic %s, on which each commit is told", self._topic)

    def try_to_create(self) -> None:
        """Ask the broker whether it would, and make nothing."""
        self._create(validate_only=True)

    def _create(self, *, validate_only: bool = False) -> None:
        try:
            wanted = WantedTopic(
                topic=self._topic,
                partitions=1,
                replicas=replicas_for(self._admin, timeout_s=ASK_S),
                optional={"cleanup.policy": "delete"},
            )
            created = create_topic(self._admin, wanted, timeout_s=ASK_S, validate_only=validate_only)
        except KafkaException as error:
            raise self._failed("be created", error.args[0].str()) from error
        except FutureTimeout as error:
            raise self._failed("be created", f"no answer within {ASK_S:.0f} s") from error
        if created.left_out and not validate_only:
            log.warning("%s", without_settings(f"topic {self._topic}", created))

    def _failed(self, what: str, why: str) -> SinkError:
        return SinkError(f"the topic {self._topic} could not {what}: {why}")


class TopicSink:
    """See `lockstep.hooks.port.Sink`."""

    name = "topic"
    newest_only = False
    every_ms = 0
    patience_s = DELIVERY_S + ANSWER_MARGIN_S + 4 * ASK_S

    def __init__(self, kafka: Mapping[str, str], topic: str, *, pipeline: str, table: TableTold) -> None:
        self._kafka, self._topic, self._pipeline, self._table = dict(kafka), topic, pipeline, table
        self._topics: NotificationTopic | None = None
        self._producer: Producer | None = None

    @property
    def place(self) -> str:
        return self._topic

    def begin(self) -> None:
        """See that the topic is there."""
        if self._topics is None:
            self._topics = NotificationTopic(self._kafka, self._topic)
        self._topics.ensure()

    def deliver(self, commit: Commit) -> None:
        value = message(commit, pipeline=self._pipeline, table=self._table)
        answer = _Answer()
        try:
            producer = self._producer = self._producer or self._made()
            producer.produce(self._topic, value, key=self._pipeline.encode(), on_delivery=answer.take)
        except (KafkaException, BufferError) as error:
            self.close()
            raise SinkError(_said(error)) from error
        deadline = time.monotonic() + DELIVERY_S + ANSWER_MARGIN_S
        while not answer.came.is_set():
            if time.monotonic() > deadline:
                self.close()  # what is on its way is not waited for by the next try
                raise SinkError(f"the broker has not answered within {DELIVERY_S:.0f} s")
            producer.poll(POLL_S)
        if answer.error is not None:
            self.close()  # an idempotent producer that failed for good takes nothing any more
            if answer.error.code() in MISSING:
                self.begin()
            raise SinkError(answer.error.str())

    def end(self, ending: Ending) -> None:
        """Nothing is said of it."""

    def close(self) -> None:
        if self._producer is not None:
            self._producer.purge()
            self._producer = None

    def _made(self) -> Producer:
        settings: dict[str, Any] = {
            "linger.ms": 0,
            **self._kafka,
            "acks": "all",
            "enable.idempotence": True,
            "delivery.timeout.ms": int(1_000 * DELIVERY_S),
            "allow.auto.create.topics": False,
            "topic.metadata.propagation.max.ms": METADATA_MS,
        }
        return Producer(settings, logger=_client_log)


class _Answer:
    """The broker's, to one message."""

    def __init__(self) -> None:
        self.came = threading.Event()
        self.error: KafkaError | None = None

    def take(self, error: KafkaError | None, _record: Message) -> None:
        self.error = error
        self.came.set()


def _said(error: Exception) -> str:
    first = error.args[0] if error.args else error
    return first.str() if isinstance(first, KafkaError) else type(error).__name__

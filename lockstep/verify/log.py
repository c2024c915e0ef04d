"""Offsets that the table does not have, looked up in the source topics' log.

A log has gaps of its own: markers, aborted records, what compaction took. Only an offset that a
read-committed consumer still delivers was lost.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from control_topic.messages import SourcePartition
from lockstep.brokers.source_topics import SourceTopics
from lockstep.verify.counts import Intervals, size
from lockstep.verify.rows import EXAMPLES_MAX
from table.service.source_facts import SourceTopicsError

_client_log = logging.getLogger(f"{__name__}.librdkafka")

TIMEOUT_S = 600.0
SOURCE_TIMEOUT_S = 30.0
SILENCE_S = 20.0
POLL_S = 0.5
BATCH_RECORDS = 5_000
SEEK_OFFSETS = 50_000
"""Intervals that are nearer to each other than this are read through in one go."""


@dataclass(slots=True)
class Looked:
    """What the log says of one source partition's missing offsets."""

    lost: int = 0
    """Offsets that the log delivered, so truly missing; `examples` are the first of them."""
    examples: list[int] = field(default_factory=list)
    gaps: int = 0
    """Offsets of which the log has no record either."""
    unknown: int = 0
    """Offsets that could not be looked up; `why` says why."""
    why: str = ""


class SourceLog:
    """Reads parts of the source topics. `kafka`: librdkafka properties. One deadline for all look-ups."""

    def __init__(self, kafka: Mapping[str, str], *, timeout_s: float = TIMEOUT_S) -> None:
        self._kafka = dict(kafka)
        self._deadline = time.monotonic() + timeout_s
        self._ask_s = min(SOURCE_TIMEOUT_S, timeout_s)
        self._identity: dict[str, tuple[str, str]] = {}
        self._trouble: dict[str, str] = {}

    def look(self, partition: SourcePartition, missing: Intervals, *, topic_id: str, cluster: str) -> Looked:
        """Look the missing offsets up, if the log is the one that they came from."""
        looked = Looked(unknown=size(missing))
        looked.why = self._identity_problem(partition.topic, topic_id, cluster)
        if looked.why:
            return looked
        try:
            earliest = self._source(partition.topic).earliest([partition])[partition]
        except SourceTopicsError as error:
            looked.why = str(error)
            return looked
        removed = missing[missing[:, 0] < earliest].copy()
        removed[:, 1] = np.minimum(removed[:, 1], earliest)
        there = missing[missing[:, 1] > earliest].copy()
        there[:, 0] = np.maximum(there[:, 0], earliest)
        if len(there):
            self._read(partition, there, looked)
        if len(removed):
            looked.why = (
                f"{partition}: {size(removed)} offsets of [{removed[0, 0]}, {removed[-1, 1]}) are not in the"
                f" table, and retention has removed everything below {earliest} from the log"
            )
        return looked

    def _source(self, topic: str) -> SourceTopics:
        return SourceTopics(self._kafka, [topic], timeout_s=self._ask_s)

    def _identity_problem(self, topic: str, topic_id: str, cluster: str) -> str:
        """Why the log is not the one that the offsets are of, or cannot be asked; empty where it is."""
        if topic not in self._identity and topic not in self._trouble:
            try:
                facts = self._source(topic).facts()
                self._identity[topic] = (facts.cluster, facts.topics[topic])
            except SourceTopicsError as error:
                self._trouble[topic] = str(error)
        if topic in self._trouble:
            return self._trouble[topic]
        present_cluster, present_id = self._identity[topic]
        if cluster and present_cluster and cluster != present_cluster:
            return (
                f"{topic}: the records came from Kafka cluster {cluster}, the broker is of {present_cluster}"
            )
        if topic_id and present_id and topic_id != present_id:
            return f"{topic}: the topic was recreated since ({topic_id} is now {present_id})"
        return ""

    def _read(self, partition: SourcePartition, missing: Intervals, looked: Looked) -> None:
        consumer = Consumer(
            {
                "group.id": "lockstep-verify",  # asked for by the client; never joined, nothing committed
                **self._kafka,
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "isolation.level": "read_committed",
                "auto.offset.reset": "error",
                "enable.partition.eof": True,
                "allow.auto.create.topics": False,
            },
            logger=_client_log,
        )
        try:
            for stretch in _stretches(missing):
                looked.why = self._read_stretch(consumer, partition, stretch, looked)
                if looked.why:
                    return
        except KafkaException as error:
            looked.why = f"{partition}: the log cannot be read: {error.args[0].str()}"
        finally:
            consumer.close()

    def _read_stretch(
        self, consumer: Consumer, partition: SourcePartition, missing: Intervals, looked: Looked
    ) -> str:
        """Read from the first missing offset to the last; why not, or empty."""
        start, end = int(missing[0, 0]), int(missing[-1, 1])
        consumer.assign([TopicPartition(partition.topic, partition.number, start)])
        at, heard_at = start, time.monotonic()
        while at < end:
            now = time.monotonic()
            if now > self._deadline or now - heard_at > SILENCE_S:
                return f"{partition}: the log gave nothing more at offset {at} within the time for it"
            messages = consumer.consume(BATCH_RECORDS, POLL_S)
            if messages:
                heard_at = now
            log_end = self._count_delivered(messages, missing, looked)
            offsets = [message.offset() or 0 for message in messages if message.error() is None]
            reached = max([at, *(offset + 1 for offset in offsets[-1:]), log_end])
            self._pass(missing, at, min(reached, end), looked)
            at = reached
            if log_end and at < end:
                return (
                    f"{partition}: the log ends at {log_end}, before the committed offsets that are missing"
                )
        return ""

    def _count_delivered(self, messages: Sequence[Message], missing: Intervals, looked: Looked) -> int:
        """Count what is delivered and missing; the log's end where it was reached, else 0."""
        log_end = 0
        offsets = []
        for message in messages:
            error = message.error()
            if error is None:
                offsets.append(message.offset())
            elif error.code() == KafkaError._PARTITION_EOF:
                log_end = message.offset() or 0
            else:
                raise KafkaException(error)
        delivered = np.array(offsets, np.int64)
        owners = np.searchsorted(missing[:, 0], delivered, side="right") - 1
        lost = delivered[(owners >= 0) & (delivered < missing[np.maximum(owners, 0), 1])]
        looked.lost += len(lost)
        looked.gaps -= len(lost)
        looked.examples += lost[: EXAMPLES_MAX - len(looked.examples)].tolist()
        return log_end

    def _pass(self, missing: Intervals, start: int, end: int, looked: Looked) -> None:
        """The log has been read from `start` to `end`: what of it was not delivered is a gap."""
        known = size(np.clip(missing, start, end))
        looked.unknown -= known
        looked.gaps += known


def _stretches(missing: Intervals) -> list[Intervals]:
    far = np.flatnonzero(missing[1:, 0] - missing[:-1, 1] > SEEK_OFFSETS) + 1
    return np.split(missing, far)

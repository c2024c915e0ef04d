"""Reading source partitions from chosen offsets: a Kafka client that is no member of any group.

Who may read what is the membership's affair (participant/membership.py); this only reads. There are two of
these with one interface: the plain one here, and one without a Python object per record
(participant/native.py), which the same tests run over.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import filterfalse, pairwise
from operator import itemgetter
from typing import Protocol

import numpy as np
import numpy.typing as npt
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from control_topic.messages import SourcePartition
from control_topic.record_headers import headers_of
from participant.errors import SourceError
from participant.headers import UNREADABLE, pack
from participant.raw import RawBatch, Values

BATCH_RECORDS = 50_000
BATCH_BYTES = 16 * 1024 * 1024
"""Taken at once; one call to the client may exceed it by what that call returns."""
CALL_RECORDS = 5_000
BOUNDS_S = 10
TIME = itemgetter(1)
"""Of a message's (kind of time, milliseconds)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Something that the client says instead of a record. `code` is librdkafka's.

    `offset`: the end of the log where the code says that it was reached.
    """

    partition: SourcePartition
    code: int
    text: str
    offset: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """Records in offset order, at most one batch for each source partition, and what was said after them."""

    batches: Sequence[RawBatch] = ()
    notices: Sequence[Notice] = ()


class Fetcher(Protocol):
    """Not for several threads. Raises `SourceError` where the client can never go on."""

    @property
    def name(self) -> str:
        """Which of the two it is, for people."""

    def take(self, partition: SourcePartition, offset: int) -> None:
        """Read from `offset` on, also where the partition is read already. Nothing of before comes after."""

    def drop(self, partition: SourcePartition) -> None:
        """Read it no more."""

    def pause(self, partitions: Iterable[SourcePartition]) -> None: ...

    def resume(self, partitions: Iterable[SourcePartition]) -> None: ...

    def fetch(self, timeout_s: float) -> Taken:
        """What there is, after `timeout_s` at the latest."""

    def bounds(self, partition: SourcePartition) -> tuple[int, int]:
        """The first offset of the log, and the one behind its last."""

    def close(self) -> None: ...


def fetch_settings(kafka: Mapping[str, str], *, group: str, queue_bytes_max: int) -> dict[str, object]:
    """librdkafka's settings for reading. The group is named for its access rights only, and never joined.

    Checksums are checked: what is damaged in a log that is not compressed would be taken for records.

    A queued message costs some 400 bytes beyond its value, and one answer of a broker comes on top of a full
    queue: hence the limits on their numbers and on an answer's size.
    """
    return {
        "queued.max.messages.kbytes": max(1_024, queue_bytes_max // 1_024),
        "queued.min.messages": 100_000,
        "fetch.max.bytes": 16 * 1024 * 1024,
        "max.partition.fetch.bytes": 4 * 1024 * 1024,
        "fetch.wait.max.ms": 100,
        "check.crcs": True,
        **kafka,
        "group.id": group,
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "enable.partition.eof": True,
    }


def sentence(error: object) -> str:
    """The readable part of a Kafka error."""
    inner = error.args[0] if isinstance(error, KafkaException) and error.args else error
    return inner.str() if isinstance(inner, KafkaError) else str(inner)


class PlainFetcher:
    """With nothing but confluent-kafka: a message object for every record.

    `tombstone_keys`: whether batches have the keys of records whose value is null. `whole`: whether they have
    the keys and headers of all.
    """

    name = "plain"

    def __init__(
        self, settings: Mapping[str, object], *, tombstone_keys: bool = False, whole: bool = False
    ) -> None:
        self._tombstone_keys = tombstone_keys
        self._whole = whole
        self._taken: set[SourcePartition] = set()
        self._failed = ""
        self._consumer = Consumer(
            {**settings, "error_cb": self._on_error}, logger=logging.getLogger("lockstep.source")
        )

    def take(self, partition: SourcePartition, offset: int) -> None:
        self.drop(partition)
        self._taken.add(partition)
        self._consumer.incremental_assign([TopicPartition(partition.topic, partition.number, offset)])

    def drop(self, partition: SourcePartition) -> None:
        if partition in self._taken:
            self._taken.discard(partition)
            self._consumer.incremental_unassign([TopicPartition(partition.topic, partition.number)])

    def pause(self, partitions: Iterable[SourcePartition]) -> None:
        self._consumer.pause([TopicPartition(p.topic, p.number) for p in partitions if p in self._taken])

    def resume(self, partitions: Iterable[SourcePartition]) -> None:
        self._consumer.resume([TopicPartition(p.topic, p.number) for p in partitions if p in self._taken])

    def fetch(self, timeout_s: float) -> Taken:
        messages: list[Message] = []
        size_bytes = 0
        deadline = time.monotonic() + timeout_s
        while len(messages) < BATCH_RECORDS and size_bytes < BATCH_BYTES:
            more = self._consumer.consume(CALL_RECORDS, max(0.0, deadline - time.monotonic()))
            messages += more
            size_bytes += sum(map(len, more))
            if self._whole:
                size_bytes += sum(len(message.key() or b"") for message in more)
            elif self._tombstone_keys:
                size_bytes += sum(len(message.key() or b"") for message in filterfalse(len, more))
            if len(more) < CALL_RECORDS:
                break
        if self._failed:
            raise SourceError(self._failed)
        single_topic = len({p.topic for p in self._taken}) == 1
        return _sorted_out(
            messages, single_topic=single_topic, tombstone_keys=self._tombstone_keys, whole=self._whole
        )

    def bounds(self, partition: SourcePartition) -> tuple[int, int]:
        place = TopicPartition(partition.topic, partition.number)
        try:
            low, high = self._consumer.get_watermark_offsets(place, timeout=BOUNDS_S)
        except KafkaException as error:
            raise SourceError(f"{partition}: the log's bounds cannot be read: {sentence(error)}") from error
        return low, high

    def close(self) -> None:
        self._consumer.close()

    def _on_error(self, error: KafkaError) -> None:
        if error.fatal():
            self._failed = f"the source consumer failed for good: {error.str()}"


def _sorted_out(
    messages: list[Message], *, single_topic: bool, tombstone_keys: bool, whole: bool = False
) -> Taken:
    """Records by source partition, in the order they came, and the notices."""
    records, notices = messages, []
    errors = list(map(Message.error, messages))  # without a step of the interpreter for each
    if {*map(type, errors)} - {type(None)}:
        records = [m for m, error in zip(messages, errors, strict=True) if error is None]
        notices = [_notice(m, error) for m, error in zip(messages, errors, strict=True) if error is not None]
    cut = runs(records, single_topic=single_topic) if records else ()
    batches = [_columns(partition, run, tombstone_keys=tombstone_keys, whole=whole) for partition, run in cut]
    return Taken(batches=batches, notices=notices)


def runs(records: list[Message], *, single_topic: bool) -> Iterable[tuple[SourcePartition, list[Message]]]:
    """Cut a batch into runs of one source partition, joining the runs of the same one."""
    numbers = np.fromiter(map(Message.partition, records), dtype=np.int32, count=len(records))
    cuts = {0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(records)}
    if not single_topic:
        topics = [m.topic() for m in records]
        cuts |= {i for i in range(1, len(topics)) if topics[i] != topics[i - 1]}
    joined: dict[SourcePartition, list[Message]] = {}
    for begin, end in pairwise(sorted(cuts)):
        partition = SourcePartition(records[begin].topic() or "", int(numbers[begin]))
        joined.setdefault(partition, []).extend(records[begin:end])
    return joined.items()


def _columns(
    partition: SourcePartition, run: list[Message], *, tombstone_keys: bool, whole: bool
) -> RawBatch:
    values = Values.of(list(map(Message.value, run)))
    keys: dict[int, bytes | None] = {}
    if tombstone_keys and values.nulls is not None:
        keys = {index: run[index].key() for index in np.flatnonzero(values.nulls).tolist()}
    return RawBatch(
        partition=partition,
        offsets=_offsets(run),
        timestamps_ms=np.fromiter(map(TIME, map(Message.timestamp, run)), dtype=np.int64, count=len(run)),
        values=values,
        keys=keys,
        record_keys=Values.of(list(map(Message.key, run))) if whole else None,
        headers=Values.of(list(map(_packed_headers, run))) if whole else None,
    )


def _packed_headers(message: Message) -> bytes:
    headers = headers_of(message)
    return UNREADABLE if headers is None else pack(headers)


def _offsets(run: list[Message]) -> npt.NDArray[np.int64]:
    """Of one source partition's records, whose offsets rise: as many as there are numbers leave no gap."""
    first, last = run[0].offset() or 0, run[-1].offset() or 0
    if last - first + 1 == len(run):
        return np.arange(first, last + 1, dtype=np.int64)
    return np.fromiter(map(Message.offset, run), dtype=np.int64, count=len(run))


def _notice(message: Message, error: KafkaError) -> Notice:
    partition = SourcePartition(message.topic() or "", message.partition() or 0)
    return Notice(partition=partition, code=error.code(), text=error.str(), offset=message.offset())

"""Reading source partitions from chosen offsets: a Kafka client that is no member of any group.

Who may read what is the membership's affair (participant/source/membership.py); this only reads. There are
two of these with one interface: the plain one here, and one without a Python object per record
(participant/source/native.py), which the same tests run over.
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
from participant.errors import SourceUnreadable
from participant.records.headers import UNREADABLE, pack
from participant.records.raw import RawBatch, Values

BATCH_RECORDS = 50_000
BATCH_BYTES = 16 * 1024 * 1024
"""Taken at once; one call to the client may exceed it by what that call returns."""
CALL_RECORDS = 5_000
FIRST_CALL_RECORDS = 64
"""Calls grow from there, and shrink where records are large: what the client hands over it holds twice."""
MESSAGE_BYTES = 1_000_000
"""librdkafka's default. It takes no limit on an answer that is below it."""
ANSWER_PARTS = 64
ANSWER_BYTES_MIN = 64 * 1024
ANSWER_BYTES_MAX = 4 * 1024 * 1024
RECEIVED_SHARE = 4
"""`receive.message.max.bytes`, in sizes of the queue: a half of `memory.per_worker`."""
RECEIVED_BYTES_MIN, RECEIVED_BYTES_MAX = 100_000_000, 2**31 - 1
"""librdkafka's default, and its limit."""
RECEIVED_HEADER_BYTES = 512
"""Bytes by which librdkafka wants it to exceed `fetch.max.bytes`."""
TOO_LARGE = "receive.message.max.bytes"
"""What the client's error names where an answer is larger than it takes."""
QUEUED_RECORDS = 100
QUEUE_LOOK_MS = 1
BOUNDS_S = 10
TIME = itemgetter(1)
"""Of a message's (kind of time, milliseconds)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """Something that the client says instead of a record."""

    partition: SourcePartition
    code: int
    """librdkafka's."""
    text: str
    offset: int | None = None
    """The end of the log, where the code says that it was reached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumed:
    """Records in offset order, at most one batch for each source partition, and what was said after them."""

    batches: Sequence[RawBatch] = ()
    notices: Sequence[Notice] = ()


class Fetcher(Protocol):
    """Not for several threads. Raises `SourceUnreadable` where the client can never go on."""

    @property
    def name(self) -> str:
        """Which of the two it is, for people."""

    def read_from(self, partition: SourcePartition, offset: int) -> None:
        """Read from `offset` on, also where the partition is read already. Nothing of before comes after."""

    def drop(self, partition: SourcePartition) -> None:
        """Read it no more."""

    def pause(self, partitions: Iterable[SourcePartition]) -> None: ...

    def resume(self, partitions: Iterable[SourcePartition]) -> None: ...

    def fetch(self, timeout_s: float) -> Consumed:
        """What there is, after `timeout_s` at the latest."""

    def bounds(self, partition: SourcePartition) -> tuple[int, int]:
        """The first offset of the log, and the one behind its last."""

    def too_large(self) -> str:
        """The client's last error about an answer that is larger than it takes, once; empty for none."""

    def close(self) -> None: ...


def fetch_settings(kafka: Mapping[str, str], *, group: str, queue_bytes_max: int) -> dict[str, object]:
    """librdkafka's settings for reading. The group is named for its access rights only, and never joined.

    Checksums are checked: what is damaged in a log that is not compressed would be taken for records.

    What is fetched ahead is bounded by `queue_bytes_max`, about. librdkafka's queue counts neither keys nor
    headers, nor the some 330 bytes that it spends on each record; and a broker's answer, which comes on top
    of a queue that is not full, is limited as it is compressed. So the queue asks for more only where few
    records are left, and looks often; and an answer is a small part of the bound: a record of 4 bytes takes
    28 times its size in a log that is not compressed. An answer has one batch at least, whatever it holds.

    So `receive.message.max.bytes` is far larger. It limits a batch as it comes, and a batch of zstd as it is
    decompressed, whose buffer the client may enlarge threefold: a batch of a sixth of `memory.per_worker` is
    read in any case, of up to a half where its size is written in front of it.
    """
    answer_bytes = min(max(queue_bytes_max // ANSWER_PARTS, ANSWER_BYTES_MIN), ANSWER_BYTES_MAX)
    answer_bytes = max(answer_bytes, _bytes_of(kafka, "message.max.bytes", 0))
    answer_bytes = _bytes_of(kafka, "fetch.max.bytes", answer_bytes)
    received_bytes = max(RECEIVED_SHARE * queue_bytes_max, RECEIVED_BYTES_MIN)
    received_bytes = max(received_bytes, answer_bytes + RECEIVED_HEADER_BYTES)
    return {
        "queued.max.messages.kbytes": max(1_024, queue_bytes_max // 1_024),
        "queued.min.messages": QUEUED_RECORDS,
        "fetch.queue.backoff.ms": QUEUE_LOOK_MS,
        "fetch.max.bytes": answer_bytes,
        "message.max.bytes": min(answer_bytes, MESSAGE_BYTES),
        "max.partition.fetch.bytes": answer_bytes,
        "receive.message.max.bytes": min(received_bytes, RECEIVED_BYTES_MAX),
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


def _bytes_of(kafka: Mapping[str, str], name: str, default: int) -> int:
    text = kafka.get(name, "")
    return int(text) if text.isdecimal() else default


def next_call(call: int, got: int, size_bytes: int) -> int:
    """How many records a call may take after one of `got` with so many bytes: a quarter of a batch, about."""
    return min(call * 4, BATCH_BYTES // 4 // (size_bytes // got + 1) + 1, CALL_RECORDS) if got else call


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
        self,
        settings: Mapping[str, object],
        *,
        tombstone_keys: bool = False,
        whole: bool = False,
        records_max: int = BATCH_RECORDS,
    ) -> None:
        self._records_max = records_max
        self._tombstone_keys = tombstone_keys
        self._whole = whole
        self._reading: set[SourcePartition] = set()
        self._failed = self._too_large = ""
        self._call = FIRST_CALL_RECORDS
        self._consumer = Consumer(
            {**settings, "error_cb": self._on_error}, logger=logging.getLogger("lockstep.source")
        )

    def read_from(self, partition: SourcePartition, offset: int) -> None:
        self.drop(partition)
        self._reading.add(partition)
        self._consumer.incremental_assign([TopicPartition(partition.topic, partition.number, offset)])
        self.resume([partition])  # the client remembers a pause over that

    def drop(self, partition: SourcePartition) -> None:
        if partition in self._reading:
            self._reading.discard(partition)
            self._consumer.incremental_unassign([TopicPartition(partition.topic, partition.number)])

    def pause(self, partitions: Iterable[SourcePartition]) -> None:
        self._consumer.pause([TopicPartition(p.topic, p.number) for p in partitions if p in self._reading])

    def resume(self, partitions: Iterable[SourcePartition]) -> None:
        self._consumer.resume([TopicPartition(p.topic, p.number) for p in partitions if p in self._reading])

    def fetch(self, timeout_s: float) -> Consumed:
        messages: list[Message] = []
        size_bytes = 0
        headers: dict[int, bytes] | None = {} if self._whole else None
        deadline = time.monotonic() + timeout_s
        while len(messages) < self._records_max and size_bytes < BATCH_BYTES:
            wanted = min(self._call, self._records_max - len(messages))
            more = self._consumer.consume(wanted, max(0.0, deadline - time.monotonic()))
            messages += more
            more_bytes = self._size_bytes(more, headers)
            size_bytes += more_bytes
            self._call = next_call(self._call, len(more), more_bytes)
            if len(more) < wanted:
                break
        if self._failed:
            raise SourceUnreadable(self._failed)
        single_topic = len({p.topic for p in self._reading}) == 1
        return _sorted_out(
            messages, single_topic=single_topic, tombstone_keys=self._tombstone_keys, headers=headers
        )

    def _size_bytes(self, messages: list[Message], headers: dict[int, bytes] | None) -> int:
        """Of all that is kept of them. Their headers are read here, once, and added to `headers`."""
        size_bytes = sum(map(len, messages))
        keyed = messages if self._whole else filterfalse(len, messages) if self._tombstone_keys else ()
        size_bytes += sum(len(message.key() or b"") for message in keyed)
        if headers is not None:
            packed = list(map(_packed_headers, messages))
            headers.update(zip(map(id, messages), packed, strict=True))
            size_bytes += sum(map(len, packed))
        return size_bytes

    def bounds(self, partition: SourcePartition) -> tuple[int, int]:
        place = TopicPartition(partition.topic, partition.number)
        try:
            low, high = self._consumer.get_watermark_offsets(place, timeout=BOUNDS_S)
        except KafkaException as error:
            raise SourceUnreadable(
                f"{partition}: the log's bounds cannot be read: {sentence(error)}"
            ) from error
        return low, high

    def close(self) -> None:
        self._consumer.close()

    def _on_error(self, error: KafkaError) -> None:
        if error.fatal():
            self._failed = f"the source consumer failed for good: {error.str()}"
        elif TOO_LARGE in error.str():
            self._too_large = error.str()

    def too_large(self) -> str:
        said, self._too_large = self._too_large, ""
        return said


def _sorted_out(
    messages: list[Message],
    *,
    single_topic: bool,
    tombstone_keys: bool,
    headers: Mapping[int, bytes] | None = None,
) -> Consumed:
    """Records by source partition, in the order they came, and the notices. `headers`: packed, by message."""
    records, notices = messages, []
    errors = list(map(Message.error, messages))  # without a step of the interpreter for each
    if {*map(type, errors)} - {type(None)}:
        records = [m for m, error in zip(messages, errors, strict=True) if error is None]
        notices = [_notice(m, error) for m, error in zip(messages, errors, strict=True) if error is not None]
    cut = runs(records, single_topic=single_topic) if records else ()
    batches = [
        _columns(partition, run, tombstone_keys=tombstone_keys, headers=headers) for partition, run in cut
    ]
    return Consumed(batches=batches, notices=notices)


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
    partition: SourcePartition,
    run: list[Message],
    *,
    tombstone_keys: bool,
    headers: Mapping[int, bytes] | None,
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
        record_keys=Values.of(list(map(Message.key, run))) if headers is not None else None,
        headers=Values.of([headers[id(m)] for m in run]) if headers is not None else None,
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

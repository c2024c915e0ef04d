"""What the source consumer hands over, and to whom."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from confluent_kafka import KafkaError, KafkaException, Message

from control_topic.messages import Lost, Offsets, SourcePartition
from participant.decode import RawBatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """Offsets `[start, next)` of one source partition; `raw` is None where the log has no record there.

    `size_bytes`: of the records' values.
    """

    partition: SourcePartition
    generation: int
    start: int
    next: int
    raw: RawBatch | None = None
    size_bytes: int = 0
    lost: tuple[Lost, ...] = ()


@dataclass(slots=True, kw_only=True)
class Position:
    """Where the consumer stands in a source partition. Nothing is delivered before a generation is set."""

    generation: int = 0
    next: int = 0
    assigned: int | None = None
    at_end: bool = False
    stuck: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Callbacks:
    """Whom the source tells. All are called on its thread and must return at once, but for `deliver`.

    `committed` answers the table's offsets, None where they are not known. `deliver` answers False while
    there is no room. `stuck` names a source partition that cannot go on by configuration, and why.
    """

    committed: Callable[[], Offsets | None]
    assigned: Callable[[Mapping[SourcePartition, int | None]], None]
    revoked: Callable[[Sequence[SourcePartition]], None]
    deliver: Callable[[Fetched], bool]
    stuck: Callable[[SourcePartition, int, str], None]
    fenced: Callable[[str], None]
    failed: Callable[[str], None]


def runs(records: list[Message], *, single_topic: bool) -> Iterable[tuple[SourcePartition, list[Message]]]:
    """Cut a batch into runs of one source partition, joining the runs of the same one."""
    numbers = np.fromiter((m.partition() for m in records), dtype=np.int32, count=len(records))
    cuts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(records)]
    if not single_topic:
        topics = [m.topic() for m in records]
        cuts = sorted({*cuts, *(i for i in range(1, len(topics)) if topics[i] != topics[i - 1])})
    joined: dict[SourcePartition, list[Message]] = {}
    for begin, end in itertools.pairwise(cuts):
        partition = SourcePartition(records[begin].topic() or "", int(numbers[begin]))
        run = records[begin:end]
        if partition in joined:
            joined[partition] += run
        else:
            joined[partition] = run
    return joined.items()


def sentence(error: Any) -> str:
    """The readable part of a Kafka error."""
    inner = error.args[0] if isinstance(error, KafkaException) and error.args else error
    return inner.str() if isinstance(inner, KafkaError) else str(inner)

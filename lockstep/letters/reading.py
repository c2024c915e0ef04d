"""Topics of ours read from their beginning to where they end now, or on: committed records only, whole."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

from confluent_kafka import KafkaError

from control_topic.messages import SourcePartition
from lockstep.brokers.source_topics import SourceTopics
from lockstep.errors import Failed
from lockstep.letters.marks import Marks, mark_topic
from participant.records.raw import RawBatch
from participant.source.fetcher import Consumed, Fetcher, fetch_settings
from participant.source.native import open_fetcher

QUEUE_BYTES_MAX = 32 * 1024 * 1024
PAGE_RECORDS = 500
"""So many are looked at together."""
POLL_S = 0.5
SILENCE_MAX_S = 30.0
ENDED = KafkaError._PARTITION_EOF
GONE = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE})


@dataclass(frozen=True, slots=True, kw_only=True)
class Broker:
    """How topics are read. `group`: named for its access rights, and never joined."""

    kafka: Mapping[str, str]
    group: str
    reader: str = "auto"
    """`source.reader`."""


def read_marks(broker: Broker, dead_letter_topics: Sequence[str]) -> Marks:
    """`dead_letter_topics`: those whose topic of marks is there. Raises as `read_batches`, and `Failed`."""
    marks = Marks()
    for batch in read_batches(broker, [mark_topic(topic) for topic in dead_letter_topics]):
        assert batch.record_keys is not None
        for index in range(len(batch)):
            marks.add(batch.partition, batch.record_keys[index], batch.values[index])
    return marks


def read_batches(
    broker: Broker, topics: Sequence[str], *, since_ms: int | None = None, follow: bool = False
) -> Iterator[RawBatch]:
    """All records of these topics that are there now, of each source partition in order, `PAGE_RECORDS`
    together at most. `since_ms`: those of this time and later. `follow`: and what comes then, without an end.

    Raises `SourceTopicsError`, `SourceUnreadable`, and `Failed` where nothing comes for `SILENCE_MAX_S`.
    """
    if not topics:
        return
    source = SourceTopics(broker.kafka, topics)
    places = source.facts().partitions
    begins, ends = dict(source.earliest(places)), dict(source.end(places))
    if since_ms is not None:
        found = source.at_time(places, since_ms)
        begins = {place: max(begins[place], found.get(place, ends[place])) for place in places}
    settings = fetch_settings(broker.kafka, group=broker.group, queue_bytes_max=QUEUE_BYTES_MAX)
    with closing(open_fetcher(settings, broker.reader, whole=True, records_max=PAGE_RECORDS)) as fetcher:
        left = {place for place in places if begins[place] < ends[place]}
        for place in places if follow else left:
            fetcher.read_from(place, begins[place])
        yield from _read(fetcher, source, left, ends, follow=follow)


def _read(
    fetcher: Fetcher,
    source: SourceTopics,
    left: set[SourcePartition],
    ends: Mapping[SourcePartition, int],
    *,
    follow: bool,
) -> Iterator[RawBatch]:
    heard_s, trouble = time.monotonic(), ""
    while left or follow:
        consumed = fetcher.fetch(POLL_S)
        if consumed.batches:
            heard_s = time.monotonic()
        yield from consumed.batches
        done = {place for place, offset in _reached(consumed) if offset >= ends[place]}
        for place in done & left:
            left.discard(place)
            heard_s = time.monotonic()
            if not follow:
                fetcher.drop(place)
        for notice in consumed.notices:
            if notice.code in GONE:  # retention was quicker: what is left is read
                fetcher.read_from(notice.partition, source.earliest([notice.partition])[notice.partition])
            elif notice.code != ENDED:
                trouble = notice.text
        if not follow and time.monotonic() - heard_s > SILENCE_MAX_S:
            raise Failed(
                f"{min(left)} gave nothing for {SILENCE_MAX_S:.0f} s and its end is not reached: "
                f"{trouble or 'the broker does not answer'}."
            )


def _reached(consumed: Consumed) -> Iterator[tuple[SourcePartition, int]]:
    """Up to where each was read."""
    for batch in consumed.batches:
        yield batch.partition, int(batch.offsets[-1]) + 1
    for notice in consumed.notices:
        if notice.code == ENDED and notice.offset is not None:
            yield notice.partition, notice.offset

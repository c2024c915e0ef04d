"""Some records of topics, read without a group and without a commit."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field

from control_topic.messages import Offsets, SourcePartition
from lockstep.brokers.source_topics import SourceTopics
from lockstep.errors import Failed
from lockstep.letters.reading import ENDED, GONE, POLL_S, QUEUE_BYTES_MAX, Broker
from participant.records.raw import RawBatch
from participant.source.fetcher import Fetcher, fetch_settings
from participant.source.native import open_fetcher

BATCH_RECORDS_MAX = 2_000
"""Fetched at once."""


class NoRecords(Failed):
    """The topics are empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much is read; at the first that is reached it ends."""

    records: int = 10_000
    size_bytes: int = 64_000_000
    """Of values."""
    seconds: float = 30.0
    oldest: bool = False
    """The first that the topics hold, not the last."""


@dataclass(slots=True, kw_only=True)
class Sample:
    """What was read, of each source partition about as much."""

    batches: list[RawBatch] = field(default_factory=list)
    source_partitions: int = 0
    """Those that hold anything; it is of each of them, or of as many as records were asked for."""
    records: int = 0
    size_bytes: int = 0
    cut: str = ""
    """Why there is less than was asked for, though more is there; empty where that is not so."""


def sample(broker: Broker, topics: Sequence[str], limits: Limits, *, whole: bool = False) -> Sample:
    """`whole`: whether records are read with their keys and headers.

    Raises `SourceTopicsError`, `SourceUnreadable`, `NoRecords`; `Failed` where nothing comes.
    """
    source = SourceTopics(broker.kafka, topics)
    places = source.facts().partitions
    begins, ends = dict(source.earliest(places)), dict(source.end(places))
    filled = [place for place in places if begins[place] < ends[place]]
    if not filled:
        raise NoRecords(f"no records are in {', '.join(topics)}")
    chosen = filled[: limits.records]
    share = -(-limits.records // len(chosen))
    found = Sample(source_partitions=len(filled))
    settings = fetch_settings(broker.kafka, group=broker.group, queue_bytes_max=QUEUE_BYTES_MAX)
    with closing(
        open_fetcher(settings, broker.reader, whole=whole, records_max=BATCH_RECORDS_MAX)
    ) as fetcher:
        for place in chosen:
            last = max(begins[place], ends[place] - share)
            fetcher.read_from(place, begins[place] if limits.oldest else last)
        reading = _Reading(fetcher, source, found, limits, dict.fromkeys(chosen, share))
        reading.run({place: ends[place] for place in chosen})
    return found


class _Reading:
    """`left`: how many of each source partition are wanted."""

    def __init__(
        self,
        fetcher: Fetcher,
        source: SourceTopics,
        found: Sample,
        limits: Limits,
        left: dict[SourcePartition, int],
    ) -> None:
        self._fetcher, self._source = fetcher, source
        self._found, self._limits, self._left = found, limits, left

    def run(self, ends: Offsets) -> None:
        """To the end of all, or of the limits. `ends`: what stands there when it begins."""
        until, trouble = time.monotonic() + self._limits.seconds, ""
        while self._left:
            consumed = self._fetcher.fetch(POLL_S)
            for batch in consumed.batches:
                self._take(batch, ends)
            for notice in consumed.notices:
                if notice.code == ENDED:
                    self._drop(notice.partition)
                elif notice.code in GONE:  # retention was quicker
                    first = self._source.earliest([notice.partition])[notice.partition]
                    self._fetcher.read_from(notice.partition, first)
                else:
                    trouble = notice.text
            if self._left and self._found.size_bytes >= self._limits.size_bytes:
                self._found.cut = f"values of {self._limits.size_bytes:,} bytes are enough"
                return
            if self._left and time.monotonic() > until:
                self._late(trouble)
                return

    def _late(self, trouble: str) -> None:
        seconds = f"{self._limits.seconds:.0f} s"
        if not self._found.records:
            why = trouble or "the broker does not answer"
            raise Failed(f"{min(self._left)} gave nothing for {seconds}: {why}.")
        self._found.cut = f"{seconds} were over"

    def _take(self, batch: RawBatch, ends: Offsets) -> None:
        wanted = self._left.get(batch.partition, 0)
        taken = batch if len(batch) <= wanted else batch.head(wanted)
        if len(taken):
            self._found.batches.append(taken)
            self._found.records += len(taken)
            self._found.size_bytes += taken.values.size_bytes
            self._left[batch.partition] = wanted - len(taken)
        if len(taken) == wanted or int(batch.offsets[-1]) + 1 >= ends[batch.partition]:
            self._drop(batch.partition)

    def _drop(self, place: SourcePartition) -> None:
        if self._left.pop(place, None) is not None:
            self._fetcher.drop(place)

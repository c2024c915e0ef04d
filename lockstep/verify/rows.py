"""The table's rows, counted by source offset and by instant. Memory grows with the offsets, one byte each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from control_topic.messages import SourcePartition
from lockstep.verify.chain import Chain, PartitionEra
from lockstep.verify.counts import Int64s, OffsetCounts
from table.errors import Unavailable
from table.port import INSTANT, TableRows
from table.schema import KAFKA_PREFIX

KAFKA_COLUMNS = tuple(f"{KAFKA_PREFIX}{name}" for name in ("topic", "partition", "offset"))
EXAMPLES_MAX = 20


@dataclass(slots=True)
class Stray:
    """Rows of our instants with offsets that their instant did not commit."""

    count: int = 0
    examples: list[int] = field(default_factory=list)

    def add(self, offsets: Int64s) -> None:
        self.count += len(offsets)
        self.examples += offsets[: EXAMPLES_MAX - len(self.examples)].tolist()


@dataclass(slots=True)
class RowsFound:
    """What was found."""

    own: int = 0
    """Rows of our instants."""
    foreign: int = 0
    """Rows of all others' instants."""
    later: int = 0
    """Rows of instants after ours."""
    bare: int = 0
    """Rows of our instants without Kafka coordinates, though the table has the columns."""
    counts: dict[PartitionEra, OffsetCounts] = field(default_factory=dict)
    of_instant: dict[tuple[str, SourcePartition | None], int] = field(default_factory=dict)
    """(instant, source partition) -> rows; without Kafka columns the partition is None."""
    strays: dict[SourcePartition, Stray] = field(default_factory=dict)
    elsewhere: dict[SourcePartition, OffsetCounts] = field(default_factory=dict)
    """Our offsets in rows that another writer's instant wrote last."""
    kafka_columns: bool = True
    unreadable: list[str] = field(default_factory=list)


def count_rows(found: TableRows, chain: Chain, *, until: str, foreign: Mapping[str, bool]) -> RowsFound:
    """Count every row of the table as it is now. A file that cannot be read hides no other.

    `until`: the newest instant that the chain knows of; rows of later ones are not looked at. `foreign`:
    other writers' instants, True for those that changed rows of earlier ones.
    """
    counter = RowCounter(chain, until=until, foreign=foreign, kafka_columns=found.kafka_columns)
    for file in found.files:
        try:
            for batch in file.batches:
                counter.add(batch)
        except Unavailable as error:
            counter.rows.unreadable.append(f"{file.name}: {error}")
    return counter.rows


class RowCounter:
    """Counts record batches with the columns `table.port.INSTANT` and, unless told so, Kafka's.

    `until`, `foreign`: as `count_rows` has them. `rows` is the result.
    """

    def __init__(
        self, chain: Chain, *, until: str, foreign: Mapping[str, bool], kafka_columns: bool = True
    ) -> None:
        self.rows = RowsFound(kafka_columns=kafka_columns)
        self._chain = chain
        self._until = until
        self._foreign = foreign
        self._partitions = {place.partition for place in chain.covered}

    def add(self, batch: pa.RecordBatch) -> None:
        for instant, partition, offsets, count in _groups(batch, with_kafka=self.rows.kafka_columns):
            if instant in self._chain.eras:
                self._add_own(instant, partition, offsets, count)
            elif instant > self._until and instant not in self._foreign:
                self.rows.later += count
            else:
                self._add_foreign(instant, partition, offsets, count)

    def _add_own(self, instant: str, partition: SourcePartition | None, offsets: Int64s, count: int) -> None:
        rows = self.rows
        rows.own += count
        rows.of_instant[instant, partition] = rows.of_instant.get((instant, partition), 0) + count
        if partition is None:
            rows.bare += count if rows.kafka_columns else 0
            return
        covered = self._chain.by_instant.get(instant, {}).get(partition)
        inside = np.zeros(len(offsets), bool)
        if covered is not None:
            inside = (offsets >= covered.start) & (offsets < covered.next)
            place = PartitionEra(partition, self._chain.eras[instant])
            rows.counts.setdefault(place, OffsetCounts()).add(offsets[inside])
        if not inside.all():
            rows.strays.setdefault(partition, Stray()).add(offsets[~inside])

    def _add_foreign(
        self, instant: str, partition: SourcePartition | None, offsets: Int64s, count: int
    ) -> None:
        self.rows.foreign += count
        changed = self._foreign.get(instant, True)  # of an instant that nobody knows anything may be
        if changed and partition in self._partitions:
            self.rows.elsewhere.setdefault(partition, OffsetCounts()).add(offsets[offsets >= 0])


def _groups(
    batch: pa.RecordBatch, *, with_kafka: bool
) -> Iterator[tuple[str, SourcePartition | None, Int64s, int]]:
    """(instant, source partition, offsets, rows) of one batch; rows without coordinates have no partition."""
    keys, instants = _coded(batch.column(INSTANT))
    if not with_kafka:
        for key, count in zip(*np.unique(keys, return_counts=True), strict=True):
            yield str(instants[key]), None, np.empty(0, np.int64), int(count)
        return
    topic, number, offset = (batch.column(name) for name in KAFKA_COLUMNS)
    topic_keys, topics = _coded(topic)
    numbers, offsets = _integers(number), _integers(offset)
    order = np.lexsort((numbers, topic_keys, keys))
    breaks = np.zeros(max(len(order) - 1, 0), bool)
    for column in (keys, topic_keys, numbers):
        breaks |= np.diff(column[order]) != 0
    for begin, end in pairwise([0, *(np.flatnonzero(breaks) + 1).tolist(), len(order)]):
        if begin < end:
            first = order[begin]
            name, at = topics[topic_keys[first]], int(numbers[first])
            partition = SourcePartition(str(name), at) if name is not None and at >= 0 else None
            yield str(instants[keys[first]]), partition, offsets[order[begin:end]], end - begin


def _coded(column: Any) -> tuple[Int64s, list[str | None]]:
    """A column of text as codes, and the texts that they stand for; the last one is None and means null."""
    coded = column if isinstance(column, pa.DictionaryArray) else column.dictionary_encode()
    texts: list[str | None] = [*coded.dictionary.to_pylist(), None]
    return _integers(coded.indices, null=len(texts) - 1), texts


def _integers(column: Any, *, null: int = -1) -> Int64s:
    integers: Int64s = np.asarray(pc.fill_null(column, null)).astype(np.int64)
    return integers

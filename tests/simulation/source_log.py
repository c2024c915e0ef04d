"""The source topic: logs with gaps, aborted tails and an end that a read-committed consumer can reach."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from random import Random

from control_topic.messages import Offsets, SourcePartition
from table.source import SourceFacts

TOPIC = "events"


class SourceLog:
    """Per source partition the offsets that hold a record, ascending, and the log's stable end."""

    def __init__(self, random: Random, partitions: int) -> None:
        self._random = random
        self._gaps = random.choice((0.0, 0.1, 0.5))
        self.records: dict[SourcePartition, list[int]] = {}
        self.ends: dict[SourcePartition, int] = {}
        for number in range(partitions):
            self.add_partition(number)

    def add_partition(self, number: int) -> None:
        partition = SourcePartition(TOPIC, number)
        self.records[partition], self.ends[partition] = [], 0

    def produce(self, partition: SourcePartition, count: int) -> None:
        """Append `count` offsets; some are markers or aborted records that no consumer sees."""
        for _ in range(count):
            if self._random.random() >= self._gaps:
                self.records[partition].append(self.ends[partition])
            self.ends[partition] += 1

    def fetch(self, partition: SourcePartition, start: int, offsets_max: int) -> tuple[int, list[int]]:
        """Where the next fetch goes on, and the offsets of the records in between.

        As a consumer sees it: up to the last record delivered, or, where there is none left, to the end.
        """
        records = self.records[partition]
        index = bisect_left(records, start)
        found = records[index : index + offsets_max]
        return (found[-1] + 1 if found else self.ends[partition]), found

    def between(self, partition: SourcePartition, start: int, next_offset: int) -> list[int]:
        """The offsets in `[start, next)` that hold a record."""
        records = self.records[partition]
        return records[bisect_left(records, start) : bisect_left(records, next_offset)]

    # --- what the table service asks of the broker (`table.transactions.Source`) --------------------

    def facts(self) -> SourceFacts:
        return SourceFacts(cluster="cluster", topics={TOPIC: "id"}, partitions=tuple(self.records))

    def earliest(self, partitions: Sequence[SourcePartition]) -> Offsets:
        return dict.fromkeys(partitions, 0)

    def end(self, partitions: Sequence[SourcePartition]) -> Offsets:
        return {partition: self.ends[partition] for partition in partitions}

"""The source topics: logs with gaps, aborted tails, bad records, retention, and topics that are made anew."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from random import Random

from control_topic.messages import Lost, Offsets, Range, SourcePartition, Witness
from participant.source.witnesses import Known
from table.service.source_facts import MissingTopic, SourceFacts, SourceUnavailable

LIVES_APART = 1 << 32
TOPICS = ("events", "audit")
"""As configured: source partition 0 of the first one decides who coordinates, whatever the names' order."""


EVENT_STEP_MS = 50
EVENT_SPREAD_MS = 300
"""So much an event time may be behind a greater one that stands before it."""


@lru_cache(maxsize=1 << 16)
def event_time_ms(partition: SourcePartition, offset: int) -> int | None:
    """A record's, or None where it says none. It draws nothing: it is the same in every schedule."""
    if offset % 11 == 3:
        return None
    return offset * EVENT_STEP_MS + (offset * 7_919 + partition.number * 1_031) % EVENT_SPREAD_MS


def is_absurd(offset: int) -> bool:
    """Whether the record's event time is one that does not count."""
    return offset % 13 == 5


FIELDS = ("f1", "f2", "f3", "f4")
"""That records may have beside those that all have."""
NO_FIELDS: frozenset[str] = frozenset()


def ddl_of_fields(fields: Iterable[str]) -> str:
    """As columns, in Spark DDL."""
    return ", ".join(f"`{one}` INT" for one in sorted(fields))


def fields_of_ddl(ddl: str) -> frozenset[str]:
    """The inverse."""
    return frozenset(ddl.replace("`", "").split()[::2]) if ddl else NO_FIELDS


class SourceLog:
    """Per source partition the offsets that hold a record, ascending, and the log's bounds.

    `lives`: how often a topic was made anew; the records of a later life are other ones, whatever their
    offsets. `original`: the records of the first life, which alone the table may hold, retention or not.
    `begins`: where a log began when its source partition appeared here, 0 where it is not in it.
    `compacted`: those of them that compaction took before they were committed, which it may lack.
    `damaged`: where a batch begins that nobody can read, and so nothing behind it.
    `cuts`: where the log lost its end, each time that it did.
    `newer`: from where on records have which fields besides.
    `looked`: where the log ended when a driver asked for that last, what cannot be read yet included.
    """

    def __init__(self, random: Random, partitions: Mapping[str, int]) -> None:
        self._random = random
        self._gaps = random.choice((0.0, 0.1, 0.5))
        self.bad_share = 0.0
        self.records: dict[SourcePartition, list[int]] = {}
        self.original: dict[SourcePartition, list[int]] = {}
        self.bad: dict[SourcePartition, list[int]] = {}
        self.compacted: dict[SourcePartition, set[int]] = {}
        self._open: dict[SourcePartition, int] = {}
        self.lows: dict[SourcePartition, int] = {}
        self.ends: dict[SourcePartition, int] = {}
        self.damaged: dict[SourcePartition, int] = {}
        self.cuts: dict[SourcePartition, list[int]] = {}
        self.begins: dict[SourcePartition, int] = {}
        self.newer: dict[SourcePartition, list[tuple[int, str]]] = {}
        self.looked: dict[SourcePartition, int] = {}
        self._fields: dict[tuple[SourcePartition, int], frozenset[str]] = {}
        self.cluster = "cluster"
        self.lives: dict[str, int] = dict.fromkeys(partitions, 0)
        self.available = True
        self.missing = ""
        for topic, count in partitions.items():
            for _ in range(count):
                self.add_partition(topic)

    @property
    def first(self) -> SourcePartition:
        """The source partition whose owner coordinates."""
        return SourcePartition(next(iter(self.lives)), 0)

    @property
    def replaced(self) -> bool:
        """Whether the table's offsets are those of a log that is no more."""
        return any(self.lives.values())

    def add_partition(self, topic: str) -> SourcePartition:
        partition = SourcePartition(topic, sum(p.topic == topic for p in self.records))
        self.records[partition], self.lows[partition], self.ends[partition] = [], 0, 0
        if not self.lives[topic]:
            self.original[partition], self.bad[partition] = [], []
            self.compacted[partition] = set()
        return partition

    def add_topic(self, topic: str, partitions: int) -> list[SourcePartition]:
        """Somebody adds a topic to those that are read."""
        self.lives.setdefault(topic, 0)
        return [self.add_partition(topic) for _ in range(partitions)]

    # --- what producers, retention and operators do -------------------------------------------------

    def produce(self, partition: SourcePartition, count: int, *, bad: bool = False) -> None:
        """Append `count` offsets; some are markers or aborted records that no consumer sees.

        `bad`: the last one is a record that does not decode.
        """
        random, end = self._random.random, self.ends[partition]
        made: list[int] = []
        bads = [] if self.lives[partition.topic] else self.bad[partition]
        for offset in range(end, end + count):
            if random() >= self._gaps:
                made.append(offset)
                if self.bad_share and random() < self.bad_share:
                    bads.append(offset)
        if bad:
            if not made or made[-1] != end + count - 1:
                made.append(end + count - 1)
            if not bads or bads[-1] != made[-1]:
                bads.append(made[-1])
        self._keep(partition, made)
        self.ends[partition] = end + count

    def newer_schema(self, partition: SourcePartition, field: str) -> None:
        """From here on records have this field, two of three: older producers go on beside the newer one."""
        if not self.lives[partition.topic]:
            self.newer.setdefault(partition, []).append((self.ends[partition], field))
            self._fields.clear()

    def fields(self, partition: SourcePartition, offset: int) -> frozenset[str]:
        """Those that a record's schema has, of the topic's first life."""
        newer = self.newer.get(partition)
        if not newer:
            return NO_FIELDS
        known = self._fields.get((partition, offset))
        if known is None:
            known = frozenset(name for since, name in newer if offset >= since and (offset - since) % 3 != 1)
            self._fields[partition, offset] = known
        return known

    def skip(self, partition: SourcePartition, count: int) -> None:
        """Append `count` offsets that no consumer sees: aborted records and markers."""
        self.ends[partition] += count

    def begin(self, partition: SourcePartition) -> None:
        """A producer's transaction begins with one record: nothing from there on is read until it ends."""
        self._open[partition] = self.ends[partition]
        self.ends[partition] += 1

    def finish(self, partition: SourcePartition, *, commit: bool) -> None:
        """It ends with a marker; its record is one that was aborted, or one like all others."""
        offset = self._open.pop(partition, None)
        if offset is None:
            return  # its topic was made anew
        if commit:
            self._keep(partition, [offset])
        self.skip(partition, 1)

    def finish_all(self) -> None:
        for partition in list(self._open):
            self.finish(partition, commit=False)

    def _keep(self, partition: SourcePartition, offsets: Sequence[int]) -> None:
        for held in (self.records, self.original) if not self.lives[partition.topic] else (self.records,):
            kept = held[partition]
            if offsets and (not kept or kept[-1] < offsets[0]):
                kept.extend(offsets)
            else:
                for offset in offsets:
                    insort(kept, offset)

    def compact(self, partition: SourcePartition, gone: Collection[int], *, committed: int = 0) -> None:
        """Compaction takes these records. The log's bounds stay: its last offset is never taken."""
        gone = {offset for offset in gone if offset < self.ends[partition] - 1}
        self.records[partition][:] = [o for o in self.records[partition] if o not in gone]
        if not self.lives[partition.topic]:
            self.compacted[partition] |= {offset for offset in gone if offset >= committed}

    def retain_from(self, partition: SourcePartition, low: int) -> None:
        """Retention removes everything below `low`."""
        self.lows[partition] = max(self.lows[partition], low)

    def cut_from(self, partition: SourcePartition, offset: int) -> None:
        """A leader takes over that lacks the records from `offset` on."""
        for held in (self.records, self.original) if not self.lives[partition.topic] else (self.records,):
            held[partition][:] = [o for o in held[partition] if o < offset]
        self.ends[partition] = max(self.lows[partition], offset)
        self.cuts.setdefault(partition, []).append(offset)

    def recreate(self, topic: str, partitions: int) -> None:
        """The topic is deleted and made again: empty, with another id."""
        self.lives[topic] += 1
        for partition in [p for p in self.records if p.topic == topic]:
            del self.records[partition], self.lows[partition], self.ends[partition]
            self._open.pop(partition, None)
            self.damaged.pop(partition, None)
            self.cuts.pop(partition, None)
        for _ in range(partitions):
            self.add_partition(topic)

    def move(self) -> None:
        """Another Kafka cluster answers at the same address, with topics of the same names."""
        self.cluster = "another-cluster"
        for topic in self.lives:
            self.recreate(topic, sum(p.topic == topic for p in self.records))

    # --- what a consumer sees -----------------------------------------------------------------------

    def fetch(self, partition: SourcePartition, start: int, offsets_max: int) -> tuple[int, list[int]]:
        """Where the next fetch goes on, and the offsets of the records in between.

        As a consumer sees it: up to the last record delivered, or, where there is none left, to the end of
        what can be read.
        """
        records, end = self.records[partition], self.readable(partition, start)
        index = bisect_left(records, start)
        found = records[index : min(index + offsets_max, bisect_left(records, end))]
        return (found[-1] + 1 if found else end), found

    def stable(self, partition: SourcePartition) -> int:
        """One past the last offset that can be read: an open transaction holds back all that follows."""
        low, end = self.lows[partition], self._open.get(partition)
        if end is None:
            end = self.ends[partition]
        return low if low > end else end

    def readable(self, partition: SourcePartition, start: int) -> int:
        """How far the log can be read from there on."""
        end = self.stable(partition)
        damaged = self.damaged.get(partition, end)
        return min(damaged, end) if start <= damaged else end

    def damage(self, partition: SourcePartition) -> None:
        """The batch that comes next is damaged on the broker's disk."""
        self.damaged.setdefault(partition, self.ends[partition])

    def has(self, partition: SourcePartition) -> bool:
        """Whether the broker knows this source partition now."""
        return partition in self.ends and partition.topic != self.missing

    def witness(self, partition: SourcePartition, offset: int) -> Witness:
        """Of a record in the log: others have been at its offset as often as the log lost its end there,
        or was another one."""
        written = sum(cut <= offset for cut in self.cuts.get(partition, ()))
        fingerprint = self.lives[partition.topic] * LIVES_APART + written
        return Witness(partition=partition, offset=offset, fingerprint=fingerprint)

    def denies(self, known: Known) -> bool:
        """Whether other records than were read are there, or some where there was none. What is gone proves
        nothing.
        """
        partition, witness = known.witness.partition, known.witness
        records, readable = self.records[partition], self.stable(partition)
        index = bisect_left(records, max(witness.offset, self.lows[partition]))
        if index < len(records) and records[index] == witness.offset < readable:
            if self.witness(partition, witness.offset) != witness:
                return True
            index += 1
        return index < len(records) and records[index] < min(known.nothing_until, readable)

    # --- what the table must hold -------------------------------------------------------------------

    def between(
        self, partition: SourcePartition, start: int, next_offset: int, lost: Sequence[Lost] = ()
    ) -> list[int]:
        """The offsets in `[start, next)` that held a record, without those that are declared lost."""
        records = self.original[partition]
        found = records[bisect_left(records, start) : bisect_left(records, next_offset)]
        for one in lost:
            if one.partition == partition:
                found = [offset for offset in found if not one.start <= offset < one.next]
        return found

    def bad_among(self, partition: SourcePartition, offsets: Sequence[int]) -> list[int]:
        """Those of these offsets, ascending, whose records do not decode."""
        bad = set(self.bad.get(partition, ()))
        return [offset for offset in offsets if offset in bad]

    def is_bad(self, partition: SourcePartition, offset: int) -> bool:
        bad = self.bad.get(partition, ())
        index = bisect_left(bad, offset)
        return index < len(bad) and bad[index] == offset

    def bad_in(self, ranges: Iterable[Range]) -> set[tuple[SourcePartition, int]]:
        """The records in these ranges that do not decode."""
        return {
            (r.partition, offset)
            for r in ranges
            for offset in self.bad.get(r.partition, ())
            if r.start <= offset < r.next
        }

    # --- what the table service asks of the broker (`table.service.transactions.SourceBroker`) --------------

    def facts(self) -> SourceFacts:
        self._answer()
        if self.missing:
            raise MissingTopic(f"Source topic {self.missing} does not exist on the Kafka broker")
        ids = {topic: f"{self.cluster}-{topic}-{life}" for topic, life in self.lives.items()}
        partitions = tuple(p for topic in self.lives for p in self.records if p.topic == topic)
        return SourceFacts(cluster=self.cluster, topics=ids, partitions=partitions)

    def earliest(self, partitions: Sequence[SourcePartition]) -> Offsets:
        self._answer(partitions)
        return {partition: self.lows[partition] for partition in partitions}

    def end(self, partitions: Sequence[SourcePartition], read_committed: bool = True) -> Offsets:
        self._answer(partitions)
        if not read_committed:
            self.looked.update({partition: self.ends[partition] for partition in partitions})
            return {partition: self.ends[partition] for partition in partitions}
        return {partition: self.stable(partition) for partition in partitions}

    def _answer(self, asked: Sequence[SourcePartition] = ()) -> None:
        if not self.available:
            raise SourceUnavailable("the Kafka broker did not answer")
        for partition in asked:
            if not self.has(partition):
                raise MissingTopic(f"Source topic {partition} does not exist on the Kafka broker")

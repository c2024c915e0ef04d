"""What the commits promise against what the table and the log hold. Pure but for the log it is given."""

from __future__ import annotations

from typing import Protocol

from control_topic.messages import SourcePartition
from lockstep.verify.chain import Chain, Covered, PartitionEra, merged
from lockstep.verify.counts import Intervals, OffsetCounts, minus, pairs, size, without
from lockstep.verify.log import Looked
from lockstep.verify.report import PartitionReport, VerifyReport
from lockstep.verify.rows import EXAMPLES_MAX, RowsFound


class Log(Protocol):
    """Where missing offsets are looked up. `lockstep.verify.log.SourceLog` implements it."""

    def look(
        self, partition: SourcePartition, missing: Intervals, *, topic_id: str, cluster: str
    ) -> Looked: ...


def judge(report: VerifyReport, chain: Chain, rows: RowsFound, log: Log) -> None:
    """Fill the report in, partition by partition."""
    report.rows = rows.own
    report.foreign_rows = rows.foreign
    report.later_rows = rows.later
    report.operator = chain.moves
    report.ranges_broken = list(chain.broken)
    for name in rows.unreadable:
        report.not_checkable.append(f"A data file cannot be read, its rows count as missing: {name}")
    if not rows.kafka_columns:
        _judge_numbers(report, chain, rows)
        return
    if rows.bare:
        report.unexpected += rows.bare
        report.notes.append(f"{rows.bare} rows of our instants have no Kafka coordinates")
    by_number = _check_unlisted(report, chain, rows)
    partitions = {place.partition for place in chain.covered} | set(chain.offsets) | set(rows.strays)
    for partition in sorted(partitions):
        report.partitions.append(_Judgement(report, chain, rows, partition, by_number).run(log))


def _check_unlisted(report: VerifyReport, chain: Chain, rows: RowsFound) -> frozenset[str]:
    """Instants with more rejects than a commit lists: there only numbers can be compared."""
    for instant, unlisted in sorted(chain.unlisted.items()):
        covered = chain.by_instant.get(instant, {})
        due = sum(c.records - len(c.rejects) for c in covered.values()) - unlisted
        found = sum(rows.of_instant.get((instant, partition), 0) for partition in covered)
        report.rejected += unlisted
        report.notes.append(f"instant {instant} lists not all its rejects: its rows were checked by number")
        if found < due:
            report.missing += due - found
        elif found > due:
            report.unexpected += found - due
    return frozenset(chain.unlisted)


def _judge_numbers(report: VerifyReport, chain: Chain, rows: RowsFound) -> None:
    """Without Kafka columns: each instant's rows against the records that it counted."""
    report.not_checkable.append(
        "The table has no Kafka columns (table.kafka_columns): the rows of every commit were counted, but"
        " which offset is where cannot be checked"
    )
    for instant, covered in chain.by_instant.items():
        rejects = sum(len(c.rejects) for c in covered.values()) + chain.unlisted.get(instant, 0)
        report.rejected += rejects
        due = sum(c.records for c in covered.values()) - rejects
        found = rows.of_instant.get((instant, None), 0)
        report.missing += max(0, due - found)
        report.unexpected += max(0, found - due)
        if found != due:
            report.notes.append(f"instant {instant} counted {due} rows, the table has {found} of it")


class _Judgement:
    """One source partition, all eras."""

    def __init__(
        self,
        report: VerifyReport,
        chain: Chain,
        rows: RowsFound,
        partition: SourcePartition,
        by_number: frozenset[str],
    ) -> None:
        self._report = report
        self._chain = chain
        self._rows = rows
        self._partition = partition
        self._by_number = by_number
        self._part = PartitionReport(
            topic=partition.topic,
            partition=partition.number,
            committed=chain.offsets.get(partition),
            reread=chain.reread(partition),
        )

    def run(self, log: Log) -> PartitionReport:
        part = self._part
        for place in sorted(p for p in self._chain.covered if p.partition == self._partition):
            self._judge_era(place, log)
        stray = self._rows.strays.get(self._partition)
        if stray is not None:
            part.unexpected += stray.count
            self._example(part.unexpected_examples, stray.examples)
        self._report.rejected += part.rejected
        return part

    def _judge_era(self, place: PartitionEra, log: Log) -> None:
        part, chain = self._part, self._chain
        covered = chain.covered[place]
        counts = self._rows.counts.get(place, OffsetCounts())
        part.ranges += len(covered)
        part.rows += sum(self._found(c) for c in covered)
        due = merged([(c.start, c.next) for c in covered])
        lost = merged(chain.lost.get(place, []))
        rejects = frozenset().union(*(c.rejects for c in covered))
        part.lost += lost
        part.rejected += len(rejects)
        surplus = sum(max(0, self._found(c) - c.records + len(c.rejects)) for c in self._numbered(covered))
        explained = self._count_duplicates(counts) + self._count_impossible(counts, lost, rejects)
        stray = self._rows.strays.get(self._partition)
        uncounted = surplus - explained - (stray.count if stray is not None else 0)
        if uncounted > 0:
            part.unexpected += uncounted
            self._report.notes.append(
                f"{self._partition}: {uncounted} rows more than the commits counted records"
            )
        missing = without(minus(counts.missing(due), lost), rejects)
        missing = minus(missing, [(c.start, c.next) for c in covered if c.instant in self._by_number])
        self._judge_missing(place, missing, covered, log)

    def _found(self, covered: Covered) -> int:
        return self._rows.of_instant.get((covered.instant, self._partition), 0)

    def _numbered(self, covered: list[Covered]) -> list[Covered]:
        return [c for c in covered if c.instant not in self._by_number]

    def _count_duplicates(self, counts: OffsetCounts) -> int:
        before = self._part.duplicated
        for offsets, extra in counts.repeated():
            self._part.duplicated += int(extra.sum())
            self._example(self._part.duplicated_examples, offsets[:EXAMPLES_MAX].tolist())
        return self._part.duplicated - before

    def _count_impossible(
        self, counts: OffsetCounts, lost: list[tuple[int, int]], rejects: frozenset[int]
    ) -> int:
        """Rows of offsets that were rejected, or that nobody can have read."""
        part = self._part
        rejected = sorted(rejects)
        rows = [
            offset for offset, times in zip(rejected, counts.of(rejected), strict=True) if times and rejects
        ]
        found = len(rows)
        self._example(part.unexpected_examples, rows)
        for start, end in lost:
            found += counts.met(start, end)
        part.unexpected += found
        return found

    def _judge_missing(
        self, place: PartitionEra, missing: Intervals, covered: list[Covered], log: Log
    ) -> None:
        part = self._part
        elsewhere = self._rows.elsewhere.get(self._partition)
        if elsewhere is not None and len(missing):
            before = size(missing)
            missing = elsewhere.missing(pairs(missing))
            part.rewritten += before - size(missing)
        shortfall = sum(max(0, c.records - len(c.rejects) - self._found(c)) for c in self._numbered(covered))
        looked = Looked()
        if len(missing):
            topic_id = self._chain.topics.get((self._partition.topic, place.era), "")
            cluster = self._chain.clusters.get(place.era, "")
            looked = log.look(self._partition, missing, topic_id=topic_id, cluster=cluster)
        part.gaps += looked.gaps
        part.unknown += looked.unknown
        self._example(part.missing_examples, looked.examples)
        counted = shortfall - part.rewritten
        part.missing += max(looked.lost, counted)
        if counted > looked.lost:
            self._report.notes.append(
                f"{self._partition}: the commits counted {counted - looked.lost} records of which the table"
                f" has no row{'' if looked.unknown else ' and the log no record any more'}"
            )
        if looked.unknown and looked.why:
            self._report.not_checkable.append(looked.why)

    def _example(self, examples: list[int], more: list[int]) -> None:
        examples += more[: EXAMPLES_MAX - len(examples)]

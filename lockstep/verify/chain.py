"""What a pipeline's commits say they hold, and whether they follow from each other. Pure.

An operator's commit may move an offset back, and then the same offset is committed, and its row written,
once more, on purpose; or the topic is another one now and its offsets begin anew. So everything is kept by
**era**: an era ends with each operator's commit. Within an era every offset is due at most once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from control_topic.messages import Offsets, SourcePartition
from table.state import TableState


class PartitionEra(NamedTuple):
    """One source partition in one era."""

    partition: SourcePartition
    era: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Covered:
    """Offsets `[start, next)` that one instant committed; `records` held one, `rejects` are no rows."""

    instant: str
    start: int
    next: int
    records: int
    rejects: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """An offset that an operator changed. `before` is None where there was none, `after` where it went."""

    instant: str
    operator: str
    reason: str
    partition: SourcePartition
    before: int | None
    after: int | None


@dataclass(slots=True)
class Chain:
    """Everything that the commits promise."""

    offsets: Offsets = field(default_factory=dict)
    covered: dict[PartitionEra, list[Covered]] = field(default_factory=dict)
    """In commit order."""
    by_instant: dict[str, dict[SourcePartition, Covered]] = field(default_factory=dict)
    lost: dict[PartitionEra, list[tuple[int, int]]] = field(default_factory=dict)
    eras: dict[str, int] = field(default_factory=dict)
    topics: dict[tuple[str, int], str] = field(default_factory=dict)
    """(topic, era) -> topic id."""
    clusters: dict[int, str] = field(default_factory=dict)
    unlisted: dict[str, int] = field(default_factory=dict)
    """Instant -> rejects that were counted and not listed."""
    moves: list[Move] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    """Sentences, each a violation of S1, S2, S5, S6 or S13."""

    def reread(self, partition: SourcePartition) -> int:
        """Offsets that were committed again after an operator had moved back on the same topic."""
        by_topic_id: dict[str, list[tuple[int, int]]] = {}
        for place, covered in self.covered.items():
            if place.partition == partition:
                topic_id = self.topics.get((partition.topic, place.era), "")
                union = merged([(c.start, c.next) for c in covered])
                by_topic_id.setdefault(topic_id, []).extend(union)
        return sum(
            length(intervals) - length(merged(intervals)) for intervals in by_topic_id.values() if intervals
        )


def follow(states: Sequence[TableState]) -> Chain:
    """Follow one pipeline's commits, oldest first, and note everything that does not follow."""
    chain = Chain()
    previous: TableState | None = None
    transactions: dict[str, str] = {}
    era = 0
    for state in states:
        before = transactions.setdefault(state.transaction, state.instant)
        if before != state.instant:
            chain.broken.append(
                f"S1: transaction {state.transaction} is committed twice, by instants {before}"
                f" and {state.instant}"
            )
        if state.kind == "operator":
            era += 1
            _note_moves(chain, previous, state)
        elif previous is None:
            _check_first(chain, state)
        else:
            _check_next(chain, previous, state)
        chain.eras[state.instant] = era
        chain.clusters[era] = state.cluster
        chain.topics.update({(topic, era): topic_id for topic, topic_id in state.topics.items()})
        _take_ranges(chain, state, era)
        previous = state
    chain.offsets = previous.offsets if previous is not None else {}
    return chain


def _note_moves(chain: Chain, previous: TableState | None, state: TableState) -> None:
    old: Mapping[SourcePartition, int] = previous.offsets if previous is not None else {}
    for partition in sorted({*old, *state.offsets}):
        before, after = old.get(partition), state.offsets.get(partition)
        if before != after:
            chain.moves.append(
                Move(
                    instant=state.instant,
                    operator=state.operator,
                    reason=state.reason,
                    partition=partition,
                    before=before,
                    after=after,
                )
            )
    if state.ranges:
        chain.broken.append(f"S1: the operator's commit {state.instant} holds ranges of records")


def _check_first(chain: Chain, state: TableState) -> None:
    if state.kind != "genesis":
        chain.broken.append(
            f"S2: the oldest commit of the pipeline, instant {state.instant}, is no genesis: what came before"
            " it is gone"
        )
    elif any(item.start < item.next for item in state.ranges):
        chain.broken.append(f"S1: the genesis, instant {state.instant}, holds ranges of records")


def _check_next(chain: Chain, previous: TableState, state: TableState) -> None:
    """A data commit moves exactly the partitions that it has ranges of, from where they were.

    One that admits source partitions moves none: it gives those that are new a place to begin.
    """
    where = f"instant {state.instant}"
    if state.kind == "genesis":
        chain.broken.append(f"S2: {where} is a second genesis")
    if state.kind == "admission" and state.ranges:
        chain.broken.append(f"S1: {where}, which admits source partitions, holds ranges of records")
    if state.epoch < previous.epoch:
        chain.broken.append(
            f"S6: {where} is of epoch {state.epoch}, the commit before it of {previous.epoch}"
        )
    if state.cluster != previous.cluster:
        chain.broken.append(f"S13: {where} took Kafka cluster {state.cluster} for {previous.cluster}")
    for topic in sorted(previous.topics.keys() & state.topics.keys()):
        if state.topics[topic] != previous.topics[topic]:
            chain.broken.append(f"S13: {where} took the recreated topic {topic} for the one before it")
    moved: set[SourcePartition] = set()
    for item in state.ranges:
        due = previous.offsets.get(item.partition, 0)
        if item.partition in moved:
            chain.broken.append(f"S1: {where} has two ranges of {item.partition}")
        if item.start != due:
            kind = "overlaps what was committed" if item.start < due else "leaves a hole"
            chain.broken.append(
                f"S2: {where}: the range [{item.start}, {item.next}) of {item.partition} {kind}:"
                f" {due} was due"
            )
        if state.offsets.get(item.partition) != item.next:
            chain.broken.append(
                f"S2: {where}: the range of {item.partition} ends at {item.next}, its committed offset is"
                f" {state.offsets.get(item.partition)}"
            )
        moved.add(item.partition)
    _check_others(chain, previous, state, moved)


def _check_others(chain: Chain, previous: TableState, state: TableState, moved: set[SourcePartition]) -> None:
    """What has no range stays where it is; only an admission gives a place, to what had none."""
    for partition in sorted({*previous.offsets, *state.offsets} - moved):
        before, after = previous.offsets.get(partition), state.offsets.get(partition)
        admitted = state.kind == "admission" and before is None
        if before != after and not admitted:
            chain.broken.append(
                f"S5: instant {state.instant} moved {partition} from {before} to {after} without a range"
            )


def _take_ranges(chain: Chain, state: TableState, era: int) -> None:
    rejects: dict[SourcePartition, set[int]] = {}
    for reject in state.rejects:
        rejects.setdefault(reject.partition, set()).add(reject.offset)
    for item in state.ranges:
        covered = Covered(
            instant=state.instant,
            start=item.start,
            next=item.next,
            records=item.records,
            rejects=frozenset(rejects.get(item.partition, ())),
        )
        chain.covered.setdefault(PartitionEra(item.partition, era), []).append(covered)
        chain.by_instant.setdefault(state.instant, {})[item.partition] = covered
    for lost in state.lost:
        chain.lost.setdefault(PartitionEra(lost.partition, era), []).append((lost.start, lost.next))
    unlisted = state.reject_count - len(state.rejects)
    if unlisted > 0:
        chain.unlisted[state.instant] = unlisted


def merged(intervals: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same offsets as sorted intervals `[start, next)` that do not touch."""
    union: list[tuple[int, int]] = []
    for start, end in sorted(interval for interval in intervals if interval[0] < interval[1]):
        if union and start <= union[-1][1]:
            union[-1] = (union[-1][0], max(end, union[-1][1]))
        else:
            union.append((start, end))
    return union


def length(intervals: Sequence[tuple[int, int]]) -> int:
    """Offsets in all of them together."""
    return sum(end - start for start, end in intervals)

"""Offsets, partitions, ranges and write statuses to protobuf and back, shared by both protocols.

`proto/table.proto` uses these messages of `proto/control.proto` too. Nothing that is read is trusted:
every function raises `Malformed` for content that cannot be, and the same when asked to write it; a list
that is too long before anything is made of it (`control_topic.bounds`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, repeat
from typing import Any, TypeVar

from control_topic.bounds import (
    COLUMNS_CHARS_MAX,
    FILES_MAX,
    REJECT_CHARS_MAX,
    SOURCE_PARTITIONS_MAX,
    WRITERS_MAX,
    cut,
    few_enough,
    readable,
    short_enough,
    topic_name,
)
from control_topic.causes import COMMIT_PARTS
from control_topic.controls import SETTINGS, TEXT_CHARS_MAX, TEXTS, Setting
from control_topic.errors import Malformed
from control_topic.messages import (
    EVENT_TIME_MAX_MS,
    REJECTS_LISTED_MAX,
    DataFile,
    EventTimes,
    Lost,
    Offsets,
    Range,
    Reject,
    SourcePartition,
    Witness,
    WriteStatus,
)
from control_topic.stubs import control_pb2 as pb

__all__ = [
    "OFFSET_MAX",
    "PARTITION_MAX",
    "columns",
    "event_time",
    "event_times_from_proto",
    "event_times_to_proto",
    "limited",
    "offsets_from_proto",
    "offsets_to_proto",
    "partitions_from_proto",
    "partitions_to_proto",
    "ranges_from_proto",
    "ranges_to_proto",
    "readable",
    "rows",
    "rows_by_worker",
    "set_to",
    "took_ms",
    "witnesses_from_proto",
    "witnesses_to_proto",
    "write_status_from_proto",
    "write_status_to_proto",
]

OFFSET_MAX = 2**63 - 1
"""Kafka's offsets are signed 64-bit; what the wire could hold beyond that is refused."""

FINGERPRINT_MAX = 2**64 - 1

NO_TIME = -(2**63)
"""On the wire: no event time."""

PARTITION_MAX = 2**31 - 1
"""Kafka's partition numbers are signed 32-bit."""


def offsets_to_proto(offsets: Offsets) -> list[pb.TopicOffsets]:
    """Grouped by topic, sorted. Raises `Malformed` for a number that is no offset."""
    return [
        pb.TopicOffsets(topic=topic, partitions=numbers, offsets=_offsets(values))
        for topic, numbers, values in columns(sorted(offsets.items()))
    ]


def offsets_from_proto(groups: Iterable[pb.TopicOffsets]) -> dict[SourcePartition, int]:
    """The inverse of `offsets_to_proto`. Raises `Malformed` where a partition is named twice."""
    groups = limited(groups)
    pairs = [
        pair for group in groups for pair in rows(group.topic, group.partitions, _offsets(group.offsets))
    ]
    offsets: dict[SourcePartition, int] = dict(pairs)
    if len(offsets) < len(pairs):
        repeated = Counter(partition for partition, _ in pairs).most_common(1)[0][0]
        raise Malformed(f"{repeated} has two offsets")
    return offsets


def partitions_to_proto(partitions: Iterable[SourcePartition]) -> list[pb.TopicPartitions]:
    """In the order given; sorted partitions take the least room. Raises `Malformed` for a repeated one."""
    ordered = tuple(partitions)
    _refuse_repeated(ordered)
    return [
        pb.TopicPartitions(topic=topic, partitions=numbers)
        for topic, numbers, _ in columns((partition, None) for partition in ordered)
    ]


def partitions_from_proto(groups: Iterable[pb.TopicPartitions]) -> tuple[SourcePartition, ...]:
    """The inverse of `partitions_to_proto`, order kept. Raises `Malformed` for a repeated partition."""
    groups = limited(groups)
    partitions = tuple(partition for group in groups for (partition,) in rows(group.topic, group.partitions))
    _refuse_repeated(partitions)
    return partitions


def ranges_to_proto(ranges: Iterable[Range]) -> list[pb.TopicRanges]:
    """In the order given; sorted ranges take the least room. Raises `Malformed` for a repeated partition."""
    ordered = tuple(ranges)
    _refuse_repeated(tuple(r.partition for r in ordered))
    return [
        pb.TopicRanges(
            topic=topic,
            partitions=numbers,
            starts=_offsets([r.start for r in values]),
            nexts=_offsets([r.next for r in values]),
            records=[r.records for r in values],
        )
        for topic, numbers, values in columns((r.partition, r) for r in ordered)
    ]


def ranges_from_proto(groups: Iterable[pb.TopicRanges]) -> tuple[Range, ...]:
    """The inverse of `ranges_to_proto`, order kept.

    Raises `Malformed` for a range that is none, and for a repeated partition.
    """
    groups = limited(groups)
    ranges = tuple(
        _range(partition, start, following, records)
        for group in groups
        for partition, start, following, records in rows(
            group.topic, group.partitions, _offsets(group.starts), _offsets(group.nexts), group.records
        )
    )
    _refuse_repeated(tuple(r.partition for r in ranges))
    return ranges


def witnesses_to_proto(witnesses: Iterable[Witness]) -> list[pb.TopicWitnesses]:
    """In the order given. Raises `Malformed` for a repeated partition, and for numbers out of range."""
    ordered = tuple(witnesses)
    _refuse_repeated(tuple(w.partition for w in ordered))
    return [
        pb.TopicWitnesses(
            topic=topic,
            partitions=numbers,
            offsets=_offsets([w.offset for w in values]),
            fingerprints=_within(_fingerprint, [w.fingerprint for w in values]),
        )
        for topic, numbers, values in columns((w.partition, w) for w in ordered)
    ]


def witnesses_from_proto(groups: Iterable[pb.TopicWitnesses]) -> dict[SourcePartition, Witness]:
    """The inverse of `witnesses_to_proto`. Raises `Malformed` where a partition is named twice."""
    groups = limited(groups)
    found = tuple(
        Witness(partition=partition, offset=offset, fingerprint=fingerprint)
        for group in groups
        for partition, offset, fingerprint in rows(
            group.topic, group.partitions, _offsets(group.offsets), group.fingerprints
        )
    )
    _refuse_repeated(tuple(w.partition for w in found))
    return {witness.partition: witness for witness in found}


def event_times_to_proto(times: Iterable[EventTimes]) -> list[pb.TopicEventTimes]:
    """In the order given. Raises `Malformed` for a repeated partition, and for numbers out of range."""
    ordered = tuple(times)
    _refuse_repeated(tuple(t.partition for t in ordered))
    return [
        pb.TopicEventTimes(
            topic=topic,
            partitions=numbers,
            greatest_ms=[NO_TIME if t.greatest_ms is None else event_time(t.greatest_ms) for t in values],
            late=_offsets([t.late for t in values]),
            absurd=_offsets([t.absurd for t in values]),
        )
        for topic, numbers, values in columns((t.partition, t) for t in ordered)
    ]


def event_times_from_proto(groups: Iterable[pb.TopicEventTimes]) -> tuple[EventTimes, ...]:
    """The inverse of `event_times_to_proto`. Raises `Malformed` where a partition is named twice."""
    groups = limited(groups)
    found = tuple(
        EventTimes(
            partition=partition,
            greatest_ms=None if greatest_ms == NO_TIME else event_time(greatest_ms),
            late=late,
            absurd=absurd,
        )
        for group in groups
        for partition, greatest_ms, late, absurd in rows(
            group.topic, group.partitions, group.greatest_ms, _offsets(group.late), _offsets(group.absurd)
        )
    )
    _refuse_repeated(tuple(t.partition for t in found))
    return found


def event_time(time_ms: int) -> int:
    """The same. Raises `Malformed` for what no column can say."""
    if not -EVENT_TIME_MAX_MS <= time_ms <= EVENT_TIME_MAX_MS:
        raise Malformed(f"{time_ms} ms is no event time")
    return time_ms


def write_status_to_proto(status: WriteStatus) -> pb.WriteStatus:
    """Raises `Malformed` for a partition that has two ranges, and for numbers out of range."""
    few_enough(len(status.files), FILES_MAX, "files")
    few_enough(len(status.lost), SOURCE_PARTITIONS_MAX, "lost ranges")
    few_enough(len(status.columns), COLUMNS_CHARS_MAX, "characters of columns")
    return pb.WriteStatus(
        transaction=status.transaction,
        ranges=ranges_to_proto(status.ranges),
        files=[
            pb.DataFile(
                path=f.path,
                body=f.body,
                table_partition=f.table_partition,
                rows=f.rows,
                size_bytes=f.size_bytes,
                deletes=f.deletes,
            )
            for f in status.files
        ],
        rejects=[
            pb.Reject(
                topic=topic_name(r.partition.topic),
                partition=_number(r.partition.number),
                offset=_offset(r.offset),
                reason=cut(r.reason, REJECT_CHARS_MAX),
            )
            for r in status.rejects
        ],
        lost=[
            pb.Lost(
                topic=topic_name(x.partition.topic),
                partition=_number(x.partition.number),
                start=x.start,
                next=x.next,
            )
            for x in map(_lost, status.lost)
        ],
        reject_count=_offset(status.reject_count),
        witnesses=witnesses_to_proto(status.witnesses),
        columns=status.columns,
        columns_from=cut(status.columns_from, REJECT_CHARS_MAX),
        event_times=event_times_to_proto(status.event_times),
        handed=rows_by_worker(status.handed),
        taken=rows_by_worker(status.taken),
    )


def write_status_from_proto(status: pb.WriteStatus) -> WriteStatus:
    """The inverse of `write_status_to_proto`. Raises `Malformed` for content that cannot be."""
    if len(status.rejects) > REJECTS_LISTED_MAX:
        raise Malformed(f"{len(status.rejects)} rejects by name; more than {REJECTS_LISTED_MAX} are counted")
    few_enough(len(status.files), FILES_MAX, "files")
    few_enough(len(status.lost), SOURCE_PARTITIONS_MAX, "lost ranges")
    few_enough(len(status.columns), COLUMNS_CHARS_MAX, "characters of columns")
    return WriteStatus(
        transaction=status.transaction,
        ranges=ranges_from_proto(status.ranges),
        files=tuple(
            DataFile(
                path=f.path,
                body=f.body,
                table_partition=f.table_partition,
                rows=f.rows,
                size_bytes=f.size_bytes,
                deletes=f.deletes,
            )
            for f in status.files
        ),
        rejects=tuple(
            Reject(
                partition=_place(r.topic, r.partition),
                offset=_offset(r.offset),
                reason=cut(r.reason, REJECT_CHARS_MAX),
            )
            for r in status.rejects
        ),
        lost=tuple(
            _lost(Lost(partition=_place(x.topic, x.partition), start=x.start, next=x.next))
            for x in status.lost
        ),
        reject_count=_offset(status.reject_count),
        witnesses=tuple(witnesses_from_proto(status.witnesses).values()),
        columns=status.columns,
        columns_from=cut(status.columns_from, REJECT_CHARS_MAX),
        event_times=event_times_from_proto(status.event_times),
        handed=rows_by_worker(status.handed),
        taken=rows_by_worker(status.taken),
    )


def rows_by_worker(counts: Mapping[str, int]) -> dict[str, int]:
    """The same, for the wire and from it. Raises `Malformed` for too long an id, and for no number."""
    few_enough(len(counts), WRITERS_MAX, "workers")
    short_enough(*counts)
    return {who: _offset(count) for who, count in counts.items()}


def took_ms(parts: Mapping[str, int]) -> dict[str, int]:
    """How long the parts of a commit took, for the wire and from it, in milliseconds.

    A courtesy that must not spoil what it travels with: what is no part or no time is left out, both ways.
    """
    told = {part: parts.get(part) for part in COMMIT_PARTS}
    return {part: ms for part, ms in told.items() if isinstance(ms, int) and 0 <= ms <= OFFSET_MAX}


def set_to(settings: Mapping[str, Setting]) -> dict[str, int]:
    """What an operator has set and is a number, for the wire and from it, told as `took_ms` is."""
    told = {name: settings.get(name) for name in SETTINGS if name not in TEXTS}
    return {
        name: value for name, value in told.items() if isinstance(value, int) and 0 <= value <= OFFSET_MAX
    }


def set_texts(settings: Mapping[str, Setting]) -> dict[str, str]:
    """What else an operator has set, likewise."""
    told = {name: settings.get(name) for name in TEXTS}
    return {name: cut(value, TEXT_CHARS_MAX) for name, value in told.items() if isinstance(value, str)}


def rows(topic: str, numbers: Sequence[int], *columns: Sequence[int]) -> Iterable[tuple[Any, ...]]:
    """(source partition, one of each column) per number. Raises `Malformed` where the lengths differ."""
    topic_name(topic)
    lengths = {len(numbers), *map(len, columns)}
    if len(lengths) > 1:
        raise Malformed(f"{topic}: parallel arrays of {', '.join(map(str, sorted(lengths)))} entries")
    return zip(
        map(SourcePartition._make, zip(repeat(topic), _within(_number, numbers))), *columns, strict=True
    )


_Group = TypeVar(
    "_Group",
    pb.TopicPartitions,
    pb.TopicOffsets,
    pb.TopicRanges,
    pb.TopicWriters,
    pb.TopicWitnesses,
    pb.TopicEventTimes,
)


def limited(groups: Iterable[_Group]) -> tuple[_Group, ...]:
    """All of them. Raises `Malformed` where they have too many source partitions together."""
    known = tuple(groups)
    few_enough(sum(len(group.partitions) for group in known), SOURCE_PARTITIONS_MAX, "source partitions")
    return known


_Value = TypeVar("_Value")


def columns(
    pairs: Iterable[tuple[SourcePartition, _Value]],
) -> Iterator[tuple[str, list[int], list[_Value]]]:
    """(topic, partition numbers, values) per run of the same topic, order kept."""
    count = 0
    for topic, group in groupby(pairs, key=lambda pair: pair[0].topic):
        members = list(group)
        count += len(members)
        few_enough(count, SOURCE_PARTITIONS_MAX, "source partitions")
        numbers = [partition.number for partition, _ in members]
        _within(_number, numbers)
        yield topic_name(topic), numbers, [value for _, value in members]


def _offsets(values: Sequence[int]) -> Sequence[int]:
    return _within(_offset, values)


def _within(check: Callable[[int], int], values: Sequence[int]) -> Sequence[int]:
    """The values, checked at their extremes: `check` raises for what is out of a range."""
    few_enough(len(values), SOURCE_PARTITIONS_MAX, "numbers in a list")
    if values:
        check(min(values))
        check(max(values))
    return values


def _offset(value: int) -> int:
    if not 0 <= value <= OFFSET_MAX:
        raise Malformed(f"{value} is not an offset")
    return value


def _fingerprint(value: int) -> int:
    if not 0 <= value <= FINGERPRINT_MAX:
        raise Malformed(f"{value} is not a fingerprint of 64 bits")
    return value


def _number(value: int) -> int:
    if not 0 <= value <= PARTITION_MAX:
        raise Malformed(f"{value} is not a source partition's number")
    return value


def _place(topic: str, number: int) -> SourcePartition:
    return SourcePartition(topic_name(topic), _number(number))


def _range(partition: SourcePartition, start: int, following: int, records: int) -> Range:
    try:
        return Range(partition=partition, start=start, next=following, records=records)
    except ValueError as error:
        raise Malformed(str(error)) from error


def _lost(lost: Lost) -> Lost:
    if not 0 <= lost.start <= lost.next <= OFFSET_MAX:
        raise Malformed(f"{lost.partition}: lost offsets [{lost.start}, {lost.next}) are not a range")
    return lost


def _refuse_repeated(partitions: Sequence[SourcePartition]) -> None:
    seen: set[SourcePartition] = set()
    for partition in partitions:
        if partition in seen:
            raise Malformed(f"{partition} is named twice")
        seen.add(partition)

"""The table's watermark: the smallest event time that may still come, as one commit after the other moves it.
Pure: standard library only.

What is decided is written into the commit that it is decided for, so that the newest commit alone says how it
stands. The theory: docs/watermark.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from control_topic.messages import EVENT_TIME_MAX_MS, EventTimes, Offsets, Range, SourcePartition

KAFKA_TIMESTAMP = "_kafka_timestamp"
"""As an event time: the record's own timestamp, whatever columns there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkRule:
    """How a watermark is moved. Times in milliseconds."""

    of: str
    """What declares event times: the column, and its unit where it is a number. With another one the
    watermark begins anew, since it is another one."""
    lateness_ms: int = 0
    """Records may be so much behind the greatest event time of their source partition."""
    idle_after_ms: int = 600_000
    """A source partition that is read to its end and had no record for so long is idle."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Of one source partition."""

    at_ms: int | None = None
    """The smallest event time that may still come from it; None where nobody knows. It never goes back."""
    quiet_ms: int = 0
    """For how long runs have seen no record of it, as far as that matters."""
    idle: bool = False
    """It does not hold the table's watermark: there is nothing more to read of it, and has not been for a
    while; or its topic is not read at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watermark:
    """As one commit leaves it."""

    of: str
    """As of `MarkRule`."""
    at_ms: int | None = None
    """The table's: the smallest event time that may still come; None where nobody knows. Never goes back."""
    before_ms: int | None = None
    """The table's as the commit before left it: what lies between is complete by this commit."""
    marks: Mapping[SourcePartition, Mark] = field(default_factory=dict)
    late: int = 0
    """So many of the commit's records were behind the watermark of the commit before."""
    absurd: int = 0
    """And so many so far ahead that they do not count."""

    @property
    def holder(self) -> SourcePartition | None:
        """Which source partition the table's waits for; None where all are idle."""
        holding = [
            (mark.at_ms is not None, mark.at_ms or 0, p) for p, mark in self.marks.items() if not mark.idle
        ]
        return min(holding)[2] if holding else None

    def carried(self, awake: Iterable[SourcePartition] = ()) -> Watermark:
        """As a commit leaves it that moves nothing. `awake`: these are not quiet."""
        woken = set(awake)
        marks = {p: Mark(mark.at_ms) if p in woken else mark for p, mark in self.marks.items()}
        return replace(self, before_ms=self.at_ms, late=0, absurd=0, marks=marks)

    def moved_to(self, offsets: Mapping[SourcePartition, int | None]) -> Watermark:
        """After an operator has moved the offsets of these: what they are read to is not known any more.
        None: there is no such source partition any more."""
        carried = self.carried(offsets)
        gone = {p for p, offset in offsets.items() if offset is None}
        return replace(carried, marks={p: mark for p, mark in carried.marks.items() if p not in gone})


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What a commit brings that moves a watermark."""

    ranges: Sequence[Range]
    """A source partition that has none was read by nobody, and is not idle."""
    offsets: Offsets
    """The table's after the commit."""
    seen: Sequence[EventTimes]
    present: Iterable[SourcePartition]
    """Every source partition of the topics that are read; those too that the table has no offset of. One of
    them that is new may be missing, where a broker was asked that has not heard of it yet."""
    ends: Offsets
    """Where logs ended when they were looked at last, as far as that was lately. Not every one is in it."""
    elapsed_ms: int
    """Since the commit before, by a clock that does not jump; 0 where that was another run's."""


def advance(rule: MarkRule, before: Watermark | None, progress: Progress) -> Watermark:
    """The watermark that the commit leaves, after the one that it found."""
    if before is None or before.of != rule.of:
        before = Watermark(of=rule.of)
    ranges = {item.partition: item for item in progress.ranges}
    seen = {item.partition: item for item in progress.seen}
    present = set(progress.present)
    topics = {partition.topic for partition in present}
    marks: dict[SourcePartition, Mark] = {}
    for partition in sorted(present | before.marks.keys()):
        old, item = before.marks.get(partition), ranges.get(partition)
        quiet_ms = 0
        if old is not None and (item is None or not item.records):
            quiet_ms = min(rule.idle_after_ms, old.quiet_ms + max(0, progress.elapsed_ms))
        end = progress.ends.get(partition)
        at_end = item is not None and end is not None and progress.offsets.get(partition, 0) >= end
        marks[partition] = Mark(
            at_ms=_later(old.at_ms if old else None, _mark_of(rule, seen.get(partition))),
            quiet_ms=quiet_ms,
            idle=partition.topic not in topics or (at_end and quiet_ms >= rule.idle_after_ms),
        )
    return Watermark(
        of=rule.of,
        at_ms=_later(before.at_ms, _smallest(marks.values())),
        before_ms=before.at_ms,
        marks=marks,
        late=sum(item.late for item in progress.seen),
        absurd=sum(item.absurd for item in progress.seen),
    )


def might_be_idle(rule: MarkRule, before: Watermark | None, elapsed_ms: int) -> list[SourcePartition]:
    """Those that a commit finds idle if nothing has come of them, so that their logs' ends are asked for.

    `elapsed_ms`: since the commit before, until the ends were asked for. So who is not idle yet had no record
    for long enough by then, and was read to the end that the log had then: an answer that is old makes nobody
    idle sooner. Negative where it was asked for before that commit.
    """
    if before is None or before.of != rule.of:
        return []
    return [
        p for p, mark in before.marks.items() if mark.idle or mark.quiet_ms + elapsed_ms >= rule.idle_after_ms
    ]


def _mark_of(rule: MarkRule, times: EventTimes | None) -> int | None:
    if times is None or times.greatest_ms is None:
        return None
    return max(-EVENT_TIME_MAX_MS, times.greatest_ms - rule.lateness_ms)


def _smallest(marks: Iterable[Mark]) -> int | None:
    """Of those that are not idle; None where one of them is not known, or all are idle."""
    least: int | None = None
    for mark in marks:
        if mark.idle:
            continue
        if mark.at_ms is None:
            return None
        least = mark.at_ms if least is None else min(least, mark.at_ms)
    return least


def _later(one: int | None, other: int | None) -> int | None:
    return max((at for at in (one, other) if at is not None), default=None)


# --- in a commit --------------------------------------------------------------------------------


def to_json(watermark: Watermark) -> dict[str, Any]:
    """As a commit has it: `marks` is `{topic: {"0": [at_ms, quiet_ms]}}`, sorted, with a 1 behind where it is
    idle; a time that nobody knows is null. About 30 bytes for each source partition."""
    marks: dict[str, dict[str, list[int | None]]] = {}
    for partition, mark in sorted(watermark.marks.items()):
        told = [mark.at_ms, mark.quiet_ms, *([1] if mark.idle else [])]
        marks.setdefault(partition.topic, {})[str(partition.number)] = told
    counts = {"late": watermark.late, "absurd": watermark.absurd}
    times = {"at_ms": watermark.at_ms, "before_ms": watermark.before_ms}
    return {"of": watermark.of, **times, **counts, "marks": marks}


def from_json(value: Any) -> Watermark:
    """The inverse. Raises `KeyError`, `ValueError`, `TypeError` or `AttributeError` for what is none."""
    if not isinstance(value["of"], str):
        raise ValueError(f"{value['of']!r} is not text")
    return Watermark(
        of=value["of"],
        at_ms=_time(value["at_ms"]),
        before_ms=_time(value["before_ms"]),
        late=_count(value["late"]),
        absurd=_count(value["absurd"]),
        marks={
            SourcePartition(topic, _count(int(number))): Mark(_time(at_ms), _count(quiet_ms), idle == [1])
            for topic, numbers in value["marks"].items()
            for number, (at_ms, quiet_ms, *idle) in numbers.items()
        },
    )


def _time(value: object) -> int | None:
    if value is None:
        return None
    if type(value) is not int or abs(value) > EVENT_TIME_MAX_MS:
        raise ValueError(f"{value!r} is no event time")
    return value


def _count(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is not a whole number from 0 on")
    return value

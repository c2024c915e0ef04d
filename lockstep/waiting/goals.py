"""What is waited for, and how much of it the table has. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from control_topic.messages import Offsets, SourcePartition
from control_topic.spelling import some
from lockstep.errors import ConfigError
from lockstep.output import readable_count
from lockstep.when import spelled_time
from table.watermark import Watermark

OFFSET_MAX = 2**63 - 1
LISTED_MAX = 100
"""Source partitions that are named one by one."""

_WANTED = re.compile(r"(?P<topic>[A-Za-z0-9._-]+):(?P<number>\d{1,9})=(?P<offset>\d{1,19})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToOffsets:
    """Each source partition's next offset is this one, or a later one. None: not known yet."""

    wanted: Offsets | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToLag:
    """So many offsets are missing to the topics' ends at most, of all source partitions together."""

    records_max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ToTime:
    """No earlier event time is to come: the table's watermark is this one, or a later one."""

    at_ms: int
    of: str = ""
    """By what it is declared, as `table.watermark.MarkRule`; empty: whatever the table's is."""


Goal: TypeAlias = ToOffsets | ToLag | ToTime


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """A source partition that has not come as far as is waited for."""

    partition: SourcePartition
    wanted: int
    committed: int | None
    """None: the table has no offset of it."""

    def __str__(self) -> str:
        if self.committed is None:
            return f"{self.partition} has no offset in the table, {self.wanted} is waited for"
        return f"{self.partition} is at {self.committed}, {self.wanted} is waited for"

    def to_json(self) -> dict[str, Any]:
        return {
            "topic": self.partition.topic,
            "partition": self.partition.number,
            "wanted": self.wanted,
            "committed": self.committed,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How much of it the table has."""

    reached: bool
    missing: tuple[Missing, ...] = ()
    lag: int | None = None
    """Of `ToLag`, where every source partition has an offset."""
    watermark: Watermark | None = None
    """Of `ToTime`: the table's, where it has one."""


def judge(
    goal: Goal, committed: Offsets | None, ends: Offsets | None, watermark: Watermark | None = None
) -> Verdict:
    """`committed`: None where the table holds no offsets of the pipeline. `ends`: None where not known.
    `watermark`: of the table's newest commit.
    """
    if isinstance(goal, ToTime):
        if watermark is not None and goal.of and watermark.of != goal.of:
            watermark = None  # another one, which is at its end
        passed = watermark is not None and watermark.at_ms is not None and watermark.at_ms >= goal.at_ms
        return Verdict(reached=passed, watermark=watermark)
    if isinstance(goal, ToOffsets):
        missing = _short_of(goal.wanted, committed) if goal.wanted is not None else ()
        return Verdict(reached=goal.wanted is not None and not missing, missing=missing)
    if ends is None:
        return Verdict(reached=False)
    missing = _short_of(ends, committed)
    if any(one.committed is None for one in missing):
        return Verdict(reached=False, missing=missing)
    lag = sum(one.wanted - (one.committed or 0) for one in missing)
    return Verdict(reached=lag <= goal.records_max, missing=missing, lag=lag)


def _short_of(wanted: Offsets, committed: Offsets | None) -> tuple[Missing, ...]:
    """What has no offset is short of any, 0 as well: nobody has begun to read it."""
    known = committed or {}
    return tuple(
        Missing(partition=one, wanted=offset, committed=known.get(one))
        for one, offset in sorted(wanted.items())
        if (has := known.get(one)) is None or has < offset
    )


def sentence(goal: Goal, verdict: Verdict) -> str:
    """What is missing, and where; empty where that is not known."""
    if isinstance(goal, ToTime):
        return _not_complete(verdict.watermark)
    if not verdict.missing:
        return ""
    where = some(verdict.missing, shown_max=3)
    if isinstance(goal, ToLag) and verdict.lag is not None:
        behind, most = readable_count(verdict.lag), readable_count(goal.records_max)
        return f"the table is {behind} records behind, {most} are waited for: {where}"
    return where


def _not_complete(watermark: Watermark | None) -> str:
    if watermark is None:
        return (
            "the table's newest commit has no watermark of the record.event_time that is declared, or none "
            "at all: declare one, and let the pipeline commit with it"
        )
    holder = watermark.holder
    waits = f"it waits for {holder}" if holder is not None else "every source partition is idle"
    if watermark.at_ms is None:
        return f"nobody knows yet how far the table is complete; {waits}"
    return f"the table is complete through {spelled_time(watermark.at_ms)}; {waits}"


def parse_wanted(texts: Sequence[str], topics: Collection[str]) -> dict[SourcePartition, int]:
    """`topic:partition=offset`, each. Raises `ConfigError` for anything else, and for others' topics."""
    wanted: dict[SourcePartition, int] = {}
    for text in texts:
        match = _WANTED.fullmatch(text)
        if match is None:
            raise ConfigError(f"--offset {text!r}: write TOPIC:P=OFFSET, as events:0=1200")
        partition, offset = SourcePartition(match["topic"], int(match["number"])), int(match["offset"])
        if partition.topic not in topics:
            raise ConfigError(
                f"--offset {text}: {partition.topic} is not one of the pipeline's source topics, which are "
                f"{some(sorted(topics))}"
            )
        if partition in wanted:
            raise ConfigError(f"--offset: {partition} is given twice")
        if offset > OFFSET_MAX:
            raise ConfigError(f"--offset {text}: no offset is greater than {OFFSET_MAX}")
        wanted[partition] = offset
    return wanted


def listed(missing: Iterable[Missing]) -> list[dict[str, Any]]:
    """The first of them, for programs."""
    return [one.to_json() for one, _ in zip(missing, range(LISTED_MAX), strict=False)]

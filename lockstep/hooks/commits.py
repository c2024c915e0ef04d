"""A commit as others are told of it, and where it stands among the pipeline's commits. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from control_topic.messages import Range
from lockstep.hooks.stretches import completed
from table import chain
from table.instants import Instant
from table.state import TableState
from table.watermark import Watermark

MESSAGE_VERSION = 1
"""Of the JSON below. Names are added under the same version, and never change their meaning."""
MESSAGE_BYTES_MAX = 900_000
"""Below what a topic takes that nobody has set up. A message that would be larger comes without ranges."""
STRETCHES_LISTED_MAX = 1_000
"""Stretches that one message lists, the newest. Its other fields say that there are more, and which."""
RANGE_BYTES = 256
COMMIT_BYTES = 1_024
"""What they take in memory, about."""


@dataclass(frozen=True, slots=True, order=True)
class Mark:
    """A commit's place in its pipeline's chain: the later commit has the greater mark (`table.chain`)."""

    epoch: int
    offsets: int
    """How far they have come in that epoch: their sum, each and one."""
    instant: str

    @classmethod
    def of(cls, state: TableState | None) -> Mark:
        """None: before the first commit of all."""
        return cls(*chain.place(state), state.instant) if state is not None else cls(0, 0, "")

    def to_json(self) -> dict[str, Any]:
        return {"epoch": self.epoch, "offsets": self.offsets, "instant": self.instant}

    @classmethod
    def from_json(cls, document: object) -> Mark:
        """Raises `ValueError` for what is none."""
        fields = document if isinstance(document, dict) else {}
        epoch, offsets, instant = (fields.get(name) for name in ("epoch", "offsets", "instant"))
        if type(epoch) is not int or type(offsets) is not int or not isinstance(instant, str):
            raise ValueError("not a commit's place")
        return cls(epoch, offsets, instant)


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """Times are Unix epoch."""

    mark: Mark
    run: str
    transaction: str
    kind: str
    """As `table.state.TableState` has it."""
    completed_ms: int
    rows: int
    """In the files that it wrote: of an upsert table, changes."""
    size_bytes: int
    files: int
    rejects: int
    ranges: tuple[Range, ...]
    event_time: str = ""
    """By what its watermark is declared; empty where it has none."""
    watermark_ms: int | None = None
    watermark_before_ms: int | None = None
    """That of the commit before it, or of the last commit before those that the timeline has lost."""

    @property
    def instant(self) -> str:
        return self.mark.instant

    @property
    def records(self) -> int:
        return sum(one.records for one in self.ranges)

    @property
    def held_bytes(self) -> int:
        """In memory, about."""
        return COMMIT_BYTES + RANGE_BYTES * len(self.ranges)


def commit_of(
    instant: Instant, state: TableState, *, completed_ms: int, before_lost: Watermark | None = None
) -> Commit:
    """Return a commit of ours as the timeline has it.

    `before_lost`: the watermark of the last commit before those that the timeline has lost. This commit then
    reports the stretches that the lost ones completed.
    """
    watermark = state.watermark
    return Commit(
        mark=Mark.of(state),
        run=state.run,
        transaction=state.transaction,
        kind=state.kind,
        completed_ms=completed_ms,
        rows=sum(file.rows for file in instant.files),
        size_bytes=sum(file.size_bytes for file in instant.files),
        files=len(instant.files),
        rejects=state.reject_count,
        ranges=state.ranges,
        event_time=watermark.of if watermark is not None else "",
        watermark_ms=watermark.at_ms if watermark is not None else None,
        watermark_before_ms=_before_ms(watermark, before_lost) if watermark is not None else None,
    )


def _before_ms(watermark: Watermark, before_lost: Watermark | None) -> int | None:
    before_ms = watermark.before_ms
    if before_lost is None or before_lost.of != watermark.of or before_lost.at_ms is None:
        return before_ms
    return before_lost.at_ms if before_ms is None else min(before_lost.at_ms, before_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableTold:
    """The table, as others are told of it."""

    path: str
    name: str
    kind: str
    """`hudi`."""
    mode: str
    stretch_ms: int = 0
    """Of its event time is told what is complete, in stretches of so long; 0: nothing."""


def message(commit: Commit, *, pipeline: str, table: TableTold) -> bytes:
    """The JSON of one commit. Of a commit of so many source partitions that it would be too large, `ranges`
    is null.
    """
    ranges = [
        {
            "topic": one.partition.topic,
            "partition": one.partition.number,
            "start": one.start,
            "next": one.next,
            "records": one.records,
        }
        for one in commit.ranges
    ]
    document: dict[str, Any] = {
        "version": MESSAGE_VERSION,
        "type": "commit",
        "pipeline": pipeline,
        "instant": commit.instant,
        "transaction": commit.transaction,
        "kind": commit.kind,
        "run": commit.run,
        "epoch": commit.mark.epoch,
        "table": {"path": table.path, "name": table.name, "format": table.kind, "mode": table.mode},
        "completed_ms": commit.completed_ms,
        "records": commit.records,
        "rows": commit.rows,
        "rejects": commit.rejects,
        "files": commit.files,
        "bytes": commit.size_bytes,
        "watermark": _watermark(commit, table.stretch_ms) if commit.event_time else None,
        "ranges_count": len(ranges),
        "ranges": ranges,
    }
    encoded = _encoded(document)
    return encoded if len(encoded) <= MESSAGE_BYTES_MAX else _encoded({**document, "ranges": None})


def _watermark(commit: Commit, stretch_ms: int) -> dict[str, Any]:
    """How far the table is complete by it, and which stretches are so since the commit before."""
    stretches = completed(commit.watermark_before_ms, commit.watermark_ms, stretch_ms)
    listed = stretches[-STRETCHES_LISTED_MAX:]
    return {
        "event_time": commit.event_time,
        "at_ms": commit.watermark_ms,
        "completed": [{"from_ms": one.from_ms, "through_ms": one.through_ms} for one in listed],
        "completed_count": len(stretches),
        "completed_shortened": len(listed) < len(stretches),
        "completed_from_ms": stretches[0].from_ms if stretches else None,
        "completed_through_ms": stretches[-1].through_ms if stretches else None,
    }


def _encoded(document: dict[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=True).encode("ascii")

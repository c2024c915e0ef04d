"""The table seen from outside, without a JVM: when commits landed, and what was left behind."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass

from confluent_kafka import Consumer, TopicPartition

from control_topic.messages import SourcePartition
from table.errors import TableError
from table.hudi.driver.opening import Opening
from table.hudi.files.base_file import is_ours, parse_file_name
from table.hudi.files.log_file import is_in_bucket, is_log_file, is_our_log_file
from table.hudi.layout import META_FOLDER
from table.hudi.reader.timeline import Instant, PendingInstant, Timeline
from table.store.paths import of_draft
from tests.place import Place

COMPLETED = re.compile(r"(\d{17})_(\d{17})\.(commit|deltacommit)")
"""Of inserts; of upserts, whose compactions are commits."""
COMMITS = ("commit", "deltacommit")
FINISHED_BY_THE_NEXT = ("clean",)
"""Actions whose pending instants nobody takes away: the next such instant begins with them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Landed:
    """A completed commit of ours with records. Times: Unix epoch, milliseconds.

    `requested_ms`: when its instant was opened; `landed_ms`: when its completed file was written.
    """

    instant: str
    requested_ms: int
    landed_ms: int
    records: int
    moved: frozenset[SourcePartition]


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftovers:
    """Paths below the table, and instants, that should not be there once everything is over."""

    files: tuple[str, ...]
    pending: tuple[str, ...]
    markers: tuple[str, ...]
    uploads: tuple[str, ...] = ()
    """Of files that were begun and not ended, which nobody sees, and which take room all the same."""

    @property
    def none(self) -> bool:
        return not (self.files or self.pending or self.markers or self.uploads)


def landed_since(place: Place, pipeline: str, moment_ms: int) -> list[Landed]:
    """Commits of ours with records that landed after the moment, oldest first; none without a table."""
    try:
        timeline = place.timeline()
        found = [
            _landed(place, timeline, one) for one in _after(timeline, moment_ms) if _is_data(one, pipeline)
        ]
    except TableError:
        return []  # not made yet
    return sorted((one for one in found if one.landed_ms > moment_ms), key=lambda one: one.landed_ms)


def _after(timeline: Timeline, moment_ms: int) -> Iterator[Instant]:
    """Hudi takes an instant's completion time before it writes the file: a second of margin."""
    for instant in timeline.completed():
        if timeline.time_ms(instant.completed) < moment_ms - 1_000:
            return
        yield instant


def _is_data(instant: Instant, pipeline: str) -> bool:
    state = instant.state
    return state is not None and state.pipeline == pipeline and any(r.records for r in state.ranges)


def _landed(place: Place, timeline: Timeline, instant: Instant) -> Landed:
    assert instant.state is not None
    landed_ms = place.appeared_ms(f"{instant.requested}_{instant.completed}.{instant.action}")
    if landed_ms is None:  # archived meanwhile
        landed_ms = timeline.time_ms(instant.completed)
    return Landed(
        instant=instant.requested,
        requested_ms=timeline.time_ms(instant.requested),
        landed_ms=landed_ms,
        records=sum(r.records for r in instant.state.ranges),
        moved=frozenset(r.partition for r in instant.state.ranges if r.records),
    )


def committed(place: Place, pipeline: str) -> dict[SourcePartition, int]:
    """The table's offsets; empty before there is a table."""
    try:
        state = place.timeline().newest(pipeline)
    except TableError:
        return {}
    return dict(state.offsets) if state is not None else {}


def log_ends(bootstrap_servers: str, topic: str, partitions: int) -> dict[SourcePartition, int]:
    """Where the source partitions' logs end."""
    kafka = {"bootstrap.servers": bootstrap_servers, "group.id": "faults-log-ends", "log_level": 0}
    consumer = Consumer(kafka)
    try:
        return {
            SourcePartition(topic, number): consumer.get_watermark_offsets(
                TopicPartition(topic, number), timeout=20, cached=False
            )[1]
            for number in range(partitions)
        }
    finally:
        consumer.close()


def leftovers(place: Place, pipeline: str) -> Leftovers:
    """What no completed commit accounts for. Files first: what is written meanwhile is then accounted for."""
    there = [path for path in _data_files(place) if _is_of_lockstep(_called(os.path.basename(path)))]
    timeline = place.timeline()
    pending = tuple(
        one.requested
        for one in timeline.pending()
        if one.action not in FINISHED_BY_THE_NEXT and _is_ours(place, one, pipeline)
    )
    named = _named(timeline)
    return Leftovers(
        files=tuple(sorted(path for path in there if path not in named)),
        pending=pending,
        markers=tuple(sorted(place.markers())),
        uploads=tuple(sorted(one.path for one in place.uploads())),
    )


def _is_ours(place: Place, one: PendingInstant, pipeline: str) -> bool:
    """Nobody knows whose a commit is that was only requested, but the pipeline, which notes its own."""
    if one.phase == "requested" and one.action in COMMITS:
        return Opening(place.store, pipeline).noted() == one.requested
    return one.owner.get("pipeline", pipeline) == pipeline


def unnamed_base_files(place: Place) -> list[str]:
    """Base files, anybody's, that no completed commit accounts for."""
    there = [path for path in _data_files(place) if parse_file_name(os.path.basename(path)) is not None]
    named = _named(place.timeline())
    return [path for path in there if path not in named]


def _named(timeline: Timeline) -> set[str]:
    return {file.path for instant in timeline.completed() for file in instant.files}


def _data_files(place: Place) -> Iterator[str]:
    for folder, names in place.store.walk(leaving_out=(META_FOLDER,)):
        for name in names:
            if parse_file_name(_called(name)) is not None or is_log_file(_called(name)):
                yield os.path.join(folder, name)


def _called(name: str) -> str:
    """What a draft is to be called, and any other file is."""
    return of_draft(name) or name


def _is_of_lockstep(name: str) -> bool:
    """Whether a driver or worker of Lockstep wrote it; of a bucket's base files whoever compacted."""
    compacted = is_in_bucket(name) and parse_file_name(name) is not None
    return is_ours(name) or compacted or is_our_log_file(name)


def wall_ms() -> int:
    return time.time_ns() // 1_000_000

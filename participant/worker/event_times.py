"""What a worker has seen of event times in the transaction that is open."""

from __future__ import annotations

from control_topic.messages import EventTimes, SourcePartition
from participant.records.event_time import BatchTimes


class SeenTimes:
    """`watermark_ms`: the table's when the transaction began; what is before it is late."""

    def __init__(self, watermark_ms: int | None = None) -> None:
        self._watermark_ms = watermark_ms
        self._seen: dict[SourcePartition, EventTimes] = {}

    def add(self, partition: SourcePartition, times: BatchTimes) -> None:
        """These rows go into the transaction."""
        before = self._seen.get(partition)
        greatest_ms, late, absurd = times.greatest_ms, times.late(self._watermark_ms), times.absurd
        if before is not None:
            known = [at for at in (before.greatest_ms, greatest_ms) if at is not None]
            greatest_ms, late, absurd = max(known, default=None), before.late + late, before.absurd + absurd
        if greatest_ms is not None or absurd:
            self._seen[partition] = EventTimes(
                partition=partition, greatest_ms=greatest_ms, late=late, absurd=absurd
            )

    def all(self) -> tuple[EventTimes, ...]:
        """By source partition, of each of which a row has an event time."""
        return tuple(self._seen[partition] for partition in sorted(self._seen))

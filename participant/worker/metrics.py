"""What a worker measures of itself. A metric is a line in `METRICS`, and is in the status at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from participant.core import Participant
from participant.source.reading import SourceThread
from participant.worker.plane import Plane
from participant.worker.resident import memory_max_bytes, resident_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What is measured. Read from any thread while theirs go on."""

    core: Participant
    plane: Plane
    source: SourceThread


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One of them."""

    name: str
    """As readers of the status find it, its unit last."""
    meaning: str
    """For people: docs/operations.md has it."""
    value: Callable[[Parts], float]


def _buffered_bytes(parts: Parts) -> int:
    return parts.plane.queued_bytes + sum(one.size_bytes for one in list(parts.core.owned.values()))


METRICS: tuple[Metric, ...] = (
    Metric(
        name="records",
        meaning="taken from the source since the worker's start",
        value=lambda parts: parts.plane.meters.records,
    ),
    Metric(
        name="bytes", meaning="the values of those records", value=lambda parts: parts.plane.meters.size_bytes
    ),
    Metric(
        name="buffered_bytes",
        meaning="held now: waiting to be decoded, and taken and not yet in a transaction",
        value=_buffered_bytes,
    ),
    Metric(
        name="memory_bytes",
        meaning="resident memory of the worker's process",
        value=lambda parts: resident_bytes(),
    ),
    Metric(
        name="memory_max_bytes",
        meaning="what it may have before the system ends it: its container's limit, or the machine's",
        value=lambda parts: memory_max_bytes(),
    ),
)


def measured(parts: Parts) -> dict[str, float]:
    """Every metric, now."""
    return {metric.name: metric.value(parts) for metric in METRICS}

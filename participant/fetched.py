"""What the source hands over."""

from __future__ import annotations

from dataclasses import dataclass

from control_topic.messages import Lost, SourcePartition
from participant.raw import RawBatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """Offsets `[start, next)` of one source partition; `raw` is None where the log has no record there.

    `size_bytes`: of the records' values.
    """

    partition: SourcePartition
    generation: int
    start: int
    next: int
    raw: RawBatch | None = None
    size_bytes: int = 0
    lost: tuple[Lost, ...] = ()

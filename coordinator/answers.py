"""What the coordinator is answered by whoever has the table. Pure: standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from control_topic.messages import Offsets, SourcePartition, Witness
from coordinator.events import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to a call."""

    result: Result
    reason: str = ""
    wait_ms: int = 0
    instant: str = ""
    committed: Offsets = field(default_factory=dict)
    """The table's offsets after it."""
    witnesses: tuple[Witness, ...] = ()
    """Begin and Offsets only: the last records that were read before those offsets."""
    watermark_ms: int | None = None
    """Likewise: the table's, None where it has none."""
    partitions: tuple[SourcePartition, ...] = ()
    """Recover only: every source partition."""
    epoch: int = 0
    """Survey only: the highest that the table or the service knows."""
    took_ms: Mapping[str, int] = field(default_factory=dict)
    """Commit only, a courtesy: how long its parts took (`control_topic.causes.COMMIT_PARTS`)."""

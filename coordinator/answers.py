"""What the coordinator is answered by whoever has the table. Pure: standard library only."""

from __future__ import annotations

from dataclasses import dataclass, field

from control_topic.messages import Offsets, SourcePartition
from coordinator.events import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to a call.

    `committed`: the table's offsets after it. `partitions`: Recover only, every source partition.
    `epoch`: Survey only, the highest that the table or the service knows.
    """

    result: Result
    reason: str = ""
    wait_ms: int = 0
    instant: str = ""
    committed: Offsets = field(default_factory=dict)
    partitions: tuple[SourcePartition, ...] = ()
    epoch: int = 0

"""Where the reading of a source partition stands, and what is said where it cannot go on."""

from __future__ import annotations

from dataclasses import dataclass, field

from confluent_kafka import KafkaError

from control_topic.messages import SourcePartition
from participant.source.look import Look
from participant.source.stalls import Standstill

SKIP = (
    "everything before it is committed. Where another replica is whole, let it lead and start again; else "
    "see where the damage ends (kafka-dump-log) and go on behind it with lockstep offsets --set"
)
UNPACKED = (
    "a compressed batch may be larger than receive.message.max.bytes once it is decompressed: raise "
    "memory.per_worker, of which that is a half, or set receive.message.max.bytes in [source.kafka], and "
    "start again. Only where that changes nothing the batch is damaged: "
)
OVERSIZED = (
    "a broker's answer is larger than the client takes ({why}), and with it every source partition of that "
    "broker waits: {places}. Raise memory.per_worker, of which receive.message.max.bytes is a half, or set "
    "that in [source.kafka], and start again; everything before it is committed, and nothing is damaged"
)
SILENT = (
    "everything before it is committed. Damage that the client does not name, or a very long stretch of "
    'aborted records (kafka-dump-log tells which): see "A log that cannot be read" in docs/operations.md '
    "before anything is skipped"
)
LOST_ITS_END = (
    "the log lost its end and goes on to {high} again ({why}): other records may have the offsets of those "
    'that were read, and would be skipped; see "A log that lost its end" in docs/operations.md'
)
ENDS_BEFORE = (
    "what can be read of its log ends at offset {high}: replicas that have more of it are away, or it lost "
    'its end; it is waited for, see "A log that lost its end" in docs/operations.md'
)
OUT_OF_RANGE = frozenset({KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE})
"""What a client says where the log does not have the offset that it was told to begin at."""


@dataclass(slots=True, kw_only=True)
class Position:
    """Where the reading of a source partition stands."""

    generation: int
    next: int
    look: Look | None = None
    """What comes before anything is read."""
    at_end: bool = False
    stuck: bool = False
    held: bool = False
    """Whether nothing more of it is wanted, since what came cannot be decoded yet."""
    still: Standstill = field(default_factory=Standstill)

    @property
    def live(self) -> bool:
        return not self.at_end and not self.stuck


def at(partition: SourcePartition, position: Position) -> dict[str, object]:
    """What a log line is about."""
    return {"source_partition": partition, "offset": position.next}

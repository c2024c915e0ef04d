"""What a plane has of each source partition, and what it has done."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from control_topic.messages import Witness
from participant.records.event_time import BatchTimes
from participant.records.rejects import HeldRejects
from table.port import Shaped


@dataclass(slots=True, kw_only=True)
class Chunk:
    next: int
    shaped: Shaped | None
    held: HeldRejects | None = None
    witness: Witness | None = None
    """Its last record."""
    times: BatchTimes | None = None
    """Of its rows, where an event time is declared."""
    size_bytes: int = 0


@dataclass(slots=True)
class BufferedBytes:
    """The size of the chunks of all source partitions of a plane."""

    total: int = 0


@dataclass(slots=True, kw_only=True)
class PartitionBuffer:
    """What is buffered of one source partition, in offset order."""

    generation: int
    chunks: deque[Chunk] = field(default_factory=deque)
    blocked: bool = False
    buffered: BufferedBytes = field(default_factory=BufferedBytes)

    def append(self, chunk: Chunk) -> None:
        """Add the next chunk."""
        self.chunks.append(chunk)
        self.buffered.total += chunk.size_bytes

    def popleft(self) -> Chunk:
        """Take the first chunk."""
        chunk = self.chunks.popleft()
        self.buffered.total -= chunk.size_bytes
        return chunk

    def clear(self) -> None:
        """Drop all chunks."""
        while self.chunks:
            self.popleft()


@dataclass(slots=True, kw_only=True)
class Meters:
    """What this worker has done, for reports. Written by the plane's thread, read by anyone."""

    records: int = 0
    size_bytes: int = 0
    seconds: dict[str, float] = field(
        default_factory=lambda: dict.fromkeys(
            ("decode", "derive", "encode", "upload", "dead_letters", "wait"), 0.0
        )
    )
    """How the thread has spent its time; `wait` is for something to do."""

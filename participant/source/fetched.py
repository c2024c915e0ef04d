"""What the source hands over."""

from __future__ import annotations

from dataclasses import dataclass, replace

from control_topic.messages import Lost, SourcePartition
from participant.records.raw import RawBatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """Offsets `[start, next)` of one source partition; `raw` is None where the log has no record there."""

    partition: SourcePartition
    generation: int
    start: int
    next: int
    raw: RawBatch | None = None
    lost: tuple[Lost, ...] = ()

    @property
    def size_bytes(self) -> int:
        """Of the records' values, and of the keys and headers that came with them."""
        if self.raw is None:
            return 0
        beside = sum(c.nbytes for c in (self.raw.record_keys, self.raw.headers) if c is not None)
        return self.raw.values.size_bytes + sum(map(len, filter(None, self.raw.keys.values()))) + beside

    @property
    def halves(self) -> tuple[Fetched, Fetched]:
        """The same in two parts, each with a half of the records. Of two records or more."""
        assert self.raw is not None
        first, second = self.raw.halves
        middle = int(second.offsets[0])
        return replace(self, next=middle, raw=first), replace(self, start=middle, raw=second, lost=())

"""The transaction that a participant takes part in. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from control_topic.messages import Range, Reject, SourcePartition
from participant.rejects_max import RejectsMax, too_many


@dataclass(slots=True, kw_only=True)
class Work:
    """From START to what is decided."""

    id: str
    instant: str
    partitions: set[SourcePartition]
    """Ours, as START lists them and less what was revoked since."""
    writers: int
    """How many take part, ourselves included."""
    records_max: int = 0
    """What we may take into it; 0: all."""
    opened_ms: int = 0
    flush: int = 0
    """The call that closes its files; 0 before END."""
    told_ms: int = 0
    """When was said last how far its files are."""
    records: int = 0
    size_bytes: int = 0
    rejects: dict[SourcePartition, int] = field(default_factory=dict)
    """How many, by source partition."""
    first_rejects: dict[SourcePartition, Reject] = field(default_factory=dict)
    reject_bytes: int = 0
    """What they hold of memory until they are in the dead-letter topic."""
    ranges: tuple[Range, ...] = ()
    """What is reported, fixed by END."""
    end_asked: str = ""
    """Why its end was asked for last."""
    end_asked_ms: int = 0

    def add_rejects(self, partition: SourcePartition, count: int, size_bytes: int, first: Reject) -> None:
        self.rejects[partition] = self.rejects.get(partition, 0) + count
        self.first_rejects.setdefault(partition, first)
        self.reject_bytes += size_bytes

    def over_limit(self, limit: RejectsMax, *, complete: bool) -> str:
        """The sentence for the operator where there are more rejects than allowed, else nothing."""
        if not limit.exceeded(sum(self.rejects.values()), self.records, complete=complete):
            return ""
        return too_many(limit, self.rejects, self.first_rejects, self.records)

"""One transaction as the coordinator sees it: who owes what, and who has answered. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from control_topic.messages import Offsets, Range, SourcePartition, WriteStatus


@dataclass(slots=True, kw_only=True)
class Transaction:
    """`writers`: as START lists them. `expected`: the source partitions still owed, a set, never a count."""

    id: str
    instant: str = ""
    committed: Offsets = field(default_factory=dict)
    writers: Mapping[SourcePartition, str] = field(default_factory=dict)
    expected: set[SourcePartition] = field(default_factory=set)
    statuses: dict[str, WriteStatus] = field(default_factory=dict)
    at_end: set[str] = field(default_factory=set)
    started_ms: int = 0
    ended_ms: int = 0
    repeated_ms: int = 0

    def owed_by(self, incarnation: str) -> set[SourcePartition]:
        """The expected source partitions that START gave to this incarnation."""
        return {p for p in self.expected if self.writers[p] == incarnation}

    def incarnations(self) -> set[str]:
        """Everybody who owes a WRITE_STATUS, whether or not it is in."""
        return {self.writers[p] for p in self.expected}

    def missing(self) -> set[str]:
        """Everybody whose WRITE_STATUS is still awaited."""
        return self.incarnations() - self.statuses.keys()

    def refusal(self, incarnation: str, status: WriteStatus) -> str:
        """Why this WRITE_STATUS cannot be taken, or an empty string. It is taken or refused whole."""
        if status.transaction != self.id:
            return "another transaction"
        owed = self.owed_by(incarnation)
        if not owed:
            return "sender not listed"
        partitions = [r.partition for r in status.ranges]
        if len(set(partitions)) != len(partitions) or set(partitions) != owed:
            return "other source partitions than listed"
        if any(r.start != self.committed.get(r.partition, 0) for r in status.ranges):
            return "a range does not start at the committed offset"
        return ""

    def ranges(self) -> tuple[Range, ...]:
        """All ranges received, ordered by source partition."""
        return tuple(sorted((r for s in self.statuses.values() for r in s.ranges), key=lambda r: r.partition))

    def is_empty(self) -> bool:
        """Whether committing it would change nothing at all."""
        return all(r.start == r.next for r in self.ranges()) and not any(
            s.files for s in self.statuses.values()
        )

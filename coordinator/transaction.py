"""One transaction as the coordinator sees it: who owes what, and who has answered. Pure.

What is asked for every message is kept by sender, so that a transaction of 10,000 source partitions costs a
few look-ups for each of its messages, and not a walk through all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, KeysView, Mapping, Set
from dataclasses import dataclass, field

from control_topic.messages import Offsets, Range, SourcePartition, Witnesses, WriteProgress, WriteStatus

NONE: frozenset[SourcePartition] = frozenset()


@dataclass(slots=True, kw_only=True)
class Transaction:
    id: str
    instant: str = ""
    committed: Offsets = field(default_factory=dict)
    witnesses: Witnesses = field(default_factory=dict)
    watermark_ms: int | None = None
    """The table's when it began."""
    writers: Mapping[SourcePartition, str] = field(default_factory=dict)
    """As START lists them."""
    takers: Mapping[str, str] = field(default_factory=dict)
    """Likewise: where each writer takes rows of the others; empty where nobody hands any over."""
    owed: dict[str, set[SourcePartition]] = field(default_factory=dict)
    """By incarnation, the source partitions it owes a WRITE_STATUS for, whether or not that is in; sets,
    never counts."""
    statuses: dict[str, WriteStatus] = field(default_factory=dict)
    progress: dict[str, tuple[WriteProgress, int]] = field(default_factory=dict)
    """What a writer last said of its files, and when."""
    records_max: int = 0
    """What START allows, 0 for no limit."""
    at_end: set[str] = field(default_factory=set)
    started_ms: int = 0
    due_ms: int = 0
    ended_ms: int = 0
    end_reason: str = ""
    stretch: int = 0
    """The end of the stretch that it may not span, by the wall clock."""
    makes_good: bool = False
    """A scheduled time was owed when it was ended."""
    settles: int = 0
    """The order to commit that had been heard of when it was ended; 0: there was none."""
    repeated_ms: int = 0
    _awaited: set[str] = field(default_factory=set)

    def expect(self, writers: Mapping[SourcePartition, str]) -> None:
        """These, from now on, write these source partitions and owe them."""
        self.writers = writers
        self.owed = {}
        for partition, who in writers.items():
            self.owed.setdefault(who, set()).add(partition)
        self._awaited = set(self.owed) - self.statuses.keys()

    def excuse(self, partitions: Iterable[SourcePartition]) -> None:
        """They are owed no more."""
        for partition in partitions:
            who = self.writers[partition]
            owed = self.owed.get(who, set())
            owed.discard(partition)
            if not owed:
                self.owed.pop(who, None)
                self._awaited.discard(who)

    def accept(self, who: str, status: WriteStatus) -> None:
        """A WRITE_STATUS that is not refused."""
        self.statuses[who] = status
        self._awaited.discard(who)

    def advance(self, who: str, said: WriteProgress, now_ms: int) -> bool:
        """How far a writer is with its files. False where nobody waits for it, or it is no step further."""
        before = self.progress.get(who)
        if who not in self._awaited or (before is not None and said.steps <= before[0].steps):
            return False
        self.progress[who] = (said, now_ms)
        return True

    def silent(self, now_ms: int, for_ms: int) -> list[str]:
        """Those awaited who have come no further for so long since the transaction was ended."""
        heard = {who: at_ms for who, (_, at_ms) in self.progress.items()}
        return sorted(who for who in self._awaited if now_ms - heard.get(who, self.ended_ms) >= for_ms)

    def records(self) -> int:
        """How many it holds, as far as its writers have said so."""
        reported = sum(r.records for status in self.statuses.values() for r in status.ranges)
        return reported + sum(
            said.records for who, (said, _) in self.progress.items() if who not in self.statuses
        )

    @property
    def expected(self) -> set[SourcePartition]:
        """Every source partition that is owed."""
        return {partition for owed in self.owed.values() for partition in owed}

    def owed_by(self, incarnation: str) -> Set[SourcePartition]:
        """The expected source partitions that START gave to this incarnation."""
        return self.owed.get(incarnation, NONE)

    def owing(self, partition: SourcePartition) -> str:
        """Who owes this source partition and has not answered; empty where nobody does."""
        who = self.writers.get(partition, "")
        return who if who in self._awaited and partition in self.owed[who] else ""

    def incarnations(self) -> KeysView[str]:
        """Everybody who owes a WRITE_STATUS, whether or not it is in."""
        return self.owed.keys()

    def missing(self) -> Set[str]:
        """Everybody whose WRITE_STATUS is still awaited."""
        return self._awaited

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

    def read_before(self) -> Offsets:
        """Up to where its writers say that they had read what they reported, before they went back."""
        said: dict[SourcePartition, int] = {}
        for status in self.statuses.values():
            said |= status.behind
        return {one.partition: said[one.partition] for one in self.ranges() if one.partition in said}

    def took_all(self) -> bool:
        """Whether it is certain that no writer left records to the next one for the sake of a limit.

        A writer divides its share among its source partitions, and what one does not need is another's.
        """
        if not self.records_max:
            return True
        share = -(-self.records_max // max(1, len(set(self.writers.values()))))
        return all(
            one.records < -(-share // len(status.ranges))
            for status in self.statuses.values()
            for one in status.ranges
        )

    def came_to_nothing(self) -> bool:
        """Whether everybody has answered, and committing it would change nothing: an abort loses nothing."""
        return not self._awaited and self.is_empty()

    def is_empty(self) -> bool:
        """Whether committing it would change nothing at all."""
        return not any(
            status.files or any(r.start != r.next for r in status.ranges) for status in self.statuses.values()
        )

"""Who is there: who owns what, who holds records, who died, who has yet to hear what was decided. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from control_topic.messages import AbortCommit, AckCommit, SourcePartition
from coordinator.owners import Owners
from coordinator.transaction import Transaction

DEAD_MAX = 1_000
"""Dead incarnations remembered; the oldest are forgotten first."""


class Members:
    """The workers, as far as they and the driver have told."""

    def __init__(self) -> None:
        self.owners = Owners()
        self.vacated_ms: int | None = None
        """When a source partition lost its owner last."""
        self.ready: set[str] = set()
        """Incarnations that hold records and are in no transaction."""
        self.ready_ms = 0
        """When the first of them said so."""
        self.takes_at: dict[str, str] = {}
        """Incarnation -> where it takes rows that others hand over, of those who own something."""
        self.dead: dict[str, str] = {}
        """Incarnation -> of what it died."""
        self.decisions: dict[str, AckCommit | AbortCommit] = {}
        """Incarnation -> what was decided last, until it is heard of again."""

    def joined(
        self, who: str, partitions: Iterable[SourcePartition], now_ms: int, takes_at: str = ""
    ) -> None:
        """It owns these and no others."""
        self._vacated(self.owners.assign(who, partitions), now_ms)
        if takes_at:
            present = self.owners.incarnations()
            self.takes_at = {one: at for one, at in self.takes_at.items() if one in present}
            self.takes_at[who] = takes_at

    def left(self, who: str, partitions: Iterable[SourcePartition], now_ms: int) -> None:
        """It owns these no more."""
        self._vacated(self.owners.release(who, partitions), now_ms)
        if who not in self.owners.incarnations():
            self.ready.discard(who)

    def is_ready(self, who: str, now_ms: int) -> None:
        """It holds records, and so has heard what became of its last transaction."""
        if not self.ready:
            self.ready_ms = now_ms
        self.ready.add(who)
        self.decisions.pop(who, None)

    def died(self, who: str, reason: str, now_ms: int) -> None:
        while len(self.dead) >= DEAD_MAX:
            del self.dead[next(iter(self.dead))]
        self.dead[who] = reason
        self.ready.discard(who)
        self._vacated(self.owners.remove(who), now_ms)

    def _vacated(self, vacated: bool, now_ms: int) -> None:
        if vacated:
            self.vacated_ms = now_ms

    def waiting_since_ms(self) -> int:
        """Since when those who are ready wait for owners of every source partition."""
        return min(at_ms for at_ms in (self.ready_ms, self.vacated_ms) if at_ms is not None)

    def decided(self, transaction: Transaction, decision: AckCommit | AbortCommit) -> None:
        """Keep it for each writer until it is heard of again: words get lost."""
        present = self.owners.incarnations()
        self.decisions = {who: earlier for who, earlier in self.decisions.items() if who in present}
        self.decisions.update(dict.fromkeys(transaction.writers.values(), decision))

    def unheard(self, who: str) -> AckCommit | AbortCommit | None:
        """What was decided about its last transaction, where it may not have heard it."""
        return self.decisions.get(who)

"""Workers that ended against their will, as far as others must know. Pure: standard library only."""

from __future__ import annotations


class Fallen:
    """`kept`: so many at most; `kept_ms`: no longer than that."""

    def __init__(self, *, kept: int, kept_ms: int) -> None:
        self._kept = kept
        self._kept_ms = kept_ms
        self._dead: dict[str, int] = {}
        self._died_of: dict[str, str] = {}
        self._fenced: dict[str, None] = {}

    def died(self, now_ms: int, incarnation: str, reason: str) -> None:
        """Its Spark task ended."""
        self._dead.pop(incarnation, None)
        self._dead[incarnation] = now_ms
        self._died_of[incarnation] = reason
        while len(self._dead) > self._kept:
            self._forget_oldest()
        self._fenced.pop(incarnation, None)

    def dead(self, now_ms: int) -> tuple[str, ...]:
        """Incarnations known dead, oldest first."""
        while self._dead and next(iter(self._dead.values())) <= now_ms - self._kept_ms:
            self._forget_oldest()
        return tuple(self._dead)

    def died_of(self) -> dict[str, str]:
        """By incarnation, of those that are remembered."""
        return dict(self._died_of)

    def fenced(self, incarnation: str) -> None:
        """Kafka gave its group membership to somebody else."""
        if len(self._fenced) < self._kept:
            self._fenced[incarnation] = None

    def fenced_ones(self) -> tuple[str, ...]:
        """Those of them that are not known dead."""
        return tuple(self._fenced)

    def _forget_oldest(self) -> None:
        oldest = next(iter(self._dead))
        del self._dead[oldest], self._died_of[oldest]

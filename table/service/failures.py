"""What failed since the last commit. Pure: standard library only."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

REASONS_KEPT = 3


@dataclass(slots=True)
class Failures:
    """Failures since the last commit."""

    pipeline: int = 0
    last_pipeline_at_ms: int = 0
    environment: int = 0
    outage_ms: int = 0
    budget_ms: int = 0
    """More than usual, where it is known that all will pass."""
    last_outage_at_ms: int | None = None
    begin_not_before_ms: int = 0
    reasons: deque[str] = field(default_factory=lambda: deque(maxlen=REASONS_KEPT))
    deaths: dict[str, int] = field(default_factory=dict)

    def died(self, reason: str) -> None:
        """A worker's task ended of this; the newest `REASONS_KEPT` reasons are kept."""
        self.deaths[reason] = self.deaths.pop(reason, 0) + 1
        while len(self.deaths) > REASONS_KEPT:
            del self.deaths[next(iter(self.deaths))]

    def death(self, reason: str) -> str:
        """One of `deaths`, and how often."""
        times = self.deaths[reason]
        return f"{reason.rstrip('. ')} ({times:,} times)" if times > 1 else reason.rstrip(". ")

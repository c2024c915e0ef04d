"""How far a time in a record may be from the record's own timestamp in Kafka."""

from __future__ import annotations

from dataclasses import dataclass

LATE = "late"
"""The table partition of times beyond."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """0: as far as it likes. Nobody's clock is asked, so that a redo decides the same."""

    max_age_ms: int = 0
    max_ahead_ms: int = 0
    set_aside: bool = False
    """Whether rows beyond are in the table partition `LATE`, and no rejects."""


ANY_TIME = Bounds()

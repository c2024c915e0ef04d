"""What an operator may order of a run while it goes on, in words that never change. Pure.

The driver keeps the order of orders, and tells every worker with its report what they amount to (`Controls`).
On the control topic stands who ordered what, for people: nobody acts on that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

SET = "set"
COMMIT = "commit"
PAUSE = "pause"
RESUME = "resume"
STOP = "stop"

ACTIONS: Mapping[str, str] = {
    SET: "other settings, from the next transaction on, until the run ends",
    COMMIT: "the open transaction ends now, and all that the workers hold is committed",
    PAUSE: "what is open is committed, and no transaction begins until the run is resumed",
    RESUME: "a paused run goes on",
    STOP: "what is open is committed, and the run ends",
}

WHO_CHARS_MAX = 200
WHY_CHARS_MAX = 1_000

SETTINGS: Mapping[str, str] = {
    "interval_ms": "transaction.interval",
    "write_timeout_ms": "transaction.write_timeout",
    "max_records": "transaction.max_records",
    "max_bytes": "transaction.max_bytes",
    "schedule": "transaction.schedule",
    "align_ms": "transaction.align",
}
"""What may be set, and what the configuration calls it."""

TEXTS = frozenset({"schedule"})
"""Those that are no number in base units."""

TEXT_CHARS_MAX = 200
"""Of one of them: as many as `coordinator.schedule` reads."""

Setting = int | str
"""The value of one of `SETTINGS`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """The fields of `SETTINGS`, as the configuration has them; a limit of 0 is none, and so is an empty
    schedule, an alignment of 0. None: what the configuration says."""

    interval_ms: int
    write_timeout_ms: int
    max_records: int = 0
    max_bytes: int = 0
    schedule: str | None = None
    align_ms: int | None = None

    def known(self) -> dict[str, Setting]:
        """By field, what is not left to the configuration."""
        return {field: value for field, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Controls:
    """What all orders amount to. Every order has a number, the first 1."""

    number: int = 0
    """Of the newest: what has a higher one counts."""
    commit: int = 0
    """Of the newest order to commit that is not done; 0: there is none."""
    pause: int = 0
    """Of the order that paused the run; 0: it is not paused."""
    tuning: Tuning | None = None
    """In force; None: what the configuration says."""

"""The kinds of values that say how long table partitions live."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, PlainSerializer

from lockstep.config.problems import shown
from lockstep.config.units import format_duration, parse_duration_ms
from table.retention import ages_of

DAY_MS = 86_400_000
RETENTION_MS = (3_600_000, 36_500 * DAY_MS)
"""At least and at most."""


def _retention(value: object) -> int:
    """0 keeps for ever, and needs no unit."""
    if value in (0, "0", "") and not isinstance(value, bool):
        return 0
    days = re.fullmatch(r"\s*(\d{1,5})\s*d\s*", value) if isinstance(value, str) else None
    retention_ms = int(days[1]) * DAY_MS if days else parse_duration_ms(value)
    if retention_ms and not RETENTION_MS[0] <= retention_ms <= RETENTION_MS[1]:
        raise ValueError(f"{shown(value)} is out of bounds: at least 1h, at most 36500d")
    return retention_ms


def _spelled(retention_ms: int) -> str:
    if retention_ms and retention_ms % DAY_MS == 0:
        return f"{retention_ms // DAY_MS}d"
    return format_duration(retention_ms)


def _pattern(value: str) -> str:
    if value:
        ages_of(value)
    return value


RetentionMs = Annotated[int, BeforeValidator(_retention), PlainSerializer(_spelled)]
RetentionPattern = Annotated[str, AfterValidator(_pattern)]

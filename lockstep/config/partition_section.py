"""The section of the configuration about times that are too far away to be laid out by."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, PlainSerializer

from lockstep.config.sections import Section
from lockstep.config.units import format_duration, parse_duration_ms

FAR_MS = 366 * 100 * 24 * 3_600_000
"""A hundred years."""


def _far(value: object) -> int:
    """0 means no bound, and needs no unit."""
    if value in (0, "0") and not isinstance(value, bool):
        return 0
    found = parse_duration_ms(value)
    if found > FAR_MS:
        raise ValueError(f"{value} is out of bounds: at most a hundred years")
    return found


def _spelled(value: int) -> int | str:
    return format_duration(value) if value else 0


FarMs = Annotated[int, BeforeValidator(_far), PlainSerializer(_spelled)]


class PartitionSection(Section):
    """Late and absurd times, where `table.partition_by` has a function of a time that records say."""

    max_age_ms: FarMs = Field(
        default=0,
        alias="max_age",
        description=(
            "How far a time that partitions the table may lie before its record's timestamp in Kafka. 0: as "
            "far as it likes."
        ),
        examples=["720h"],
    )
    max_ahead_ms: FarMs = Field(
        default=0,
        alias="max_ahead",
        description="How far it may lie after that. 0: as far as it likes.",
        examples=["24h"],
    )
    beyond: Literal["reject", "late"] = Field(
        default="reject",
        description=(
            "What becomes of a record whose time is further away: `reject`, as `record.on_error` says; "
            "`late`, it is a row in the table partition `late`."
        ),
    )

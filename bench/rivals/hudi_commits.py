"""What a Hudi table's timeline says about when its rows became visible."""

from __future__ import annotations

from pathlib import Path

from bench.figures import Commit
from table.errors import Refused
from table.hudi.timeline import METADATA_ACTIONS, Timeline


def commits(table: Path) -> list[Commit]:
    """Every commit that brought rows, oldest first, by its completion time."""
    timeline = Timeline(table)
    found = [
        Commit(
            at_ms=timeline.time_ms(instant.completed),
            rows=sum(file.rows for file in instant.files),
            files=len(instant.files),
        )
        for instant in timeline.completed()
        if instant.action in METADATA_ACTIONS
    ]
    return sorted((one for one in found if one.rows), key=lambda one: one.at_ms)


def completions_ms(table: Path) -> dict[str, int]:
    """When each commit was completed (Unix epoch), by its requested time, which its rows carry."""
    timeline = Timeline(table)
    return {
        instant.requested: timeline.time_ms(instant.completed)
        for instant in timeline.completed()
        if instant.action in METADATA_ACTIONS
    }


def count(table: Path) -> int:
    """How many commits brought rows so far; 0 before there is a table."""
    try:
        return len(commits(table))
    except Refused:
        return 0

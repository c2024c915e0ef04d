"""What a Hudi table's timeline says about when its rows became visible.

`table`: a path or an address; `storage`: how its store is reached, where that has to be told.
"""

from __future__ import annotations

import os

from bench.figures import Commit
from table.errors import Refused
from table.hudi.reader.archive import METADATA_ACTIONS
from table.hudi.reader.timeline import Instant, Timeline
from table.store.settings import StoreSettings

Table = str | os.PathLike[str]

COMPACTION, COMPACT = "compaction", "COMPACT"
"""The action of one that is pending, and the operation of one that is complete."""
REWRITES = frozenset({COMPACT, "CLUSTER"})
"""Operations that only put elsewhere what others brought."""


def commits(table: Table, storage: StoreSettings | None = None) -> list[Commit]:
    """Every commit that brought rows, oldest first, by its completion time; rewrites bring none."""
    timeline = Timeline(table, storage)
    found = [
        Commit(
            at_ms=timeline.time_ms(instant.completed),
            rows=rows(instant),
            files=len(instant.files),
        )
        for instant in timeline.completed()
        if instant.action in METADATA_ACTIONS and instant.operation.upper() not in REWRITES
    ]
    return sorted((one for one in found if one.rows), key=lambda one: one.at_ms)


def rows(instant: Instant) -> int:
    """What a commit brought: the rows of its files, or of Lockstep's upserts the records of its ranges.

    A commit of upserts writes a row once that several of its records change. Nobody else's says how many
    records those were.
    """
    if instant.action == "deltacommit" and instant.state is not None:
        return sum(one.records for one in instant.state.ranges)
    return sum(file.rows for file in instant.files)


def compactions(table: Table, storage: StoreSettings | None = None) -> list[tuple[int, int | None]]:
    """When each compaction was planned and completed (Unix epoch, ms), oldest first; None: it is not."""
    timeline = Timeline(table, storage)
    done = [
        (timeline.time_ms(one.requested), timeline.time_ms(one.completed))
        for one in timeline.completed()
        if one.operation.upper() == COMPACT
    ]
    pending = [
        (timeline.time_ms(one.requested), None) for one in timeline.pending() if one.action == COMPACTION
    ]
    return sorted([*done, *pending], key=lambda one: one[0])


def completions_ms(table: Table, storage: StoreSettings | None = None) -> dict[str, int]:
    """When each commit was completed (Unix epoch), by its requested time, which its rows carry."""
    timeline = Timeline(table, storage)
    return {
        instant.requested: timeline.time_ms(instant.completed)
        for instant in timeline.completed()
        if instant.action in METADATA_ACTIONS
    }


def count(table: Table, storage: StoreSettings | None = None) -> int:
    """How many commits brought rows so far; 0 before there is a table."""
    try:
        return len(commits(table, storage))
    except Refused:
        return 0

"""What the page says of a table's files and columns. Pure.

Names and types are whatever somebody wrote: in one line each, and cut.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from control_topic.spelling import short_line
from table.census import Census, ColumnChange

COLUMNS_SHOWN_MAX = 200
CHANGES_SHOWN_MAX = 20
COLUMNS_OF_A_CHANGE_MAX = 10
TYPE_LENGTH_MAX = 160
NAME_LENGTH_MAX = 120
PATH_LENGTH_MAX = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """`at_ms`: when that was; `checked_ms`: nothing had been committed until then."""

    census: Census
    at_ms: int
    checked_ms: int

    def shifted(self, by_ms: int) -> Counted:
        """The wall clock was set by so much."""
        return replace(self, at_ms=self.at_ms + by_ms, checked_ms=self.checked_ms + by_ms)


def files_entry(counted: Counted | None) -> dict[str, Any] | None:
    """None where nothing was counted yet."""
    if counted is None:
        return None
    files = counted.census.files
    return {
        "counted_ms": counted.at_ms,
        "checked_ms": counted.checked_ms,
        "files": files.files,
        "bytes": files.size_bytes,
        "small_files": files.small_files,
        "small_below_bytes": files.small_below_bytes,
        "log_files": files.log_files,
        "log_bytes": files.log_bytes,
        "at_least": not files.is_whole,
        "table_partitions": files.table_partitions,
        "worst": [
            {
                "path": _cut(one.path, PATH_LENGTH_MAX),
                "files": one.files,
                "small_files": one.small_files,
                "bytes": one.size_bytes,
            }
            for one in files.worst
        ],
    }


def schema_entry(counted: Counted | None) -> dict[str, Any] | None:
    """None where no schema was read yet."""
    schema = counted.census.schema if counted is not None else None
    if schema is None or not schema.columns:
        return None
    return {
        "columns": [
            {
                "name": _cut(one.name, NAME_LENGTH_MAX),
                "type": _cut(one.kind, TYPE_LENGTH_MAX),
                "nullable": one.nullable,
            }
            for one in schema.columns[:COLUMNS_SHOWN_MAX]
        ],
        "columns_total": len(schema.columns),
        "changes": [
            {
                "instant": one.instant,
                "completed_ms": one.completed_ms,
                "columns": [_change(column) for column in one.changes[:COLUMNS_OF_A_CHANGE_MAX]],
                "columns_total": len(one.changes),
            }
            for one in schema.changes[:CHANGES_SHOWN_MAX]
        ],
        "changes_total": len(schema.changes),
        "since_instant": schema.since or None,
        "since_ms": schema.since_ms,
    }


def _change(one: ColumnChange) -> dict[str, Any]:
    """`was` is null of one that is new, `now` of one that is gone."""
    return {
        "name": _cut(one.name, NAME_LENGTH_MAX),
        "was": _cut(one.was, TYPE_LENGTH_MAX) or None,
        "now": _cut(one.now, TYPE_LENGTH_MAX) or None,
    }


def _cut(text: str, length_max: int) -> str:
    """Before it is spelled out: a name may be of any length."""
    line = short_line(text, length_max + 1)
    return line if len(line) <= length_max else f"{line[: length_max - 1]}…"

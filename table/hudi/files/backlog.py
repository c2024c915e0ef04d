"""What waits to be encoded, by where it is to go, and what of it is due."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import pyarrow as pa

Place = TypeVar("Place", bound=Hashable)

COLUMN_BYTES = 860
"""What a column of a table takes beyond its buffers, measured: of tables of 50 rows it is more than half."""
SMALL_BYTES = 64 * 1024
SMALL_TABLES = 8
"""So many small tables that wait for one place are made one: a batch for 1,000 places brings no others."""


@dataclass(slots=True)
class Waiting:
    """Tables that wait for one place."""

    rows: list[pa.Table] = field(default_factory=list)
    deletes: list[pa.Table] = field(default_factory=list)
    """Those of them that are not rows."""
    small: int = 0
    """How many of the last `rows` are small."""
    count: int = 0
    size_bytes: int = 0


class Backlog(Generic[Place]):
    """A place's tables are due when they have `count_max` rows or take `bytes_max` bytes of memory."""

    def __init__(self, *, count_max: int, bytes_max: int) -> None:
        self._count_max = count_max
        self._bytes_max = bytes_max
        self._waiting: dict[Place, Waiting] = {}
        self.size_bytes = 0
        """Memory held by all of it."""

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, place: Place, table: pa.Table, *, deletes: bool = False) -> bool:
        """Let a table wait; whether the place is due now."""
        waiting = self._waiting.setdefault(place, Waiting())
        grown_bytes = _memory_bytes(table)
        waiting.count += table.num_rows
        if deletes:
            waiting.deletes.append(table)
        else:
            waiting.rows.append(table)
            waiting.small = waiting.small + 1 if grown_bytes < SMALL_BYTES else 0
            if waiting.small == SMALL_TABLES:
                grown_bytes += _merge_small(waiting)
        waiting.size_bytes += grown_bytes
        self.size_bytes += grown_bytes
        return waiting.count >= self._count_max or waiting.size_bytes >= self._bytes_max

    def pop(self, place: Place) -> Waiting:
        """What waits for a place, which waits no more."""
        waiting = self._waiting.pop(place)
        self.size_bytes -= waiting.size_bytes
        return waiting

    def first(self) -> Place:
        """The place that has waited longest."""
        return next(iter(self._waiting))

    def largest(self) -> Place:
        """The place that holds most memory."""
        return max(self._waiting, key=lambda place: self._waiting[place].size_bytes)

    def clear(self) -> None:
        self._waiting.clear()
        self.size_bytes = 0


def _memory_bytes(table: pa.Table) -> int:
    # shared buffers, such as a key's, count once
    return int(table.get_total_buffer_size()) + COLUMN_BYTES * int(table.num_columns)


def _merge_small(waiting: Waiting) -> int:
    """Make one table of the small ones; how many bytes that adds, mostly fewer than none."""
    small = waiting.rows[-waiting.small :]
    merged = pa.concat_tables(small).unify_dictionaries().combine_chunks()
    waiting.rows[-waiting.small :] = [merged]
    waiting.small = 0
    return _memory_bytes(merged) - sum(map(_memory_bytes, small))

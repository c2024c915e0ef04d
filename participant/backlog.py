"""What waits to be encoded, by where it is to go, and what of it is due."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import pyarrow as pa

Place = TypeVar("Place", bound=Hashable)


@dataclass(slots=True)
class Waiting:
    """Tables that wait for one place. `deletes`: those of them that are not rows."""

    rows: list[pa.Table] = field(default_factory=list)
    deletes: list[pa.Table] = field(default_factory=list)
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
        size_bytes = int(table.get_total_buffer_size())  # shared buffers, such as a key's, count once
        (waiting.deletes if deletes else waiting.rows).append(table)
        waiting.count += table.num_rows
        waiting.size_bytes += size_bytes
        self.size_bytes += size_bytes
        return waiting.count >= self._count_max or waiting.size_bytes >= self._bytes_max

    def take(self, place: Place) -> Waiting:
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

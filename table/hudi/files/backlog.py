"""What waits to be encoded, by where it is to go, and what of it is due."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import pyarrow as pa

from table.hudi.files import crumbs
from table.hudi.files.crumbs import Crumbs, Thin, memory_bytes
from table.hudi.files.split import Codes, divide

Place = TypeVar("Place", bound=Hashable)

TIMES = 2
"""Crumbs are there so often while they are divided: one column, which may be nearly all of them, in one piece
beside those that are made of it."""


@dataclass(slots=True)
class Waiting:
    """Tables that wait for one place."""

    rows: list[pa.Table] = field(default_factory=list)
    deletes: list[pa.Table] = field(default_factory=list)
    """Those of them that are not rows."""
    count: int = 0
    size_bytes: int = 0
    is_thin: bool = False
    """All rows are worth writing."""

    def all_rows(self) -> pa.Table:
        """The rows as one table; there are some."""
        return self.rows[0] if len(self.rows) == 1 else pa.concat_tables(self.rows).unify_dictionaries()


class Backlog(Generic[Place]):
    """A place's rows are due when there are `count_max` of them, or when they take `bytes_max` of memory.

    Those of places that get few from each batch are kept apart (`table.hudi.files.crumbs`), and are due by
    themselves. `thin`: which of a place's rows are worth writing, as long as it has no deletes. Where there
    is such a thing what came first may not go after what came later: all of a place goes together, and all
    rows are kept as crumbs, to be copied once, when those that are worth it are known.
    """

    def __init__(self, *, count_max: int, bytes_max: int, thin: Thin | None = None) -> None:
        self._count_max = count_max
        self._bytes_max = bytes_max
        self._ordered = thin is not None
        self._waiting: dict[Place, Waiting] = {}
        self._crumbs: Crumbs[Place] = Crumbs(thin)
        self._due: dict[Place, None] = {}
        self._tables_bytes = 0

    def __bool__(self) -> bool:
        return bool(self._waiting) or bool(self._crumbs)

    @property
    def size_bytes(self) -> int:
        """Memory held by all of it, and by what becomes of crumbs while they are divided."""
        return self._tables_bytes + TIMES * self._crumbs.size_bytes

    def add(self, rows: pa.Table, codes: Codes, places: Sequence[Place]) -> None:
        """Let rows wait, each for the place of its code."""
        if self._ordered:
            self._crumbs.add(rows, codes, places)
            return
        divided = divide(rows, codes, len(places))
        for code, part in divided.parts:
            self._wait(places[code], part)
        self._crumbs.add(divided.crumbs, divided.codes, places)

    def add_deletes(self, deletes: pa.Table, codes: Codes, places: Sequence[Place]) -> None:
        """The same of what is not rows."""
        for code, part in divide(deletes, codes, len(places), rows_least=1).parts:
            self._wait(places[code], part, deletes=True)

    def due(self) -> Iterator[tuple[Place, Waiting]]:
        """What is due, which waits no more. To be asked when all of a batch was added."""
        due, self._due = list(self._due), {}
        yield from self._pop(due)
        if self._is_due(*self._crumbs.largest):
            yield from self._with_crumbs(self._crumbs.largest_places())
        while self._crumbs.size_bytes > crumbs.BYTES_MAX:
            yield from self._with_crumbs(self._crumbs.choose(0, ()))

    def relieve(self, bytes_max: int, first: Iterable[Place]) -> Iterator[tuple[Place, Waiting]]:
        """The places that hold most, one after another, until no more than `bytes_max` is held.

        Of those that hold about as much, the ones that are among `first` come before others.
        """
        while self and self.size_bytes > bytes_max:
            largest = max(self._waiting, key=lambda place: self._waiting[place].size_bytes, default=None)
            if largest is not None and self._goes_alone(largest):
                yield from self._pop([largest])
            else:
                yield from self._with_crumbs(
                    self._crumbs.choose((self.size_bytes - bytes_max) // TIMES, first)
                )

    def drain(self) -> Iterator[tuple[Place, Waiting]]:
        """Everything, each place once."""
        yield from self._with_crumbs(None)
        while self._waiting:
            yield from self._pop([next(iter(self._waiting))])

    def clear(self) -> None:
        self._waiting.clear()
        self._crumbs.clear()
        self._due.clear()
        self._tables_bytes = 0

    # --- inside -----------------------------------------------------------------------------------

    def _goes_alone(self, place: Place) -> bool:
        """Whether a place's tables hold more than anybody's crumbs, and need none of its own with them."""
        if self._ordered and place in self._crumbs:
            return False
        return self._waiting[place].size_bytes >= self._crumbs.largest[1]

    def _pop(self, places: Sequence[Place]) -> Iterator[tuple[Place, Waiting]]:
        """The tables of these places; all that they have, where it must be so."""
        if self._ordered:
            yield from self._with_crumbs(places)
        for place in places:
            if place in self._waiting:
                yield place, self._tables_of(place)

    def _with_crumbs(self, places: Sequence[Place] | None) -> Iterator[tuple[Place, Waiting]]:
        """All that these places have, which have crumbs; None: every place that has some."""
        # where there is something to thin, what waits beside crumbs are deletes
        for place, rows in self._crumbs.take(places, whole=list(self._waiting)):
            waiting = self._tables_of(place)
            waiting.is_thin = self._ordered and not waiting.deletes
            waiting.rows.append(rows)
            waiting.count += rows.num_rows
            yield place, waiting

    def _tables_of(self, place: Place) -> Waiting:
        waiting = self._waiting.pop(place, None) or Waiting()
        self._tables_bytes -= waiting.size_bytes
        return waiting

    def _wait(self, place: Place, table: pa.Table, *, deletes: bool = False) -> None:
        waiting = self._waiting.setdefault(place, Waiting())
        size_bytes = memory_bytes(table)
        waiting.count += table.num_rows
        (waiting.deletes if deletes else waiting.rows).append(table)
        waiting.size_bytes += size_bytes
        self._tables_bytes += size_bytes
        if self._is_due(waiting.count, waiting.size_bytes):
            self._due[place] = None

    def _is_due(self, count: int, size_bytes: int) -> bool:
        return count >= self._count_max or size_bytes >= self._bytes_max

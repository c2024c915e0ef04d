"""Rows of places that get few of them from each batch: kept together, and divided all at once.

Of 1,000 table partitions each has some fifty rows in a batch. Taking those apart batch by batch, and putting
them together again for a file, costs more than decoding them did. Here a batch is only kept, with the place
of each row; when memory is short, or all is to be written, one sort finds every place's rows, and one pass
over each column puts them side by side.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Place = TypeVar("Place", bound=Hashable)
Codes = npt.NDArray[np.integer]
Indices = npt.NDArray[np.int64]

COLUMN_BYTES = 860
"""What a column of a table takes beyond its buffers, measured: of tables of 50 rows it is more than half."""
SMALL_BYTES = 64 * 1024
SMALL_TABLES = 8
"""So many small batches, one after another, are made one."""
SHARE_LEAST = 4
"""At least one row in so many is taken out at once: what stays is copied."""


def memory_bytes(table: pa.Table) -> int:
    """What a table takes of memory; buffers that columns share, such as a key's, count once."""
    return int(table.get_total_buffer_size()) + COLUMN_BYTES * int(table.num_columns)


class Crumbs(Generic[Place]):
    """All tables that are added have the same columns."""

    def __init__(self) -> None:
        self._codes: dict[Place, int] = {}
        """Every place that was ever here."""
        self._counts: Indices = np.zeros(0, dtype=np.int64)
        self._batches: list[tuple[pa.Table, Codes]] = []
        self._small = 0
        """How many of the last batches are small."""
        self._rows = 0
        self.size_bytes = 0
        """Memory held."""

    def __bool__(self) -> bool:
        return bool(self._rows)

    @property
    def largest(self) -> tuple[int, int]:
        """How many rows the place with most rows has, and what they take, about."""
        if not self._rows:
            return 0, 0
        count = int(self._counts.max())
        return count, count * self.size_bytes // self._rows

    def add(self, table: pa.Table, codes: Codes, places: Sequence[Place]) -> None:
        """`codes`: of each row its place in `places`."""
        if not table.num_rows:
            return
        counts = np.bincount(codes, minlength=len(places))
        known = np.zeros(len(places), dtype=np.int64)
        for code in np.flatnonzero(counts).tolist():
            known[code] = self._codes.setdefault(places[code], len(self._codes))
        self._counts = np.pad(self._counts, (0, len(self._codes) - len(self._counts)))
        np.add.at(self._counts, known, counts)
        self._rows += table.num_rows
        self._keep(table, known[codes].astype(np.min_scalar_type(len(self._codes))))
        size_bytes = memory_bytes(table)
        self.size_bytes += size_bytes
        self._small = self._small + 1 if size_bytes < SMALL_BYTES else 0
        if self._small == SMALL_TABLES:
            self._merge_small()

    def __contains__(self, place: Place) -> bool:
        code = self._codes.get(place)
        return code is not None and bool(self._counts[code])

    def largest_places(self) -> list[Place]:
        """Those with most rows, all that have as many."""
        return self._named(self._counts == self._counts.max(initial=1))

    def choose(self, bytes_least: int, first: Iterable[Place]) -> list[Place]:
        """Places that hold so much together, or more: those with most rows. Of places that have half as many,
        and more, those that are among `first` come before others.
        """
        rows_least = max(bytes_least * self._rows // max(1, self.size_bytes) + 1, self._rows // SHARE_LEAST)
        order = np.argsort(-self._counts, kind="stable")
        earlier = np.zeros(len(self._counts), dtype=np.bool_)
        earlier[[code for place in first if (code := self._codes.get(place)) is not None]] = True
        earlier &= 2 * self._counts >= self._counts.max()
        order = np.concatenate([order[earlier[order]], order[~earlier[order]]])
        count = int(np.searchsorted(np.cumsum(self._counts[order]), rows_least)) + 1
        chosen = np.zeros(len(self._counts), dtype=np.bool_)
        chosen[order[:count]] = True
        return self._named(chosen & (self._counts > 0))

    def take(self, places: Iterable[Place] | None = None) -> Iterator[tuple[Place, pa.Table]]:
        """The rows of these places, of None all, which are here no more: by place, in their order, as slices
        of one table.
        """
        chosen = np.full(len(self._counts), places is None)
        chosen[[code for place in places or () if (code := self._codes.get(place)) is not None]] = True
        chosen &= self._counts > 0
        return self._take(chosen) if chosen.any() else iter(())

    def clear(self) -> None:
        self._codes.clear()
        self._counts = np.zeros(0, dtype=np.int64)
        self._batches.clear()
        self._small = self._rows = self.size_bytes = 0

    # --- inside -----------------------------------------------------------------------------------

    def _named(self, chosen: npt.NDArray[np.bool_]) -> list[Place]:
        places = list(self._codes)
        return [places[code] for code in np.flatnonzero(chosen).tolist()]

    def _keep(self, table: pa.Table, codes: Codes) -> None:
        self._batches.append((table, codes))

    def _merge_small(self) -> None:
        small, self._batches = self._batches[-self._small :], self._batches[: -self._small]
        tables = [table for table, _ in small]
        merged = pa.concat_tables(tables).unify_dictionaries().combine_chunks()
        self._keep(merged, np.concatenate([codes for _, codes in small]))
        self.size_bytes += memory_bytes(merged) - sum(map(memory_bytes, tables))
        self._small = 0

    def _take(self, chosen: npt.NDArray[np.bool_]) -> Iterator[tuple[Place, pa.Table]]:
        """The rows of the chosen places. What stays is copied, and keeps nobody's memory but its own."""
        places = list(self._codes)
        counts = np.where(chosen, self._counts, 0)
        batches, self._batches = self._batches, []
        codes = np.concatenate([some for _, some in batches])
        taken = chosen[codes]
        rows = np.flatnonzero(taken)
        rows = rows[np.argsort(codes[rows], kind="stable")]  # of so small numbers a radix sort
        left = np.flatnonzero(~taken)
        schema = batches[0][0].schema
        columns = [[table.column(i) for table, _ in batches] for i in range(len(schema))]
        del batches
        mine, stays = _gathered(columns, schema, [rows, left])
        self._counts = self._counts - counts
        self._rows = len(left)
        self._small = self.size_bytes = 0
        if len(left):
            self._keep(stays, codes[left])
            self.size_bytes = memory_bytes(stays)
        return _slices(mine, places, counts)


def _gathered(
    columns: list[list[pa.ChunkedArray]], schema: pa.Schema, wanted: Sequence[Indices]
) -> list[pa.Table]:
    """A table of each list of rows. Column by column: `columns` is emptied, so that little is there twice."""
    found: list[list[pa.Array]] = [[] for _ in wanted]
    places = [pa.array(rows) for rows in wanted]
    known: dict[tuple[object, ...], int] = {}
    columns.reverse()
    while columns:
        column = pa.chunked_array([chunk for part in columns.pop() for chunk in part.chunks])
        where = _where(column)
        if where in known:
            for made in found:
                made.append(made[known[where]])
            continue
        if where:
            known[where] = len(found[0])
        whole = column.unify_dictionaries().combine_chunks()
        del column
        for made, rows in zip(found, places, strict=True):
            made.append(whole.take(rows))
    return [pa.Table.from_arrays(made, schema=schema) for made in found]


def _where(column: pa.ChunkedArray) -> tuple[object, ...]:
    """What tells columns that are the same memory: a record key is often a column of the data.

    Empty where that cannot be told: an array does not name the memory of its dictionary.
    """
    if "dictionary" in str(column.type):  # within another as well
        return ()
    at: list[object] = [column.type]
    for chunk in column.chunks:
        addresses = [buffer.address if buffer is not None else None for buffer in chunk.buffers()]
        at += [chunk.offset, len(chunk), *addresses]
    return tuple(at)


def _slices(table: pa.Table, places: Sequence[Place], counts: Indices) -> Iterator[tuple[Place, pa.Table]]:
    start = 0
    for code in np.flatnonzero(counts).tolist():
        count = int(counts[code])
        yield places[code], table.slice(start, count)
        start += count

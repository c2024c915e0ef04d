"""Rows of places that get few of them from each batch: kept together, and divided all at once.

Of 1,000 table partitions each has some fifty rows in a batch. Taking those apart batch by batch, and putting
them together again for a file, costs more than decoding them did. Here a batch is only kept, with the place
of each row; when memory is short, or all is to be written, one sort finds every place's rows, and one pass
over each column puts them side by side.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from table.hudi.files.split import Codes, shared

Place = TypeVar("Place", bound=Hashable)
Indices = npt.NDArray[np.int64]

COLUMN_BYTES = 860
"""What a column of a table takes beyond its buffers, measured: of tables of 50 rows it is more than half."""
SMALL_BYTES = 64 * 1024
SMALL_TABLES = 8
"""So many small batches, one after another, are made one."""
BYTES_MAX = 1024 * 1024 * 1024
"""Each column is made one piece, and one of texts has no more than two gigabytes."""
ASKED_BYTES = 1024 * 1024
"""Of keys that are looked at together."""
SHARE_LEAST = 4
"""At least one row in so many is taken out at once: what stays is copied."""


def memory_bytes(table: pa.Table) -> int:
    """What a table takes of memory; buffers that columns share, such as a key's, count once."""
    return int(table.get_total_buffer_size()) + COLUMN_BYTES * int(table.num_columns)


class Thin(Protocol):
    """Which of a place's rows are worth to be taken out, and to be kept on."""

    @property
    def names(self) -> Sequence[str]:
        """The columns by which it is told."""

    def __call__(self, *columns: pa.Array) -> Indices:
        """Which rows of one place, which stand in the order in which they came."""


class Crumbs(Generic[Place]):
    """All tables that are added have the same columns."""

    def __init__(self, thin: Thin | None = None) -> None:
        self._thin = thin
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
        """Those with most rows, and all that have half as many: soon it were their turn."""
        return self._named(2 * self._counts >= self._counts.max(initial=1))

    def choose(self, bytes_least: int, first: Iterable[Place]) -> list[Place]:
        """Places that hold so much together, or more: those with most rows. Of places that have half as many,
        and more, those that are among `first` come before others.
        """
        rows_least = max(bytes_least * self._rows // max(1, self.size_bytes) + 1, self._rows // SHARE_LEAST)
        order = np.argsort(-self._counts, kind="stable")
        earlier = self._among(first)
        earlier &= 2 * self._counts >= self._counts.max()
        order = np.concatenate([order[earlier[order]], order[~earlier[order]]])
        count = int(np.searchsorted(np.cumsum(self._counts[order]), rows_least)) + 1
        chosen = np.zeros(len(self._counts), dtype=np.bool_)
        chosen[order[:count]] = True
        return self._named(chosen & (self._counts > 0))

    def take(
        self, places: Iterable[Place] | None = None, *, whole: Iterable[Place] = ()
    ) -> Iterator[tuple[Place, pa.Table]]:
        """The rows of these places, of None all, which are here no more: by place, in their order, as slices
        of one table. Of those that are among `whole` every row stays.
        """
        chosen = self._among(places) if places is not None else np.full(len(self._counts), True)
        chosen &= self._counts > 0
        return self._take(chosen, self._among(whole)) if chosen.any() else iter(())

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

    def _among(self, places: Iterable[Place]) -> npt.NDArray[np.bool_]:
        found = np.zeros(len(self._counts), dtype=np.bool_)
        found[[code for place in places if (code := self._codes.get(place)) is not None]] = True
        return found

    def _take(
        self, chosen: npt.NDArray[np.bool_], whole: npt.NDArray[np.bool_]
    ) -> Iterator[tuple[Place, pa.Table]]:
        """The rows of the chosen places. What stays is copied, and keeps nobody's memory but its own."""
        batches, self._batches = self._batches, []
        codes = np.concatenate([some for _, some in batches])
        columns = _Columns([table for table, _ in batches])
        del batches
        order = np.argsort(codes, kind="stable")  # of so small numbers a radix sort
        if self._thin is not None:
            order = self._thinned(self._thin, columns, order, whole)
        taken = chosen[codes[order]]
        left = np.sort(order[~taken])
        mine, stays = columns.gathered([order[taken], left])
        del columns
        pa.default_memory_pool().release_unused()  # else its large pieces stay with the process
        counts = np.bincount(codes[order], minlength=len(self._counts))
        self._counts = np.where(chosen, 0, counts)
        self._rows = len(left)
        self._small = self.size_bytes = 0
        if len(left):
            self._keep(stays, codes[left])
            self.size_bytes = memory_bytes(stays)
        return _slices(mine, list(self._codes), np.where(chosen, counts, 0))

    def _thinned(
        self, thin: Thin, columns: _Columns, order: Indices, whole: npt.NDArray[np.bool_]
    ) -> Indices:
        """Of rows that stand by place those that are wanted. A window of places at a time: keys may be nearly
        all of a row, and are not to be there once more.
        """
        names = [columns.whole(name) for name in thin.names]
        size_bytes = sum(one.nbytes for one in names)
        window = max(1, ASKED_BYTES * len(order) // max(1, size_bytes))
        found: list[Indices] = []
        start = asked_from = asked_to = 0
        asked: list[pa.Array] = []
        for count, is_whole in zip(self._counts.tolist(), whole.tolist(), strict=True):
            rows = order[start : start + count]
            if count > 1 and not is_whole:
                if start + count > asked_to:
                    asked_from, asked_to = start, start + max(count, window)
                    asked = [one.take(pa.array(order[asked_from:asked_to])) for one in names]
                rows = rows[thin(*(one.slice(start - asked_from, count) for one in asked))]
            found.append(rows)
            start += count
        return np.concatenate(found)


class _Columns:
    """Of tables with the same columns, which stand one below another."""

    def __init__(self, tables: Sequence[pa.Table]) -> None:
        self._schema = tables[0].schema
        self._parts: dict[str, pa.ChunkedArray] = {}
        self._whole: dict[str, pa.Array] = {}
        names = self._schema.names
        columns = [
            pa.chunked_array([chunk for table in tables for chunk in table.column(place).chunks])
            for place in range(len(names))
        ]
        self._same = {name: names[first] for name, first in zip(names, shared(columns), strict=True)}
        """Of each column the first one of the same memory."""
        for name, column in zip(names, columns, strict=True):
            if self._same[name] == name:
                self._parts[name] = column

    def whole(self, name: str) -> pa.Array:
        """A column in one piece."""
        name = self._same[name]
        if name not in self._whole:
            self._whole[name] = self._parts.pop(name).unify_dictionaries().combine_chunks()
        return self._whole[name]

    def gathered(self, wanted: Sequence[Indices]) -> list[pa.Table]:
        """A table of each list of rows. Each column is let go of, so that little is there twice."""
        places = [pa.array(rows) for rows in wanted]
        found: dict[str, list[pa.Array]] = {}
        for name, first in self._same.items():
            if name == first:
                whole = self.whole(name)
                del self._whole[name]
                found[name] = [whole.take(rows) for rows in places]
        return [
            pa.Table.from_arrays([found[first][i] for first in self._same.values()], schema=self._schema)
            for i in range(len(places))
        ]


def _slices(table: pa.Table, places: Sequence[Place], counts: Indices) -> Iterator[tuple[Place, pa.Table]]:
    start = 0
    for code in np.flatnonzero(counts).tolist():
        count = int(counts[code])
        yield places[code], table.slice(start, count)
        start += count

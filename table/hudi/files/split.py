"""One pass that divides the rows of a batch among files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

PART_ROWS, PART_BYTES = 1_000, 64 * 1024
"""A part is worth a table of its own from so many rows on, or so much memory: to make one costs what decoding
some tens of narrow rows does."""

Codes = npt.NDArray[np.integer]


class Divided(NamedTuple):
    parts: list[tuple[int, pa.Table]]
    """(code, all rows that have it), each in their order."""
    crumbs: pa.Table
    """The rows of all other codes, in their order."""
    codes: Codes
    """Theirs."""


def divide(rows: pa.Table, codes: Codes, count: int, *, rows_least: int = 0) -> Divided:
    """By their codes, which are below `count`: parts that are worth it, and the rest.

    `rows_least`: parts of so many rows are worth it; 0: as above.

    Each part is a copy, not a view: a small one must not keep the memory of the batch that it came in.
    """
    if not rows_least:
        wide_rows = PART_BYTES * rows.num_rows // max(1, rows.get_total_buffer_size())
        rows_least = max(1, min(PART_ROWS, wide_rows))
    counts = np.bincount(codes, minlength=count)
    whole = counts >= rows_least
    if not whole.any():
        return Divided([], rows, codes)
    if counts.max() == rows.num_rows:
        return Divided([(int(counts.argmax()), rows)], rows.slice(0, 0), codes[:0])
    taken = _Taken(rows)
    codes = codes.astype(np.min_scalar_type(count))
    order = np.argsort(codes, kind="stable")  # of so small numbers a radix sort
    ends = np.cumsum(counts)
    parts = [
        (code, taken(order[ends[code] - counts[code] : ends[code]]))
        for code in np.flatnonzero(whole).tolist()
    ]
    left = np.flatnonzero(~whole[codes])
    return Divided(parts, taken(left) if len(left) else rows.slice(0, 0), codes[left])


class _Taken:
    """Copies rows; columns of the same memory are copied once, and share it again."""

    def __init__(self, rows: pa.Table) -> None:
        self._schema = rows.schema
        same = shared(rows.columns)
        firsts = sorted(set(same))
        self._places = [firsts.index(first) for first in same]
        self._rows = rows.select(firsts).combine_chunks()  # once, not in every `take`

    def __call__(self, places: npt.NDArray[np.int64]) -> pa.Table:
        part = self._rows.take(pa.array(places))
        return pa.Table.from_arrays([part.column(place) for place in self._places], schema=self._schema)


# --- columns that share memory ------------------------------------------------------------------------


def shared(columns: Iterable[pa.ChunkedArray]) -> list[int]:
    """Of each column the place of the first one of the same memory: a record key is often a column of the
    data.
    """
    known: dict[tuple[object, ...], int] = {}
    return [known.setdefault(_where(column) or (place,), place) for place, column in enumerate(columns)]


def _where(column: pa.ChunkedArray) -> tuple[object, ...]:
    """What tells columns of the same memory.

    Empty where that cannot be told: an array does not name the memory of its dictionary.
    """
    if "dictionary" in str(column.type):  # within another as well
        return ()
    at: list[object] = [column.type]
    for chunk in column.chunks:
        at += [chunk.offset, len(chunk), *(None if one is None else one.address for one in chunk.buffers())]
    return tuple(at)

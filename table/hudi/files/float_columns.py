"""FLOAT and DOUBLE values that readers compare differently than footers and dictionaries do.

* NaN: Spark and DuckDB order it after every number. Statistics leave it out. A reader that trusts them skips
  rows that match `v > 5`, and DuckDB returns rows that do not match `v < 5`.
* Zero: SQL takes -0.0 and 0.0 for equal. Spark's reader takes them for different values when it looks for one
  of them in a dictionary, and skips the row group.

A column that holds such values is written without statistics, or without a dictionary. Readers then compare
the values themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

STATISTICS: Final = "write_statistics"
DICTIONARY: Final = "use_dictionary"


@dataclass(frozen=True, slots=True)
class Exceptions:
    """Paths of FLOAT and DOUBLE columns that hold such values. `nan`: NaN; `zero`: -0.0 or 0.0."""

    nan: frozenset[str] = frozenset()
    zero: frozenset[str] = frozenset()

    def __or__(self, other: Exceptions) -> Exceptions:
        if other.nan <= self.nan and other.zero <= self.zero:
            return self
        return Exceptions(self.nan | other.nan, self.zero | other.zero)

    def contradict(self, options: dict[str, Any]) -> bool:
        """Whether a file with these writer options may not hold the values."""
        return not (self.nan.isdisjoint(options[STATISTICS]) and self.zero.isdisjoint(options[DICTIONARY]))

    def applied(self, options: dict[str, Any]) -> dict[str, Any]:
        """The writer options of a file that may hold the values."""
        if not self.contradict(options):
            return options
        return {
            **options,
            STATISTICS: [path for path in options[STATISTICS] if path not in self.nan],
            DICTIONARY: [path for path in options[DICTIONARY] if path not in self.zero],
        }


def find_exceptions(piece: pa.Table) -> Exceptions:
    """The columns of `piece`, and of structs and lists in it, that hold NaN or a zero."""
    nan, zero = set(), set()
    for name in piece.column_names:
        for path, values in column_leaves(name, piece.column(name)):
            for numbers in _floats(values):
                if np.isnan(numbers).any():
                    nan.add(path)
                if (numbers == 0).any():
                    zero.add(path)
    return Exceptions(frozenset(nan), frozenset(zero))


def column_leaves(path: str, column: pa.ChunkedArray) -> Iterator[tuple[str, pa.ChunkedArray]]:
    """Paths, as Parquet spells them, and values of a column's leaves. Maps have none here."""
    kind = column.type
    if pa.types.is_struct(kind):
        for field, values in zip(kind.fields, column.flatten(), strict=True):
            yield from column_leaves(f"{path}.{field.name}", values)
    elif pa.types.is_list(kind):
        yield from column_leaves(f"{path}.list.element", pc.list_flatten(column))
    elif not pa.types.is_nested(kind):
        yield path, column


def _floats(values: pa.ChunkedArray) -> Iterator[npt.NDArray[np.floating[Any]]]:
    """The values that are not null, without a copy where none is null; nothing of another type."""
    is_encoded = pa.types.is_dictionary(values.type)
    if pa.types.is_floating(values.type.value_type if is_encoded else values.type):
        for chunk in values.chunks:
            plain = chunk.dictionary if is_encoded else chunk
            yield (plain.drop_null() if plain.null_count else plain).to_numpy()

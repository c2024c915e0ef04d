"""The newest value of a field in base files, by the statistics in their footers: no row is read.

Parquet's format keeps the largest value of each column of each row group, in the column's physical type, and
how many of its values are null. Writers may leave that out, as those do that write INT96 timestamps.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Container, Mapping, Sequence
from typing import Final

import pyarrow.parquet as pq

from table.ages import NOTHING, UNKNOWN
from table.hudi.files.base_file import META_COLUMNS
from table.hudi.upkeep.counted import told_by_footers
from table.store.port import Store

DAY_MS: Final = 86_400_000
_PER_SECOND: Final[Mapping[str, int]] = {
    "milliseconds": 1_000,
    "microseconds": 1_000_000,
    "nanoseconds": 1_000_000_000,
}


def newest_ms(
    store: Store, folder: str, names: Sequence[str], field: str, columns: Container[str]
) -> dict[str, float]:
    """By the names of base files in a folder, what `table.ages` calls their age. Raises `Unavailable`.

    `columns`: the table's. A file without the field is older than it, and one that has a column besides
    these may have it under a former name: Hudi's schema on read keeps what was written before a RENAME.

    A DATE stands for its whole day, in UTC, and so is over when that is; a TIMESTAMP_NTZ is taken for UTC.
    """
    paths = [posixpath.join(folder, name) for name in names]
    found = told_by_footers(store, paths, lambda footer: _of_footer(footer, field, columns))
    return dict(zip(names, found, strict=True))


def _of_footer(footer: pq.FileMetaData, field: str, columns: Container[str]) -> float:
    places = {footer.schema.column(place).path: place for place in range(footer.num_columns)}
    if field not in places:
        others = {path.partition(".")[0] for path in places}.difference(META_COLUMNS)
        is_older = field not in others and all(name in columns for name in others)
        return NOTHING if is_older else UNKNOWN
    meaning = json.loads(footer.schema.column(places[field]).logical_type.to_json())
    newest = NOTHING
    for number in range(footer.num_row_groups):
        rows = footer.row_group(number).num_rows
        found = footer.row_group(number).column(places[field]).statistics
        if found is not None and found.has_min_max:
            newest = max(newest, _moment_ms(found.max_raw, meaning))
        elif rows and not (found is not None and found.has_null_count and found.null_count == rows):
            return UNKNOWN
    return newest


def _moment_ms(largest: int, meaning: Mapping[str, str]) -> float:
    """Never before it: of parts of a millisecond the end of that. `meaning`: the column's logical type."""
    if meaning["Type"] == "Date":
        return (largest + 1) * DAY_MS
    per_second = _PER_SECOND.get(meaning.get("timeUnit", "")) if meaning["Type"] == "Timestamp" else None
    return UNKNOWN if per_second is None else -(-largest * 1_000 // per_second)

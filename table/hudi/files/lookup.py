"""Parquet's bloom filters: by which readers leave out row groups that lack what they look for with `=`.

The format is that of Apache Parquet's specification (split blocks, xxHash), one filter for each row group and
column. Spark asks it by itself. It is sized for the rows of a row group, and rounded up to a power of two.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import pyarrow as pa

from table.schema import SchemaError, ddl_name

TYPES: Final = (pa.string(), pa.int32(), pa.int64())
"""Of one value there is one spelling. Not so of floats: -0.0 equals 0.0, and has another hash."""
FALSE_POSITIVES: Final = 0.01
"""A row group in a hundred is read in vain."""
BITS_PER_VALUE: Final = 11
"""With so many false positives, rounded up."""
ROWS_MIN: Final = 256
GROWTH: Final = 2
"""What is made for so many rows serves no more than so many times as many: else little is left out."""


def check_lookup_field(field: pa.Field) -> None:
    """Raises `SchemaError` where a column of this type has no filter."""
    if field.type not in TYPES:
        known = ", ".join(map(ddl_name, TYPES))
        raise SchemaError(f"{field.name} is {ddl_name(field.type)}; bloom filters are of {known}")


def filter_options(fields: Iterable[str], sample: pa.Table) -> dict[str, Any]:
    """Arguments for `pyarrow.parquet.ParquetWriter`. `sample`: a row group, and others are about as large."""
    of = {"ndv": max(sample.num_rows, ROWS_MIN), "fpp": FALSE_POSITIVES}
    types = dict(zip(sample.schema.names, sample.schema.types, strict=True))
    chosen = {name: of for name in fields if types.get(name) in TYPES}
    return {"bloom_filter_options": chosen} if chosen else {}


def held_bytes(options: dict[str, Any]) -> int:
    """What the filters of a row group take of memory until the file ends, with such arguments."""
    of = options.get("bloom_filter_options", {}).values()
    return sum(1 << (BITS_PER_VALUE * one["ndv"] // 8).bit_length() for one in of)


def outgrown(sample_rows: int, rows: int) -> bool:
    """Whether so many rows in a row group are too many for the filters of so many."""
    return rows > GROWTH * max(sample_rows, ROWS_MIN)

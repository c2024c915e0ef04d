"""Record keys and table partition paths, spelled as Hudi's key generators spell them.

A table has one spelling for a key; a writer with another makes a second row where it should have met the
first. Checked against what Hudi 1.2 on Spark 3.5 writes with `SIMPLE`, `COMPLEX` and `NON_PARTITION` key
generators: numbers and booleans as in SQL, DATE as 2026-12-31, TIMESTAMP (of a key) as microseconds since
1970, DECIMAL with its full scale. The path's escapes are those of
`org.apache.hudi.common.util.PartitionPathEncodeUtils`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from table.port import AS_ORDERING, AS_PARTITION, AS_SORTED
from table.schema import LOCAL_MICROS, UTC_MICROS, SchemaError, ddl_name

ORDERING_TYPES = (pa.int32(), pa.int64(), UTC_MICROS)
"""Not STRING: Hudi 1.2.0 compares texts of parquet blocks after their memory was used again."""

PLAIN, COMPLEX, COORDINATES = "plain", "complex", "coordinates"

NULL_FIELD = "__null__"
EMPTY_FIELD = "__empty__"
DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"
FOLDER_BYTES_MAX = 200
"""File systems allow 255 in a name."""

ESCAPED = frozenset(map(chr, [*range(0x20), 0x7F])) | frozenset("\"#%'*/:=?\\[]^{")
UNSAFE = re.compile(r"[\x00-\x1f\x7f/:]")
AS_IF_ESCAPED = re.compile(r"%[0-9A-Fa-f]{2}")


class UnsafePartition(ValueError):
    """A value that cannot name a folder of its own; the sentence does not hold the value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    keys: pa.ChunkedArray
    """A key per row."""
    bad: npt.NDArray[np.bool_] | None = None
    """Which rows have none, None when all do."""


def check_key_field(field: pa.Field, role: str) -> None:
    """Raises `SchemaError` when a column of this type cannot be a key or a partition. `role` names it."""
    kind = field.type
    if pa.types.is_floating(kind) or kind in (pa.binary(), LOCAL_MICROS):
        raise SchemaError(
            f"column {field.name}: a {ddl_name(kind)} cannot be {role}: engines spell it differently; use a "
            "STRING, or another type"
        )
    if role == AS_PARTITION and kind == UTC_MICROS:  # microseconds, or `2026-11-27 09%3A00%3A00` of Spark SQL
        raise SchemaError(
            f"column {field.name}: a {ddl_name(kind)} cannot be {role}: Hudi's writers spell it differently; "
            f"name a function of it, such as day({field.name})"
        )
    if pa.types.is_nested(kind):
        raise SchemaError(f"column {field.name}: {ddl_name(kind)} cannot be {role}; name a plain column")


def check_ordering_field(field: pa.Field) -> None:
    """Raises `SchemaError` when engines do not agree on the order of such a column's values."""
    check_key_field(field, AS_ORDERING)
    if field.type not in ORDERING_TYPES:
        known = ", ".join(map(ddl_name, ORDERING_TYPES))
        raise SchemaError(f"{field.name} is {ddl_name(field.type)}; rows are ordered by one of {known}")


def check_sort_field(field: pa.Field) -> None:
    """Raises `SchemaError` where rows cannot be sorted by such a column."""
    if pa.types.is_nested(field.type):
        raise SchemaError(
            f"column {field.name}: {ddl_name(field.type)} cannot be {AS_SORTED}; name a plain column"
        )


def spelled(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """The values as strings, null where they are null."""
    if column.type == pa.string():
        return column
    if column.type == UTC_MICROS:
        column = column.cast(pa.int64())
    return column.cast(pa.string())


# --- record keys ------------------------------------------------------------------------------------


def plain_keys(column: pa.ChunkedArray) -> Keys:
    """One field's value. Null and empty ones are bad, as to Hudi."""
    keys = spelled(column)
    return Keys(keys=keys, bad=_where(_blank(keys)))


def complex_keys(names: Sequence[str], columns: Sequence[pa.ChunkedArray]) -> Keys:
    """`f:v,g:w`. A null field is `__null__`, an empty one `__empty__`; a key of nothing else is bad."""
    parts: list[pa.ChunkedArray | pa.Scalar] = []
    bad: pa.ChunkedArray | None = None
    for name, column in zip(names, columns, strict=True):
        value = spelled(column)
        blank = _blank(value)
        bad = blank if bad is None else pc.and_(bad, blank)
        value = pc.if_else(pc.equal(value, "").fill_null(False), EMPTY_FIELD, value)
        parts += [pa.scalar(f"{',' if parts else ''}{name}:"), value.fill_null(NULL_FIELD)]
    assert bad is not None
    return Keys(keys=pc.binary_join_element_wise(*parts, ""), bad=_where(bad))


def ambiguous(names: Sequence[str], columns: Sequence[pa.ChunkedArray]) -> dict[int, str]:
    """Return the rows whose complex key may be another row's as well, by their index, each with a reason.

    A text can hold what `complex_keys` puts between two fields, or be its word for null or for an empty text.
    If no field holds the begin of the next one, a key is taken apart in one way only.
    """
    found: dict[int, str] = {}
    if len(names) < 2:
        return found
    for at, (name, column) in enumerate(zip(names, columns, strict=True)):
        if column.type != pa.string():
            continue
        begin = f",{names[at + 1]}:" if at + 1 < len(names) else ""
        mask = pc.is_in(column, value_set=pa.array([NULL_FIELD, EMPTY_FIELD]))
        if begin:
            mask = pc.or_(mask, pc.match_substring(column, begin).fill_null(False))
        if pc.any(mask).as_py():
            told = f"{f'{begin!r}, ' if begin else ''}{NULL_FIELD!r} or {EMPTY_FIELD!r}"
            why = f"field {name} of the record key holds {told}: Hudi spells another row's key alike"
            found |= dict.fromkeys(np.flatnonzero(mask.to_numpy()).tolist(), why)
    return found


def coordinate_keys(topic: str, number: int, offsets: npt.NDArray[np.int64]) -> Keys:
    """`topic-partition-offset`: unique, and the same again on replay."""
    prefix = pa.scalar(f"{topic}-{number}-")
    joined = pc.binary_join_element_wise(prefix, pa.array(offsets).cast(pa.string()), "")
    return Keys(keys=pa.chunked_array([joined], pa.string()))


def _blank(values: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.equal(pc.binary_length(values), 0).fill_null(True)


def _where(mask: pa.ChunkedArray) -> npt.NDArray[np.bool_] | None:
    return mask.to_numpy() if pc.any(mask).as_py() else None


# --- table partitions -------------------------------------------------------------------------------


def partition_path(value: str | None, field: str, *, hive_style: bool, url_encode: bool) -> str:
    """The folder of a table partition, relative to the table. Raises `UnsafePartition`.

    Null and empty are Hudi's default partition. Where Hudi would write a value as it is, one that nests,
    escapes, hides or cannot be spelled as a path is refused: readers would not find its rows again.
    """
    folder = value or DEFAULT_PARTITION
    if value == DEFAULT_PARTITION:
        raise UnsafePartition(f"field {field}: readers take the text {DEFAULT_PARTITION} for null")
    if not url_encode and AS_IF_ESCAPED.search(folder):
        raise UnsafePartition(
            f"field {field}: readers take a '%' before two hex digits for another character"
        )
    if not url_encode and not hive_style and "=" in folder:
        raise UnsafePartition(f"field {field}: Spark reads of a value with '=' what is behind it")
    if url_encode:
        folder = escaped(folder)
    if hive_style:
        folder = f"{field}={folder}"
    if UNSAFE.search(folder):
        raise UnsafePartition(f"field {field}: a value with '/', ':' or a control character names no folder")
    if folder.startswith("."):
        raise UnsafePartition(f"field {field}: a value that begins with '.' names a hidden folder")
    if len(folder.encode()) > FOLDER_BYTES_MAX:
        raise UnsafePartition(f"field {field}: a value of more than {FOLDER_BYTES_MAX} bytes names no folder")
    return folder


def escaped(folder: str) -> str:
    """Percent-encoded."""
    return "".join(f"%{ord(c):02X}" if c in ESCAPED else c for c in folder)

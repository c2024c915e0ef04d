"""What Arrow's JSON reader is asked for, and how its answer becomes the table's columns.

The reader does not read every type, and is too generous with some. A FLOAT is read as a double, so that
one beyond its range is seen; a DATE as a string, cast strictly; a DECIMAL's precision, which the reader does
not check after scaling, and the range of dates and times (years 1 to 9999, as in SQL) are checked behind it.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from table.schema import UTC_MICROS

DAYS = (-719_162, 2_932_896)
MICROS = (-62_135_596_800_000_000, 253_402_300_799_999_999)


class Unreadable(ValueError):
    """What was read does not fit the schema, or does not match the values one to one."""


def holds_map(kind: pa.DataType) -> bool:
    """Whether the type is or holds a MAP, which Arrow cannot read from a JSON object."""
    return pa.types.is_map(kind) or any(holds_map(child.type) for child in _children(kind))


def _children(kind: pa.DataType) -> Iterable[pa.Field]:
    if pa.types.is_struct(kind):
        return list(kind)
    return [kind.value_field] if pa.types.is_list(kind) else []


def reading_field(field: pa.Field, *, nullable: bool) -> pa.Field:
    return pa.field(field.name, reading_type(field.type), nullable=nullable)


def reading_type(kind: pa.DataType) -> pa.DataType:
    """The type to ask the JSON reader for. Inside, what is NOT NULL stays so: the reader sees to it."""
    if kind == pa.float32():
        return pa.float64()
    if kind == pa.date32():
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(reading_type(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([reading_field(f, nullable=f.nullable) for f in kind])
    return kind


def finish(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """What was read, as the table's type, checked. Raises `ValueError` where a value does not fit."""
    done = column if column.type == kind else column.cast(kind)
    if needs_check(kind):
        for before, after in zip(column.chunks, done.chunks, strict=True):
            _check(before, after)
    return done


def needs_check(kind: pa.DataType) -> bool:
    return (
        kind in (pa.float32(), pa.date32(), UTC_MICROS)
        or pa.types.is_decimal(kind)
        or any(needs_check(child.type) for child in _children(kind))
    )


def _check(before: pa.Array, after: pa.Array) -> None:
    kind = after.type
    if pa.types.is_struct(kind):
        for i in range(kind.num_fields):
            _check(pc.struct_field(before, i), pc.struct_field(after, i))
    elif pa.types.is_list(kind):
        _check(before.flatten(), after.flatten())
    elif pa.types.is_decimal(kind):
        after.validate(full=True)
    elif kind == pa.float32():
        if pc.any(pc.and_(pc.is_inf(after), pc.invert(pc.is_inf(before)))).as_py():
            raise Unreadable("a number beyond the range of a FLOAT")
    elif kind == pa.date32():
        _check_range(after.view(pa.int32()), DAYS)
    elif kind == UTC_MICROS:
        _check_range(after.view(pa.int64()), MICROS)


def _check_range(numbers: pa.Array, limits: tuple[int, int]) -> None:
    bounds = pc.min_max(numbers)
    low, high = bounds["min"].as_py(), bounds["max"].as_py()
    if low is not None and (low < limits[0] or high > limits[1]):
        raise Unreadable("a date outside the years 1 to 9999")

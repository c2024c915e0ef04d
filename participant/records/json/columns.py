"""What Arrow's JSON reader is asked for, and how its answer becomes the table's columns.

The reader does not read every type, and is too generous with some. A FLOAT is read as a double, so that
one beyond its range is seen; a DATE and a TIMESTAMP_NTZ as a string, cast strictly; a BINARY as a string of
base64; a DECIMAL in 256 bits, because in 128 the reader's scaling wraps around and takes a number that is too
large for another one. The range of dates and times (years 1 to 9999, as in SQL) is checked behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from participant.records.json.values import from_base64
from table.schema import LOCAL_MICROS, MICROS, UTC_MICROS

DAYS = (-719_162, 2_932_896)
_READ_AS_TEXT = (pa.date32(), LOCAL_MICROS, pa.binary())


class Misfit(ValueError):
    """What was read does not fit the schema, or does not match the values one to one."""


def holds_map(kind: pa.DataType) -> bool:
    """Whether the type is or holds a MAP, which Arrow cannot read from a JSON object."""
    return pa.types.is_map(kind) or any(holds_map(child.type) for child in _children(kind))


def _children(kind: pa.DataType) -> Iterable[pa.Field]:
    if pa.types.is_struct(kind):
        return list(kind)
    return [kind.value_field] if pa.types.is_list(kind) else []


def reading_field(field: pa.Field) -> pa.Field:
    """NOT NULL nowhere: the reader would refuse what is inside a null STRUCT."""
    return pa.field(field.name, _with_leaves(field.type, _read_as))


def nullable_type(kind: pa.DataType) -> pa.DataType:
    """The type with NOT NULL nowhere inside."""
    return _with_leaves(kind, lambda leaf: leaf)


def _with_leaves(kind: pa.DataType, leaf: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    if pa.types.is_list(kind):
        return pa.list_(_with_leaves(kind.value_type, leaf))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _with_leaves(kind.item_type, leaf))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, _with_leaves(f.type, leaf)) for f in kind])
    return leaf(kind)


def _read_as(kind: pa.DataType) -> pa.DataType:
    if kind == pa.float32():
        return pa.float64()
    if kind in _READ_AS_TEXT:
        return pa.string()
    return pa.decimal256(kind.precision, kind.scale) if pa.types.is_decimal128(kind) else kind


def holds_decimal(kind: pa.DataType) -> bool:
    """Whether the type is or holds a DECIMAL."""
    return pa.types.is_decimal(kind) or any(holds_decimal(child.type) for child in _children(kind))


MANY_PLACES = (
    r'[":\[,\s][+-]?[0-9.]*[0-9.][eE]-0*(?:3[89]|[4-9][0-9]|[1-9][0-9]{2,})["\s,}\]]'
    r"|\\u00(?:2[dDeE]|3[0-9]|[46]5)"
)
"""A number or string with 10^-38 or less in it, or with an escape that could hide it."""


def may_have_many_places(buffer: bytes) -> bool:
    """Whether a DECIMAL in the buffer could have more than 76 places, which the reader must never see.

    It scales by a table of powers of ten that ends there, and does not look whether it ends: `0e-2147483647`
    crashes the process. Places that are written out are no danger, since they count as digits beforehand.
    """
    return _matches(buffer, MANY_PLACES)


def _matches(buffer: bytes, pattern: str) -> bool:
    ends = np.array([0, len(buffer)], dtype=np.int32)
    whole = pa.Array.from_buffers(pa.binary(), 1, [None, pa.py_buffer(ends), pa.py_buffer(buffer)])
    return bool(pc.match_substring_regex(whole, pattern)[0].as_py())


FAR = r"[0-9.]{155,}|[eE]\+?0*(?:1[5-9][0-9]|[2-9][0-9]{2}|[1-9][0-9]{3,})"
"""So many digits, or such an exponent: every number beyond the range of a DOUBLE has one of them."""


def may_be_beyond(buffer: bytes) -> bool:
    """Whether a number in the buffer could be beyond a DOUBLE's range: the reader makes an infinity of it."""
    return _matches(buffer, FAR)


def holds_infinity(read: pa.Array | pa.ChunkedArray) -> bool:
    """Whether a floating point number in it, at whatever depth, is infinite."""
    if isinstance(read, pa.ChunkedArray):
        return any(map(holds_infinity, read.chunks))
    if pa.types.is_floating(read.type):
        return bool(pc.any(pc.is_inf(read)).as_py())
    if pa.types.is_struct(read.type):
        return any(holds_infinity(read.field(i)) for i in range(read.type.num_fields))
    return pa.types.is_list(read.type) and holds_infinity(read.values)


def finish(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """What was read, as the table's type, checked. Raises `ValueError` where a value does not fit."""
    if column.type == kind and not needs_check(kind):
        return column
    return pa.chunked_array([fit(chunk, kind) for chunk in column.chunks], kind)


def needs_check(kind: pa.DataType) -> bool:
    return kind in (pa.float32(), pa.float64(), UTC_MICROS, *_READ_AS_TEXT) or any(
        needs_check(child.type) or not child.nullable for child in _children(kind)
    )


def fit(read: pa.Array, kind: pa.DataType) -> pa.Array:
    """`read` as an array of `kind`, whose shape it has. Raises `ValueError` where a value does not fit."""
    if pa.types.is_struct(kind):
        return _fit_struct(read, kind)
    if pa.types.is_list(kind):
        values = fit(read.values, kind.value_type)
        return pa.ListArray.from_arrays(read.offsets, values, type=kind, mask=_nulls(read))
    if pa.types.is_map(kind):
        items = fit(read.items, kind.item_type)
        return pa.MapArray.from_arrays(read.offsets, read.keys, items, type=kind, mask=_nulls(read))
    if kind == pa.binary():
        return read if read.type == kind else _decoded(read)
    done = read if read.type == kind else read.cast(kind)  # of a DECIMAL this checks the precision
    if kind == pa.float32():
        if pc.any(pc.and_(pc.is_inf(done), pc.invert(pc.is_inf(read)))).as_py():
            raise Misfit("a number beyond the range of a FLOAT")
        return pc.add(done, pa.scalar(0.0, kind))
    if kind == pa.float64():
        return pc.add(done, pa.scalar(0.0, kind))  # a negative zero is zero, whichever reader reads it
    if kind == pa.date32():
        _check_range(done.view(pa.int32()), DAYS)
    elif kind in (UTC_MICROS, LOCAL_MICROS):
        _check_range(done.view(pa.int64()), MICROS)
    return done


def _decoded(read: pa.StringArray) -> pa.BinaryArray:
    try:
        decoded = [from_base64(text) if text is not None else None for text in read.to_pylist()]
    except ValueError:
        raise Misfit("a string that is not base64") from None
    return pa.array(decoded, pa.binary())


def _fit_struct(read: pa.StructArray, kind: pa.StructType) -> pa.StructArray:
    inside: list[pa.Array] = []
    for i, field in enumerate(kind):
        done = fit(read.field(i), field.type)
        if not field.nullable and done.null_count:
            if pc.struct_field(read, i).null_count > read.null_count:
                raise Misfit("a required field is missing or null")
            done = without_nulls(
                done
            )  # they are in null STRUCTs only, but parquet's writer would refuse them
        inside.append(done)
    return pa.StructArray.from_arrays(inside, fields=list(kind), mask=_nulls(read))


def without_nulls(array: pa.Array) -> pa.Array:
    """The same values, with any value in the place of a null."""
    if pa.types.is_struct(array.type):
        children = [array.field(i) for i in range(array.type.num_fields)]
        return pa.StructArray.from_arrays(children, fields=list(array.type))
    if pa.types.is_map(array.type):
        return pa.MapArray.from_arrays(array.offsets, array.keys, array.items, type=array.type)
    if pa.types.is_list(array.type):
        return pa.ListArray.from_arrays(array.offsets, array.values, type=array.type)
    buffers = [None, *array.buffers()[1:]]
    return pa.Array.from_buffers(array.type, len(array), buffers, null_count=0, offset=array.offset)


def _nulls(read: pa.Array) -> pa.BooleanArray | None:
    return read.is_null() if read.null_count else None


def _check_range(numbers: pa.Array, limits: tuple[int, int]) -> None:
    bounds = pc.min_max(numbers)
    low, high = bounds["min"].as_py(), bounds["max"].as_py()
    if low is not None and (low < limits[0] or high > limits[1]):
        raise Misfit("a date outside the years 1 to 9999")

"""Scalars of Protobuf: as what the wire's values are read, which columns take them, and what is checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa
from google.protobuf.descriptor import EnumDescriptor
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Proto

from participant.records.by_schema.misread import Misread
from table.schema import DECIMAL_PRECISION_MAX

Convert: TypeAlias = Callable[[Any], Any]
"""Of what the parser made: the column's value. Raises `Misread`."""

WIRE: Mapping[int, Any] = {
    Proto.TYPE_BOOL: Proto.TYPE_UINT64,
    Proto.TYPE_INT32: Proto.TYPE_INT64,
    Proto.TYPE_ENUM: Proto.TYPE_INT64,
    Proto.TYPE_UINT32: Proto.TYPE_UINT64,
    Proto.TYPE_SINT32: Proto.TYPE_SINT64,
    Proto.TYPE_STRING: Proto.TYPE_BYTES,
    Proto.TYPE_MESSAGE: Proto.TYPE_BYTES,
    **{
        one: one
        for one in (
            *(Proto.TYPE_INT64, Proto.TYPE_UINT64, Proto.TYPE_SINT64, Proto.TYPE_BYTES),
            *(Proto.TYPE_FIXED32, Proto.TYPE_FIXED64, Proto.TYPE_SFIXED32, Proto.TYPE_SFIXED64),
            *(Proto.TYPE_FLOAT, Proto.TYPE_DOUBLE),
        )
    },
}
"""A field's type -> one that the wire spells alike, and that nothing is lost in."""

INT_LIMIT, UINT_LIMIT = 1 << 31, 1 << 32
UINT64_DIGITS = 20


def _int32(number: int) -> int:
    if not -INT_LIMIT <= number < INT_LIMIT:
        raise Misread("a number beyond the range of its type")
    return number


def _uint32(number: int) -> int:
    if number >= UINT_LIMIT:
        raise Misread("a number beyond the range of its type")
    return number


def _bool(number: int) -> bool:
    if number > 1:
        raise Misread("a boolean that is neither 0 nor 1")
    return number == 1


def _text(data: bytes) -> str:
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError:
        raise Misread("a string that is not UTF-8") from None


def _same(value: Any) -> Any:
    return value


def _float(number: float) -> float:
    """A negative zero is zero, as in every other format."""
    return number + 0.0


_INT32: Mapping[pa.DataType, Convert] = {
    pa.int32(): _int32,
    pa.int64(): _int32,
    pa.float64(): lambda number: float(_int32(number)),
}
_UINT32: Mapping[pa.DataType, Convert] = {
    pa.int64(): _uint32,
    pa.float64(): lambda number: float(_uint32(number)),
}
_INT64: Mapping[pa.DataType, Convert] = {pa.int64(): _same}
_UINT64: Mapping[pa.DataType, Convert] = {}

SCALARS: Mapping[int, Mapping[pa.DataType, Convert]] = {
    Proto.TYPE_BOOL: {pa.bool_(): _bool},
    Proto.TYPE_INT32: _INT32,
    Proto.TYPE_SINT32: _INT32,
    Proto.TYPE_SFIXED32: _INT32,
    Proto.TYPE_UINT32: _UINT32,
    Proto.TYPE_FIXED32: _UINT32,
    Proto.TYPE_INT64: _INT64,
    Proto.TYPE_SINT64: _INT64,
    Proto.TYPE_SFIXED64: _INT64,
    Proto.TYPE_UINT64: _UINT64,
    Proto.TYPE_FIXED64: _UINT64,
    Proto.TYPE_FLOAT: {pa.float32(): _float, pa.float64(): _float},
    Proto.TYPE_DOUBLE: {pa.float64(): _float},
    Proto.TYPE_STRING: {pa.string(): _text},
    Proto.TYPE_BYTES: {pa.binary(): _same},
}
"""Type -> the columns that take it, and how. Besides: `enum_columns`, `decimals`."""


def enum_columns(enum: EnumDescriptor) -> Mapping[pa.DataType, Convert]:
    """The name of a number, where it has one; the number, whatever it is."""
    names: dict[int, str] = {}
    for value in enum.values:
        names.setdefault(value.number, value.name)  # the first of several

    def name(number: int) -> str:
        if number not in names:
            raise Misread("an enum's number that its schema has no name for")
        return names[number]

    return {pa.string(): name, pa.int32(): _int32}


def decimals(field: Any, kind: pa.Decimal128Type) -> Convert | None:
    """Of numbers of 64 bits without a sign, which no other column holds; None where not all fit."""
    if field.type not in (Proto.TYPE_UINT64, Proto.TYPE_FIXED64):
        return None
    if kind.precision - kind.scale < UINT64_DIGITS or kind.precision > DECIMAL_PRECISION_MAX:
        return None
    return Decimal

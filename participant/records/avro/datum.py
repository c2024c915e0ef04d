"""The binary encoding of Avro, read strictly: each type as a function of the bytes and where it begins.

Why not fastavro's own reader: it takes what the specification does not allow (a union's branch -1, an enum's
symbol -1, a boolean of 7, a number of more than 64 bits, which wraps around, an INT beyond its range, a key
of a map twice), and being the C that it is, is not faster than this. Tests hold the two against each other.

Nothing is allocated for a length that is announced and not there. A number spelled with more bytes than it
needs is accepted, as everybody does. Source: Avro 1.12, "Binary Encoding".
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from participant.records.by_schema.misread import Misread
from participant.records.by_schema.value_count import ValueCount

Read: TypeAlias = Callable[[bytes, int], tuple[Any, int]]
"""Of a datum and an index in it: the value, and the index behind it. Raises `Misread`, or `IndexError` where
the datum ends too soon."""

INT_LIMIT = 1 << 31
UNSIGNED_LIMIT = 1 << 64
SHIFT_MAX = 63
CUT = "the value ends in the middle"

_FLOAT, _DOUBLE = struct.Struct("<f"), struct.Struct("<d")


def read_null(_data: bytes, at: int) -> tuple[None, int]:
    return None, at


def read_long(data: bytes, at: int) -> tuple[int, int]:
    """Variable-length, zig-zag."""
    byte = data[at]
    at += 1
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), at
    number, shift = byte & 0x7F, 7
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > SHIFT_MAX:
            raise Misread("a number of more than 64 bits")
    if number >= UNSIGNED_LIMIT:
        raise Misread("a number of more than 64 bits")
    return (number >> 1) ^ -(number & 1), at


def read_int(data: bytes, at: int) -> tuple[int, int]:
    number, at = read_long(data, at)
    if not -INT_LIMIT <= number < INT_LIMIT:
        raise Misread("an int beyond its range")
    return number, at


def read_boolean(data: bytes, at: int) -> tuple[bool, int]:
    byte = data[at]
    if byte > 1:
        raise Misread("a boolean that is neither 0 nor 1")
    return byte == 1, at + 1


def read_float(data: bytes, at: int) -> tuple[float, int]:
    """A negative zero is zero, as in every other format."""
    if at + 4 > len(data):
        raise Misread(CUT)
    return _FLOAT.unpack_from(data, at)[0] + 0.0, at + 4


def read_double(data: bytes, at: int) -> tuple[float, int]:
    if at + 8 > len(data):
        raise Misread(CUT)
    return _DOUBLE.unpack_from(data, at)[0] + 0.0, at + 8


def read_bytes(data: bytes, at: int) -> tuple[bytes, int]:
    length, at = read_long(data, at)
    end = at + length
    if length < 0 or end > len(data):
        raise Misread(CUT if length >= 0 else "a length below zero")
    return data[at:end], end


def read_string(data: bytes, at: int) -> tuple[str, int]:
    length, at = read_long(data, at)
    end = at + length
    if length < 0 or end > len(data):
        raise Misread(CUT if length >= 0 else "a length below zero")
    try:
        return str(data[at:end], "utf-8"), end
    except UnicodeDecodeError:
        raise Misread("a string that is not UTF-8") from None


def fixed_of(size_bytes: int) -> Read:
    def read(data: bytes, at: int) -> tuple[bytes, int]:
        end = at + size_bytes
        if end > len(data):
            raise Misread(CUT)
        return data[at:end], end

    return read


def enum_of(symbols: Sequence[str], count: ValueCount | None = None) -> Read:
    """`count`: counts the symbols, where they become values."""

    def read(data: bytes, at: int) -> tuple[str, int]:
        index, at = read_long(data, at)
        if not 0 <= index < len(symbols):
            raise Misread("an enum's symbol that there is not")
        symbol = symbols[index]
        if count is not None:
            count.spend_name(symbol)
        return symbol, at

    return read


def union_of(branches: Sequence[Read]) -> Read:
    """Of a nullable type, too: the value is the branch's."""

    def read(data: bytes, at: int) -> tuple[Any, int]:
        index, at = read_long(data, at)
        if not 0 <= index < len(branches):
            raise Misread("a union's branch that there is not")
        return branches[index](data, at)

    return read


def array_of(item: Read, count: ValueCount | None = None, places: int = 1) -> Read:
    """Return a reader of arrays, whose items take at least one byte. `count`: counts `places` per item."""

    def read(data: bytes, at: int) -> tuple[list[Any], int]:
        items: list[Any] = []
        while True:
            number, end, at = _block(data, at)
            if not number:
                return items, at
            try:
                for _ in range(number):
                    if count is not None:
                        count.spend(places)
                    one, at = item(data, at)
                    items.append(one)
            except Misread as misread:
                raise misread.inside("[]") from None
            _expect_end(at, end)

    return read


def map_of(value: Read, count: ValueCount | None = None, places: int = 1) -> Read:
    """Return a reader of maps as pairs, as Arrow takes them. `count`: see `array_of`."""

    def read(data: bytes, at: int) -> tuple[list[tuple[str, Any]], int]:
        entries: dict[str, Any] = {}
        while True:
            number, end, at = _block(data, at)
            if not number:
                return list(entries.items()), at
            try:
                for _ in range(number):
                    if count is not None:
                        count.spend(1 + places)
                    key, at = read_string(data, at)
                    if key in entries:
                        raise Misread("a key that is there twice")
                    entries[key], at = value(data, at)
            except Misread as misread:
                raise misread.inside("{}") from None
            _expect_end(at, end)

    return read


def _block(data: bytes, at: int) -> tuple[int, int, int]:
    """How many there are in a block of an array or map, where it must end (-1: not said), and its first."""
    count, at = read_long(data, at)
    end = -1
    if count < 0:
        count = -count
        size, at = read_long(data, at)
        end = at + size
        if size < 0 or end > len(data):
            raise Misread(CUT if size >= 0 else "a length below zero")
    if count > len(data) - at:
        raise Misread(CUT)
    return count, end, at


def _expect_end(at: int, end: int) -> None:
    if end >= 0 and at != end:
        raise Misread("a block that is not as long as it says")


def record_of(fields: Sequence[tuple[str, Read, bool]], required: Sequence[str] = ()) -> Read:
    """Name, how it is read, and whether it is wanted; a wanted field in `required` is never null."""
    wanting = frozenset(required)

    def read(data: bytes, at: int) -> tuple[dict[str, Any], int]:
        row: dict[str, Any] = {}
        name = ""
        try:
            for name, one, wanted in fields:
                value, at = one(data, at)
                if wanted:
                    row[name] = value
                    if value is None and name in wanting:
                        raise Misread("null, and required")
        except IndexError:
            raise Misread(CUT).inside(name) from None
        except Misread as misread:
            raise misread.inside(name) from None
        return row, at

    return read

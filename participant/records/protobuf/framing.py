"""What stands before a message and says of which schema it is, and which message of that.

An id or a GUID, as before Avro (`participant.records.by_schema.framing`), and then where in its file the
message is defined: how many numbers follow, and the numbers, level by level, from 0, each a zig-zag varint.
A single byte 0 stands for the first message. With the id in a header, all of it is there (Confluent's "Wire
format"; confluent-kafka's `SchemaId`). The plain varints of its first versions (`use.deprecated.format`)
are not read: its own deserializer has given them up, too.
"""

from __future__ import annotations

from typing import TypeAlias

from participant.records.by_schema.framing import SchemaKey, identity
from participant.records.by_schema.misread import Misread
from participant.records.protobuf.files import Which

MessageKey: TypeAlias = tuple[SchemaKey, Which]
"""By what a value names its schema, and which message of it it is."""

DEPTH_MAX = 64
NUMBER_BYTES_MAX = 5
FIRST = (0,)


def confluent(value: bytes, header: bytes | None) -> tuple[MessageKey, int]:
    """By which schema and message a value was written, and where it begins. Raises `Misread`."""
    if header is None:
        what, data = "the value", value
    else:
        what, data = "the header that names the schema", header
    key, at = identity(data, what)
    try:
        place, at = _place(data, at)
    except IndexError:
        raise Misread(f"{what} ends within the place of its message") from None
    if header is None:
        return (key, place), at
    if at != len(header):
        raise Misread(f"{what} is longer than a schema's id and the place of a message")
    return (key, place), 0


def _place(data: bytes, at: int) -> tuple[tuple[int, ...], int]:
    count, at = _number(data, at)
    if count == 0:
        return FIRST, at
    if not 0 < count <= DEPTH_MAX:
        raise Misread(f"the place of its message has not 1 to {DEPTH_MAX} numbers")
    place = []
    for _ in range(count):
        number, at = _number(data, at)
        if number < 0:
            raise Misread("the place of its message has a number below zero")
        place.append(number)
    return tuple(place), at


def _number(data: bytes, at: int) -> tuple[int, int]:
    number = 0
    for place in range(NUMBER_BYTES_MAX):
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at
    raise Misread("the place of its message has a number of more than 32 bits")

"""How messages become values, a level at a time: each is parsed of its own bytes, by Protobuf's own parser.

That parser makes room for all columns of a message, though it has two bytes on the wire, and keeps what is
overwritten until the end. So none is parsed within another: a message in one is bytes to it, and what repeats
is counted first. Of a message that is there more than once, the bytes one after the other are all of them
merged (Protobuf's "Encoding", "Last One Wins").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from participant.records.by_schema.misread import Misread
from participant.records.by_schema.value_count import ValueCount

Read: TypeAlias = Callable[[bytes], Any]
"""Of a message's bytes: a column's value. Raises `Misread`."""
Take: TypeAlias = Callable[[Any, bytes], Any]
"""Of a message, as it was parsed, and of its bytes: a column's value, or None for null. Raises `Misread`."""

LENGTH_DELIMITED, GROUP_BEGINS, GROUP_ENDS = 2, 3, 4
FIXED_BYTES = {1: 8, 5: 4}


class Parser:
    """Parses messages of the types that it was given, by name, and counts values. Not for several threads."""

    def __init__(self) -> None:
        self.count = ValueCount()
        """The values of one record."""
        self.classes: dict[str, Any] = {}
        """Of messages, by name."""

    def parse(self, name: str, data: bytes) -> Any:
        """Raises `Misread`."""
        try:
            return self.classes[name].FromString(data)
        except DecodeError:
            raise Misread("the bytes are no message of Protobuf, or end in the middle") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A type of messages that a parser knows."""

    name: str
    read: Read
    values: int
    """How many one has, at least."""


def row(
    parser: Parser,
    name: str,
    takes: Sequence[tuple[str, Take, bool]],
    absent: Sequence[str],
    numbers: frozenset[int],
) -> Read:
    """A dictionary. `takes`: of each column its name, what takes it, whether it is required; `absent`: those
    that are null in any case; `numbers`: of all fields that are known."""
    empty = dict.fromkeys(absent)

    def read(data: bytes) -> dict[str, Any]:
        message = _parsed(parser, name, data, numbers)
        made: dict[str, Any] = dict(empty)
        column = ""
        try:
            for column, take, required in takes:
                value = made[column] = take(message, data)
                if value is None and required:
                    raise Misread("null, and required")
        except Misread as misread:
            raise misread.inside(column) from None
        return made

    return read


def only(parser: Parser, name: str, take: Take, numbers: frozenset[int]) -> Read:
    """The value of the one field that counts."""
    return lambda data: take(_parsed(parser, name, data, numbers), data)


def entry(parser: Parser, name: str, key: Take, value: Take, numbers: frozenset[int]) -> Read:
    """Key and value of a map's entry."""

    def read(data: bytes) -> tuple[str, Any]:
        message = _parsed(parser, name, data, numbers)
        return key(message, data), value(message, data)

    return read


def _parsed(parser: Parser, name: str, data: bytes, numbers: frozenset[int]) -> Any:
    """What the parser does not know is no column, or its wire type is another than its schema's."""
    message = parser.parse(name, data)
    unknown: Any = UnknownFieldSet(message)
    for one in unknown:
        if one.field_number in numbers:
            raise Misread(f"field number {one.field_number} is encoded as another type than its schema says")
    return message


# --- fields -----------------------------------------------------------------------------------------


def scalar(name: str, convert: Callable[[Any], Any], *, presence: bool) -> Take:
    """`presence`: whether it can be told that it is not set, which is null."""
    if presence:
        return lambda message, _: convert(getattr(message, name)) if message.HasField(name) else None
    return lambda message, _: convert(getattr(message, name))


def scalars(parser: Parser, name: str, convert: Callable[[Any], Any]) -> Take:
    """Of a field that is repeated."""

    def take(message: Any, _data: bytes) -> list[Any]:
        items = getattr(message, name)
        try:
            parser.count.spend(len(items))
            return [convert(one) for one in items]
        except Misread as misread:
            raise misread.inside("[]") from None

    return take


def messages(parser: Parser, name: str, inner: Message) -> Take:
    """Of a field that is repeated, and bytes to its parser."""

    def take(message: Any, _data: bytes) -> list[Any]:
        items = []
        try:
            for data in getattr(message, name):
                parser.count.spend(inner.values)
                items.append(inner.read(data))
        except Misread as misread:
            raise misread.inside("[]") from None
        return items

    return take


def pairs(take: Take) -> Take:
    """Of a map, whose entries are taken: of a key that is there twice the last counts."""
    return lambda message, data: list(dict(take(message, data)).items())


def one_message(parser: Parser, name: str, inner: Message, *, absent: bytes | None = None) -> Take:
    """Of a field of no oneof, which is repeated bytes to its parser. `absent`: what stands for none."""

    def take(message: Any, _data: bytes) -> Any:
        parts = getattr(message, name)
        if parts:
            return inner.read(_merged(parser, inner, list(parts)))
        return None if absent is None else inner.read(absent)

    return take


def member(parser: Parser, name: str, number: int, rivals: frozenset[int], inner: Message) -> Take:
    """Of a field of a oneof whose others are `rivals`, and bytes to its parser."""

    def take(message: Any, data: bytes) -> Any:
        if not message.HasField(name):
            return None
        parts: list[bytes] = []
        for found, wire, content in fields(data):
            if found in rivals:
                parts.clear()
            elif found == number and wire == LENGTH_DELIMITED:
                parts.append(content)
        return inner.read(_merged(parser, inner, parts))

    return take


def required(name: str, take: Take, *, repeated: bool) -> Take:
    """Of a field that its schema requires. `repeated`: whether it is to its parser."""

    def there(message: Any, data: bytes) -> Any:
        if not (getattr(message, name) if repeated else message.HasField(name)):
            raise Misread("it is not there, and its schema requires it")
        return take(message, data)

    return there


def _merged(parser: Parser, inner: Message, parts: Sequence[bytes]) -> bytes:
    if len(parts) > 1:
        for part in parts:
            parser.parse(inner.name, part)  # each is one by itself
    return b"".join(parts)


def fields(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Number, wire type and content (of those with a length) of each field of a message that was parsed."""
    at, depth = 0, 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        content = b""
        if wire == LENGTH_DELIMITED:
            length, at = _varint(data, at)
            content = data[at : at + length]
            at += length
        elif wire in FIXED_BYTES:
            at += FIXED_BYTES[wire]
        elif wire == GROUP_BEGINS:
            depth += 1
        elif wire == GROUP_ENDS:
            depth -= 1
        else:
            _, at = _varint(data, at)
        if not depth and wire != GROUP_ENDS:
            yield number, wire, content


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number, shift = 0, 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7

"""A Kafka record's headers as bytes: for each a length and its name in UTF-8, a length and its value.

Lengths are of 4 bytes, little-endian, signed; -1 for a value that is null. participant/source/_fetcher.c
reads and writes the same. Names may repeat, and their order is kept, as Kafka does. A name that is null (-1)
is no header: its value is a note, last, of what could not be read, and becomes the header `NOTE` of a dead
letter.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

Header = tuple[str, bytes | None]

NOTE = "lockstep.headers"
NO_UTF8 = b"none could be read: a name is no UTF-8"
"""By confluent-kafka, of a record's headers together."""
REPLACED = b"a name is no UTF-8: what is none is replaced"

_LENGTH = struct.Struct("<i")


def pack(headers: Iterable[tuple[str, str | bytes | None]]) -> bytes:
    """The headers of one record as bytes."""
    parts: list[bytes] = []
    for name, value in headers:
        text = name.encode("utf-8", "surrogateescape")
        content = value.encode() if isinstance(value, str) else value
        parts += [_LENGTH.pack(len(text)), text, _LENGTH.pack(-1 if content is None else len(content))]
        parts.append(content or b"")
    return b"".join(parts)


def pack_note(text: bytes) -> bytes:
    """A note, to come after the headers that could be read."""
    return _LENGTH.pack(-1) + _LENGTH.pack(len(text)) + text


UNREADABLE = pack_note(NO_UTF8)


def unpack(packed: bytes) -> list[Header]:
    """The inverse of `pack`; a note is the header `NOTE`."""
    headers: list[Header] = []
    at = 0
    while at < len(packed):
        name, at = _text(packed, at)
        value, at = _text(packed, at)
        headers.append((NOTE if name is None else name.decode("utf-8", "surrogateescape"), value))
    return headers


def first(packed: bytes | None, name: str, mark: bytes) -> bytes | None:
    """The value of the first header of this name; `mark`: the name in bytes."""
    if not packed or mark not in packed:
        return None
    return next((value for one, value in unpack(packed) if one == name), None)


def sendable(packed: bytes) -> list[Header]:
    """The same for confluent-kafka, which takes no name that is not UTF-8; with a note where one was not."""
    headers = unpack(packed)
    readable = [(_readable(name), value) for name, value in headers]
    return readable if readable == headers else [*readable, (NOTE, REPLACED)]


def _readable(name: str) -> str:
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _text(packed: bytes, at: int) -> tuple[bytes | None, int]:
    (length,) = _LENGTH.unpack_from(packed, at)
    begin = at + _LENGTH.size
    return (None, begin) if length < 0 else (packed[begin : begin + length], begin + length)

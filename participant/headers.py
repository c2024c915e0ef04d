"""A Kafka record's headers as bytes: for each a length and its name in UTF-8, a length and its value.

Lengths are of 4 bytes, little-endian, signed; -1 for a value that is null. participant/_fetcher.c reads and
writes the same. Names may repeat, and their order is kept, as Kafka does.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

Header = tuple[str, bytes | None]

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


def unpack(packed: bytes) -> list[Header]:
    """The inverse of `pack`."""
    headers: list[Header] = []
    at = 0
    while at < len(packed):
        name, at = _text(packed, at)
        value, at = _text(packed, at)
        headers.append(((name or b"").decode("utf-8", "replace"), value))
    return headers


def _text(packed: bytes, at: int) -> tuple[bytes | None, int]:
    (length,) = _LENGTH.unpack_from(packed, at)
    begin = at + _LENGTH.size
    return (None, begin) if length < 0 else (packed[begin : begin + length], begin + length)

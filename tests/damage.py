"""Damage in a broker's log, on its disk: a batch of records that no reader can read.

A batch of Kafka's format 2 is a header of 61 bytes and the records, compressed or not; its checksum covers
what comes after itself.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path

HEADER_BYTES = 61
ATTRIBUTES_AT = 21
CHECKSUM_AT = 17
CODEC_MASK = 0x07


class Damage(Enum):
    """`BITS`: the checksum tells. `PAYLOAD`: the checksum is right, the records make no sense.

    `CODEC`: the checksum is right, the records are compressed as nobody knows how.
    """

    BITS = "bits"
    PAYLOAD = "payload"
    CODEC = "codec"


@dataclass(frozen=True, slots=True)
class Batch:
    """Where a batch lies in its segment's file, and the offsets `[first, next)` that it holds."""

    at: int
    size_bytes: int
    first: int
    next: int


def batches(segment: Path) -> list[Batch]:
    """All batches of a segment, in order."""
    data, at, found = segment.read_bytes(), 0, []
    while at + HEADER_BYTES <= len(data):
        first, length = struct.unpack_from(">qi", data, at)
        last_delta = struct.unpack_from(">i", data, at + 23)[0]
        if length <= 0:
            break
        found.append(Batch(at, 12 + length, first, first + last_delta + 1))
        at += 12 + length
    return found


def damage(broker_folder: Path, topic: str, number: int, batch: int, how: Damage) -> Batch:
    """Damage the batch with this index in the first segment of a source partition."""
    segment = min((broker_folder / "logs" / f"{topic}-{number}").glob("*.log"))
    one = batches(segment)[batch]
    data = bytearray(segment.read_bytes()[one.at : one.at + one.size_bytes])
    if how is Damage.CODEC:
        data[ATTRIBUTES_AT + 1] |= CODEC_MASK
    else:
        for at in range(HEADER_BYTES + 4, min(len(data), HEADER_BYTES + 40)):
            data[at] ^= 0x5A
    if how is not Damage.BITS:
        struct.pack_into(">I", data, CHECKSUM_AT, crc32c(bytes(data[ATTRIBUTES_AT:])))
    with segment.open("r+b") as file:
        file.seek(one.at)
        file.write(data)
    return one


def crc32c(data: bytes) -> int:
    """The checksum of Castagnoli's polynomial."""
    table, crc = _table(), 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


@cache
def _table() -> tuple[int, ...]:
    def entry(value: int) -> int:
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        return value

    return tuple(map(entry, range(256)))

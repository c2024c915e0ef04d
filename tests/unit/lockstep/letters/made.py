"""Letters as workers write them, for tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from control_topic.messages import SourcePartition
from lockstep.letters.letter import Letter, Place, Read, read
from participant.records.headers import Header, pack
from participant.records.raw import RawBatch, Values

DEAD = SourcePartition("events.dlq", 0)
AT = Place(partition=DEAD, offset=7, time_ms=1_700_000_100_000)


def ours(**changed: Any) -> list[tuple[str, bytes | None]]:
    """The headers of ours, in their order; a value of None in `changed` leaves one out."""
    told = {
        "lockstep.topic": b"events",
        "lockstep.partition": b"3",
        "lockstep.offset": b"12",
        "lockstep.timestamp": b"1700000000000",
        "lockstep.key": b"k",
        "lockstep.reason": b"field amount is no number",
    } | {f"lockstep.{name}": value for name, value in changed.items()}
    return [(name, value) for name, value in told.items() if value is not None]


def read_one(
    own: Sequence[Header] = (),
    *,
    key: bytes | None = b"events-3-12",
    value: bytes | None = b"{",
    **changed: Any,
) -> Read:
    return read(AT, key, value, pack([*own, *ours(**changed)]))


def letter(offset: int = 12, **changed: Any) -> Letter:
    told: dict[str, Any] = {
        "partition": SourcePartition("events", 3),
        "timestamp_ms": 1_700_000_000_000,
        "key": b"k",
        "value": b'{"id": 1}',
        "headers": (("trace", b"secret-trace"),),
        "reason": "field amount is no number",
        "place": AT,
    }
    return Letter(offset=offset, **{**told, **changed})


def batch(*records: tuple[bytes | None, bytes | None, bytes]) -> RawBatch:
    """Of the dead-letter topic: keys, values, packed headers."""
    keys, values, headers = zip(*records, strict=True)
    offsets = np.arange(len(records), dtype=np.int64)
    return RawBatch(
        partition=DEAD,
        offsets=offsets,
        timestamps_ms=offsets + AT.time_ms,
        values=Values.of(values),
        record_keys=Values.of(keys),
        headers=Values.of(headers),
    )

"""Marks: which dead letters were sent back, as records of a topic of their own. Pure.

Beside each dead-letter topic stands `<dead-letter topic>.replayed`. It has one record for each letter that
was sent back, written in the transaction that sends it: so there is a mark if, and only if, the record is
there. Its key is the letter's `mark`, its value a JSON object that says where it went, when, who did it and
why.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from control_topic.messages import SourcePartition
from lockstep.errors import Failed
from lockstep.letters.letter import Letter, digest

SUFFIX = ".replayed"
VERSION = 1
MARKS_MAX = 2_000_000
"""Some 300 bytes of memory each."""
_WHERE = struct.Struct("<iqq")


@dataclass(frozen=True, slots=True, kw_only=True)
class SentBack:
    """Where the record went, in its source topic, and when (milliseconds since 1970)."""

    number: int
    offset: int
    time_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class By:
    """On whose word."""

    pipeline: str
    operator: str
    why: str


def mark_topic(dead_letter_topic: str) -> str:
    return dead_letter_topic + SUFFIX


def mark_value(letter: Letter, went: SentBack, by: By) -> bytes:
    """For people, and for `sent_back`."""
    told = {
        "version": VERSION,
        "topic": letter.partition.topic,
        "partition": letter.partition.number,
        "offset": letter.offset,
        "timestamp": letter.timestamp_ms,
        "letter": {"partition": letter.place.partition.number, "offset": letter.place.offset},
        "sent_to": {"partition": went.number, "offset": went.offset},
        "time": went.time_ms,
        "pipeline": by.pipeline,
        "operator": by.operator,
        "why": by.why,
    }
    return json.dumps(told, ensure_ascii=False, separators=(",", ":")).encode()


class Marks(Mapping[bytes, SentBack]):
    """By identity, as small as they get."""

    def __init__(self, *, marks_max: int = MARKS_MAX) -> None:
        self._marks: dict[bytes, bytes] = {}
        self._marks_max = marks_max

    def add(self, place: SourcePartition, key: bytes | None, value: bytes | None) -> None:
        """One record of the topic. Its key counts whatever its value says: nothing is sent twice for a mark
        that is of another version. Raises `Failed` where there are too many.
        """
        if key is None or value is None:
            return
        if len(self._marks) >= self._marks_max:
            raise Failed(
                f"{place.topic} has more than {self._marks_max:,} marks of letters that were sent back, "
                "more than are "
                "held in memory: set another record.dead_letter_topic, and keep this pair of topics for "
                "what is in them"
            )
        self._marks[digest(key)] = _packed(value)

    def __getitem__(self, identity: bytes) -> SentBack:
        number, offset, time_ms = _WHERE.unpack(self._marks[identity])
        return SentBack(number=number, offset=offset, time_ms=time_ms)

    def __len__(self) -> int:
        return len(self._marks)

    def __iter__(self) -> Any:
        return iter(self._marks)

    def __contains__(self, identity: object) -> bool:
        return identity in self._marks


_UNKNOWN = _WHERE.pack(-1, -1, -1)


def _packed(value: bytes) -> bytes:
    try:
        told = json.loads(value)
        return _WHERE.pack(told["sent_to"]["partition"], told["sent_to"]["offset"], told["time"])
    except (ValueError, KeyError, TypeError, RecursionError, struct.error):
        return _UNKNOWN

"""A dead letter as it stands in its topic: the record that it was, where that was, why it is no row. Pure.

What a dead letter holds: docs/operations.md, *Dead letters*. Who writes them:
participant/source/letter_senders.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TypeAlias

from control_topic.messages import SourcePartition
from participant.records.headers import NOTE, UNREADABLE, Header, unpack
from participant.records.raw import RawBatch

WHERE = ("lockstep.topic", "lockstep.partition", "lockstep.offset", "lockstep.timestamp")
KEY = "lockstep.key"
REASON = "lockstep.reason"
RUN = "lockstep.run"
OURS = tuple((*WHERE, *key, REASON, *run) for run in ((RUN,), ()) for key in ((KEY,), ()))
"""Names of our headers, in their order, behind the record's own; with and without the record's key, and the
run, which older versions did not write.
"""
IDENTITY_BYTES = 16
_NUMBER = re.compile(rb"-?[0-9]{1,19}")

NO_LETTER = (
    "it has not the headers of a dead letter (lockstep.topic and its kin, last): somebody else, or another "
    "version "
    "of Lockstep, has written it"
)
NO_HEADERS = (
    "its headers cannot be had by the plain reader, since a name among them is no UTF-8: "
    'source.reader = "native" reads them'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where it stands in the dead-letter topic, and since when (milliseconds since 1970)."""

    partition: SourcePartition
    offset: int
    time_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """A record that was no row."""

    partition: SourcePartition
    """Of its source topic; `offset` and `timestamp_ms` likewise."""
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    """Its own. A name that is no UTF-8 has surrogates, as `participant.records.headers` says."""
    reason: str
    run: str = ""
    """Run that wrote it; empty in letters of older versions."""
    note: str = ""
    """What of its headers could not be had when it was set aside; empty where all could."""
    place: Place

    @property
    def name(self) -> str:
        return f"{self.partition}@{self.offset}"

    @property
    def mark(self) -> str:
        """Tells it from every other record, also from one of a topic that was made anew."""
        topic, number = self.partition
        return f"{topic}-{number}-{self.offset}@{self.timestamp_ms}"

    @property
    def identity(self) -> bytes:
        return digest(self.mark.encode())

    @property
    def size_bytes(self) -> int:
        """Of all that it holds."""
        headers = sum(len(name) + len(value or b"") for name, value in self.headers)
        return len(self.key or b"") + len(self.value or b"") + headers

    @property
    def why_not_sent(self) -> str:
        """Why the record cannot be sent as it was; empty where it can."""
        if self.note:
            return f"its headers were not had whole when it was set aside ({self.note})"
        if any(not sendable(name) for name, _ in self.headers):
            return "a header's name is no UTF-8, or has a NUL: this client cannot send it as it was"
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoLetter:
    """What stands in a dead-letter topic and cannot be read as one."""

    place: Place
    why: str


Read: TypeAlias = Letter | NoLetter


def digest(mark: bytes) -> bytes:
    """What is kept of a mark in memory."""
    return blake2b(mark, digest_size=IDENTITY_BYTES).digest()


def sendable(name: str) -> bool:
    """Whether confluent-kafka sends a header of this name as it is."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in name


def letters_of(batch: RawBatch) -> Iterator[Read]:
    """All of a batch that was read whole, with keys and headers."""
    if batch.record_keys is None or batch.headers is None:
        raise ValueError("a batch without keys and headers")
    for index in range(len(batch)):
        place = Place(
            partition=batch.partition,
            offset=int(batch.offsets[index]),
            time_ms=int(batch.timestamps_ms[index]),
        )
        yield read(place, batch.record_keys[index], batch.values[index], batch.headers[index] or b"")


def read(place: Place, key: bytes | None, value: bytes | None, packed: bytes) -> Read:
    """One record of a dead-letter topic; `packed`: its headers."""
    if packed == UNREADABLE:
        return NoLetter(place=place, why=NO_HEADERS)
    headers = unpack(packed)
    names = next((ours for ours in OURS if _ends_with(headers, ours)), None)
    if names is None:
        return NoLetter(place=place, why=NO_LETTER)
    own, ours = headers[: -len(names)], dict(headers[-len(names) :])
    numbers = [_number(ours[name]) for name in WHERE[1:]]
    topic, reason = _text(ours[WHERE[0]]), _text(ours[REASON])
    number, offset, timestamp_ms = numbers
    if not topic or number is None or offset is None or timestamp_ms is None or min(number, offset) < 0:
        return NoLetter(place=place, why=NO_LETTER)
    if key != f"{topic}-{number}-{offset}".encode():
        return NoLetter(place=place, why="its key is not what its headers say: somebody else has written it")
    note = ""
    if own and own[-1][0] == NOTE:
        note = _text(own.pop()[1])
    return Letter(
        partition=SourcePartition(topic, number),
        offset=offset,
        timestamp_ms=timestamp_ms,
        key=ours.get(KEY),
        value=value,
        headers=tuple(own),
        reason=reason,
        run=_text(ours.get(RUN)),
        note=note,
        place=place,
    )


def _ends_with(headers: Sequence[Header], names: Sequence[str]) -> bool:
    return tuple(name for name, _ in headers[-len(names) :]) == tuple(names)


def _number(value: bytes | None) -> int | None:
    return int(value) if value is not None and _NUMBER.fullmatch(value) else None


def _text(value: bytes | None) -> str:
    return (value or b"").decode("utf-8", "replace")

"""Bodies too large for one Kafka record, split into parts and joined again. Pure: standard library only.

Parts are joined by who sent them and by what they are parts of: (pipeline, run, incarnation, digest, parts),
where the digest is SHA-256 over the whole body. Two incarnations and two different bodies can therefore
never be joined; two sends of the same body can, which is what makes a repeat useful.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import NamedTuple

from control_topic.errors import Malformed

PARTS_MAX = 4_096
ASSEMBLIES_MAX = 64
PENDING_BYTES_MAX = 64 * 1024 * 1024
DIGEST_BYTES = 32
NAMES_CHARACTERS_MAX = 2_048
"""Of pipeline, run and incarnation together: they are kept beside the parts, and no id is that long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Part `part` (0-based) of `parts` of a body whose SHA-256 is `digest`."""

    pipeline: str
    run: str
    incarnation: str
    digest: bytes
    part: int
    parts: int
    payload: bytes

    def __post_init__(self) -> None:
        if len(self.digest) != DIGEST_BYTES:
            raise Malformed(f"a digest of {len(self.digest)} bytes, SHA-256 has {DIGEST_BYTES}")
        if len(self.pipeline) + len(self.run) + len(self.incarnation) > NAMES_CHARACTERS_MAX:
            raise Malformed(f"names of more than {NAMES_CHARACTERS_MAX} characters")
        if not 1 <= self.parts <= PARTS_MAX:
            raise Malformed(f"a body in {self.parts} parts, 1 to {PARTS_MAX} are allowed")
        if not 0 <= self.part < self.parts:
            raise Malformed(f"part {self.part} of {self.parts}, counted from 0")


def split(*, pipeline: str, run: str, incarnation: str, body: bytes, payload_bytes_max: int) -> list[Part]:
    """The body in parts of at most `payload_bytes_max` bytes, in order; at least one.

    Raises `Malformed` where that takes more than `PARTS_MAX` parts, or more than any reader keeps.
    """
    if payload_bytes_max < 1:
        raise ValueError(f"payload_bytes_max is {payload_bytes_max}, at least 1 is needed")
    if len(body) > PENDING_BYTES_MAX:
        raise Malformed(f"a body of {len(body)} bytes, at most {PENDING_BYTES_MAX} are put together again")
    digest = hashlib.sha256(body).digest()
    starts = range(0, max(len(body), 1), payload_bytes_max)
    if len(starts) > PARTS_MAX:
        raise Malformed(
            f"a body of {len(body)} bytes takes {len(starts)} parts, at most {PARTS_MAX} are allowed"
        )
    return [
        Part(
            pipeline=pipeline,
            run=run,
            incarnation=incarnation,
            digest=digest,
            part=number,
            parts=len(starts),
            payload=body[start : start + payload_bytes_max],
        )
        for number, start in enumerate(starts)
    ]


class _Key(NamedTuple):
    pipeline: str
    run: str
    incarnation: str
    digest: bytes
    parts: int


@dataclass(slots=True)
class _Assembly:
    payloads: dict[int, bytes] = field(default_factory=dict)
    size_bytes: int = 0


class Joiner:
    """Joins parts in whatever order they arrive, within limits; the oldest unfinished body gives way.

    Counts what it threw away: `evicted` bodies, `contradicted` parts (same number, other content) and
    `damaged` bodies (complete, but not what the digest says).
    """

    def __init__(
        self, *, assemblies_max: int = ASSEMBLIES_MAX, pending_bytes_max: int = PENDING_BYTES_MAX
    ) -> None:
        if assemblies_max < 1 or pending_bytes_max < 1:
            raise ValueError(f"limits of {assemblies_max} bodies and {pending_bytes_max} bytes join nothing")
        self._assemblies_max = assemblies_max
        self._pending_bytes_max = pending_bytes_max
        self._pending: dict[_Key, _Assembly] = {}  # in order of the first part's arrival
        self.pending_bytes = 0
        self.evicted = 0
        self.contradicted = 0
        self.damaged = 0

    @property
    def pending(self) -> int:
        """Bodies of which some part has not arrived."""
        return len(self._pending)

    def add(self, part: Part) -> bytes | None:
        """The whole body where `part` completes it, None where parts are still missing.

        Raises `Malformed` where the part, or the body that it completes, is thrown away.
        """
        if part.parts == 1:
            return self._verified(part.payload, part.digest)
        key = _Key(part.pipeline, part.run, part.incarnation, part.digest, part.parts)
        assembly = self._pending.get(key)
        known = assembly.payloads.get(part.part) if assembly else None
        if known is not None:
            if known == part.payload:
                return None
            self.contradicted += 1
            raise Malformed(f"part {part.part} of {part.parts} contradicts the one that came before it")
        assembly = self._store(key, part)
        if len(assembly.payloads) < part.parts:
            return None
        self._forget(key)
        return self._verified(b"".join(assembly.payloads[n] for n in range(part.parts)), part.digest)

    def _store(self, key: _Key, part: Part) -> _Assembly:
        assembly = self._pending.setdefault(key, _Assembly())
        assembly.payloads[part.part] = part.payload
        assembly.size_bytes += len(part.payload)
        self.pending_bytes += len(part.payload)
        while len(self._pending) > self._assemblies_max or self.pending_bytes > self._pending_bytes_max:
            oldest = next((k for k in self._pending if k != key), key)
            self._forget(oldest)
            self.evicted += 1
            if oldest == key:
                raise Malformed(
                    f"a body in {part.parts} parts is larger than the {self._pending_bytes_max} bytes kept"
                )
        return assembly

    def _forget(self, key: _Key) -> None:
        self.pending_bytes -= self._pending.pop(key).size_bytes

    def _verified(self, body: bytes, digest: bytes) -> bytes:
        if hashlib.sha256(body).digest() != digest:
            self.damaged += 1
            raise Malformed(f"a body of {len(body)} bytes is not what its digest says")
        return body

"""Records that are no rows, as columns: a flood of them must cost no Python object each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
import numpy.typing as npt

from control_topic.messages import Reject, SourcePartition
from participant.records.raw import RawBatch, Values

REASON_LENGTH_MAX = 1_000
"""Characters. A reason names fields, and a schema may nest them deeply."""
ABOUT_KEY = "the Kafka key of a record without a value"
NO_KEY = "a record without a value and without a key deletes no row"


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedRecord:
    """A record that is no row."""

    offset: int
    reason: str
    """Never holds the record's content."""
    index: int
    """Its place in the batch."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rejects(Sequence[RejectedRecord]):
    """The rejects of one batch, by place. Why record `places[i]` is one is `reasons[codes[i]]`."""

    places: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]
    codes: npt.NDArray[np.int32]
    reasons: tuple[str, ...]

    @classmethod
    def of(cls, reasons: Mapping[int, str], offsets: npt.NDArray[np.int64]) -> Rejects:
        """`reasons` is by place, `offsets` the batch's."""
        if not reasons:
            return NONE
        why = Reasons()
        for place in sorted(reasons):
            why.add(place, reasons[place])
        return why.rejects(offsets)

    @classmethod
    def joined(cls, parts: Iterable[Rejects]) -> Rejects:
        """All of them, by place; none of them twice."""
        some = [part for part in parts if len(part)]
        if len(some) <= 1:
            return some[0] if some else NONE
        places = np.concatenate([part.places for part in some])
        order = np.argsort(places, kind="stable")
        first = np.cumsum([0, *(len(part.reasons) for part in some[:-1])])
        codes = np.concatenate([part.codes + base for part, base in zip(some, first, strict=True)])
        return cls(
            places=places[order],
            offsets=np.concatenate([part.offsets for part in some])[order],
            codes=codes[order].astype(np.int32),
            reasons=tuple(reason for part in some for reason in part.reasons),
        )

    def at(self, places: npt.NDArray[np.int64]) -> Rejects:
        """The same rejects in the batch of which theirs is the records at `places`, which ascend."""
        return Rejects(
            places=places[self.places], offsets=self.offsets, codes=self.codes, reasons=self.reasons
        )

    def by_place(self) -> dict[int, str]:
        """The reason of each."""
        texts = map(self.reasons.__getitem__, self.codes.tolist())
        return dict(zip(self.places.tolist(), texts, strict=True))

    def __len__(self) -> int:
        return len(self.places)

    @overload
    def __getitem__(self, index: int) -> RejectedRecord: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[RejectedRecord]: ...
    def __getitem__(self, index: int | slice) -> RejectedRecord | Sequence[RejectedRecord]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self))))
        return RejectedRecord(
            offset=int(self.offsets[index]),
            reason=self.reasons[self.codes[index]],
            index=int(self.places[index]),
        )

    def __iter__(self) -> Iterator[RejectedRecord]:
        return (self[index] for index in range(len(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))


NONE = Rejects(
    places=np.empty(0, dtype=np.int64),
    offsets=np.empty(0, dtype=np.int64),
    codes=np.empty(0, dtype=np.int32),
    reasons=(),
)


class Reasons:
    """Collects why records of a batch are no rows, one by one or many at once. A place has one reason."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self._places: list[npt.NDArray[np.int64]] = []
        self._of: list[npt.NDArray[np.int32]] = []
        self._single_places: list[int] = []
        self._single_codes: list[int] = []
        self._count = 0

    def add(self, place: int, reason: str) -> None:
        self._single_places.append(place)
        self._single_codes.append(self._code(reason))
        self._count += 1

    def add_all(self, places: npt.NDArray[np.int64], reason: str) -> None:
        """All of these, for one reason."""
        self._places.append(places)
        self._of.append(np.full(len(places), self._code(reason), dtype=np.int32))
        self._count += len(places)

    def __len__(self) -> int:
        return self._count

    def _code(self, reason: str) -> int:
        return self._codes.setdefault(reason[:REASON_LENGTH_MAX], len(self._codes))

    def rejects(self, offsets: npt.NDArray[np.int64]) -> Rejects:
        """`offsets`: the batch's."""
        if not self._count:
            return NONE
        places = np.concatenate([*self._places, np.array(self._single_places, dtype=np.int64)])
        codes = np.concatenate([*self._of, np.array(self._single_codes, dtype=np.int32)])
        order = np.argsort(places, kind="stable")
        places = places[order]
        return Rejects(places=places, offsets=offsets[places], codes=codes[order], reasons=tuple(self._codes))


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldRejects:
    """Rejects of one source partition with all that their records held, for the dead-letter topic."""

    partition: SourcePartition
    offsets: npt.NDArray[np.int64]
    timestamps_ms: npt.NDArray[np.int64]
    codes: npt.NDArray[np.int32]
    reasons: tuple[str, ...]
    values: Values
    keys: Values | None
    """None where the records' keys were not kept."""
    headers: Values | None
    """As `RawBatch.headers`."""

    @classmethod
    def of(cls, batch: RawBatch, rejects: Rejects) -> HeldRejects:
        places = rejects.places
        taken = batch if len(places) == len(batch) else batch.take(places)
        return cls(
            partition=batch.partition,
            offsets=rejects.offsets,
            timestamps_ms=taken.timestamps_ms,
            codes=rejects.codes,
            reasons=rejects.reasons,
            values=taken.values,
            keys=taken.record_keys,
            headers=taken.headers,
        )

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def size_bytes(self) -> int:
        """Memory held."""
        columns = self.offsets.nbytes + self.timestamps_ms.nbytes + self.codes.nbytes
        records = sum(c.nbytes for c in (self.values, self.keys, self.headers) if c is not None)
        return columns + records + sum(map(len, self.reasons))

    def record_bytes(self) -> npt.NDArray[np.int64]:
        """What each record held: value, key and headers."""
        columns = (self.values, self.keys, self.headers)
        sizes = [np.diff(column.starts) - 1 for column in columns if column is not None]
        total: npt.NDArray[np.int64] = np.sum(sizes, axis=0, dtype=np.int64)
        return total

    def named(self, count: int) -> tuple[Reject, ...]:
        """The first `count`, by name."""
        pairs = zip(self.offsets[:count].tolist(), self.codes[:count].tolist(), strict=True)
        return tuple(
            Reject(partition=self.partition, offset=offset, reason=self.reasons[code])
            for offset, code in pairs
        )

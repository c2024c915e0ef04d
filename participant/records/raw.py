"""Consumed records of one source partition, as columns: no Python object per record.

The values stand in one buffer, each followed by a newline, which is what a reader of JSON lines takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np
import numpy.typing as npt

from control_topic.messages import SourcePartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Values:
    """Value `i` is `data[starts[i]:starts[i + 1] - 1]`, or None where `nulls[i]`."""

    data: bytes
    starts: npt.NDArray[np.int64]
    """One more than there are values."""
    nulls: npt.NDArray[np.bool_] | None = None
    """None where no value is null; a null one is empty."""

    @classmethod
    def of(cls, values: Sequence[bytes | None]) -> Values:
        """The same values in one buffer."""
        nulls = None
        if None in values:
            nulls = np.fromiter((value is None for value in values), dtype=np.bool_, count=len(values))
        whole = [value or b"" for value in values] if nulls is not None else cast("Sequence[bytes]", values)
        starts = np.zeros(len(values) + 1, dtype=np.int64)
        np.cumsum(np.fromiter(map(len, whole), dtype=np.int64, count=len(values)) + 1, out=starts[1:])
        return cls(data=b"\n".join([*whole, b""]), starts=starts, nulls=nulls)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, index: int) -> bytes | None:
        if self.nulls is not None and self.nulls[index]:
            return None
        return self.data[self.starts[index] : self.starts[index + 1] - 1]

    def __iter__(self) -> Iterator[bytes | None]:
        return (self[index] for index in range(len(self)))

    @property
    def size_bytes(self) -> int:
        """Of the values, without the newlines."""
        return len(self.data) - len(self)

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return len(self.data) + self.starts.nbytes + (0 if self.nulls is None else self.nulls.nbytes)

    def head(self, count: int) -> Values:
        """The first `count`."""
        return Values(
            data=self.data[: self.starts[count]],
            starts=self.starts[: count + 1],
            nulls=None if self.nulls is None else self.nulls[:count],
        )

    def take(self, places: npt.NDArray[np.int64]) -> Values:
        """Those at these places, which ascend."""
        lengths = np.diff(self.starts)
        wanted = np.zeros(len(self), dtype=np.bool_)
        wanted[places] = True
        data = np.frombuffer(self.data, dtype=np.uint8)[np.repeat(wanted, lengths)].tobytes()
        starts = np.zeros(len(places) + 1, dtype=np.int64)
        np.cumsum(lengths[places], out=starts[1:])
        nulls = self.nulls[places] if self.nulls is not None else None
        return Values(data=data, starts=starts, nulls=nulls if nulls is not None and nulls.any() else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class RawBatch:
    """Consumed records of one source partition, in offset order; offsets may have gaps."""

    partition: SourcePartition
    offsets: npt.NDArray[np.int64]
    timestamps_ms: npt.NDArray[np.int64]
    values: Values
    keys: Mapping[int, bytes | None] = field(default_factory=dict)
    """Where the fetcher was asked for them, the Kafka key of each record whose value is null and of no other
    record, by its index in the batch; None where such a record has no key. Shared, and changed by nobody."""
    record_keys: Values | None = None
    """Of every record, where the fetcher was asked for them, so that a dead letter has them."""
    headers: Values | None = None
    """Likewise, as `participant.records.headers` spells them; empty where there are none."""

    def __len__(self) -> int:
        return len(self.offsets)

    def naming(self, mark: bytes) -> Values | None:
        """The headers, where any of them may have this name, in bytes."""
        headers = self.headers
        return headers if headers is not None and mark in headers.data else None

    def head(self, count: int) -> RawBatch:
        """The first `count` records."""
        return RawBatch(
            partition=self.partition,
            offsets=self.offsets[:count],
            timestamps_ms=self.timestamps_ms[:count],
            values=self.values.head(count),
            keys={index: key for index, key in self.keys.items() if index < count},
            record_keys=self.record_keys.head(count) if self.record_keys is not None else None,
            headers=self.headers.head(count) if self.headers is not None else None,
        )

    @property
    def halves(self) -> tuple[RawBatch, RawBatch]:
        """The records in two batches. Of two records or more."""
        middle = len(self) // 2
        return self.head(middle), self.take(np.arange(middle, len(self), dtype=np.int64))

    @property
    def without_tombstones(self) -> RawBatch:
        """The records that have a value."""
        nulls = self.values.nulls
        return self if nulls is None else self.take(np.flatnonzero(~nulls))

    def take(self, places: npt.NDArray[np.int64]) -> RawBatch:
        """The records at these places, which ascend."""
        keys: dict[int, bytes | None] = {}
        if self.keys:
            keys = {new: self.keys[old] for new, old in enumerate(places.tolist()) if old in self.keys}
        return RawBatch(
            partition=self.partition,
            offsets=self.offsets[places],
            timestamps_ms=self.timestamps_ms[places],
            values=self.values.take(places),
            keys=keys,
            record_keys=self.record_keys.take(places) if self.record_keys is not None else None,
            headers=self.headers.take(places) if self.headers is not None else None,
        )

"""What stands beside a record's fields, as columns: keys and values as they were sent, and headers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from participant.records.columns.casts import cast
from participant.records.raw import Values

TEXTS_BYTES_MAX = 2**31 - 1
"""In one array: where each ends is said in 32 bits."""
Places = npt.NDArray[np.int64]


def binary(values: Values) -> pa.ChunkedArray:
    """Values, or keys, as they were sent; null where they are null."""
    if values.size_bytes > TEXTS_BYTES_MAX and len(values) > 1:
        middle = len(values) // 2
        halves = (np.arange(middle), np.arange(middle, len(values)))
        chunks = [chunk for half in halves for chunk in binary(values.take(half)).chunks]
        return pa.chunked_array(chunks, pa.binary())
    data = np.frombuffer(values.data, dtype=np.uint8)
    without = np.ones(len(data), dtype=np.bool_)
    without[values.starts[1:] - 1] = False
    starts = values.starts - np.arange(len(values.starts))
    return pa.chunked_array([_array(data[without], starts, values.nulls)], pa.binary())


def _array(data: npt.NDArray[np.uint8], starts: Places, nulls: npt.NDArray[np.bool_] | None) -> pa.Array:
    some = nulls is not None and bool(nulls.any())
    valid = pa.py_buffer(np.packbits(~nulls, bitorder="little")) if some and nulls is not None else None
    ends = pa.py_buffer(starts.astype(np.int32))
    return pa.Array.from_buffers(pa.binary(), len(starts) - 1, [valid, ends, pa.py_buffer(data)])


@dataclass(frozen=True, eq=False)
class Headers:
    """The headers of some records, as `participant.records.headers` packs them: an entry for each header."""

    data: npt.NDArray[np.uint8]
    count: int
    """Records."""
    record: Places
    """Of each entry; those of one record in its order, though not one behind the other."""
    name_at: Places
    name_length: Places
    """-1: there is a note in its stead, that some could not be read."""
    value_at: Places
    value_length: Places
    """-1 for null."""

    @classmethod
    def of(cls, packed: Values) -> Headers:
        """Looked at side by side: first the first of each record, then the second."""
        data = np.frombuffer(packed.data, dtype=np.uint8)
        record = np.arange(len(packed), dtype=np.int64)
        at, end = packed.starts[:-1].astype(np.int64), packed.starts[1:] - 1
        columns: list[tuple[Places, Places, Places, Places, Places]] = []
        while True:
            more = at < end
            record, at, end = record[more], at[more], end[more]
            if not len(record):
                break
            name_length = _length(data, at)
            name_at = at + 4
            at = name_at + np.maximum(name_length, 0)
            value_length = _length(data, at)
            value_at = at + 4
            at = value_at + np.maximum(value_length, 0)
            columns.append((record, name_at, name_length, value_at, value_length))
        empty = np.empty(0, dtype=np.int64)
        joined = [np.concatenate(one) for one in zip(*columns, strict=True)] if columns else [empty] * 5
        return cls(data, len(packed), *joined)

    @cached_property
    def unread(self) -> npt.NDArray[np.bool_]:
        """Records of whose headers some could not be read."""
        found = np.zeros(self.count, dtype=np.bool_)
        found[self.record[self.name_length < 0]] = True
        return found

    def last(self, name: str) -> pa.Array:
        """The value of the last header of this name; null where there is none, or it is null."""
        wanted = np.frombuffer(name.encode(), dtype=np.uint8)
        like = np.flatnonzero(self.name_length == len(wanted))
        names = self.data[self.name_at[like][:, None] + np.arange(len(wanted))]
        like = like[(names == wanted).all(axis=1)]
        at = np.full(self.count, -1, dtype=np.int64)
        at[self.record[like]] = like  # of one record's the last counts, which stands last
        there = at >= 0
        lengths = np.where(there, self.value_length[at], -1) if len(self.record) else np.full(self.count, -1)
        begins = self.value_at[at] if len(self.record) else np.zeros(self.count, dtype=np.int64)
        return self._slices(begins, lengths)

    def all(self, *, once: bool) -> tuple[pa.Array, pa.Array, npt.NDArray[np.int64]]:
        """Names, values, and, one more than there are records, where each record's begin.

        `once`: of one record's headers of one name the last alone.
        """
        entries = np.argsort(self.record, kind="stable")
        entries = entries[self.name_length[entries] >= 0]
        names = self._slices(self.name_at[entries], self.name_length[entries])
        if once and len(entries):
            codes = names.dictionary_encode().indices.to_numpy()
            pair = self.record[entries] * (int(codes.max()) + 1) + codes
            _, from_behind = np.unique(pair[::-1], return_index=True)
            last = np.sort(len(pair) - 1 - from_behind)
            entries, names = entries[last], names.take(pa.array(last))
        values = self._slices(self.value_at[entries], self.value_length[entries])
        begins = np.zeros(self.count + 1, dtype=np.int64)
        np.cumsum(np.bincount(self.record[entries], minlength=self.count), out=begins[1:])
        return names, values, begins

    def _slices(self, begins: Places, lengths: Places) -> pa.Array:
        """Pieces of the data; a negative length is null."""
        nulls = lengths < 0
        whole = np.maximum(lengths, 0)
        starts = np.zeros(len(whole) + 1, dtype=np.int64)
        np.cumsum(whole, out=starts[1:])
        places = np.repeat(begins - starts[:-1], whole) + np.arange(starts[-1])
        return _array(self.data[places], starts, nulls)


def _length(data: npt.NDArray[np.uint8], at: Places) -> Places:
    """Four bytes at each place, little-endian, signed."""
    parts = [data[at + i].astype(np.uint32) << np.uint32(8 * i) for i in range(4)]
    number: Places = (parts[0] | parts[1] | parts[2] | parts[3]).astype(np.int32).astype(np.int64)
    return number


def listed(kind: pa.DataType, names: pa.Array, values: pa.Array, begins: Places) -> pa.Array:
    """All headers as a MAP, or an ARRAY of STRUCTs of a name and a value."""
    ends = pa.array(begins.astype(np.int32))
    if pa.types.is_map(kind):
        return pa.MapArray.from_arrays(ends, names, values, type=kind)
    entries = pa.StructArray.from_arrays([names, values], fields=list(kind.value_type))
    return pa.ListArray.from_arrays(ends, entries, type=kind)


def texts(array: pa.Array) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
    """Bytes as texts, and which of them are no UTF-8."""
    return cast(array, pa.string())


def rows_of(begins: Places, misfits: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Records that have such an entry."""
    found = np.zeros(len(begins) - 1, dtype=np.bool_)
    found[np.searchsorted(begins, np.flatnonzero(misfits), side="right") - 1] = True
    return found

"""Values and keys as one column, whatever is in them: nothing is parsed.

A text is UTF-8, told apart value by value: half a character is none, though the next value begins with the
other half. An empty value is an empty text, or no byte; a missing one is no row.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from participant.records.port import Decoded
from participant.records.raw import RawBatch, Values
from participant.records.rejects import ABOUT_KEY, NO_KEY, Reasons, Rejects
from table.rows import Tombstones
from table.schema import SchemaError, ddl_name, record_schema

BUFFER_BYTES_MAX = 1 << 30
"""Of one Arrow array, whose places are of 32 bits; more is halved."""
NO_UTF8 = "not UTF-8"


class WholeDecoder:
    """Decodes for a schema of one column of `kind` (Kafka columns in it are left to others).

    Raises `SchemaError` for any other. `name`: of the format, for people.
    """

    def __init__(self, schema: pa.Schema, kind: pa.DataType, name: str) -> None:
        self._schema = record_schema(schema)
        _check(list(self._schema), kind, name, "value", "record.schema")
        self._kind = kind

    def decode(self, batch: RawBatch) -> Decoded:
        """All records of the batch, as rows or as rejects."""
        reasons = Reasons()
        nulls = batch.values.nulls
        bad = np.zeros(len(batch), dtype=np.bool_) if nulls is None else nulls.copy()
        if nulls is not None and nulls.any():
            reasons.add_all(np.flatnonzero(nulls), "null value")
        if self._kind == pa.string():
            wrong = no_texts(batch.values)
            if len(wrong):
                reasons.add_all(wrong, NO_UTF8)
                bad[wrong] = True
        kept = np.flatnonzero(~bad) if bad.any() else None
        values = batch.values if kept is None else batch.values.take(kept)
        return Decoded(
            table=pa.Table.from_arrays([column_of(values, self._kind)], schema=self._schema),
            kept=kept,
            rejects=reasons.rejects(batch.offsets),
        )


class WholeKeys:
    """See `participant.records.port.KeyReader`. Raises `SchemaError` where it is not one column of `kind`."""

    def __init__(self, fields: Sequence[pa.Field], kind: pa.DataType, name: str) -> None:
        _check(fields, kind, name, "key", "table.key")
        self._schema, self._kind = pa.schema([fields[0].with_nullable(False)]), kind

    def read(self, batch: RawBatch, places: npt.NDArray[np.int64]) -> tuple[Tombstones, Rejects]:
        """What the keys of the records at these places, which ascend, say; those that say it in no way."""
        reasons: dict[int, str] = {}
        found: list[int] = []
        keys: list[str | bytes] = []
        for place in places.tolist():
            key = batch.keys.get(place)
            if not key:
                reasons[place] = NO_KEY
                continue
            try:
                keys.append(key.decode() if self._kind == pa.string() else key)
                found.append(place)
            except UnicodeDecodeError:
                reasons[place] = f"{ABOUT_KEY}: {NO_UTF8}"
        kept = np.array(found, dtype=np.int64)
        columns = pa.Table.from_arrays([pa.array(keys, self._kind)], schema=self._schema)
        tombstones = Tombstones(columns=columns, places=kept, offsets=batch.offsets[kept])
        return tombstones, Rejects.of(reasons, batch.offsets)


def _check(fields: Sequence[pa.Field], kind: pa.DataType, name: str, what: str, setting: str) -> None:
    if len(fields) != 1 or fields[0].type != kind:
        columns = ", ".join(f"{field.name} {ddl_name(field.type)}" for field in fields)
        raise SchemaError(
            f"a {what} of format {name} is one column of type {ddl_name(kind)}; {setting} has {columns}"
        )


def no_texts(values: Values) -> npt.NDArray[np.int64]:
    """The places of those that are not UTF-8."""
    if values.data.isascii():
        return np.empty(0, dtype=np.int64)
    wrong = [place for place, value in enumerate(values) if value and not _is_text(value)]
    return np.array(wrong, dtype=np.int64)


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def column_of(values: Values, kind: pa.DataType) -> pa.ChunkedArray:
    """The values as they are, none of them null, in so many arrays as they need."""
    if len(values.data) > BUFFER_BYTES_MAX and len(values) > 1:
        places = np.arange(len(values), dtype=np.int64)
        halves = (values.take(half) for half in np.array_split(places, 2))
        return pa.chunked_array([chunk for half in halves for chunk in column_of(half, kind).chunks], kind)
    inside = np.ones(len(values.data), dtype=np.bool_)
    inside[values.starts[1:] - 1] = False
    data = np.frombuffer(values.data, dtype=np.uint8)[inside]
    places = (values.starts - np.arange(len(values.starts))).astype(np.int32)
    array = pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(places), pa.py_buffer(data)])
    return pa.chunked_array([array], kind)

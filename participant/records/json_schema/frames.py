"""What stands before the values of a batch, all at once: an id of five bytes costs no Python object each.

See `participant.records.by_schema.framing` for what may stand there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from participant.records.by_schema.framing import BY_ID, ID_BYTES, VALUE_HEADER, SchemaKey, confluent
from participant.records.by_schema.misread import Misread
from participant.records.headers import first
from participant.records.raw import RawBatch, Values

FRAME_BYTES = 1 + ID_BYTES


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Frames:
    """By which schema each value was written, and how many bytes stand before it."""

    keys: tuple[SchemaKey, ...]
    codes: npt.NDArray[np.int64]
    """Per value, which of the keys it names; -1 where it names none."""
    cuts: npt.NDArray[np.int64]
    """Per value, so many bytes."""
    reasons: dict[int, str]
    """Why, by place, of those that name none."""


def frames_of(values: Values, headers: Iterable[bytes | None] | None) -> Frames:
    """`headers`: per value, that which names its schema, or None; None where none of them has one."""
    count = len(values)
    if headers is not None:
        by_id = np.zeros(count, dtype=np.bool_)
    else:
        text = np.frombuffer(values.data, dtype=np.uint8)
        by_id = np.diff(values.starts) > FRAME_BYTES  # with the newline behind it
        by_id[by_id] = text[values.starts[:-1][by_id]] == BY_ID
    numbers = _ids(values, by_id)
    ids, of = np.unique(numbers, return_inverse=True)
    codes = np.full(count, -1, dtype=np.int64)
    codes[by_id] = of
    cuts = np.where(by_id, FRAME_BYTES, 0)
    keys: dict[SchemaKey, int] = {number: code for code, number in enumerate(ids.tolist())}
    reasons: dict[int, str] = {}
    named = list(headers) if headers is not None else []
    for place in np.flatnonzero(~by_id).tolist():
        try:
            key, cut = _of_one(values[place], named[place] if named else None)
        except Misread as misread:
            reasons[place] = str(misread)
            continue
        codes[place], cuts[place] = keys.setdefault(key, len(keys)), cut
    return Frames(keys=tuple(keys), codes=codes, cuts=cuts, reasons=reasons)


def _ids(values: Values, which: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    text = np.frombuffer(values.data, dtype=np.uint8)
    at = values.starts[:-1][which] + 1
    numbers = np.zeros(len(at), dtype=np.int64)
    for place in range(ID_BYTES):
        numbers = numbers << 8 | text[at + place]
    return numbers


def _of_one(value: bytes | None, header: bytes | None) -> tuple[SchemaKey, int]:
    if not value:
        raise Misread("null value" if value is None else "empty value")
    return confluent(value, header)


def without(values: Values, cuts: npt.NDArray[np.int64]) -> Values:
    """The values without so many bytes of each one's beginning."""
    inside = np.ones(len(values.data), dtype=np.bool_)
    starts = values.starts[:-1]
    for place in range(int(cuts.max(initial=0))):
        inside[starts[cuts > place] + place] = False
    moved = values.starts.copy()
    moved[1:] -= np.cumsum(cuts)
    data = np.frombuffer(values.data, dtype=np.uint8)[inside].tobytes()
    return Values(data=data, starts=moved, nulls=values.nulls)


def naming(batch: RawBatch, name: str) -> list[bytes | None] | None:
    """Per record, the first header of this name; None where there is none of it."""
    mark = name.encode()
    headers = batch.naming(mark)
    return None if headers is None else [first(packed, name, mark) for packed in headers]


def bare(batch: RawBatch) -> tuple[RawBatch, list[str]]:
    """The records without what names their schemas; why others name none, which are left out. Nobody is asked
    whether there are such schemas. Records without a value stay.
    """
    frames = frames_of(batch.values, naming(batch, VALUE_HEADER))
    found = replace(batch, values=without(batch.values, frames.cuts))
    bad = {place: why for place, why in frames.reasons.items() if batch.values[place] is not None}
    if not bad:
        return found, []
    return found.take(np.delete(np.arange(len(batch)), list(bad))), list(bad.values())

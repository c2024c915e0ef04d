"""One column of some records, made as the plan says, and which of the records do not have it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from control_topic.messages import SourcePartition
from participant.records.columns.beside import Headers, binary, listed, rows_of, texts
from participant.records.columns.casts import cast, day, moment
from participant.records.columns.plan import Column
from participant.records.raw import Values
from participant.records.sources import (
    HEADER,
    HEADERS,
    KEY,
    OFFSET,
    PARTITION,
    REST,
    REST_FIELD,
    TIMESTAMP,
    TOPIC,
    VALUE,
)
from table.schema import UTC_MICROS, ddl_name

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Made:
    """A column, and where it could not be made."""

    values: pa.ChunkedArray
    misfits: Mask
    why: str
    """Of each of them. Never holds what the record held."""


@dataclass(frozen=True, eq=False)
class Given:
    """What some records of one source partition have, in offset order."""

    partition: SourcePartition
    offsets: npt.NDArray[np.int64]
    timestamps_ms: npt.NDArray[np.int64]
    fields: pa.Table | None
    """What was read of their values."""
    key_fields: pa.Table | None = None
    """What was read of their keys."""
    values: Values | None = None
    keys: Values | None = None
    packed: Values | None = None
    """Their headers."""

    def __len__(self) -> int:
        return len(self.offsets)

    @cached_property
    def headers(self) -> Headers:
        assert self.packed is not None
        return Headers.of(self.packed)


def make(column: Column, given: Given) -> Made:
    """Its type is the column's own; misfits are null."""
    source = column.source
    if source.kind == HEADERS:
        return _all_headers(column, given)
    found, misfits = _found(column, given), np.zeros(len(given), dtype=np.bool_)
    why = (
        f"column {column.name}, from {source}: a {ddl_name(column.given)} that is no "
        f"{ddl_name(column.field.type)}"
    )
    if source.kind == HEADER:
        misfits |= given.headers.unread
    if source.kind == TIMESTAMP and column.given == UTC_MICROS:
        found, misfits = _each(found, partial(moment, micros=1_000))
        if source.reads:
            found = pa.chunked_array([day(chunk) for chunk in found.chunks], pa.date32())
    for kind in column.route:
        found, more = _each(found, partial(cast, kind=kind))
        misfits |= more
    if column.unit:
        found, more = _each(found, partial(moment, micros=column.unit))
        misfits |= more
    return Made(_shaped(found, column.field.type), misfits, why)


def _each(
    found: pa.ChunkedArray, done: Callable[[pa.Array], tuple[pa.Array, Mask]]
) -> tuple[pa.ChunkedArray, Mask]:
    parts = [done(chunk) for chunk in found.chunks or [found.combine_chunks()]]
    return pa.chunked_array([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def _found(column: Column, given: Given) -> pa.ChunkedArray:
    """What is there, as it is there."""
    source, count = column.source, len(given)
    if source.kind == REST:
        assert given.fields is not None
        return given.fields.column(REST_FIELD)
    if source.from_fields:
        table = given.fields if source.kind == VALUE else given.key_fields
        assert table is not None
        return _at(table.column(source.path[0]), source.path[1:])
    if source.kind in (VALUE, KEY):
        whole = given.values if source.kind == VALUE else given.keys
        assert whole is not None
        return binary(whole)
    if source.kind == HEADER:
        return pa.chunked_array([given.headers.last(source.path[0])])
    if source.kind == TIMESTAMP:
        times = given.timestamps_ms
        return pa.chunked_array([pa.array(times, mask=times < 0)])  # a record without a time has none
    if source.kind == OFFSET:
        return pa.chunked_array([pa.array(given.offsets)])
    if source.kind == PARTITION:
        return pa.chunked_array([pa.array(np.full(count, given.partition.number, dtype=np.int32))])
    assert source.kind == TOPIC
    return pa.chunked_array([pa.repeat(given.partition.topic, count)])


def _at(column: pa.ChunkedArray, path: Sequence[str]) -> pa.ChunkedArray:
    """A field within; null where what it is in is null."""
    for name in path:
        column = pc.struct_field(column, [column.type.get_field_index(name)])
    return column


def _shaped(found: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """The same, where more fields were read of a STRUCT than the column has."""
    if found.type == kind:
        return found
    return pa.chunked_array([_narrowed(chunk, kind) for chunk in found.chunks], kind)


def _narrowed(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if not pa.types.is_struct(kind) or array.type == kind:
        return array
    inside = [_narrowed(array.field(array.type.get_field_index(one.name)), one.type) for one in kind]
    nulls = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(inside, fields=list(kind), mask=nulls)


def _all_headers(column: Column, given: Given) -> Made:
    kind = column.field.type
    mapped = pa.types.is_map(kind)
    names, values, begins = given.headers.all(once=mapped)
    names, misnamed = texts(names)
    misfits = given.headers.unread | rows_of(begins, misnamed)
    if (kind.item_type if mapped else kind.value_type[1].type) == pa.string():
        values, none = texts(values)
        misfits = misfits | rows_of(begins, none)
    why = f"column {column.name}, from headers: some are no UTF-8, or could not be read"
    if misnamed.any():
        names = names.fill_null("")  # of records that are no rows
    return Made(pa.chunked_array([listed(kind, names, values, begins)], kind), misfits, why)

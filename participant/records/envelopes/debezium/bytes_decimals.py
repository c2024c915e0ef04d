"""Decimals as Kafka Connect writes them into JSON: the bytes of an unscaled number, in base64.

They are read as BINARY, by whichever decoder, and become a DECIMAL here. Source: Kafka's
`org.apache.kafka.connect.data.Decimal`: big-endian, two's complement, the scale in the schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Context, Decimal
from types import MappingProxyType
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from participant.records.json.columns import without_nulls
from table.schema import DECIMAL_PRECISION_MAX, ddl_name

Mask = npt.NDArray[np.bool_]
Scales: TypeAlias = Mapping[str, int | None]
"""Path of a DECIMAL inside a row -> the scale of its bytes; None where they are no decimal."""
NO_SCALES: Scales = MappingProxyType({})
Misfits: TypeAlias = list[tuple[str, Mask, str]]
"""Paths, the rows that are wrong there, and why."""
SCALE_MAX = 400
"""Bound of a scale, above and below zero."""
FAST_BYTES = 8
_EXACT = Context(prec=2 * DECIMAL_PRECISION_MAX)


def with_bytes(kind: pa.DataType, scales: Scales, path: str = "") -> pa.DataType:
    """Return the type with BINARY for each of these decimals."""
    if pa.types.is_decimal(kind):
        return pa.binary() if path in scales else kind
    if pa.types.is_struct(kind):
        dot = f"{path}." if path else ""
        return pa.struct([f.with_type(with_bytes(f.type, scales, f"{dot}{f.name}")) for f in kind])
    if pa.types.is_list(kind):
        return pa.list_(with_bytes(kind.value_type, scales, f"{path}[]"))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, with_bytes(kind.item_type, scales, f"{path}{{}}"))
    return kind


def from_bytes(array: pa.Array, kind: pa.DataType, path: str, scales: Scales) -> tuple[pa.Array, Misfits]:
    """Return the array in the declared type, null for what does not fit, and what that is."""
    if array.type == kind:
        return array, []
    if pa.types.is_decimal(kind):
        values, wrong = decimals(array, scales.get(path), kind)
        why = f"not a {ddl_name(kind)} but base64 of another number, or of more digits"
        return values, [(path, wrong, why)] if wrong.any() else []
    misfits: Misfits = []
    nulls = array.is_null() if array.null_count else None
    if pa.types.is_struct(kind):
        children = []
        for i, (field, child) in enumerate(zip(kind, array.flatten(), strict=True)):
            if child.type == field.type:
                children.append(array.field(i))
                continue
            done, inside = from_bytes(child, field.type, f"{path}.{field.name}", scales)
            children.append(done if field.nullable else without_nulls(done))
            misfits += inside
        return pa.StructArray.from_arrays(children, fields=list(kind), mask=nulls), misfits
    is_map = pa.types.is_map(kind)
    values, inner = (array.items, kind.item_type) if is_map else (array.values, kind.value_type)
    values, inside = from_bytes(values, inner, f"{path}{'{}' if is_map else '[]'}", scales)
    ends = array.offsets.to_numpy()
    for where, wrong, why in inside:
        rows = np.zeros(len(array), dtype=np.bool_)
        rows[np.searchsorted(ends, np.flatnonzero(wrong), side="right") - 1] = True
        misfits.append((where, rows, why))
    if is_map:
        return pa.MapArray.from_arrays(array.offsets, array.keys, values, type=kind, mask=nulls), misfits
    return pa.ListArray.from_arrays(array.offsets, values, type=kind, mask=nulls), misfits


def decimals(array: pa.BinaryArray, scale: int | None, kind: pa.Decimal128Type) -> tuple[pa.Array, Mask]:
    """Return unscaled numbers in the column's type, null for what does not fit, and which those are."""
    nulls = array.is_null().to_numpy(zero_copy_only=False)
    if scale is None or abs(scale) > SCALE_MAX:
        return pa.nulls(len(array), kind), ~nulls
    lengths = pc.binary_length(array).fill_null(1).to_numpy()
    is_short = len(array) > 0 and 1 <= lengths.min() <= lengths.max() <= FAST_BYTES
    if is_short and 0 <= scale <= DECIMAL_PRECISION_MAX:
        try:
            return _short(array, lengths, nulls, scale).cast(kind), np.zeros(len(array), dtype=np.bool_)
        except pa.ArrowInvalid:
            pass  # a number does not fit: which one, is looked for below
    found = [_exact(one, scale, kind) if one is not None else None for one in array.to_pylist()]
    wrong = np.fromiter((one is None for one in found), dtype=np.bool_, count=len(found)) & ~nulls
    return pa.array(found, kind), wrong


def _short(array: pa.BinaryArray, lengths: npt.NDArray[np.int32], nulls: Mask, scale: int) -> pa.Array:
    """Return numbers of at most `FAST_BYTES` bytes at their own scale."""
    whole = array.fill_null(b"\0")
    raw = np.frombuffer(b"".join([*whole.to_pylist()]), dtype=np.uint8)
    ends = np.cumsum(lengths, dtype=np.int64)
    numbers = np.where(raw[ends - lengths] >= 0x80, np.int64(-1), np.int64(0))
    for place in range(FAST_BYTES):
        at = ends - lengths + place
        there = place < lengths
        numbers[there] = (numbers[there] << 8) | raw[at[there]]
    halves = np.stack([numbers, numbers >> 63], axis=1)
    wide = pa.decimal128(DECIMAL_PRECISION_MAX, scale)
    made = pa.Array.from_buffers(wide, len(array), [None, pa.py_buffer(halves.tobytes())])
    return pc.if_else(pa.array(nulls), pa.scalar(None, wide), made) if nulls.any() else made


def _exact(value: bytes, scale: int, kind: pa.Decimal128Type) -> Decimal | None:
    """Return one number; None where it has more digits than the column, or no byte."""
    if not value or len(value) > SCALE_MAX:
        return None
    number, rest = int.from_bytes(value, "big", signed=True), 0
    if scale <= kind.scale:
        number *= 10 ** (kind.scale - scale)
    else:
        number, rest = divmod(number, 10 ** (scale - kind.scale))
    if rest or abs(number) >= 10**kind.precision:
        return None
    return Decimal(number).scaleb(-kind.scale, context=_EXACT)

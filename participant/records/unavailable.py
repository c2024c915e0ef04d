"""Debezium's placeholder for a value that did not change and is not in the event.

PostgreSQL's log lacks unchanged TOAST values, Oracle's lacks unchanged LOBs, MySQL's lacks unchanged BLOBs
with `binlog_row_image=NOBLOB`. A connector writes `unavailable.value.placeholder` in their place, in the
column's type. The rows are checked as columns behind any format, decoder and envelope, so that all of them
agree.

Sources: Debezium's documentation, "Toasted values" (PostgreSQL), "Binary and Character LOB types" (Oracle);
Debezium's class `UnchangedToastedPlaceholder` for the forms that arrays, hstore, UUIDs and geometries take.
"""

from __future__ import annotations

import base64
import hashlib
import struct
from collections.abc import Collection, Iterator
from dataclasses import replace
from uuid import UUID

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from participant.records.placeholder import placeholder_bytes
from participant.records.port import Decoded, Decoder
from participant.records.raw import RawBatch
from participant.records.rejects import Reasons, Rejects

Mask = npt.NDArray[np.bool_]

FAR_POINT = -99_999_999.0
"""Both coordinates of a point that stands for an unavailable one."""
GEOMETRIES = (
    struct.pack("<BIdd", 1, 1, FAR_POINT, FAR_POINT),
    struct.pack("<BIIdd", 1, 0x20000001, 4326, FAR_POINT, FAR_POINT),
    struct.pack("<BIIdd", 1, 0x20000001, 4326, 179.999999, 89.999999),
)
"""Well-known binary of the point, geometry and geography that stand for an unavailable one."""
ADVICE = (
    "Have the connector send the value: REPLICA IDENTITY FULL in PostgreSQL, binlog_row_image=FULL in MySQL, "
    "Debezium's ReselectColumnsPostProcessor for LOBs of Oracle"
)


def may_hold(schema: pa.Schema) -> bool:
    """Return whether a column has a type in which a connector can write the placeholder."""
    return any(
        pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_nested(kind)
        for kind in schema.types
    )


class UnavailableValues:
    """Finds the placeholder in columns. `placeholder`: its bytes, at least one."""

    def __init__(self, placeholder: bytes) -> None:
        self._texts = [(len(text.encode()), text) for text in sorted(_texts(placeholder))]
        self._binaries = [(len(raw), raw) for raw in sorted({placeholder, *GEOMETRIES})]
        self._numbers = np.frombuffer(placeholder, dtype=np.int8)

    def find(self, column: pa.ChunkedArray, path: str) -> tuple[str, Mask] | None:
        """Return the path of the first field of this column that holds it, and which rows do."""
        found, first = np.zeros(len(column), dtype=np.bool_), ""
        begin = 0
        for chunk in column.chunks:
            for where, mask in self._masks(chunk, path):
                found[begin : begin + len(chunk)] |= mask
                first = first or where
            begin += len(chunk)
        return (first, found) if first else None

    def _masks(self, array: pa.Array, path: str) -> Iterator[tuple[str, Mask]]:
        """Yield the path and the rows of each field inside that holds it anywhere."""
        kind = array.type
        if pa.types.is_string(kind) or pa.types.is_binary(kind):
            mask = self._equal(array)
            if mask.any():
                yield path, mask
        elif pa.types.is_list(kind):
            yield from self._of_list(array, path, f"{path}[]")
        elif pa.types.is_map(kind):
            for inside, where in ((array.keys, path), (array.items, f"{path}{{}}")):
                yield from self._of_list(pa.ListArray.from_arrays(array.offsets, inside), where, where)
        elif pa.types.is_struct(kind):
            inside = dict(zip((field.name for field in kind), array.flatten(), strict=True))
            for name, child in inside.items():
                yield from self._masks(child, f"{path}.{name}")
            far = _far_points(inside)
            if far is not None and far.any():
                yield path, far

    def _of_list(self, array: pa.ListArray, path: str, inner: str) -> Iterator[tuple[str, Mask]]:
        kind = array.type.value_type
        if pa.types.is_integer(kind) or pa.types.is_date32(kind):
            mask = self._numbers_equal(array)
            if mask.any():
                yield path, mask
            return
        for where, inside in self._masks(array.flatten(), inner):
            mask = np.zeros(len(array), dtype=np.bool_)
            mask[pc.list_parent_indices(array).to_numpy()[inside]] = True
            yield where, mask

    def _equal(self, array: pa.StringArray | pa.BinaryArray) -> Mask:
        """Compare by length first: nearly no value has one of the few lengths."""
        lengths = pc.binary_length(array).fill_null(-1).to_numpy()
        mask = np.zeros(len(array), dtype=np.bool_)
        forms = self._texts if pa.types.is_string(array.type) else self._binaries
        for size_bytes, form in forms:
            if (lengths == size_bytes).any():
                mask |= pc.equal(array, form).fill_null(False).to_numpy(zero_copy_only=False)
        return mask

    def _numbers_equal(self, array: pa.ListArray) -> Mask:
        """Compare arrays of numbers and dates, which hold the placeholder's bytes one by one."""
        lengths = pc.list_value_length(array).fill_null(-1).to_numpy()
        mask: Mask = lengths == len(self._numbers)
        if mask.any():
            places = np.flatnonzero(mask)
            values = array.take(pa.array(places)).flatten()
            if pa.types.is_date32(values.type):
                values = values.view(pa.int32())
            numbers = values.fill_null(-1000).to_numpy().reshape(len(places), len(self._numbers))
            mask[places] = (numbers == self._numbers).all(axis=1)
        return mask


class AvailableRows:
    """Rejects rows in which the placeholder stands for a value. See `participant.records.port.Decoder`.

    A delete needs the columns that key a row, `key_columns`, and no others.
    """

    def __init__(self, inner: Decoder, placeholder: str, key_columns: Collection[str]) -> None:
        self._inner = inner
        self._values = UnavailableValues(placeholder_bytes(placeholder))
        self._key_columns = frozenset(key_columns)

    def decode(self, batch: RawBatch) -> Decoded:
        """Decode all records of the batch."""
        decoded = self._inner.decode(batch)
        if decoded.stop is not None:
            return decoded
        table = decoded.table
        bad, reasons = np.zeros(table.num_rows, dtype=np.bool_), Reasons()
        places = decoded.kept if decoded.kept is not None else np.arange(len(batch), dtype=np.int64)
        for name in table.column_names:
            found = self._values.find(table.column(name), name)
            if found is None:
                continue
            path, mask = found
            if decoded.deleted is not None and name not in self._key_columns:
                mask &= ~decoded.deleted
            mask &= ~bad
            if mask.any():
                reasons.add_all(places[mask], refusal(path))
                bad |= mask
        if not len(reasons):
            return decoded
        return replace(
            decoded,
            table=table.filter(pa.array(~bad)),
            kept=places[~bad],
            rejects=Rejects.joined([decoded.rejects, reasons.rejects(batch.offsets)]),
            deleted=decoded.deleted[~bad] if decoded.deleted is not None else None,
        )


def refusal(path: str) -> str:
    """Return why a row is refused whose field at this path is unavailable."""
    return (
        f"field {path} is unavailable: the event holds Debezium's placeholder for a value that did not "
        f"change. {ADVICE}"
    )


def _texts(placeholder: bytes) -> set[str]:
    """Return the forms of the placeholder in a STRING.

    Plain, as `binary.handling.mode` spells bytes, as a UUID of an array, and as an hstore in JSON.
    """
    encoded = base64.b64encode(placeholder).decode()
    url_safe = base64.urlsafe_b64encode(placeholder).decode()
    digits = placeholder.hex()
    uuid = UUID(bytes=hashlib.md5(placeholder, usedforsecurity=False).digest(), version=3)
    forms = {encoded, url_safe, url_safe.rstrip("="), digits, digits.upper(), str(uuid)}
    try:
        text = placeholder.decode()
    except UnicodeDecodeError:
        return forms
    return {*forms, text, f'{{"{text}":"{text}"}}'}


def _far_points(fields: dict[str, pa.Array]) -> Mask | None:
    """Return which points stand for an unavailable one; None where the struct is no point."""
    mask: Mask | None = None
    for name in ("x", "y"):
        field = fields.get(name)
        if field is None or not pa.types.is_float64(field.type):
            return None
        far: Mask = pc.equal(field, FAR_POINT).fill_null(False).to_numpy(zero_copy_only=False)
        mask = far if mask is None else mask & far
    return mask

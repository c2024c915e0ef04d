"""Records in JSON of which no column's field was found: a row of nothing but null, and rejected by default.

Such are values in an envelope that nobody has unwrapped, with field names in another letter case, of another
topic, or `{}`. Only rows of nothing but null are looked at again, in Python; a batch without one costs a look
at the columns' counts of nulls.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from participant.records.port import Decoded, Decoder, Format, KeyReader
from participant.records.raw import RawBatch
from participant.records.rejects import Reasons, Rejects
from participant.records.sources import CONNECT_FIELDS, CONNECT_PAYLOAD, REST_FIELD

Path = tuple[str, ...]
NAMES_SHOWN, NAME_SHOWN = 5, 40
"""Names of fields in a reason, and characters of one."""

NONE_FOUND = "none of the columns' fields is in the value"
FRAMES = ((b"\0", 5), (b"\1", 17))
"""How a value begins that names its schema, and the bytes of that: an id, or a GUID."""
CHANGE = frozenset({"op", "source", "before", "after"})
"""The fields of Debezium's change events."""


class FoundFields:
    """A format whose values are rejected where none of these paths is a field of theirs."""

    typed = False

    def __init__(self, values: Format, paths: Sequence[Path]) -> None:
        self._values, self._paths = values, tuple(paths)

    def values(self, schema: pa.Schema) -> Decoder:
        """See `participant.records.port.Format`."""
        return _Rejecting(self._values.values(schema), self._paths)

    def keys(self, fields: Sequence[pa.Field]) -> KeyReader:
        """Return the reader of keys. See `participant.records.port.Format`."""
        return self._values.keys(fields)

    def reads_by(self, schema: pa.Schema) -> str:
        """Return the name of the reader of values. See `participant.records.port.Format`."""
        return self._values.reads_by(schema)


class _Rejecting:
    def __init__(self, values: Decoder, paths: Sequence[Path]) -> None:
        self._values, self._paths = values, paths

    def decode(self, batch: RawBatch) -> Decoded:
        """Decode the batch; rows without a field are rejects."""
        decoded = self._values.decode(batch)
        empty = all_null(decoded.table)
        if decoded.stop is not None or empty is None:
            return decoded
        reasons, bad = Reasons(), np.zeros(decoded.table.num_rows, dtype=np.bool_)
        for row in np.flatnonzero(empty):
            place = int(row if decoded.kept is None else decoded.kept[row])
            if reason := why_none(batch.values[place] or b"", self._paths):
                reasons.add(place, reason)
                bad[row] = True
        if not bad.any():
            return decoded
        places = np.arange(len(bad), dtype=np.int64) if decoded.kept is None else decoded.kept
        return replace(
            decoded,
            table=decoded.table.filter(pa.array(~bad)),
            kept=places[~bad],
            rejects=Rejects.joined([decoded.rejects, reasons.rejects(batch.offsets)]),
        )


def all_null(table: pa.Table) -> npt.NDArray[np.bool_] | None:
    """Return which rows have nothing but null, at any depth of structs; None where no row has."""
    columns = [table.column(name) for name in table.column_names if name != REST_FIELD]
    if not columns or not table.num_rows or any(_is_full(column) for column in columns):
        return None
    empty = np.ones(table.num_rows, dtype=np.bool_)
    for column in columns:
        empty &= np.concatenate([_nulls(chunk) for chunk in column.chunks])
        if not empty.any():
            return None
    return empty


def _is_full(column: pa.ChunkedArray) -> bool:
    return column.null_count == 0 and not pa.types.is_struct(column.type)


def _nulls(array: pa.Array) -> npt.NDArray[np.bool_]:
    nulls: npt.NDArray[np.bool_] = pc.is_null(array).to_numpy(zero_copy_only=False)
    if pa.types.is_struct(array.type):
        for index in range(array.type.num_fields):
            inside = pc.struct_field(array, [index])
            if _is_full(pa.chunked_array([inside])):
                return nulls
        every = np.ones(len(array), dtype=np.bool_)
        for index in range(array.type.num_fields):
            every &= _nulls(pc.struct_field(array, [index]))
        return nulls | every
    return nulls


def why_none(value: bytes, paths: Sequence[Path]) -> str:
    """Return why a value is no row where none of these paths is a field of it, else an empty string."""
    try:
        text = value[next((size for mark, size in FRAMES if value.startswith(mark)), 0) :]
        document = json.loads(text, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):  # Arrow reads deeper, and knows other words for infinity
        return f"{NONE_FOUND}: it has others, which cannot be told apart"
    if not isinstance(document, dict) or any(_has(document, path) for path in paths):
        return ""
    if not document:
        return f"{NONE_FOUND}: it has no fields"
    names = [name if len(name) <= NAME_SHOWN else f"{name[:NAME_SHOWN]}…" for name in document]
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    found = f"{', '.join(names[:NAMES_SHOWN])}{more}"
    return f"{NONE_FOUND}: it has {found}{_hint(document, paths)}"


def _hint(document: dict[str, Any], paths: Sequence[Path]) -> str:
    event = document[CONNECT_PAYLOAD] if document.keys() >= CONNECT_FIELDS else document
    if isinstance(event, dict) and event.keys() >= CHANGE:
        return '. It is a change event: record.envelope = "debezium" reads it'
    inside = [path[1:] for path in paths if path[0] == CONNECT_PAYLOAD]
    if len(inside) == len(paths) and any(path and _has(document, path) for path in inside):
        return '. It is in no envelope of Kafka Connect: record.envelope = "none" reads it'
    if document.keys() >= CONNECT_FIELDS and len(inside) < len(paths):
        return '. It is in Kafka Connect\'s envelope: record.envelope = "connect" reads its payload'
    wanted = {path[0].casefold() for path in paths}
    exact = {path[0] for path in paths}
    if any(name.casefold() in wanted and name not in exact for name in document):
        return ". Names are told apart by case: record.columns names a field as it is spelled"
    return ""


def _has(document: Any, path: Path) -> bool:
    for name in path:
        if not isinstance(document, dict) or name not in document:
            return False
        document = document[name]
    return True

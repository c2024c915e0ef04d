"""The Kafka key of a record without a value, as a JSON object that a row's own decoder reads. Pure.

The key that is deleted must be the key that the row has, so nothing of it is read as a number and spelled
anew: a double holds 17 digits, and a DECIMAL key with more of them would become its neighbour's. Where a key
could be read in two ways it is refused: what it deletes does not come back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from participant.records.json.decoder import JsonDecoder
from participant.records.json.values import Mismatch, Object, parse_any, spelled
from participant.records.raw import RawBatch, Values
from participant.records.rejects import ABOUT_KEY, NO_KEY, Rejects
from table.rows import Tombstones

MARK = b"\xef\xbb\xbf"
BY_SCHEMA = b"\0"
"""As keys begin that name a schema of a registry; a text hardly does."""


class JsonKeys:
    """Reads such keys as the columns that key a row. `fields`: those columns. Not for several threads."""

    def __init__(self, fields: Sequence[pa.Field]) -> None:
        self._fields = [field.with_nullable(False) for field in fields]
        self._decoder = JsonDecoder(pa.schema(self._fields))

    def read(self, batch: RawBatch, places: npt.NDArray[np.int64]) -> tuple[Tombstones, Rejects]:
        """What the keys of the records at these places, which ascend, say; those that say it in no way."""
        documents: list[bytes | None] = []
        found: list[int] = []
        reasons: dict[int, str] = {}
        for place in places.tolist():
            try:
                documents.append(key_document(batch.keys.get(place), self._fields))
                found.append(place)
            except Mismatch as mismatch:
                reasons[place] = str(mismatch)
        at = np.array(found, dtype=np.int64)
        read = self._decoder.decode(
            RawBatch(
                partition=batch.partition,
                offsets=batch.offsets[at],
                timestamps_ms=batch.timestamps_ms[at],
                values=Values.of(documents),
            )
        )
        reasons |= {int(at[place]): f"{ABOUT_KEY}: {why}" for place, why in read.rejects.by_place().items()}
        kept = at if read.kept is None else at[read.kept]
        tombstones = Tombstones(columns=read.table, places=kept, offsets=batch.offsets[kept])
        return tombstones, Rejects.of(reasons, batch.offsets)


def key_document(key: bytes | None, fields: Sequence[pa.Field]) -> bytes:
    """A JSON object that holds what the key says of the fields. Raises `Mismatch`: why there is none.

    The key may be that object, with Debezium's or Kafka Connect's schema beside it or not, or in a field
    payload next to anything else (Apicurio's `schemaId`), or, where one field is enough, that field's value,
    as JSON, with such a schema or not, or as plain text.
    """
    if not key:
        raise Mismatch(NO_KEY)
    if key.startswith(MARK):
        raise Mismatch(f"{ABOUT_KEY}: begins with a byte order mark")
    if key.startswith(BY_SCHEMA):
        raise Mismatch(
            f"{ABOUT_KEY}: begins with a byte 0, as keys do that name a schema: is record.key_format another "
            "one?"
        )
    try:
        document = parse_any(key)
    except (Mismatch, RecursionError):
        return _of_one(fields, _text(key))
    if not isinstance(document, Object):
        plain = fields[0].type == pa.string() and type(document) is not str
        return _of_one(fields, _text(key) if plain else document)  # a text may look like a number
    payload = _payload(document, [field.name for field in fields])
    if payload is None:
        return key
    return _spelled(payload) if isinstance(payload, Object) else _of_one(fields, payload)


def _payload(document: Object, names: Sequence[str]) -> Any:
    """What stands beside a schema; None where there is no such thing. Raises `Mismatch` where more does."""
    members = [name for name, _ in document]
    schemas = [value for name, value in document if name == "schema"]
    wrapped = any(value is None or isinstance(value, Object) for value in schemas)
    if "payload" not in members or "payload" in names:
        return None
    if not wrapped and not any(name in members for name in names):
        inside = [value for name, value in document if name == "payload"]
        wrapped = all(isinstance(one, Object) for one in inside)  # the object itself says of no row
    if not wrapped:
        return None
    if members.count("payload") > 1:
        raise Mismatch(f"{ABOUT_KEY}: field payload is there twice")
    beside = [name for name in names if name in members and name != "schema"]
    if beside:
        raise Mismatch(f"{ABOUT_KEY}: holds {beside[0]} beside payload: which of them counts nobody can tell")
    return next(value for name, value in document if name == "payload")


def _text(key: bytes) -> str:
    try:
        return key.decode()
    except UnicodeDecodeError:
        raise Mismatch(f"{ABOUT_KEY} is not UTF-8") from None


def _of_one(fields: Sequence[pa.Field], value: Any) -> bytes:
    if len(fields) > 1:
        names = ", ".join(field.name for field in fields)
        raise Mismatch(f"{ABOUT_KEY} is not a JSON object with {names}")
    return _spelled(Object([(fields[0].name, value)]))


def _spelled(document: Object) -> bytes:
    try:
        return spelled(document).encode()
    except RecursionError:
        raise Mismatch(f"{ABOUT_KEY}: nested too deeply") from None

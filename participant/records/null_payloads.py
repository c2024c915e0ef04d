"""Records with a null payload in Kafka Connect's envelope, `{"schema": …, "payload": null}`: no value.

Connect's JsonConverter writes a value that is null with its schema, or, before KAFKA-3832, without one. It
reads a null payload as null: for a sink it is a tombstone. Source: `JsonConverter.fromConnectData` and
`toConnectData` (Kafka 4.1).
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from participant.records.port import Decoded, Decoder
from participant.records.raw import RawBatch, Values
from participant.records.sources import CONNECT_FIELDS, CONNECT_PAYLOAD

BLANK = b" \t\r\n"


class NullPayloads:
    """Has `inner` read a record with a null payload as a record without a value.

    `needs_keys`: only if the batch has the keys of all records. Without it such a record has no key.
    """

    def __init__(self, inner: Decoder, *, needs_keys: bool) -> None:
        self._inner, self._needs_keys = inner, needs_keys

    def decode(self, batch: RawBatch) -> Decoded:
        """Decode all records of the batch: rows, tombstones and rejects."""
        decoded = self._inner.decode(batch)
        if decoded.stop is not None or (self._needs_keys and batch.record_keys is None):
            return decoded
        places = [place for place in _candidates(decoded) if is_null(batch.values[place])]
        return self._inner.decode(_without_values(batch, places)) if places else decoded


def _candidates(decoded: Decoded) -> list[int]:
    """Return the places of rejects, and of rows in which the payload is null."""
    places: list[int] = decoded.rejects.places.tolist()
    if CONNECT_PAYLOAD not in decoded.table.column_names:
        return places
    payload = decoded.table.column(CONNECT_PAYLOAD)
    if payload.null_count:
        rows: npt.NDArray[np.int64] = np.flatnonzero(payload.is_null().to_numpy())
        places += (rows if decoded.kept is None else decoded.kept[rows]).tolist()
    return places


def is_null(value: bytes | None) -> bool:
    """Return whether a value is an envelope without a row, and JSON without any doubt."""
    if value is None or b"null" not in value or not value.lstrip(BLANK).startswith(b"{"):
        return False
    try:
        document: Any = json.loads(
            value.decode(), object_pairs_hook=_members, parse_constant=_refuse, parse_float=_finite
        )
        json.dumps(document, ensure_ascii=False).encode()  # half a surrogate pair has no encoding
    except (ValueError, RecursionError):
        return False
    if not isinstance(document, dict) or document.keys() != CONNECT_FIELDS:
        return False
    return document[CONNECT_PAYLOAD] is None


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a field is there twice")
    return members


def _refuse(word: str) -> float:
    raise ValueError(f"{word} is no number of JSON")


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse(text)


def _without_values(batch: RawBatch, places: list[int]) -> RawBatch:
    values, keys = list(batch.values), dict(batch.keys)
    for place in places:
        values[place] = None
        keys[place] = batch.record_keys[place] if batch.record_keys is not None else None
    return replace(batch, values=Values.of(values), keys=keys)

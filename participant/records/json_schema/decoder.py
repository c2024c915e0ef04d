"""Values and keys of JSON before which a schema of a registry is named.

JSON says by itself what it is, so of the schema it is asked only whether the registry has it, and whether it
is one of JSON: a value that is not as its schema wants is read as it is. That is what Confluent's own reader
does unless it is told to validate. So a registry that says another schema for an id than before changes
nothing here; where columns follow the schemas, it stops whoever looks at them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from participant.records.by_schema.framing import KEY_HEADER, VALUE_HEADER, SchemaKey, confluent, spelled
from participant.records.by_schema.misread import Misread
from participant.records.by_schema.one_by_one import READERS_MAX, Schemas
from participant.records.errors import ChangedSchema, UnknownSchema
from participant.records.json_schema.frames import frames_of, naming, without
from participant.records.port import Decoded, Decoder, KeyReader
from participant.records.raw import RawBatch
from participant.records.rejects import ABOUT_KEY, Rejects
from table.rows import Tombstones
from table.schema import SchemaError


class KnownSchemas:
    """Which schemas there are. Not for several threads.

    `check`: looks at one, with what it refers to. Raises `SchemaError` where values of it are no rows.
    """

    def __init__(self, schemas: Schemas, check: Callable[[tuple[str, ...]], None] | None = None) -> None:
        self._schemas, self._check = schemas, check
        self._why: dict[SchemaKey, str] = {}

    def why_not(self, key: SchemaKey) -> str:
        """Why values that name it are no rows; empty where they may be. Raises `SchemasUnavailable`."""
        why = self._why.get(key)
        if why is None:
            why = self._asked(key)
            if len(self._why) >= READERS_MAX:
                self._why.clear()
            self._why[key] = why
        return why

    def _asked(self, key: SchemaKey) -> str:
        try:
            texts = self._schemas.find(key)
            if self._check is not None:
                self._check(texts)
        except (UnknownSchema, SchemaError) as why:
            return f"{spelled(key)} cannot be read by: {why}"
        except ChangedSchema:
            return ""
        return ""


class FramedDecoder:
    """As `decoder`, of values without what stands before them. Not for several threads."""

    def __init__(self, decoder: Decoder, known: KnownSchemas, header: str = VALUE_HEADER) -> None:
        self._decoder, self._known, self._header = decoder, known, header

    def decode(self, batch: RawBatch) -> Decoded:
        """All records of the batch, as rows or as rejects. Raises `SchemasUnavailable`."""
        frames = frames_of(batch.values, naming(batch, self._header))
        reasons = frames.reasons
        for code, key in enumerate(frames.keys):
            why = self._known.why_not(key)
            if why:
                reasons |= dict.fromkeys(np.flatnonzero(frames.codes == code).tolist(), why)
        bare = without(batch.values, frames.cuts)
        if not reasons:
            return self._decoder.decode(replace(batch, values=bare))
        bad = np.zeros(len(batch), dtype=np.bool_)
        bad[list(reasons)] = True
        places = np.flatnonzero(~bad)
        decoded = self._decoder.decode(replace(batch, values=bare).take(places))
        return Decoded(
            table=decoded.table,
            kept=places if decoded.kept is None else places[decoded.kept],
            rejects=Rejects.joined([Rejects.of(reasons, batch.offsets), decoded.rejects.at(places)]),
        )


class FramedKeys:
    """As `keys`, likewise."""

    def __init__(self, keys: KeyReader, known: KnownSchemas) -> None:
        self._keys, self._known = keys, known

    def read(self, batch: RawBatch, places: npt.NDArray[np.int64]) -> tuple[Tombstones, Rejects]:
        """What the keys of the records at these places, which ascend, say; those that say it in no way."""
        headers = naming(batch, KEY_HEADER)
        reasons: dict[int, str] = {}
        bare: dict[int, bytes | None] = {}
        for place in places.tolist():
            key = batch.keys.get(place)
            try:
                bare[place] = self._bare(key, headers[place] if headers is not None else None)
            except Misread as misread:
                reasons[place] = f"{ABOUT_KEY}: {misread}"
        rest = np.array(sorted(bare), dtype=np.int64)
        tombstones, nameless = self._keys.read(replace(batch, keys=bare), rest)
        return tombstones, Rejects.joined([Rejects.of(reasons, batch.offsets), nameless])

    def _bare(self, key: bytes | None, header: bytes | None) -> bytes | None:
        if not key:
            return key
        schema, at = confluent(key, header)
        why = self._known.why_not(schema)
        if why:
            raise Misread(why)
        return key[at:]

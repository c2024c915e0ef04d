"""A value is the row itself, whatever its format; in an upsert table it may be a delete, or be missing."""

from __future__ import annotations

import numpy as np

from participant.records.port import Asked, Decoded, Decoder, Format, KeyReader
from participant.records.raw import RawBatch
from participant.records.rejects import Rejects


class Plain:
    """See `participant.records.port.Envelope`."""

    def decoder(self, asked: Asked, values: Format, keys: Format) -> Decoder:
        """Raises `SchemaError`."""
        decoder = values.values(asked.schema)
        if not asked.upserts:
            return decoder
        return ChangeDecoder(decoder, keys.keys(asked.key_columns), asked.delete_field)


class ChangeDecoder:
    """As the decoder of values, for records without a value or with a delete field as well.

    `keys` reads what a record without a value has instead. `delete_field`: a BOOLEAN column, empty for none.
    """

    def __init__(self, values: Decoder, keys: KeyReader, delete_field: str) -> None:
        self._values, self._keys = values, keys
        self._delete_field = delete_field

    def decode(self, batch: RawBatch) -> Decoded:
        """All records of the batch: rows, some of them deletes, tombstones and rejects."""
        nulls = batch.values.nulls
        places = np.flatnonzero(~nulls) if nulls is not None else np.arange(0)
        decoded = self._values.decode(batch if nulls is None else batch.take(places))
        if decoded.stop is not None:
            at, why = decoded.stop
            return Decoded(table=decoded.table, stop=(at if nulls is None else int(places[at]), why))
        deleted = None
        if self._delete_field:
            flags = decoded.table.column(self._delete_field)
            deleted = flags.fill_null(False).to_numpy()
        if nulls is None:
            return Decoded(table=decoded.table, kept=decoded.kept, rejects=decoded.rejects, deleted=deleted)
        tombstones, nameless = self._keys.read(batch, np.flatnonzero(nulls))
        return Decoded(
            table=decoded.table,
            kept=places if decoded.kept is None else places[decoded.kept],
            rejects=Rejects.joined([decoded.rejects.at(places), nameless]),
            deleted=deleted,
            tombstones=tombstones,
        )

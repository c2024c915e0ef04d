"""A value is the row itself, whatever its format; in an upsert table it may be a delete, or be missing."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from participant.records.port import Asked, Decoded, Decoder, Format, KeyReader
from participant.records.raw import RawBatch
from participant.records.rejects import Reasons, Rejects


class Plain:
    """See `participant.records.port.Envelope`."""

    def decoder(self, asked: Asked, values: Format, keys: Format) -> Decoder:
        """Raises `SchemaError`."""
        if not asked.upserts:
            return values.values(asked.schema)
        keys_of = keys.keys(asked.key_columns)
        if not asked.delete_field:
            return ChangeDecoder(values.values(asked.schema), keys_of, "")
        decoder = values.values(all_nullable(asked.schema))
        names = frozenset(column.name for column in asked.key_columns)
        required = [column.name for column in asked.schema if not column.nullable]
        return ChangeDecoder(decoder, keys_of, asked.delete_field, required, names)


class ChangeDecoder:
    """As the decoder of values, for records without a value or with a delete field as well.

    `keys` reads what a record without a value has instead. `delete_field`: a BOOLEAN column, empty for none.
    `required`: columns that a row must have, and a delete only if they are among `key_columns`.
    """

    def __init__(
        self,
        values: Decoder,
        keys: KeyReader,
        delete_field: str,
        required: Sequence[str] = (),
        key_columns: Collection[str] = (),
    ) -> None:
        self._values, self._keys = values, keys
        self._delete_field = delete_field
        self._required, self._key_columns = required, key_columns

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
            offsets = batch.offsets if nulls is None else batch.offsets[places]
            decoded, deleted = self._complete(decoded, deleted, offsets)
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

    def _complete(
        self, decoded: Decoded, deleted: npt.NDArray[np.bool_], offsets: npt.NDArray[np.int64]
    ) -> tuple[Decoded, npt.NDArray[np.bool_]]:
        """Refuse rows that lack a required column, and deletes that lack one of their key."""
        table = decoded.table
        bad, reasons = np.zeros(table.num_rows, dtype=np.bool_), Reasons()
        places = decoded.kept if decoded.kept is not None else np.arange(len(offsets), dtype=np.int64)
        for name in self._required:
            if name not in table.column_names or not table.column(name).null_count:  # the table adds columns
                continue
            missing = table.column(name).is_null().to_numpy() & ~bad
            if name not in self._key_columns:
                missing &= ~deleted
            if missing.any():
                reasons.add_all(places[missing], f"required field {name} is missing or null")
                bad |= missing
        if not len(reasons):
            return decoded, deleted
        rejects = Rejects.joined([decoded.rejects, reasons.rejects(offsets)])
        complete = table.filter(pa.array(~bad))
        return replace(decoded, table=complete, kept=places[~bad], rejects=rejects), deleted[~bad]


def all_nullable(schema: pa.Schema) -> pa.Schema:
    """Return the schema in which every column may be null, as a delete may lack all but its key."""
    return pa.schema([field.with_nullable(True) for field in schema], schema.metadata)

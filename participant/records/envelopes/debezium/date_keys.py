"""Keys with dates as Debezium spells them: they name the row that a record without a value deletes.

As in a row: days since 1970 as a whole number, or a text with or without a Z behind it. Source: Debezium's
`io.debezium.time.Date` and `io.debezium.time.IsoDate`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from participant.records.envelopes.debezium.event_reader import NO_DATE, to_dates
from participant.records.port import KeyReader
from participant.records.raw import RawBatch
from participant.records.rejects import ABOUT_KEY, Rejects
from table.rows import Tombstones


class DateKeys:
    """Reads dates of a key as texts, else as numbers. See `KeyReader`."""

    def __init__(self, fields: Sequence[pa.Field], readers: Sequence[KeyReader]) -> None:
        self._schema = pa.schema([field.with_nullable(False) for field in fields])
        self._readers = readers

    @classmethod
    def of(cls, fields: Sequence[pa.Field], made: Callable[[Sequence[pa.Field]], KeyReader]) -> KeyReader:
        """Return what reads keys of these columns. `made`: makes what reads keys of columns as they are."""
        if not any(field.type == pa.date32() for field in fields):
            return made(fields)
        kinds = (pa.string(), pa.int32())
        return cls(fields, [made([_read_as(kind, field) for field in fields]) for kind in kinds])

    def read(self, batch: RawBatch, places: npt.NDArray[np.int64]) -> tuple[Tombstones, Rejects]:
        """Read the keys of the records at these places, which ascend."""
        columns, kept = [], []
        reasons: dict[int, str] = {}
        left = places
        for reader in self._readers:
            tombstones, nameless = reader.read(batch, left)
            table, wrong = self._as_dates(tombstones.columns)
            good = np.delete(np.arange(len(tombstones.places)), list(wrong))
            columns.append(table.take(pa.array(good)))
            kept.append(tombstones.places[good])
            told = {
                place: why.replace("not a STRING", "not a DATE") for place, why in nameless.by_place().items()
            }
            told |= {int(tombstones.places[row]): why for row, why in wrong.items()}
            reasons = {place: reasons.get(place, why) for place, why in told.items()}
            left = np.array(sorted(reasons), dtype=np.int64)
        found = np.concatenate(kept)
        order = np.argsort(found)
        tombstones = Tombstones(
            columns=pa.Table.from_arrays(
                pa.concat_tables(columns).take(pa.array(order)).columns, schema=self._schema
            ),
            places=found[order],
            offsets=batch.offsets[found[order]],
        )
        return tombstones, Rejects.of(reasons, batch.offsets)

    def _as_dates(self, read: pa.Table) -> tuple[pa.Table, dict[int, str]]:
        """Return the keys with the types of their columns, and why some rows have no date."""
        wrong: dict[int, str] = {}
        columns: list[pa.Array] = []
        for field, column in zip(self._schema, read.columns, strict=True):
            values = column.combine_chunks()
            if field.type == pa.date32():
                values = to_dates(values)
                for row in np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False)).tolist():
                    wrong.setdefault(row, f"{ABOUT_KEY}: field {field.name}: not a DATE but {NO_DATE}")
            columns.append(values)
        fields = [field.with_nullable(True) for field in self._schema]
        return pa.Table.from_arrays(columns, schema=pa.schema(fields)), wrong


def _read_as(kind: pa.DataType, field: pa.Field) -> pa.Field:
    return field.with_type(kind) if field.type == pa.date32() else field

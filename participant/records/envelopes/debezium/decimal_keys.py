"""Keys with decimals in base64: they name the row that a record without a value deletes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from participant.records.envelopes.debezium.bytes_decimals import decimals
from participant.records.port import Format, KeyReader
from participant.records.raw import RawBatch
from participant.records.rejects import ABOUT_KEY, Rejects
from table.rows import Tombstones
from table.schema import ddl_name


class DecimalKeys:
    """Reads decimals of a key as bytes with their column's scale. See `KeyReader`."""

    def __init__(self, fields: Sequence[pa.Field], inner: KeyReader) -> None:
        self._fields, self._inner = [field.with_nullable(False) for field in fields], inner

    @classmethod
    def of(cls, fields: Sequence[pa.Field], keys: Format) -> KeyReader:
        """Return what reads keys of these columns."""
        if not any(pa.types.is_decimal(field.type) for field in fields):
            return keys.keys(fields)
        read = [
            field.with_type(pa.binary()) if pa.types.is_decimal(field.type) else field for field in fields
        ]
        return cls(fields, keys.keys(read))

    def read(self, batch: RawBatch, places: npt.NDArray[np.int64]) -> tuple[Tombstones, Rejects]:
        """Read the keys of the records at these places, which ascend."""
        tombstones, nameless = self._inner.read(batch, places)
        bad: dict[int, str] = {}
        columns: list[pa.Array] = []
        for field, column in zip(self._fields, tombstones.columns.columns, strict=True):
            values = column.combine_chunks()
            if pa.types.is_decimal(field.type):
                values, wrong = decimals(values, field.type.scale, field.type)
                for row in np.flatnonzero(wrong).tolist():
                    bad.setdefault(row, f"{ABOUT_KEY}: field {field.name}: not a {ddl_name(field.type)}")
            columns.append(values)
        good = np.delete(np.arange(len(tombstones.places)), list(bad))
        taken = [column.take(pa.array(good)) for column in columns]
        kept = tombstones.places[good]
        found = Tombstones(
            columns=pa.Table.from_arrays(taken, schema=pa.schema(self._fields)),
            places=kept,
            offsets=batch.offsets[kept],
        )
        reasons = {int(tombstones.places[row]): why for row, why in bad.items()}
        return found, Rejects.joined([nameless, Rejects.of(reasons, batch.offsets)])

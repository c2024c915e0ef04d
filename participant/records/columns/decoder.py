"""Rows whose columns come from anywhere in a record: decoded as the plan reads, then made column by column.

Whatever decodes values and keys stays as it is, and as fast: it is asked for other columns.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from participant.records.columns.making import Given, make
from participant.records.columns.plan import Column, Plan, key_plan
from participant.records.port import Asked, Decoded, Decoder, Envelope, Format, KeyReader
from participant.records.raw import RawBatch, Values
from participant.records.rejects import NONE, Reasons, Rejects
from participant.records.sources import HEADER, HEADERS, KEY, VALUE
from table.rows import Tombstones
from table.schema import POSITION_COLUMN, record_schema

Places = npt.NDArray[np.int64]
ABOUT_ROW_KEY = "the Kafka key"


def columns_decoder(
    asked: Asked, plan: Plan, envelope: Envelope, values: Format, keys: Format, row_keys: Format
) -> Decoder:
    """`values`, `keys`: how they are encoded. `row_keys`: as `keys`, of whole keys, which it reads as values.

    Raises `SchemaError`.
    """
    names = [one.name for one in asked.key_columns]
    key_columns = key_plan(plan.columns, names) if asked.upserts else ((), ())
    value = plan.value
    if asked.delete_field:  # a delete may lack all but its key: which record is one, is known later
        value = pa.schema([one.with_nullable(True) for one in value])
    inner = envelope.decoder(
        replace(asked, schema=value, delete_field="", key_fields=_unchanged(plan, names)),
        values if len(plan.value) else _Unread(),
        _KeysOf(keys, *key_columns),
    )
    reads_keys = row_keys.values(plan.key) if len(plan.key) else None
    return ColumnsDecoder(record_schema(asked.schema), plan, inner, reads_keys, asked.delete_field, names)


def _unchanged(plan: Plan, names: Collection[str]) -> dict[str, str]:
    """Return which of these columns are a field of the value as it is, and of what name."""
    return {
        column.name: column.source.path[0]
        for column in plan.columns
        if column.name in names
        and (column.source.kind, len(column.source.path)) == (VALUE, 1)
        and not column.route
        and not column.unit
    }


class ColumnsDecoder:
    """See `Decoder`. `inner` reads what the plan wants of values, `keys` of keys."""

    def __init__(
        self,
        schema: pa.Schema,
        plan: Plan,
        inner: Decoder,
        keys: Decoder | None,
        delete_field: str,
        key_columns: Collection[str] = (),
    ) -> None:
        self._schema, self._plan, self._inner, self._keys = schema, plan, inner, keys
        self._delete_field, self._key_columns = delete_field, key_columns
        self._wants = {column.source.kind for column in plan.columns if not column.source.from_fields}

    def decode(self, batch: RawBatch) -> Decoded:
        """All records of the batch. Raises `SchemasUnavailable`."""
        decoded = self._inner.decode(batch)
        if decoded.stop is not None:
            return Decoded(table=self._schema.empty_table(), stop=decoded.stop)
        places = decoded.kept if decoded.kept is not None else np.arange(len(batch), dtype=np.int64)
        reasons, misfits = Reasons(), np.zeros(len(places), dtype=np.bool_)
        key_fields = None
        if self._keys is not None:
            read = self._of_keys(self._keys, batch, places, reasons, misfits)
            if isinstance(read, Decoded):
                return read
            key_fields = read
        made = self._made(self._given(batch, places, decoded.table, key_fields), decoded, reasons, misfits)
        return self._done(batch, decoded, made, places, reasons, misfits)

    def _of_keys(
        self, keys: Decoder, batch: RawBatch, places: Places, reasons: Reasons, misfits: npt.NDArray[np.bool_]
    ) -> pa.Table | Decoded:
        """What the rows' keys say, a row each; or that the batch may not pass."""
        whole = _whole(batch)[0].take(places)
        there = np.arange(len(places)) if whole.nulls is None else np.flatnonzero(~whole.nulls)
        read = keys.decode(_of_values(batch.take(places), whole).take(there))
        if read.stop is not None:
            at, why = read.stop
            stop = (int(places[there[at]]), f"{ABOUT_ROW_KEY}: {why}")
            return Decoded(table=self._schema.empty_table(), stop=stop)
        for place, why in read.rejects.by_place().items():
            reasons.add(int(places[there[place]]), f"{ABOUT_ROW_KEY}: {why}")
            misfits[there[place]] = True
        rows = there if read.kept is None else there[read.kept]
        if len(rows) == len(places):
            return read.table
        row_of = np.full(len(places), -1, dtype=np.int64)
        row_of[rows] = np.arange(len(rows))
        return read.table.take(pa.array(row_of, mask=row_of < 0))

    def _given(self, batch: RawBatch, places: Places, fields: pa.Table, key_fields: pa.Table | None) -> Given:
        taken = len(places) < len(batch)
        keys, headers = _whole(batch) if self._wants & {KEY, HEADER, HEADERS} else (None, None)
        values = batch.values if VALUE in self._wants else None

        def some(column: Values | None) -> Values | None:
            return column.take(places) if taken and column is not None else column

        return Given(
            partition=batch.partition,
            offsets=batch.offsets[places] if taken else batch.offsets,
            timestamps_ms=batch.timestamps_ms[places] if taken else batch.timestamps_ms,
            fields=fields,
            key_fields=key_fields,
            values=some(values),
            keys=some(keys) if KEY in self._wants else None,
            packed=some(headers) if self._wants & {HEADER, HEADERS} else None,
        )

    def _made(
        self, given: Given, decoded: Decoded, reasons: Reasons, misfits: npt.NDArray[np.bool_]
    ) -> dict[str, pa.ChunkedArray]:
        """All columns. A row that has one of them not is marked, with why."""
        places = decoded.kept if decoded.kept is not None else np.arange(len(given), dtype=np.int64)
        found: dict[str, pa.ChunkedArray] = {}
        deleted = decoded.deleted
        for column in sorted(self._plan.columns, key=lambda one: one.name != self._delete_field):
            made = make(column, given)
            found[column.name] = made.values
            if column.name == self._delete_field:
                deleted = made.values.fill_null(False).to_numpy()
            needed = self._delete_field and column.name in self._key_columns
            missing = _missing(column, made.values, None if needed else deleted)
            for which, why in ((made.misfits, made.why), (missing, _none(column))):
                new = which & ~misfits
                if new.any():
                    reasons.add_all(places[new], why)
                    misfits |= new
        return found

    def _done(
        self,
        batch: RawBatch,
        decoded: Decoded,
        made: Mapping[str, pa.ChunkedArray],
        places: Places,
        reasons: Reasons,
        misfits: npt.NDArray[np.bool_],
    ) -> Decoded:
        fields, columns = list(self._schema), [made[name] for name in self._schema.names]
        if self._delete_field or POSITION_COLUMN in decoded.table.column_names:
            fields = [one.with_nullable(True) for one in fields]  # a delete lacks columns
        if POSITION_COLUMN in decoded.table.column_names:
            fields.append(decoded.table.schema.field(POSITION_COLUMN))
            columns.append(decoded.table.column(POSITION_COLUMN))
        plain = pa.schema([one.with_nullable(True) for one in fields])
        table, deleted, kept = pa.Table.from_arrays(columns, schema=plain), decoded.deleted, decoded.kept
        if misfits.any():
            table, kept = table.filter(pa.array(~misfits)), places[~misfits]
            deleted = deleted[~misfits] if deleted is not None else None
        if self._delete_field:
            deleted = table.column(self._delete_field).fill_null(False).to_numpy()
        return Decoded(
            table=pa.Table.from_arrays(table.columns, schema=pa.schema(fields)),
            kept=kept,
            rejects=Rejects.joined([decoded.rejects, reasons.rejects(batch.offsets)]),
            deleted=deleted,
            tombstones=decoded.tombstones,
        )


def _missing(
    column: Column, made: pa.ChunkedArray, deleted: npt.NDArray[np.bool_] | None
) -> npt.NDArray[np.bool_]:
    """Return where a column is null and must not be. `deleted`: rows that may lack it."""
    if column.field.nullable or not made.null_count:
        return np.zeros(len(made), dtype=np.bool_)
    nulls: npt.NDArray[np.bool_] = made.is_null().to_numpy()
    return nulls & ~deleted if deleted is not None else nulls


def _none(column: Column) -> str:
    return f"required column {column.name}, from {column.source}, is missing or null"


def _whole(batch: RawBatch) -> tuple[Values, Values]:
    if batch.record_keys is None or batch.headers is None:
        raise ValueError(f"{batch.partition}: a batch without keys and headers, which columns come from")
    return batch.record_keys, batch.headers


def _of_values(batch: RawBatch, values: Values) -> RawBatch:
    """The same records with these as their values."""
    return RawBatch(
        partition=batch.partition,
        offsets=batch.offsets,
        timestamps_ms=batch.timestamps_ms,
        values=values,
        headers=batch.headers,
    )


class _Unread:
    """A format of values of which nothing is read: whatever they are, they are rows. See `Format`."""

    typed = False

    def values(self, schema: pa.Schema) -> _Unread:
        return self

    def keys(self, fields: Sequence[pa.Field]) -> KeyReader:
        raise NotImplementedError

    def reads_by(self, schema: pa.Schema) -> str:
        return "nobody: no column comes from a field of the value"

    def decode(self, batch: RawBatch) -> Decoded:
        return Decoded(table=pa.table({}))


# --- records without a value -----------------------------------------------------------------------------


class _KeysOf:
    """How keys of records without a value are read. See `Format`."""

    def __init__(self, keys: Format, columns: Sequence[Column], fields: Sequence[pa.Field]) -> None:
        self._keys, self._columns, self._fields = keys, columns, fields
        self.typed = keys.typed

    def values(self, schema: pa.Schema) -> Decoder:
        return self._keys.values(schema)

    def keys(self, fields: Sequence[pa.Field]) -> KeyReader:
        return ColumnKeys(fields, self._columns, self._keys.keys(self._fields) if self._fields else None)

    def reads_by(self, schema: pa.Schema) -> str:
        return self._keys.reads_by(schema)


class ColumnKeys:
    """See `KeyReader`. `inner` reads what the columns want of keys' fields; None where that is nothing."""

    def __init__(
        self, fields: Sequence[pa.Field], columns: Sequence[Column], inner: KeyReader | None
    ) -> None:
        self._schema = pa.schema([one.with_nullable(False) for one in fields])
        self._columns, self._inner = columns, inner
        kinds = {column.source.kind for column in columns if not column.source.from_fields}
        self._wants_key, self._wants_headers = KEY in kinds, HEADER in kinds

    def read(self, batch: RawBatch, places: Places) -> tuple[Tombstones, Rejects]:
        """What the records at these places, which ascend, say; those that say it in no way."""
        fields, nameless = None, NONE
        if self._inner is not None:
            read, nameless = self._inner.read(batch, places)
            fields, places = read.columns, read.places
        given = Given(
            partition=batch.partition,
            offsets=batch.offsets[places],
            timestamps_ms=batch.timestamps_ms[places],
            fields=None,
            key_fields=fields,
            keys=Values.of([batch.keys.get(place) for place in places.tolist()]) if self._wants_key else None,
            packed=_whole(batch)[1].take(places) if self._wants_headers else None,
        )
        reasons, misfits = Reasons(), np.zeros(len(places), dtype=np.bool_)
        columns: list[pa.ChunkedArray] = []
        for column in self._columns:
            made = make(column, given)
            columns.append(made.values)
            nulls = made.values.is_null().to_numpy() if made.values.null_count else np.zeros_like(misfits)
            for which, why in ((made.misfits, made.why), (nulls, _none(column))):
                new = which & ~misfits
                if new.any():
                    reasons.add_all(places[new], f"a record without a value: {why}")
                    misfits |= new
        table = pa.table(columns, names=self._schema.names)
        kept = places
        if misfits.any():
            table, kept = table.filter(pa.array(~misfits)), places[~misfits]
        found = pa.Table.from_arrays(table.columns, schema=self._schema)
        tombstones = Tombstones(columns=found, places=kept, offsets=batch.offsets[kept])
        return tombstones, Rejects.joined([nameless, reasons.rejects(batch.offsets)])

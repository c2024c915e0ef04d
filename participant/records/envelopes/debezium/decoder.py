"""Debezium's change events to Arrow columns, one row per event, each tied to its record.

An event is `{"before":…,"after":…,"source":…,"op":…}`, or `{"schema":…,"payload":{the same}}` where Kafka
Connect's JsonConverter writes schemas; a batch may hold both. In Avro it is a record with these fields. All
of a batch is decoded at once, by the decoder of values, as columns of STRUCTs in which every field may be
missing. A row is what `after` says, of a delete what `before` says, and a position that grows with the
source's log (`participant.records.envelopes.debezium.position`).

| `op` | |
|---|---|
| `c`, `u`, `r` (create, update, read by a snapshot) | a row of `after`; NOT NULL columns are checked |
| `d` (delete) | a row of `before`; what it lacks is null, even where the column is NOT NULL |
| `t` (truncate), `m` (message), others | a reject |

Types are those of the format (`participant.records.json.decoder`, `participant.records.avro.columns`); names
are told apart by case, and fields that the schema does not name are ignored. In JSON a top-level DATE column
takes two spellings more, both Debezium's: days since 1970 as a whole number (`io.debezium.time.Date`) and
`"2026-12-31Z"` (`io.debezium.time.IsoDate`). One record has to keep to numbers or to strings. A top-level
TIMESTAMP_NTZ column takes a zone, too, and shows UTC's clock: Debezium writes a Z behind the time of a column
that has no zone (`io.debezium.time.IsoTimestamp`).

Settings of a connector that fit JSON (Avro says what its numbers are: docs/formats.md):

* `decimal.handling.mode=string` for DECIMAL, without fail: by default it is base64, which is mostly a reject,
  but now and then reads as a number.
* `time.precision.mode=isostring` for TIMESTAMP and TIMESTAMP_NTZ; by default columns without a time zone are
  numbers of unnamed units, a reject. Columns with a time zone are strings that fit, whatever the mode. More
  than six fractional digits are a reject.
* Values that an event lacks (TOAST, LOBs): `participant.records.unavailable` refuses their placeholder.
* No transformation that unwraps the event (`ExtractNewRecordState`).

Source of the format: Debezium's documentation, "Data change events" of each connector.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from control_topic.messages import SourcePartition
from participant.records.envelopes.debezium.order import WHY, LogOrder
from participant.records.envelopes.debezium.position import SOURCE, positions
from participant.records.json.columns import DAYS
from participant.records.json.native import row_decoder
from participant.records.port import Decoder
from participant.records.raw import RawBatch
from participant.records.rejects import NONE, Rejects
from table.schema import LOCAL_MICROS, POSITION_COLUMN, UTC_MICROS, SchemaError, record_schema

OPS = ("c", "u", "r", "d", "t", "m")
WHY_TRUNCATE = (
    "op t (truncate) cannot be applied exactly once to rows that other source partitions may bring as well: "
    "set skipped.operations=t in the connector, or empty the table by hand"
)
WHY_MESSAGE = (
    "op m (a message in the database's log) changes no row: keep such messages off this topic, in "
    "PostgreSQL's connector with message.prefix.exclude.list=.*"
)
DATE_TEXT = "^[0-9]{4}-[0-9]{2}-[0-9]{2}Z?$"
NO_DATE = "a string that is no date like 2026-12-31"
PROBE_RECORDS = 64
"""So many show how the source spells dates, before a whole batch is read in vain."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What a batch of change events says. Rows, tombstones and rejects together are the batch."""

    rows: pa.Table
    """The record's columns in the schema's order and types, all nullable, and POSITION_COLUMN last."""
    deleted: npt.NDArray[np.bool_]
    """Per row, whether it is a delete."""
    kept: npt.NDArray[np.int64]
    """Per row, its index in the batch, ascending."""
    tombstones: npt.NDArray[np.int64]
    """The indices of the records without a value."""
    rejects: Rejects = NONE
    stop: tuple[int, str] | None = None
    """The index of a change that must not pass, and why; what stands behind it is not to be used."""


class DebeziumDecoder:
    """Decodes for one schema (Kafka columns in it are left to others). Not for several threads.

    `values` makes what reads values of a schema; `typed`: as of `participant.records.port.Format`; `order`:
    how far logs were read. Raises `SchemaError` for a schema that cannot be read so, or that has a column
    POSITION_COLUMN in other letters; spelled so it is the table's own, and ignored.
    """

    def __init__(
        self,
        schema: pa.Schema,
        values: Callable[[pa.Schema], Decoder] = row_decoder,
        *,
        typed: bool = False,
        order: LogOrder | None = None,
    ) -> None:
        self._schema = record_schema(schema)
        if not len(self._schema):
            raise SchemaError("the schema has no column")
        for name in self._schema.names:
            if name.lower() == POSITION_COLUMN:
                raise SchemaError(f"column {name}: change events bring their position so named; rename it")
        nullable = [field.with_nullable(True) for field in self._schema]
        self._rows = pa.schema([*nullable, pa.field(POSITION_COLUMN, pa.int64())])
        self._reader = _EventReader(pa.struct(nullable), values, typed)
        self._order = order or LogOrder()

    def knows(self, partition: SourcePartition) -> bool:
        """Whether anything of it was decoded."""
        return self._order.knows(partition)

    def decode(self, batch: RawBatch, *, committed: bool = False) -> Changes:
        """All records of the batch, as rows, tombstones or rejects. `committed`: they are in the table."""
        nulls = batch.values.nulls
        tombstones = np.flatnonzero(nulls) if nulls is not None else np.empty(0, dtype=np.int64)
        places = np.delete(np.arange(len(batch), dtype=np.int64), tombstones)
        events = self._reader.read(batch.take(places) if len(tombstones) else batch)
        if isinstance(events, _Stopped):
            return Changes(
                rows=self._rows.empty_table(),
                deleted=np.empty(0, dtype=np.bool_),
                kept=np.empty(0, dtype=np.int64),
                tombstones=np.empty(0, dtype=np.int64),
                stop=(int(places[events.place]), events.why),
            )
        rows, deleted, kept, fallen = self._judge(events, batch.partition, committed=committed)
        stop = (int(places[fallen]), WHY) if fallen is not None else None
        rejects = Rejects.of(events.reasons, batch.offsets[places]).at(places)
        if rows.num_rows + len(tombstones) + len(rejects) != len(batch):
            raise AssertionError(
                f"{batch.partition}: {rows.num_rows} rows, {len(tombstones)} tombstones and {len(rejects)} "
                f"rejects of {len(batch)}"
            )
        return Changes(
            rows=rows,
            deleted=deleted,
            kept=places[kept],
            tombstones=tombstones,
            rejects=rejects,
            stop=stop,
        )

    def _judge(
        self, events: _Events, partition: SourcePartition, *, committed: bool
    ) -> tuple[pa.Table, npt.NDArray[np.bool_], npt.NDArray[np.int64], int | None]:
        """The rows of the events that are changes, `deleted` and `kept`, and the index of the first that is
        of a new log; what is no change gets its reason."""
        codes = pc.index_in(events.op, value_set=pa.array(OPS)).fill_null(-1).to_numpy()
        of = {op: codes == code for code, op in enumerate(OPS)}
        events.refuse(_nulls(events.op), "field op is missing or null: not a change event")
        events.refuse(codes == -1, f"field op is none of {', '.join(OPS)}")
        events.refuse(of["t"], WHY_TRUNCATE)
        events.refuse(of["m"], WHY_MESSAGE)
        events.refuse(of["d"] & _nulls(events.before), "op d, and field before is missing or null")
        for op in ("c", "u", "r"):
            events.refuse(of[op] & _nulls(events.after), f"op {op}, and field after is missing or null")
        for i, field in enumerate(self._schema):
            if not field.nullable:
                why = f"required field {field.name} is missing or null"
                events.refuse(~of["d"] & _nulls(pc.struct_field(events.after, i)), why)
        events.refuse(_nulls(events.source), "field source is missing or null: a change without its position")

        rows = np.flatnonzero(events.good)
        found = positions(_pick([events.source], np.zeros_like(rows), rows), of["r"][rows])
        for i, why in found.reasons.items():
            events.refuse_one(int(rows[i]), why)
        where = found.numbers.filter(pa.array(events.good[rows])) if found.reasons else found.numbers
        rows = np.flatnonzero(events.good)
        deleted = of["d"][rows]
        sides = _pick([events.after, events.before], deleted.astype(np.int64), rows)
        table = pa.Table.from_arrays([*sides.flatten(), where], schema=self._rows)
        logged = np.flatnonzero(~of["r"][rows])
        fallen = self._order.first_of_a_new_log(
            partition,
            events.source.take(pa.array(rows[logged])),
            where.to_numpy()[logged],
            accept=committed,
        )
        kept = events.kept[rows]
        return table, deleted, kept, int(kept[logged[fallen]]) if fallen is not None else None


@dataclass(slots=True, kw_only=True)
class _Events:
    """Events as columns."""

    op: pa.Array
    source: pa.StructArray
    before: pa.StructArray
    after: pa.StructArray
    kept: npt.NDArray[np.int64]
    """Per event, its index in the batch."""
    good: npt.NDArray[np.bool_]
    """Per event, whether it is not refused."""
    reasons: dict[int, str]
    """Why, by index in the batch, of those that are refused and of what is no event at all."""

    def refuse(self, which: npt.NDArray[np.bool_], reason: str) -> None:
        """Refuse the events at these places, except those that are refused already."""
        for place in np.flatnonzero(which & self.good):
            self.refuse_one(int(place), reason)

    def refuse_one(self, place: int, reason: str) -> None:
        self.reasons[int(self.kept[place])] = reason
        self.good[place] = False

    def followed_by(self, others: _Events, reasons: dict[int, str]) -> _Events:
        """The good ones of both, in the batch's order."""
        kept = np.concatenate([self.kept[self.good], others.kept[others.good]])
        order = np.argsort(kept)
        places = np.concatenate([np.flatnonzero(self.good), len(self.good) + np.flatnonzero(others.good)])
        taken = pa.array(places[order])

        def join(mine: pa.Array, theirs: pa.Array) -> pa.Array:
            return pa.concat_arrays([mine, theirs]).take(taken)

        return _Events(
            op=join(self.op, others.op),
            source=join(self.source, others.source),
            before=join(self.before, others.before),
            after=join(self.after, others.after),
            kept=kept[order],
            good=np.ones(len(order), dtype=np.bool_),
            reasons=reasons,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stopped:
    """See `participant.records.port.Decoded.stop`."""

    place: int
    why: str


class _EventReader:
    """Reads events in either spelling. Where rows have dates: strings by one decoder, numbers by another.

    `typed`: what a date is says the schema of each event, so that one decoder reads them as they are.
    """

    def __init__(self, row: pa.StructType, values: Callable[[pa.Schema], Decoder], typed: bool) -> None:
        self._row = row
        self._dates = [field.name for field in row if field.type == pa.date32() and not typed]
        kinds = [pa.string(), pa.int32()] if self._dates else [pa.date32()]
        local = LOCAL_MICROS if typed else UTC_MICROS
        self._decoders = [values(_envelope(row, kind, local)) for kind in kinds]
        self._respelled = not typed and any(field.type in (pa.date32(), LOCAL_MICROS) for field in row)
        path = rf"field (?:payload\.)?(?:before|after)\.(?:{'|'.join(self._dates)})"
        self._not_a_date = re.compile(rf"({path}: not a )(STRING|INT)\b")
        self._probed = not self._dates

    def read(self, batch: RawBatch) -> _Events | _Stopped:
        """Dates are read as the last batch spelled them; what does not fit, once more the other way."""
        if not self._probed and len(batch) > PROBE_RECORDS:
            self._probed = True
            self.read(batch.head(PROBE_RECORDS))
        events = self._read(batch, self._decoders[0])
        if isinstance(events, _Stopped) or not self._dates or not events.reasons:
            return events
        refused = np.array(sorted(events.reasons), dtype=np.int64)
        again = self._read(batch.take(refused), self._decoders[1])
        if isinstance(again, _Stopped):
            return _Stopped(place=int(refused[again.place]), why=again.why)
        again.kept = refused[again.kept]
        if again.good.any():
            self._decoders.reverse()
        reasons = {
            int(refused[i]): self._reason(events.reasons[int(refused[i])], why)
            for i, why in again.reasons.items()
        }
        return events.followed_by(again, reasons)

    def _reason(self, first: str, second: str) -> str:
        """The one that is not about the spelling of dates that was tried."""
        if self._not_a_date.match(first) and not self._not_a_date.match(second):
            return second
        return self._not_a_date.sub(r"\1DATE", first)

    def _read(self, batch: RawBatch, decoder: Decoder) -> _Events | _Stopped:
        decoded = decoder.decode(batch)
        if decoded.stop is not None:
            return _Stopped(place=decoded.stop[0], why=decoded.stop[1])
        places = np.arange(decoded.table.num_rows, dtype=np.int64)
        *outer, payload = (column.combine_chunks() for column in decoded.table.columns)
        inside = ~_nulls(payload)
        before, after, source, op = (
            _pick([one, other], inside.astype(np.int64), places)
            for one, other in zip(outer, payload.flatten(), strict=True)
        )
        events = _Events(
            op=op,
            source=source,
            before=before,
            after=after,
            kept=decoded.kept if decoded.kept is not None else places,
            good=np.ones(len(places), dtype=np.bool_),
            reasons=decoded.rejects.by_place(),
        )
        events.refuse(inside & ~_nulls(outer[-1]), "holds op twice: beside payload and in it")
        if self._respelled:
            events.before = self._as_declared(events, events.before, "before")
            events.after = self._as_declared(events, events.after, "after")
        return events

    def _as_declared(self, events: _Events, rows: pa.StructArray, side: str) -> pa.StructArray:
        """The rows with the types that the schema says, where they were read as others."""
        columns = rows.flatten()
        for i, field in enumerate(self._row):
            if field.type == pa.date32():
                read, columns[i] = columns[i], _to_dates(columns[i])
                why = "a number beyond its range" if read.type == pa.int32() else NO_DATE
                wrong = _nulls(columns[i]) & ~_nulls(read)
                events.refuse(wrong, f"field {side}.{field.name}: not a DATE but {why}")
            elif field.type == LOCAL_MICROS:
                columns[i] = columns[i].view(pa.int64()).view(LOCAL_MICROS)
        return pa.StructArray.from_arrays(columns, fields=list(self._row), mask=rows.is_null())


def _envelope(row: pa.StructType, date_kind: pa.DataType, local_kind: pa.DataType) -> pa.Schema:
    """What an event is read as. See `_EventReader._as_declared`."""
    others = {pa.date32(): date_kind, LOCAL_MICROS: local_kind}
    read = pa.struct([f.with_type(others.get(f.type, f.type)) for f in row])
    event = [
        pa.field("before", read),
        pa.field("after", read),
        pa.field("source", SOURCE),
        pa.field("op", pa.string()),
    ]
    return pa.schema([*event, pa.field("payload", pa.struct(event))])


def _to_dates(read: pa.Array) -> pa.Array:
    """Days since 1970 or dates as text, as dates; null for what is none."""
    if read.type == pa.string():
        fits = pc.match_substring_regex(read, DATE_TEXT)
        text = pc.utf8_slice_codeunits(pc.if_else(fits, read, pa.scalar(None, pa.string())), 0, 10)
        try:
            dates = text.cast(pa.date32())
        except pa.ArrowInvalid:
            dates = pa.array([_to_date(one) for one in text.to_pylist()], pa.date32())
        read = dates.view(pa.int32())
    fits = pc.and_(pc.greater_equal(read, DAYS[0]), pc.less_equal(read, DAYS[1]))
    return pc.if_else(fits, read, pa.scalar(None, pa.int32())).view(pa.date32())


def _to_date(text: str | None) -> date | None:
    try:
        return date.fromisoformat(text) if text is not None else None
    except ValueError:
        return None


def _pick(
    candidates: list[pa.Array], which: npt.NDArray[np.int64], places: npt.NDArray[np.int64]
) -> pa.Array:
    """`candidates[which[i]][places[i]]` for each i. All candidates are of one length; places ascend."""
    used = np.unique(which)
    if len(used) <= 1:
        only = candidates[used[0] if len(used) else 0]
        return only if len(places) == len(only) else only.take(pa.array(places))
    whole = pa.concat_arrays(candidates)
    return whole.take(pa.array(which * len(candidates[0]) + places))


def _nulls(array: pa.Array) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = array.is_null().to_numpy(zero_copy_only=False)
    return found

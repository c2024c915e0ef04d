"""Debezium's change events as columns: operation, source, and the row before and after.

The decoder of values reads all events of a batch at once, as STRUCTs in which every field may be missing.
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

from participant.records.envelopes.debezium.bytes_decimals import NO_SCALES, Scales, from_bytes, with_bytes
from participant.records.envelopes.debezium.position import SOURCE
from participant.records.json.columns import DAYS
from participant.records.port import Decoder
from participant.records.raw import RawBatch
from table.schema import LOCAL_MICROS, UTC_MICROS

DATE_TEXT = "^[0-9]{4}-[0-9]{2}-[0-9]{2}Z?$"
NO_DATE = "a string that is no date like 2026-12-31"
PROBE_RECORDS = 64
"""Number of events that show how the source spells dates, before a whole batch is read."""


@dataclass(slots=True, kw_only=True)
class Events:
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

    def followed_by(self, others: Events, reasons: dict[int, str]) -> Events:
        """The good ones of both, in the batch's order."""
        kept = np.concatenate([self.kept[self.good], others.kept[others.good]])
        order = np.argsort(kept)
        places = np.concatenate([np.flatnonzero(self.good), len(self.good) + np.flatnonzero(others.good)])
        taken = pa.array(places[order])

        def join(mine: pa.Array, theirs: pa.Array) -> pa.Array:
            return pa.concat_arrays([mine, theirs]).take(taken)

        return Events(
            op=join(self.op, others.op),
            source=join(self.source, others.source),
            before=join(self.before, others.before),
            after=join(self.after, others.after),
            kept=kept[order],
            good=np.ones(len(order), dtype=np.bool_),
            reasons=reasons,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """See `participant.records.port.Decoded.stop`."""

    place: int
    why: str


class EventReader:
    """Reads events in either spelling. Where rows have dates: strings by one decoder, numbers by another.

    `typed`: what a date is says the schema of each event, so that one decoder reads them as they are.
    `scales`: of decimals that are read as bytes: see `bytes_decimals` next to this module.
    """

    def __init__(
        self,
        row: pa.StructType,
        values: Callable[[pa.Schema], Decoder],
        typed: bool = False,
        scales: Scales = NO_SCALES,
    ) -> None:
        self._row, self._scales = row, scales
        read = with_bytes(row, scales)
        self._dates = [field.name for field in row if field.type == pa.date32() and not typed]
        kinds = [pa.string(), pa.int32()] if self._dates else [pa.date32()]
        local = LOCAL_MICROS if typed else UTC_MICROS
        self._decoders = [values(_envelope(read, kind, local)) for kind in kinds]
        respelled = any(field.type in (pa.date32(), LOCAL_MICROS) for field in row)
        self._respelled = not typed and (respelled or bool(scales))
        path = rf"field (?:payload\.)?(?:before|after)\.(?:{'|'.join(self._dates)})"
        self._not_a_date = re.compile(rf"({path}: not a )(STRING|INT)\b")
        self._probed = not self._dates

    def read(self, batch: RawBatch) -> Events | Stopped:
        """Dates are read as the last batch spelled them; what does not fit, once more the other way."""
        if not self._probed and len(batch) > PROBE_RECORDS:
            self._probed = True
            self.read(batch.head(PROBE_RECORDS))
        events = self._read(batch, self._decoders[0])
        if isinstance(events, Stopped) or not self._dates or not events.reasons:
            return events
        refused = np.array(sorted(events.reasons), dtype=np.int64)
        again = self._read(batch.take(refused), self._decoders[1])
        if isinstance(again, Stopped):
            return Stopped(place=int(refused[again.place]), why=again.why)
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

    def _read(self, batch: RawBatch, decoder: Decoder) -> Events | Stopped:
        decoded = decoder.decode(batch)
        if decoded.stop is not None:
            return Stopped(place=decoded.stop[0], why=decoded.stop[1])
        places = np.arange(decoded.table.num_rows, dtype=np.int64)
        *outer, payload = (column.combine_chunks() for column in decoded.table.columns)
        inside = ~nulls(payload)
        before, after, source, op = (
            pick([one, other], inside.astype(np.int64), places)
            for one, other in zip(outer, payload.flatten(), strict=True)
        )
        events = Events(
            op=op,
            source=source,
            before=before,
            after=after,
            kept=decoded.kept if decoded.kept is not None else places,
            good=np.ones(len(places), dtype=np.bool_),
            reasons=decoded.rejects.by_place(),
        )
        events.refuse(inside & ~nulls(outer[-1]), "holds op twice: beside payload and in it")
        if self._respelled:
            events.before = self._as_declared(events, events.before, "before")
            events.after = self._as_declared(events, events.after, "after")
        return events

    def _as_declared(self, events: Events, rows: pa.StructArray, side: str) -> pa.StructArray:
        """The rows with the types that the schema says, where they were read as others."""
        columns = rows.flatten()
        for i, field in enumerate(self._row):
            if field.type == pa.date32():
                read, columns[i] = columns[i], to_dates(columns[i])
                why = "a number beyond its range" if read.type == pa.int32() else NO_DATE
                wrong = nulls(columns[i]) & ~nulls(read)
                events.refuse(wrong, f"field {side}.{field.name}: not a DATE but {why}")
            elif field.type == LOCAL_MICROS:
                columns[i] = columns[i].view(pa.int64()).view(LOCAL_MICROS)
            elif columns[i].type != field.type:
                columns[i], misfits = from_bytes(columns[i], field.type, field.name, self._scales)
                for path, wrong, why in misfits:
                    events.refuse(wrong, f"field {side}.{path}: {why}")
        return pa.StructArray.from_arrays(columns, fields=list(self._row), mask=rows.is_null())


def _envelope(row: pa.StructType, date_kind: pa.DataType, local_kind: pa.DataType) -> pa.Schema:
    """Type that an event is read as. See `EventReader._as_declared`."""
    others = {pa.date32(): date_kind, LOCAL_MICROS: local_kind}
    read = pa.struct([f.with_type(others.get(f.type, f.type)) for f in row])
    event = [
        pa.field("before", read),
        pa.field("after", read),
        pa.field("source", SOURCE),
        pa.field("op", pa.string()),
    ]
    return pa.schema([*event, pa.field("payload", pa.struct(event))])


def to_dates(read: pa.Array) -> pa.Array:
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


def pick(candidates: list[pa.Array], which: npt.NDArray[np.int64], places: npt.NDArray[np.int64]) -> pa.Array:
    """`candidates[which[i]][places[i]]` for each i. All candidates are of one length; places ascend."""
    used = np.unique(which)
    if len(used) <= 1:
        only = candidates[used[0] if len(used) else 0]
        return only if len(places) == len(only) else only.take(pa.array(places))
    whole = pa.concat_arrays(candidates)
    return whole.take(pa.array(which * len(candidates[0]) + places))


def nulls(array: pa.Array) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = array.is_null().to_numpy(zero_copy_only=False)
    return found

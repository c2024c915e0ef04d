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

* `decimal.handling.mode`: see `participant.records.envelopes.debezium.decimals`.
* `time.precision.mode=isostring` for TIMESTAMP and TIMESTAMP_NTZ; by default columns without a time zone are
  numbers of unnamed units, a reject. Columns with a time zone are strings that fit, whatever the mode. More
  than six fractional digits are a reject.
* Values that an event lacks (TOAST, LOBs): `participant.records.unavailable` refuses their placeholder.
* No transformation that unwraps the event (`ExtractNewRecordState`).

Source of the format: Debezium's documentation, "Data change events" of each connector.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from control_topic.messages import SourcePartition
from participant.records.envelopes.debezium.binlog import BEYOND
from participant.records.envelopes.debezium.decimals import DecimalReader, decimals_of
from participant.records.envelopes.debezium.event_reader import EventReader, Events, Stopped, nulls, pick
from participant.records.envelopes.debezium.order import WHY, LogOrder
from participant.records.envelopes.debezium.position import positions
from participant.records.json.native import row_decoder
from participant.records.port import Decoder
from participant.records.raw import RawBatch
from participant.records.rejects import NONE, Rejects
from table.schema import POSITION_COLUMN, SchemaError, record_schema

OPS = ("c", "u", "r", "d", "t", "m")
WHY_TRUNCATE = (
    "op t (truncate) cannot be applied exactly once to rows that other source partitions may bring as well: "
    "set skipped.operations=t in the connector, or empty the table by hand"
)
WHY_MESSAGE = (
    "op m (a message in the database's log) changes no row: keep such messages off this topic, in "
    "PostgreSQL's connector with message.prefix.exclude.list=.*"
)


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
    how far logs were read; `decimal_handling`: of `RecordSpec`. Raises `SchemaError` for a schema that cannot
    be read so, or that has a column POSITION_COLUMN in other letters; spelled so it is the table's own, and
    ignored.
    """

    def __init__(
        self,
        schema: pa.Schema,
        values: Callable[[pa.Schema], Decoder] = row_decoder,
        *,
        typed: bool = False,
        order: LogOrder | None = None,
        decimal_handling: str = "",
    ) -> None:
        self._schema = record_schema(schema)
        if not len(self._schema):
            raise SchemaError("the schema has no column")
        for name in self._schema.names:
            if name.lower() == POSITION_COLUMN:
                raise SchemaError(f"column {name}: change events bring their position so named; rename it")
        nullable = [field.with_nullable(True) for field in self._schema]
        self._rows = pa.schema([*nullable, pa.field(POSITION_COLUMN, pa.int64())])
        row = pa.struct(nullable)
        self._reader: EventReader | DecimalReader = EventReader(row, values, typed)
        if decimal_handling and not typed and decimals_of(row):
            self._reader = DecimalReader(row, values, decimal_handling)
        self._order = order or LogOrder()

    def knows(self, partition: SourcePartition) -> bool:
        """Whether anything of it was decoded."""
        return self._order.knows(partition)

    def decode(self, batch: RawBatch, *, committed: bool = False) -> Changes:
        """All records of the batch, as rows, tombstones or rejects. `committed`: they are in the table."""
        absent = batch.values.nulls
        tombstones = np.flatnonzero(absent) if absent is not None else np.empty(0, dtype=np.int64)
        places = np.delete(np.arange(len(batch), dtype=np.int64), tombstones)
        events = self._reader.read(batch.take(places) if len(tombstones) else batch)
        if isinstance(events, Stopped):
            return Changes(
                rows=self._rows.empty_table(),
                deleted=np.empty(0, dtype=np.bool_),
                kept=np.empty(0, dtype=np.int64),
                tombstones=np.empty(0, dtype=np.int64),
                stop=(int(places[events.place]), events.why),
            )
        offsets = batch.offsets[places]
        rows, deleted, kept, fallen = self._judge(events, batch.partition, offsets, committed=committed)
        stop = (int(places[fallen]), WHY) if fallen is not None else None
        rejects = Rejects.of(events.reasons, offsets).at(places)
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
        self, events: Events, partition: SourcePartition, offsets: npt.NDArray[np.int64], *, committed: bool
    ) -> tuple[pa.Table, npt.NDArray[np.bool_], npt.NDArray[np.int64], int | None]:
        """The rows of the events that are changes, `deleted` and `kept`, and the index of the first that is
        of a new log; what is no change gets its reason."""
        codes = pc.index_in(events.op, value_set=pa.array(OPS)).fill_null(-1).to_numpy()
        of = {op: codes == code for code, op in enumerate(OPS)}
        events.refuse(nulls(events.op), "field op is missing or null: not a change event")
        events.refuse(codes == -1, f"field op is none of {', '.join(OPS)}")
        events.refuse(of["t"], WHY_TRUNCATE)
        events.refuse(of["m"], WHY_MESSAGE)
        events.refuse(of["d"] & nulls(events.before), "op d, and field before is missing or null")
        for op in ("c", "u", "r"):
            events.refuse(of[op] & nulls(events.after), f"op {op}, and field after is missing or null")
        for i, field in enumerate(self._schema):
            if not field.nullable:
                why = f"required field {field.name} is missing or null"
                events.refuse(~of["d"] & nulls(pc.struct_field(events.after, i)), why)
        events.refuse(nulls(events.source), "field source is missing or null: a change without its position")

        where = self._positions(events, partition, offsets, of["r"])
        rows = np.flatnonzero(events.good)
        deleted = of["d"][rows]
        sides = pick([events.after, events.before], deleted.astype(np.int64), rows)
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

    def _positions(
        self,
        events: Events,
        partition: SourcePartition,
        offsets: npt.NDArray[np.int64],
        snapshot: npt.NDArray[np.bool_],
    ) -> pa.Array:
        """Return the positions of the events that are good; what has none gets its reason.

        `offsets`: of the records that were read; `snapshot`: per event, whether a snapshot read it.
        """
        rows = np.flatnonzero(events.good)
        source = pick([events.source], np.zeros_like(rows), rows)
        found = positions(source, snapshot[rows])
        reasons = dict(found.reasons)
        numbers = found.numbers.fill_null(0).to_numpy().copy()
        logged = ~snapshot[rows]
        logged[list(reasons)] = False
        of = np.flatnonzero(logged)
        if len(of):
            given = source if len(of) == len(source) else source.take(pa.array(of))
            numbers[of] = self._order.expand(partition, offsets[events.kept[rows[of]]], given, numbers[of])
            reasons |= dict.fromkeys(np.flatnonzero(numbers == -1).tolist(), BEYOND)
        for i, why in reasons.items():
            events.refuse_one(int(rows[i]), why)
        return pa.array(numbers[events.good[rows]])

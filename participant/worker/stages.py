"""What becomes of consumed records: decoded as they were sent, then shaped and written as the table wants."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from control_topic.clocks import wall_ms
from participant.records.changes import HALT
from participant.records.event_time import EventTimeReader
from participant.records.kinds import ENVELOPES, format_made, made
from participant.records.port import (
    REJECT,
    Asked,
    Decoder,
    Envelope,
    Format,
    LookBack,
    RecordSpec,
    nothing,
)
from participant.records.registry.session import RegistrySession
from participant.records.sources import CONNECT, CONNECT_PAYLOAD, VALUE, Source, source_of, taken
from participant.records.unavailable import AvailableRows, may_hold
from participant.source.fetcher import BATCH_RECORDS
from participant.worker.checked import CheckedDecoder
from participant.worker.memory import MemoryBudget
from table.kinds import table_kind
from table.partition_columns import columns_of
from table.partitioners.expressions import record_fields
from table.port import AS_LOOKED_UP, UPSERT, TableFiles, TableLayout, TableSpec
from table.schema import SchemaError, record_schema
from table.store.settings import StoreSettings
from table.widening import ddl_of

if TYPE_CHECKING:
    from participant.records.columns.plan import Plan

log = logging.getLogger("lockstep.worker")

PLACE_BYTES = 8
"""Of a column in memory, in each row: it is there though the record says nothing of it."""
RECORDS_LEAST = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """What the data plane drives."""

    records_max: int
    """So many may be decoded at once: rows of a wide table are large, however small its records."""
    decoder: Decoder
    files: TableFiles
    times: EventTimeReader | None = None
    """Where an event time is declared."""
    news: Callable[[], str] = str
    """Which schemas have brought columns since, for people."""


def stages(
    *,
    layout: TableLayout,
    slot: int,
    incarnation: str,
    memory: MemoryBudget,
    record: RecordSpec | None = None,
    storage: StoreSettings | None = None,
    look_back: LookBack = nothing,
) -> Stages:
    """The stages of one worker for one table. Raises `SchemaError` for a schema that cannot be written."""
    files = table_kind(layout.kind).files(
        layout=layout,
        slot=slot,
        incarnation=incarnation,
        pending_bytes_max=memory.encoding_bytes,
        held_bytes_max=memory.held_bytes,
        storage=storage,
    )
    record = record or RecordSpec()
    reads = decoder(layout, files.schema, record, look_back)
    log.info("values are read by: %s", _reads_by(files.schema, record))
    return Stages(
        records_max=_records_max(files.schema, memory.batch_bytes),
        decoder=reads,
        files=files,
        times=_times(record),
        news=lambda: str(getattr(reads, "news", "")),
    )


def _times(record: RecordSpec) -> EventTimeReader | None:
    if not record.event_time:
        return None
    return EventTimeReader(record.event_time, record.event_time_unit, record.ahead_max_ms, wall_ms)


def reads_by(spec: TableSpec, record: RecordSpec) -> str:
    """With what records of such a table are read on this machine, for people. Raises `SchemaError`."""
    schema = columns_of(spec)
    decoder(spec, schema, record)
    return _reads_by(schema, record)


def decoder(
    layout: TableLayout | TableSpec, schema: pa.Schema, record: RecordSpec, look_back: LookBack = nothing
) -> Decoder:
    """What makes rows of such a table of records, for long: it notices a registry that is reset.

    Raises `SchemaError` where the schema cannot be read, `SchemasPending` as `CheckedDecoder` does.
    """
    if record.registry is None:
        return unchecked_decoder(layout, schema, record, look_back)
    session = RegistrySession()
    record = replace(record, registry=replace(record.registry, session=session))
    return CheckedDecoder(unchecked_decoder(layout, schema, record, look_back), session)


def unchecked_decoder(
    layout: TableLayout | TableSpec, schema: pa.Schema, record: RecordSpec, look_back: LookBack = nothing
) -> Decoder:
    """What makes rows of such a table of a few records. Raises `SchemaError`."""
    upserts = layout.mode == UPSERT
    found = [*layout.key_fields, *record_fields(layout)]
    envelope: Envelope = made(ENVELOPES[record.envelope].made_by)
    values, keys = format_made(record.format, record), format_made(record.key_format, record)

    def reading(schema: pa.Schema) -> Decoder:
        reads = of_columns(schema)
        if record.unavailable_value and may_hold(record_schema(schema)):
            return AvailableRows(reads, record.unavailable_value, found)
        return reads

    def of_columns(schema: pa.Schema) -> Decoder:
        columns = record_schema(schema)
        asked = Asked(
            schema=schema,
            upserts=upserts,
            key_columns=[columns.field(name) for name in dict.fromkeys(found)] if upserts else (),
            delete_field=record.delete_field,
            decimal_handling=record.decimal_handling,
            look_back=look_back,
        )
        rows = _rejecting(values, schema, record)
        if not record.is_mapped:
            return envelope.decoder(asked, rows, keys)
        from participant.records.columns.decoder import columns_decoder

        row_keys = format_made(record.key_format, record.of_keys)
        return columns_decoder(asked, plan_of(schema, record), envelope, rows, keys, row_keys)

    if not record.follows:
        return reading(schema)
    from participant.records.by_schema.following import FollowingDecoder

    def wider(schema: pa.Schema) -> Decoder:
        _check_columns(layout, record_schema(schema))
        return reading(schema)

    fixed = {*found, *filter(None, [layout.ordering_field, record.delete_field])}
    halts = record.on_schema_change == HALT
    elsewhere = taken(record.columns, record.rest)
    return FollowingDecoder(schema, wider, values.follows(), fixed=fixed, taken=elsewhere, halts=halts)


def _check_columns(layout: TableLayout | TableSpec, columns: pa.Schema) -> None:
    """Raises `SchemaError` where such a table cannot have these columns of records."""
    columns_of(replace(layout, ddl=ddl_of(columns)))
    if not isinstance(layout, TableLayout):
        return
    for name in layout.lookup_fields:
        if why := table_kind(layout.kind).column_problem(columns.field(name), AS_LOOKED_UP):
            raise SchemaError(why)


def plan_of(schema: pa.Schema, record: RecordSpec) -> Plan:
    """How the table's columns come out of records. Raises `SchemaError`."""
    from participant.records.columns.plan import plan

    return plan(schema, sources_of(schema, record), record.rest)


def sources_of(schema: pa.Schema, record: RecordSpec) -> dict[str, str]:
    """Return the source of each column that is not the value's field of its name, as `record.columns` has it.

    In Kafka Connect's envelope the fields of a value are those of its payload.
    """
    sources = dict(record.columns)
    if record.envelope != CONNECT:
        return sources
    for name in record_schema(schema).names:
        source = source_of(name, sources)
        if source.kind == VALUE and source.path:
            inside = Source(VALUE, (CONNECT_PAYLOAD, *source.path))
            sources[name] = f"{inside}{f' as {source.reads}' if source.reads else ''}"
    return sources


def _rejecting(values: Format, schema: pa.Schema, record: RecordSpec) -> Format:
    """Return the format of values, which rejects those without a field of any column if that is asked for."""
    is_json = record.format in ("json", "json_schema") and record.envelope in ("none", CONNECT)
    if not is_json or record.rest or record.on_no_field != REJECT:
        return values
    sources = sources_of(schema, record)
    read = [source_of(name, sources) for name in record_schema(schema).names]
    paths = [source.path for source in read if source.kind == VALUE]
    if not paths or () in paths:  # a column has the value whole
        return values
    from participant.records.json.found_fields import FoundFields

    return FoundFields(values, paths)


def _reads_by(schema: pa.Schema, record: RecordSpec) -> str:
    """With what values are read, for people. Raises `SchemaError`."""
    if record.is_mapped:
        schema = plan_of(schema, record).value
        if not len(schema):
            return "nobody: no column comes from a field of the value"
    said: str = format_made(record.format, record).reads_by(schema)
    return said


def _records_max(schema: pa.Schema, batch_bytes: int) -> int:
    """Whose rows fit into so much while they hold nothing."""
    row_bytes = PLACE_BYTES * sum(map(_places, schema.types))
    return max(RECORDS_LEAST, min(BATCH_RECORDS, batch_bytes // row_bytes))


def _places(kind: pa.DataType) -> int:
    """Of a list or a map it is one in each row, whatever it holds."""
    return sum(_places(field.type) for field in kind.fields) if pa.types.is_struct(kind) else 1

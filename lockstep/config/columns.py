"""Whether columns can come from where `record.columns` and `record.rest` say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lockstep.config.problems import Problem, nearest
from participant.records.kinds import ENVELOPES, FORMATS
from participant.records.sources import CONNECT
from table.partitioners.expressions import sources_of

if TYPE_CHECKING:
    import pyarrow as pa

    from lockstep.config.model import Config
    from lockstep.config.record_section import RecordSection


def rest_problem(record: RecordSection) -> str:
    """Why what no column names cannot be had; empty where it can, or is not wanted."""
    if not record.rest:
        return ""
    if not FORMATS[record.format].has_rest:
        named = ", ".join(name for name, kind in FORMATS.items() if kind.has_rest)
        return f"it is had of {named}, not of {record.format}: make columns of the fields that are to be kept"
    if record.envelope == CONNECT:
        return "it is not had of values in Kafka Connect's envelope: make the fields columns of record.schema"
    if ENVELOPES[record.envelope].brings_order:
        return f"it is not had of {record.envelope} events: make the fields columns of record.schema"
    return ""


def check_columns(config: Config, columns: pa.Schema) -> Iterator[Problem]:
    """`columns`: those of `record.schema`."""
    record, table = config.record, config.table
    if not record.columns and not record.rest:
        return
    from participant.records.columns.plan import key_plan, plan
    from table.port import UPSERT
    from table.schema import SchemaError

    settings = ("record.columns", "record.schema")
    unknown = [name for name in record.columns if name not in columns.names]
    for name in unknown:
        sentence = f"{name} is no column of record.schema{nearest(name, columns.names)}"
        yield Problem(settings=settings, sentence=sentence)
    if unknown:
        return
    try:
        made = plan(columns, record.columns, record.rest)
    except SchemaError as error:
        name = "record.rest" if str(error).startswith("record.rest") else "record.columns"
        sentence = str(error).removeprefix("record.rest = ")
        yield Problem(settings=(name, "record.schema"), sentence=sentence)
        return
    wanted = [*table.key, *sources_of(table.partition_by)]
    if table.kind != UPSERT or not set(wanted) <= set(columns.names):
        return
    try:
        key_plan(made.columns, list(dict.fromkeys(wanted)))
    except SchemaError as error:
        yield Problem(settings=("record.columns", "table.key"), sentence=str(error))

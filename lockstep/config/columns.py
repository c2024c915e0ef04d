"""Whether columns can come from where `record.columns` says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lockstep.config.problems import Problem, nearest

if TYPE_CHECKING:
    import pyarrow as pa

    from lockstep.config.model import Config


def check_columns(config: Config, columns: pa.Schema) -> Iterator[Problem]:
    """`columns`: those of `record.schema`."""
    record, table = config.record, config.table
    if not record.columns:
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
        made = plan(columns, record.columns)
    except SchemaError as error:
        yield Problem(settings=settings, sentence=str(error))
        return
    wanted = [*table.key, *([table.partition_by] if table.partition_by else [])]
    if table.kind != UPSERT or not set(wanted) <= set(columns.names):
        return
    try:
        key_plan(made.columns, list(dict.fromkeys(wanted)))
    except SchemaError as error:
        yield Problem(settings=("record.columns", "table.key"), sentence=str(error))

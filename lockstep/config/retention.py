"""Whether table partitions can go when `table.retention` says so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lockstep.config.problems import Problem, no_field
from table.partitioners.expressions import KAFKA_TIMESTAMP, TablePartitions, parsed
from table.port import UPSERT
from table.retention import told_by

if TYPE_CHECKING:
    import pyarrow as pa

    from lockstep.config.model import Config

TIMES = ("TIMESTAMP", "TIMESTAMP_NTZ", "DATE")


def retention_is_of_table_partitions_that_may_go(config: Config) -> Iterator[Problem]:
    table = config.table
    if not table.retention_ms:
        if table.retention_by:
            sentence = 'means nothing without table.retention, such as retention = "90d"'
            yield Problem(settings=("table.retention_by", "table.retention"), sentence=sentence)
        return
    if table.kind == UPSERT:
        sentence = (
            "takes table partitions out of the table, and Hudi would hide for good what is upserted into one "
            "later: delete rows instead, as docs/operations.md says under table partitions that were taken "
            "out"
        )
        yield Problem(settings=("table.retention", "table.kind"), sentence=sentence)
    if table.retention_by:
        yield from _by_a_field(config)
        return
    try:
        told_by(TablePartitions.of(table.partition_by), table.retention_pattern)
    except ValueError as error:
        yield Problem(settings=("table.retention", "table.partition_by"), sentence=str(error))


def _by_a_field(config: Config) -> Iterator[Problem]:
    table = config.table
    if not table.partition_by:
        sentence = "needs table.partition_by: whole table partitions go, and this table has none"
        yield Problem(settings=("table.retention_by", "table.partition_by"), sentence=sentence)
    if table.retention_pattern:
        sentence = "means nothing beside table.retention_by: take one of them out"
        yield Problem(settings=("table.retention_pattern", "table.retention_by"), sentence=sentence)
    if table.retention_by == KAFKA_TIMESTAMP and not table.kafka_columns:
        sentence = f"{KAFKA_TIMESTAMP} is not in the table: say kafka_columns = true, or another field"
        yield Problem(settings=("table.retention_by", "table.kafka_columns"), sentence=sentence)


def check_retention(config: Config, columns: pa.Schema) -> Iterator[Problem]:
    """What is to say a time can. `columns`: those of `record.schema`."""
    from table.schema import ddl_name

    table, types = config.table, {column.name: ddl_name(column.type) for column in columns}
    if not table.retention_ms:
        return
    name = table.retention_by
    if name:
        if name not in types and name != KAFKA_TIMESTAMP:
            sentence = no_field(name, [*types, KAFKA_TIMESTAMP])
            yield Problem(settings=("table.retention_by", "record.schema"), sentence=sentence)
        elif types.get(name, TIMES[0]) not in TIMES:
            sentence = (
                f"{name} is {types[name]}: a table partition ages by a TIMESTAMP, TIMESTAMP_NTZ or DATE"
            )
            yield Problem(settings=("table.retention_by", "record.schema"), sentence=sentence)
        return
    plain = [one.column for one in parsed(table.partition_by) if not one.is_made]
    if len(table.partition_by) != 1 or not plain:
        return
    if types.get(plain[0], "STRING") not in ("DATE", "STRING"):
        sentence = f"{plain[0]!r} is neither a DATE nor a STRING, whose values could say a time: take it out"
        yield Problem(settings=("table.retention", "record.schema"), sentence=sentence)

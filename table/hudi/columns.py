"""A table's Avro schema, made wide enough for what workers have written and what others have added. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from table.errors import Contradiction
from table.hudi.avro import to_avro
from table.hudi.avro_columns import from_avro
from table.hudi.definition import fixed_columns
from table.hudi.evolution import covers, evolve
from table.partition_columns import columns_of
from table.partitioners.expressions import made_columns
from table.port import TableSpec
from table.schema import SchemaError, record_schema
from table.widening import ddl_of, united_ddl


def widened(schema: str, columns: Mapping[str, str], spec: TableSpec) -> str:
    """The table's schema, with these columns of records as well (Spark DDL -> of which schemas, for people).

    Word for word where they add nothing. Raises `Contradiction`.
    """
    if not columns:
        return schema
    made = made_columns(spec)
    try:
        has = ddl_of(record_schema(from_avro(schema), made=made))
        wide = united_ddl(has, columns, fixed=fixed_columns(spec), named=columns)
        if wide == has:
            return schema
        wanted = columns_of(replace(spec, ddl=wide))
    except SchemaError as why:
        raise Contradiction(
            f"table {spec.path}: {why}. Write record.schema with the columns that the table is to have, and "
            'record.on_schema_change = "ignore"'
        ) from why
    return evolve(schema, to_avro(wanted, spec.name), spec)


def with_others(schema: str, theirs: str, spec: TableSpec) -> str:
    """Our schema, as it must be after another writer's commit. Raises `Contradiction` where there is none."""
    if spec.follows:
        try:
            columns = record_schema(from_avro(theirs), made=made_columns(spec))
            schema = widened(schema, {ddl_of(columns): ""}, spec)
        except SchemaError as why:
            raise Contradiction(f"table {spec.path}: {why}") from why
    # else as Spark's UPDATE does, which says of every column that it may be null
    return schema if covers(schema, theirs, spec) else evolve(theirs, schema, spec)

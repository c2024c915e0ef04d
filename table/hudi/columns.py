"""A table's Avro schema, made wide enough for what workers have written and what others have added. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from table.errors import Contradiction
from table.hudi.avro import to_avro
from table.hudi.avro_columns import from_avro
from table.hudi.avro_ddl import DECIMAL, RECORD, digits_of, shape_of, without_null
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


def has_all(ours: str, theirs: str) -> bool:
    """Whether our Avro schema has each field of theirs, at any depth, of the same type.

    Names of records, the order of fields, and what may be null do not count: each writer has its own way.
    """
    if not theirs or ours == theirs:
        return True
    return bool(ours) and _within(json.loads(theirs), json.loads(ours))


def _within(theirs: Any, ours: Any) -> bool:
    theirs, ours = without_null(theirs), without_null(ours)
    shape = shape_of(theirs)
    if shape != shape_of(ours):
        return False
    if shape == RECORD:
        held = {one["name"]: one["type"] for one in ours["fields"]}
        asked = {one["name"]: one["type"] for one in theirs["fields"]}
        return asked.keys() <= held.keys() and all(_within(asked[name], held[name]) for name in asked)
    if shape == DECIMAL:
        return digits_of(theirs) == digits_of(ours)
    inner = {"array": "items", "map": "values"}.get(str(shape))
    return inner is None or _within(theirs[inner], ours[inner])

"""A table's columns out of the Avro schema that Hudi keeps: the inverse of `table.hudi.avro`. Pure."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from table.hudi.avro import AVRO_TYPES
from table.hudi.avro_ddl import (
    DECIMAL,
    RECORD,
    digits_of,
    is_nullable,
    shape_of,
    show,
    without_null,
)
from table.schema import HUDI_PREFIX, SchemaError

ARROW_TYPES = {shape_of(avro): arrow for arrow, avro in AVRO_TYPES.items()}


def from_avro(schema: str) -> pa.Schema:
    """The columns of an Avro schema (JSON), Hudi's meta columns aside.

    Raises `SchemaError` for a type that `record.schema` has no word for.
    """
    fields = json.loads(schema)["fields"]
    return pa.schema([_field(one, "") for one in fields if not one["name"].startswith(HUDI_PREFIX)])


def _field(field: dict[str, Any], parent: str) -> pa.Field:
    kind = field["type"]
    return pa.field(
        field["name"], _type(without_null(kind), f"{parent}{field['name']}"), nullable=is_nullable(kind)
    )


def _type(kind: Any, path: str) -> pa.DataType:
    shape = shape_of(kind)
    if shape in ARROW_TYPES:
        return ARROW_TYPES[shape]
    if shape == RECORD:
        return pa.struct([_field(one, f"{path}.") for one in kind["fields"]])
    if shape == DECIMAL:
        return pa.decimal128(*digits_of(kind))
    if shape == "array":
        return pa.list_(_type(without_null(kind["items"]), f"{path}[]"))
    if shape == "map":
        return pa.map_(pa.string(), _type(without_null(kind["values"]), f"{path}{{}}"))
    raise SchemaError(
        f"the table's field {path} is {show(kind)}, which record.schema has no word for: rewrite its rows "
        "with Spark into a new table, with a CAST to a type of Spark's own"
    )

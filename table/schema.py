"""The table's columns in two spellings: Spark DDL (configuration) and Arrow (memory, parquet).

Types that Avro lacks become what Hudi makes of them, for every kind of table: TINYINT and SMALLINT are INT.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Any

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

KAFKA_PREFIX = "_kafka_"
HUDI_PREFIX = "_hoodie_"
BOOLEAN = pa.bool_()
POSITION_COLUMN = "_source_position"
"""Where in its database's log a change was made, as a number that grows with the log."""
MADE = {b"lockstep": b"made"}
"""What marks a column that no record has: it is made of others."""
UTC_MICROS = pa.timestamp("us", tz="UTC")
LOCAL_MICROS = pa.timestamp("us")
"""What a calendar and a clock show, nobody says where: TIMESTAMP_NTZ."""
MICROS = (-62_135_596_800_000_000, 253_402_300_799_999_999)
"""Microseconds since 1970 in the years 1 to 9999, which every reader of a table knows."""
DECIMAL_PRECISION_MAX = 38
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

DataType = exp.DataType.Type

ARROW_TYPES: dict[Any, pa.DataType] = {
    DataType.TEXT: pa.string(),
    DataType.BOOLEAN: pa.bool_(),
    DataType.TINYINT: pa.int32(),
    DataType.SMALLINT: pa.int32(),
    DataType.INT: pa.int32(),
    DataType.BIGINT: pa.int64(),
    DataType.FLOAT: pa.float32(),
    DataType.DOUBLE: pa.float64(),
    DataType.DATE: pa.date32(),
    DataType.TIMESTAMP: UTC_MICROS,
    DataType.TIMESTAMPTZ: UTC_MICROS,
    DataType.TIMESTAMPLTZ: UTC_MICROS,
    DataType.TIMESTAMPNTZ: LOCAL_MICROS,
    DataType.BINARY: pa.binary(),
}
SUPPORTED = (
    "STRING, BOOLEAN, INT, BIGINT, FLOAT, DOUBLE, DECIMAL(p,s), DATE, TIMESTAMP, TIMESTAMP_NTZ, BINARY, "
    "ARRAY<…>, STRUCT<…>, MAP<STRING,…>"
)
DDL_NAMES: dict[pa.DataType, str] = {
    pa.string(): "STRING",
    pa.bool_(): "BOOLEAN",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.date32(): "DATE",
    UTC_MICROS: "TIMESTAMP",
    LOCAL_MICROS: "TIMESTAMP_NTZ",
    pa.binary(): "BINARY",
}


class SchemaError(ValueError):
    """A schema that a table cannot have; the sentence names the column."""


# --- DDL to Arrow -----------------------------------------------------------------------------------


def parse_ddl(ddl: str) -> pa.Schema:
    """The columns of a Spark DDL list, such as `id STRING NOT NULL, tags ARRAY<STRING>`.

    Raises `SchemaError` for everything that such a table cannot hold: no column, a name twice (case does
    not tell two names apart), a reserved or unusual name, an unsupported type.
    """
    try:
        statement = sqlglot.parse_one(f"CREATE TABLE t (\n{ddl}\n)", dialect="spark")
    except SqlglotError as error:
        raise SchemaError(f"the schema is not Spark DDL{_near(error)}; {_hint()}") from error
    except RecursionError as error:
        raise SchemaError(f"the schema is not Spark DDL: it is nested too deeply; {_hint()}") from error
    if not isinstance(statement, exp.Create) or not isinstance(statement.this, exp.Schema):
        raise SchemaError(f"the schema is not a list of columns; {_hint()}")
    if any(value for name, value in statement.args.items() if name not in ("this", "kind")):
        raise SchemaError(f"the schema holds more than a list of columns; {_hint()}")
    columns = statement.this.expressions
    if not columns:
        raise SchemaError("the schema has no column")
    fields = [_field(column, "") for column in columns]
    for field in fields:
        _refuse_reserved(field.name)
    _refuse_twice(fields, "")
    return pa.schema(fields)


def _hint() -> str:
    return (
        "write it like `id STRING NOT NULL, amount DOUBLE`, with backticks around a name that is an SQL word"
    )


def _near(error: SqlglotError) -> str:
    details = getattr(error, "errors", None)
    highlight = details[0].get("highlight", "") if details else ""
    return f" near {highlight!r}" if highlight else ""


def _field(column: exp.Expression, parent: str) -> pa.Field:
    if not isinstance(column, exp.ColumnDef):
        raise SchemaError(f"{column.sql(dialect='spark')!r} is not a column with a type; {_hint()}")
    name = f"{parent}{column.name}"
    if not NAME.fullmatch(column.name):
        raise SchemaError(
            f"column {name}: a name is made of ASCII letters, digits and _, and begins with no digit "
            "(Avro, in which Hudi keeps the schema, allows no other)"
        )
    if not isinstance(column.kind, exp.DataType):
        raise SchemaError(f"column {name} has no type; {_hint()}")
    nullable = True
    for constraint in column.constraints:
        kind = constraint.kind
        if isinstance(kind, exp.NotNullColumnConstraint):
            nullable = bool(kind.args.get("allow_null"))
        elif not isinstance(kind, exp.CommentColumnConstraint):
            raise SchemaError(
                f"column {name}: {constraint.sql(dialect='spark')} is not supported; only NOT NULL and "
                "COMMENT are"
            )
    return pa.field(column.name, _type(column.kind, name), nullable=nullable)


def _type(kind: exp.DataType, name: str) -> pa.DataType:
    """The Arrow type of a DDL type; `name` is the column's path, for the error."""
    inner = kind.expressions
    if kind.this in ARROW_TYPES and not inner:
        return ARROW_TYPES[kind.this]
    if kind.this == DataType.DECIMAL:
        return _decimal(inner, name)
    if kind.this == DataType.ARRAY and len(inner) == 1:
        return pa.list_(_type(inner[0], f"{name}[]"))
    if kind.this == DataType.STRUCT and inner:
        fields = [_field(f, f"{name}.") for f in inner]
        _refuse_twice(fields, f"{name}.")
        return pa.struct(fields)
    if kind.this == DataType.MAP and len(inner) == 2:
        if inner[0].this != DataType.TEXT:
            raise SchemaError(f"column {name}: a MAP's key is a STRING, as in JSON and Avro")
        return pa.map_(pa.string(), _type(inner[1], f"{name}{{}}"))
    raise SchemaError(
        f"column {name}: type {kind.sql(dialect='spark')} is not supported; the types are {SUPPORTED}"
    )


def _decimal(parameters: list[exp.Expression], name: str) -> pa.DataType:
    spelled = [p.name for p in parameters] + ["10", "0"][len(parameters) :]
    if len(spelled) != 2 or not all(re.fullmatch(r"[0-9]{1,9}", text) for text in spelled):
        raise SchemaError(f"column {name}: DECIMAL takes two whole numbers, DECIMAL(18,2)")
    precision, scale = map(int, spelled)
    if not 1 <= precision <= DECIMAL_PRECISION_MAX or not 0 <= scale <= precision:
        raise SchemaError(
            f"column {name}: DECIMAL({precision},{scale}): the precision is 1 to {DECIMAL_PRECISION_MAX}, "
            "the scale 0 to the precision"
        )
    return pa.decimal128(precision, scale)


def _refuse_twice(fields: Iterable[pa.Field], parent: str) -> None:
    seen: set[str] = set()
    for field in fields:
        if field.name.lower() in seen:
            raise SchemaError(
                f"column {parent}{field.name} is there twice (Spark does not tell names apart by case)"
            )
        seen.add(field.name.lower())


def _refuse_reserved(name: str) -> None:
    for prefix, owner in (
        (HUDI_PREFIX, "Hudi's"),
        (KAFKA_PREFIX, "Lockstep's"),
        (POSITION_COLUMN, "Lockstep's"),
    ):
        if name.lower().startswith(prefix):
            raise SchemaError(f"column {name}: names that begin with {prefix} are {owner} own; rename it")


# --- the table's columns ------------------------------------------------------------------------------


def kafka_fields() -> list[pa.Field]:
    """Where a row came from: the columns that make every claim checkable with SQL. Never null."""
    return [
        pa.field(f"{KAFKA_PREFIX}topic", pa.string(), nullable=False),
        pa.field(f"{KAFKA_PREFIX}partition", pa.int32(), nullable=False),
        pa.field(f"{KAFKA_PREFIX}offset", pa.int64(), nullable=False),
        pa.field(f"{KAFKA_PREFIX}timestamp", UTC_MICROS, nullable=False),
    ]


def table_schema(
    ddl: str, kafka_columns: bool, *, source_position: bool = False, made: Iterable[pa.Field] = ()
) -> pa.Schema:
    """The columns of the table, Hudi's meta columns aside: the record's, then ours where they are wanted.

    `made`: of the record's, by us.
    """
    columns = list(parse_ddl(ddl))
    if source_position:
        columns.append(pa.field(POSITION_COLUMN, pa.int64(), nullable=False))
    columns += [field.with_metadata(MADE) for field in made]
    return pa.schema(columns + kafka_fields() if kafka_columns else columns)


def record_schema(schema: pa.Schema, *, made: Collection[str] = ()) -> pa.Schema:
    """The columns that come out of a record's value: the schema without ours.

    `made`: names of columns that we make; `table_schema` marks them, a table that is read does not.
    """
    return pa.schema([field for field in schema if not _is_ours(field) and field.name not in made])


def _is_ours(field: pa.Field) -> bool:
    return bool(field.name.startswith((KAFKA_PREFIX, POSITION_COLUMN)) or field.metadata == MADE)


def holds_decimal(kind: pa.DataType) -> bool:
    """Return whether a type is or holds a DECIMAL."""
    return pa.types.is_decimal(kind) or any(holds_decimal(kind.field(i).type) for i in range(kind.num_fields))


def ddl_name(kind: pa.DataType) -> str:
    """An Arrow type as DDL spells it, for people."""
    if kind in DDL_NAMES:
        return DDL_NAMES[kind]
    if pa.types.is_decimal128(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    return {"list": "ARRAY", "struct": "STRUCT", "map": "MAP"}.get(str(kind).partition("<")[0], str(kind))

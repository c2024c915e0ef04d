"""How columns of one table that several say may be made one: what fits all of them. Pure.

The rules are those of docs/schema.md; `table.hudi.evolution` has them of Avro, and a test holds both
against each other. Nothing is ever taken away: what only one side has, stays, and what is new may be null.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType

import pyarrow as pa

from table.schema import SchemaError, ddl_name, parse_ddl

PROMOTIONS = frozenset({("INT", "BIGINT"), ("INT", "DOUBLE"), ("FLOAT", "DOUBLE")})
"""(what the table has, what it may become): every value is the same number in the new type. Of columns only:
a field inside a column whose type changes makes Spark's vectorized reader give up."""
PARSED_MAX = 64
"""Of lists of columns: those of a table, and of the workers that write it."""
NEVER_NULL = " NOT NULL"


class Disunited(SchemaError):
    """Two say different things of a column that no table can have both of; the sentence names it."""


class FixedColumn(Disunited):
    """A column by which rows or files are found would have another type, which no table of them can have."""


def united(has: pa.Schema, wanted: pa.Schema, *, fixed: Collection[str] = ()) -> pa.Schema:
    """The columns of `has` in their order, wide enough for `wanted`, then what only that has.

    `fixed`: columns by which rows and files are found, which stay as they are. Raises `Disunited`.
    """
    return pa.schema(_fields(list(has), list(wanted), "", frozenset(fixed)))


def united_ddl(
    has: str,
    others: Iterable[str],
    *,
    fixed: Collection[str] = (),
    named: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """The same of several, in Spark DDL; the same in any order of them, but for the order of new columns.

    `named`: of some of them which schemas they are of, for people. Raises `Disunited`.
    """
    wide = _parsed(has)
    for one in sorted(others):
        try:
            wide = united(wide, _parsed(one), fixed=fixed)
        except Disunited as why:
            of = named.get(one, "")
            raise Disunited(f"{why} ({of})" if of else str(why)) from why
    return has if wide == _parsed(has) else ddl_of(wide)


@lru_cache(PARSED_MAX)
def _parsed(ddl: str) -> pa.Schema:
    return parse_ddl(ddl) if ddl else pa.schema([])


def aligned(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The same rows with the columns of a schema that is united with theirs: what they lack is null.

    A column that is dictionary-encoded, of which there are few values, stays so.
    """
    if table.schema.equals(schema):
        return table
    there, columns, fields = set(table.column_names), [], []
    missing = {field.name for field in schema if not field.nullable} - there
    if missing or there - set(schema.names):
        raise ValueError(f"columns {table.column_names} where {schema.names} were announced")
    for field in schema:
        if field.name not in there:
            columns.append(pa.nulls(table.num_rows, field.type))
        elif pa.types.is_dictionary(table.schema.field(field.name).type):
            columns.append(table.column(field.name))
            field = table.schema.field(field.name)
        else:
            columns.append(_aligned(table.column(field.name), field.type))
        fields.append(field)
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def ddl_of(fields: Iterable[pa.Field]) -> str:
    """Columns in Spark DDL, as `table.schema.parse_ddl` takes them."""
    return ", ".join(f"`{one.name}` {full_name(one.type)}{_null(one)}" for one in fields)


def full_name(kind: pa.DataType) -> str:
    """A type in Spark DDL, with all that is inside."""
    if pa.types.is_struct(kind):
        inner = ", ".join(f"`{one.name}`: {full_name(one.type)}{_null(one)}" for one in kind)
        return f"STRUCT<{inner}>"
    if pa.types.is_list(kind):
        return f"ARRAY<{full_name(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"MAP<STRING, {full_name(kind.item_type)}>"
    return ddl_name(kind)


def is_promotion(old: pa.DataType, new: pa.DataType) -> bool:
    """Whether every value of a column of one type is the same in the other."""
    if pa.types.is_decimal128(old) and pa.types.is_decimal128(new):
        whole, wider = old.precision - old.scale, new.precision - new.scale
        return bool(new.scale >= old.scale and wider >= whole)
    return (ddl_name(old), ddl_name(new)) in PROMOTIONS


def _null(field: pa.Field) -> str:
    return "" if field.nullable else NEVER_NULL


def _fields(
    has: list[pa.Field], wanted: list[pa.Field], parent: str, fixed: frozenset[str]
) -> list[pa.Field]:
    asked = {field.name: field for field in wanted}
    known = {field.name.lower(): field.name for field in has}
    kept = [_field(one, asked.get(one.name), parent, fixed) for one in has]
    for field in wanted:
        there = known.setdefault(field.name.lower(), "")
        if there and there != field.name:
            raise Disunited(
                f"field {parent}{field.name} is there as {parent}{there}, from which Spark does not tell it "
                "apart"
            )
        if not there:
            kept.append(field.with_nullable(True))
    return kept


def _field(has: pa.Field, wanted: pa.Field | None, parent: str, fixed: frozenset[str]) -> pa.Field:
    if wanted is None or has.type == wanted.type:
        return has
    path = f"{parent}{has.name}"
    kind = _type(has.type, wanted.type, path)
    if path in fixed and kind != has.type:
        raise FixedColumn(
            f"field {path} is {full_name(has.type)} and would be {full_name(wanted.type)}, and rows or files "
            "are found by it"
        )
    return has.with_type(kind)


def _type(has: pa.DataType, wanted: pa.DataType, path: str) -> pa.DataType:
    if has == wanted:
        return has
    if pa.types.is_struct(has) and pa.types.is_struct(wanted):
        return pa.struct(_fields(list(has), list(wanted), f"{path}.", frozenset()))
    if pa.types.is_list(has) and pa.types.is_list(wanted):
        return pa.list_(_type(has.value_type, wanted.value_type, f"{path}[]"))
    if pa.types.is_map(has) and pa.types.is_map(wanted):
        return pa.map_(pa.string(), _type(has.item_type, wanted.item_type, f"{path}{{}}"))
    if path.isidentifier() and is_promotion(has, wanted):
        return wanted
    if path.isidentifier() and is_promotion(wanted, has):
        return has
    raise Disunited(
        f"field {path} is {full_name(has)} and would be {full_name(wanted)}: no type of the table holds both"
    )


def _aligned(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Of a wider type: of structs, also of those inside lists and maps, what they lack is null."""
    if column.type == kind:
        return column
    return pa.chunked_array([_array(chunk, kind) for chunk in column.chunks], kind)


def _array(array: pa.Array, kind: pa.DataType) -> pa.Array:
    if array.type == kind:
        return array
    missing = array.is_null()
    if pa.types.is_struct(kind):
        inside = {field.name: array.field(place) for place, field in enumerate(array.type)}
        parts = [
            _array(inside[field.name], field.type)
            if field.name in inside
            else pa.nulls(len(array), field.type)
            for field in kind
        ]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=missing)
    if pa.types.is_list(kind):
        values = _array(array.values, kind.value_type)
        return pa.ListArray.from_arrays(_offsets(array), values, type=kind, mask=missing)
    if pa.types.is_map(kind):
        items = _array(array.items, kind.item_type)
        return pa.MapArray.from_arrays(_offsets(array), array.keys, items, type=kind, mask=missing)
    return array.cast(kind)


def _offsets(array: pa.Array) -> pa.Array:
    """Of a slice as well, as an array that is none."""
    return pa.array(array.offsets.to_numpy())

"""From a table's columns and where they come from, what decoders are to read, and how columns are made of it.

Pure. A field is read once, whoever wants it: the columns' paths are put into one tree, which is the schema
that the decoder of values is given, and another one for keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from participant.records.columns.casts import route
from participant.records.sources import (
    HEADER,
    HEADERS,
    KEY,
    OFFSET,
    PARTITION,
    REST,
    REST_FIELD,
    TIMESTAMP,
    TOPIC,
    UNITS,
    VALUE,
    Source,
    source_of,
)
from table.schema import (
    KAFKA_PREFIX,
    POSITION_COLUMN,
    UTC_MICROS,
    SchemaError,
    ddl_name,
    parse_ddl,
    record_schema,
)

DAY = "DATE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of the table."""

    field: pa.Field
    source: Source
    given: pa.DataType
    """What it is where it comes from."""
    route: tuple[pa.DataType, ...] = ()
    """By which types the column's own is made of that, the last included."""
    unit: int = 0
    """Microseconds in one of what is given, where that counts since 1970; 0 where it does not."""

    @property
    def name(self) -> str:
        name: str = self.field.name
        return name


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """How all of them come out of records."""

    columns: tuple[Column, ...]
    """In the table's order."""
    value: pa.Schema
    """What is read of values; the last is `REST_FIELD` where that is wanted."""
    key: pa.Schema
    """What is read of the keys of records that have a value."""


@dataclass(slots=True)
class _Node:
    """A field that is read."""

    wanted_by: str
    kind: pa.DataType | None = None
    """None of an object, of which some fields are read."""
    required: bool = False
    inside: dict[str, _Node] = field(default_factory=dict)


class _Tree:
    """The fields that are read of values, or of keys."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._top = _Node("")

    def add(self, path: Sequence[str], kind: pa.DataType, required: bool, column: str) -> None:
        """Raises `SchemaError` where another column wants it otherwise."""
        node, spelled = self._top, self._what
        for depth, name in enumerate(path):
            if node.kind is not None:
                raise SchemaError(
                    f"column {column} comes from within {spelled}, which column {node.wanted_by} takes for "
                    f"{_named(node.kind)}: only of an object some fields can be read"
                )
            spelled = f"{spelled}.{name}"
            node = node.inside.setdefault(name, _Node(column))
            node.required = node.required or (required and depth == len(path) - 1)
        self._end(node, kind, spelled, column)

    def _end(self, node: _Node, kind: pa.DataType, spelled: str, column: str) -> None:
        if pa.types.is_struct(kind):
            if node.kind is None:
                for inner in kind:
                    at = node.inside.setdefault(inner.name, _Node(column))
                    at.required = at.required or not inner.nullable
                    self._end(at, inner.type, f"{spelled}.{inner.name}", column)
                return
        elif not node.inside and node.kind in (None, kind):
            node.kind = kind
            return
        other = "an object" if node.kind is None else _named(node.kind)
        raise SchemaError(
            f"columns {node.wanted_by} and {column} both come from {spelled}, as {other} and as "
            f"{_named(kind)}: a field is read in one way"
        )

    def schema(self) -> pa.Schema:
        return pa.schema(_fields(self._top))


def _fields(node: _Node) -> list[pa.Field]:
    return [
        pa.field(name, pa.struct(_fields(one)) if one.kind is None else one.kind, nullable=not one.required)
        for name, one in node.inside.items()
    ]


def _named(kind: pa.DataType) -> str:
    return ddl_name(kind)


# --- the plan --------------------------------------------------------------------------------------------


def plan(schema: pa.Schema, sources: Mapping[str, str], rest: str = "") -> Plan:
    """`schema`: the table's; columns that the table adds are left to it. `sources`, `rest`: as the
    configuration has them. Raises `SchemaError` for what cannot be.
    """
    fields = list(record_schema(schema))
    known = {one.name: one for one in fields}
    for name in sources:
        if name not in known:
            raise SchemaError(f"record.columns has {name}, which is no column of record.schema")
    if rest:
        _check_rest(known, sources, rest)
    columns = tuple(_column(one, _source(one, sources, rest)) for one in fields)
    value = _read(columns, VALUE)
    if rest:
        if not len(value):
            raise SchemaError(
                f"record.rest = {rest!r} is what other columns leave of a value, and none comes from a "
                f'field of it: write {rest} = "value" below [record.columns]'
            )
        value = value.append(pa.field(REST_FIELD, pa.string()))
    return Plan(columns=columns, value=value, key=_read(columns, KEY))


def _check_rest(known: Mapping[str, pa.Field], sources: Mapping[str, str], rest: str) -> None:
    if rest not in known:
        raise SchemaError(f"record.rest = {rest!r} is no column of record.schema: add {rest} STRING")
    if known[rest].type != pa.string() or not known[rest].nullable:
        raise SchemaError(f"record.rest = {rest!r}: what is left over is JSON, for a STRING that may be null")
    if rest in sources:
        raise SchemaError(f"column {rest} is record.rest, and stands in record.columns as well: keep one")


def _source(column: pa.Field, sources: Mapping[str, str], rest: str) -> Source:
    if column.name == rest:
        return Source(REST)
    try:
        return source_of(column.name, sources)
    except ValueError as error:
        raise SchemaError(f"column {column.name}: {error}") from None


def _column(column: pa.Field, source: Source) -> Column:
    """How it is made. Raises `SchemaError` where it cannot be."""
    if source.kind == HEADERS:
        return _all_headers(column, source)
    if source.kind == TIMESTAMP:
        return _timestamp(column, source)
    if source.reads.upper() in UNITS:
        return _counted(column, source)
    given = _given(column, source)
    reads = _type(column, source) if source.reads else given
    first = () if source.from_fields else route(given, reads)
    if source.from_fields:
        given = reads
    last = route(reads, column.type)
    if first is None or last is None:
        wrong = (given, reads) if first is None else (reads, column.type)
        raise SchemaError(
            f"column {column.name}, from {source}: no {_named(wrong[1])} is made of a {_named(wrong[0])}"
        )
    return Column(field=column, source=source, given=given, route=first + last)


def _given(column: pa.Field, source: Source) -> pa.DataType:
    """What it is where it comes from."""
    if source.from_fields:
        return column.type
    whole = {TOPIC: pa.string(), PARTITION: pa.int32(), OFFSET: pa.int64(), REST: pa.string()}
    return whole.get(source.kind, pa.binary())


def _type(column: pa.Field, source: Source) -> pa.DataType:
    try:
        (one,) = parse_ddl(f"c {source.reads}")
    except (SchemaError, ValueError):
        raise SchemaError(
            f"column {column.name}, from {source}: {source.reads!r} is neither a type nor one of "
            f"{', '.join(UNITS)}: write, say, {source} as STRING"
        ) from None
    return one.type


def _counted(column: pa.Field, source: Source) -> Column:
    """A number that counts since 1970."""
    given = _given(column, source)
    way = () if source.from_fields else route(given, pa.int64())
    if column.type != UTC_MICROS or way is None:
        raise SchemaError(
            f"column {column.name}, from {source}: {source.reads} are made a TIMESTAMP of numbers, not "
            f"{_named(column.type)}"
        )
    return Column(
        field=column,
        source=source,
        given=pa.int64() if source.from_fields else given,
        route=way,
        unit=UNITS[source.reads.upper()],
    )


def _timestamp(column: pa.Field, source: Source) -> Column:
    """A time, its day, or milliseconds as a number."""
    given = pa.int64() if column.type == pa.int64() else UTC_MICROS
    reads = source.reads.upper()
    if reads not in ("", DAY) or (reads and given != UTC_MICROS):
        raise SchemaError(
            f"column {column.name}, from timestamp: no {source.reads} is had of it, but its day is: write "
            "timestamp as DATE, for a DATE or STRING"
        )
    way = route(pa.date32() if reads else given, column.type)
    if way is None:
        raise SchemaError(
            f"column {column.name}, from timestamp: it is a TIMESTAMP, a BIGINT (milliseconds), or, as "
            f"`timestamp as DATE`, a DATE or STRING, not {_named(column.type)}"
        )
    return Column(field=column, source=source, given=given, route=way)


def _all_headers(column: pa.Field, source: Source) -> Column:
    kind, values = column.type, (pa.string(), pa.binary())
    mapped = pa.types.is_map(kind) and kind.item_type in values
    entry = kind.value_type if pa.types.is_list(kind) else None
    in_order = entry is not None and pa.types.is_struct(entry) and entry.num_fields == 2
    if in_order and entry is not None:
        in_order = entry[0].type == pa.string() and entry[1].type in values and entry[1].nullable
    if source.reads or not (mapped or in_order):
        raise SchemaError(
            f"column {column.name}, from headers: it is MAP<STRING, BINARY>, MAP<STRING, STRING>, or an "
            "ARRAY<STRUCT<key: STRING, value: BINARY>>, which keeps their order, and those of one name"
        )
    return Column(field=column, source=source, given=kind)


def _read(columns: Iterable[Column], kind: str) -> pa.Schema:
    """What is to be read of values, or of keys."""
    tree = _Tree(kind)
    for column in columns:
        source = column.source
        if source.kind == kind and source.path:
            _check_name(column.name, source)
            top = len(source.path) == 1 and kind == VALUE
            tree.add(source.path, column.given, top and not column.field.nullable, column.name)
    return tree.schema()


def _check_name(column: str, source: Source) -> None:
    """Decoders leave columns of such names to the table. Raises `SchemaError`."""
    name = source.path[0]
    if not len(record_schema(pa.schema([pa.field(name, pa.int32())]))):
        raise SchemaError(
            f"column {column}, from {source}: fields whose names begin with {KAFKA_PREFIX} or "
            f"{POSITION_COLUMN} are not read: such a field is had in record.rest, or in the whole of it"
        )


# --- of keys without a value -----------------------------------------------------------------------------


def key_plan(
    columns: Sequence[Column], wanted: Sequence[str]
) -> tuple[tuple[Column, ...], tuple[pa.Field, ...]]:
    """How the columns that key a row come out of a record without a value; what is read of its Kafka key.

    A column of a value's field is the key's field of the column's name. Raises `SchemaError` for a column
    that such a record does not have, or has as another one than the row's.
    """
    by_name = {column.name: column for column in columns}
    tree, found = _Tree(KEY), []
    for name in wanted:
        column = by_name[name]
        source = column.source
        if source.kind == VALUE and source.path:
            source = Source(KEY, (name,), source.reads)
        if source.kind not in (KEY, HEADER, TOPIC, PARTITION):
            why = "has none" if source.kind in (VALUE, REST, HEADERS) else "has another one than the row"
            raise SchemaError(
                f"column {name}, from {source}, says which row a record deletes, and a record without a "
                f"value {why}: take it from the key, a header, or a field"
            )
        if source.from_fields:
            tree.add(source.path, column.given, False, name)
        found.append(replace(column, source=source))
    return tuple(found), tuple(tree.schema())

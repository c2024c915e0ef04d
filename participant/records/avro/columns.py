"""Which Avro type goes into which column, and how its values are read: what would lose something is refused.

What a column is says `record.schema`; a schema of Avro only says how the bytes are read. docs/formats.md has
the table of what goes where. A logical type that Spark has no type for (a time of day, nanoseconds, a
duration) goes into the column of what it is made of, where the configuration asks for that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Context, Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa

from participant.records.avro import datum
from participant.records.avro.connect import TEXTS, loose_decimal, said_digits, variable_decimal
from participant.records.avro.datum import Read
from participant.records.avro.schema import Node
from participant.records.by_schema.misread import Misread
from participant.records.by_schema.value_count import ValueCount
from participant.records.json.columns import DAYS
from participant.records.value_limits import places
from table.schema import DECIMAL_PRECISION_MAX, LOCAL_MICROS, MICROS, UTC_MICROS, SchemaError, ddl_name

_EXACT = Context(prec=2 * DECIMAL_PRECISION_MAX)
BEYOND = "a time outside the years 1 to 9999"


def row_reader(node: Node, fields: Sequence[pa.Field], count: ValueCount | None = None) -> Read:
    """Reads a record as a dictionary with all of these columns, by name; other fields are read and dropped.

    `count`: counts the values of a record.

    Raises `SchemaError`, naming the field, where such a record can be no row.
    """
    if node.kind != "record":
        raise SchemaError(f"the Avro schema is not a record but {node}")
    return _Readers(count or ValueCount()).row(node, fields, "")


def value_reader(node: Node, field: pa.Field, count: ValueCount | None = None) -> Read:
    """Reads a datum that is one column's value. `count`: as of `row_reader`. Raises `SchemaError`."""
    return _Readers(count or ValueCount()).of(node, field.type, field.name)


class _Readers:
    """Makes readers; those of what no column wants are made once for each named type."""

    def __init__(self, count: ValueCount) -> None:
        self._count = count
        self._bare: dict[Node, Read] = {}

    def row(self, node: Node, fields: Sequence[pa.Field], parent: str) -> Read:
        there = dict(node.fields)
        for field in fields:
            if field.name not in there and not field.nullable:
                raise SchemaError(f"record {node.name} has no field {parent}{field.name}, which is required")
        wanted = {field.name: field for field in fields}
        read = [
            (name, self.of(one, wanted[name].type, f"{parent}{name}"), True)
            if name in wanted
            else (name, self._unwanted(one), False)
            for name, one in node.fields
            if name in wanted or one.least_bytes
        ]
        return datum.record_of(read, [field.name for field in fields if not field.nullable])

    def of(self, node: Node, kind: pa.DataType, path: str) -> Read:
        """Of what becomes a column of this type. Raises `SchemaError`."""
        if node.kind == "union":
            return self._nullable(node, kind, path)
        if node.kind == "record" and pa.types.is_struct(kind):
            return self.row(node, list(kind), f"{path}.")
        if node.kind == "array" and pa.types.is_list(kind):
            inner = self.of(node.inside[0], kind.value_type, f"{path}[]")
            return datum.array_of(inner, self._count, places(kind.value_type))
        if node.kind == "map" and pa.types.is_map(kind):
            inner = self.of(node.inside[0], kind.item_type, f"{path}{{}}")
            return datum.map_of(inner, self._count, places(kind.item_type))
        if node.kind == "enum" and pa.types.is_string(kind):
            return datum.enum_of(node.symbols, self._count)
        if pa.types.is_decimal128(kind):
            decimal = loose_decimal(node, kind) or variable_decimal(node, kind)
            if decimal is not None:
                return decimal
            if node.logical == "decimal":
                return _decimal(node, kind, path)
        read = _scalar(node).get(kind)
        if read is None:
            raise SchemaError(f"field {path}: {node} is not read as {ddl_name(kind)}{_instead(node)}")
        return read

    def _nullable(self, node: Node, kind: pa.DataType, path: str) -> Read:
        real = [one for one in node.inside if one.kind != "null"]
        if len(real) != 1:
            raise SchemaError(
                f"field {path}: {node} is not read: a column has one type, which may be null besides"
            )
        read = self.of(real[0], kind, path)
        return datum.union_of([datum.read_null if one.kind == "null" else read for one in node.inside])

    def _unwanted(self, node: Node) -> Read:
        """Of what becomes of no column: read as strictly, since what follows stands behind it."""
        if node not in self._bare:
            self._bare[node] = self._made(node)
        return self._bare[node]

    def _made(self, node: Node) -> Read:
        match node.kind:
            case "record":
                # A field without a byte is not read: a thousand of them in each of a million items take hours
                whole = [(name, one) for name, one in node.fields if one.least_bytes]
                return datum.record_of([(name, self._unwanted(one), False) for name, one in whole])
            case "array":
                return datum.array_of(self._unwanted(node.inside[0]))
            case "map":
                return datum.map_of(self._unwanted(node.inside[0]))
            case "union":
                return datum.union_of([self._unwanted(one) for one in node.inside])
            case "enum":
                return datum.enum_of(node.symbols)
            case "fixed":
                return datum.fixed_of(node.size_bytes)
            case primitive:
                return PRIMITIVES[primitive]


PRIMITIVES: Mapping[str, Read] = {
    "null": datum.read_null,
    "boolean": datum.read_boolean,
    "int": datum.read_int,
    "long": datum.read_long,
    "float": datum.read_float,
    "double": datum.read_double,
    "bytes": datum.read_bytes,
    "string": datum.read_string,
}


def _converted(read: Read, convert: Callable[[Any], Any]) -> Read:
    def converted(data: bytes, at: int) -> tuple[Any, int]:
        value, at = read(data, at)
        return convert(value), at

    return converted


def _within(low: int, high: int, factor: int = 1) -> Callable[[int], int]:
    def checked(number: int) -> int:
        number *= factor
        if not low <= number <= high:
            raise Misread(BEYOND)
        return number

    return checked


_DAYS = _converted(datum.read_int, _within(*DAYS))
_MICROS = _converted(datum.read_long, _within(*MICROS))
_MILLIS = _converted(datum.read_long, _within(*MICROS, factor=1_000))

SCALARS: Mapping[tuple[str, str], Mapping[pa.DataType, Read]] = {
    ("boolean", ""): {pa.bool_(): datum.read_boolean},
    ("int", ""): {
        pa.int32(): datum.read_int,
        pa.int64(): datum.read_int,
        pa.float64(): _converted(datum.read_int, float),
    },
    ("int", "date"): {pa.date32(): _DAYS},
    ("int", "time-millis"): {pa.int32(): datum.read_int, pa.int64(): datum.read_int},
    ("long", ""): {pa.int64(): datum.read_long},
    ("long", "time-micros"): {pa.int64(): datum.read_long},
    ("long", "timestamp-millis"): {UTC_MICROS: _MILLIS},
    ("long", "timestamp-micros"): {UTC_MICROS: _MICROS},
    ("long", "timestamp-nanos"): {pa.int64(): datum.read_long},
    ("long", "local-timestamp-millis"): {LOCAL_MICROS: _MILLIS},
    ("long", "local-timestamp-micros"): {LOCAL_MICROS: _MICROS},
    ("long", "local-timestamp-nanos"): {pa.int64(): datum.read_long},
    ("float", ""): {pa.float32(): datum.read_float, pa.float64(): datum.read_float},
    ("double", ""): {pa.float64(): datum.read_double},
    ("bytes", ""): {pa.binary(): datum.read_bytes},
    ("string", ""): {pa.string(): datum.read_string},
    ("string", "uuid"): {pa.string(): datum.read_string},
}
"""Type and logical type of Avro -> the columns that take it, and how. Those of a size: `_scalar`."""
CONNECT: Mapping[tuple[str, str], Mapping[pa.DataType, Read]] = {
    ("int", "io.debezium.time.Date"): {pa.date32(): _DAYS},
    ("long", "io.debezium.time.Timestamp"): {LOCAL_MICROS: _MILLIS},
    ("long", "io.debezium.time.MicroTimestamp"): {LOCAL_MICROS: _MICROS},
    ("long", "org.apache.kafka.connect.data.Timestamp"): {LOCAL_MICROS: _MILLIS},
    **TEXTS,
}
"""Type of Avro and what Connect calls it -> the columns that take it besides."""


def _scalar(node: Node) -> Mapping[pa.DataType, Read]:
    if node.kind == "enum":
        return {pa.string(): datum.enum_of(node.symbols)}
    if node.kind == "fixed" and node.logical != "decimal":
        raw = datum.fixed_of(node.size_bytes)
        spelled = _converted(raw, lambda value: str(UUID(bytes=value)))
        return {pa.binary(): raw} | ({pa.string(): spelled} if node.logical == "uuid" else {})
    return {**SCALARS.get((node.kind, node.logical), {}), **CONNECT.get((node.kind, node.connect), {})}


def _instead(node: Node) -> str:
    """Which columns take it, for people."""
    if node.logical == "decimal":
        if not 0 <= node.scale <= min(node.precision, DECIMAL_PRECISION_MAX):
            return "; it is as a DECIMAL(q,t) that has room for its numbers"
        return f"; it is as DECIMAL({min(node.precision, DECIMAL_PRECISION_MAX)},{node.scale})"
    takers = [ddl_name(kind) for kind in _scalar(node)]
    if not takers:
        takers = [{"record": "STRUCT<…>", "array": "ARRAY<…>", "map": "MAP<STRING,…>"}.get(node.kind, "")]
    return f"; it is as {' or '.join(takers)}" if takers[0] else ""


def _decimal(node: Node, kind: pa.Decimal128Type, path: str) -> Read:
    """At the column's own scale, which is what Arrow takes without looking."""
    digits_max = kind.precision - kind.scale + node.scale
    if kind.scale < node.scale or (said_digits(node) and digits_max < node.precision):
        raise SchemaError(f"field {path}: {node} does not fit into {ddl_name(kind)} with all of its digits")
    read = datum.fixed_of(node.size_bytes) if node.kind == "fixed" else datum.read_bytes
    limit, factor = 10 ** min(node.precision, digits_max), 10 ** (kind.scale - node.scale)

    def exact(value: bytes) -> Decimal:
        number = int.from_bytes(value, "big", signed=True)
        if not value or not -limit < number < limit:
            raise Misread("a decimal of more digits than its schema or column has, or of no byte")
        return Decimal(number * factor).scaleb(-kind.scale, context=_EXACT)

    return _converted(read, exact)

"""Which columns a schema of Avro would have of itself, where `record.schema` does not say.

docs/formats.md has the table of what goes where; of several columns that take a type it is the one that the
table has, and else the first there.
"""

from __future__ import annotations

import pyarrow as pa

from participant.records.avro.columns import value_reader
from participant.records.avro.connect import said_digits
from participant.records.avro.schema import Node
from participant.records.by_schema.following import FieldCount, NoColumn, child
from table.schema import DECIMAL_PRECISION_MAX, LOCAL_MICROS, UTC_MICROS, SchemaError

NATURAL: dict[tuple[str, str], pa.DataType] = {
    ("boolean", ""): pa.bool_(),
    ("int", ""): pa.int32(),
    ("int", "date"): pa.date32(),
    ("int", "time-millis"): pa.int32(),
    ("long", ""): pa.int64(),
    ("long", "time-micros"): pa.int64(),
    ("long", "timestamp-millis"): UTC_MICROS,
    ("long", "timestamp-micros"): UTC_MICROS,
    ("long", "timestamp-nanos"): pa.int64(),
    ("long", "local-timestamp-millis"): LOCAL_MICROS,
    ("long", "local-timestamp-micros"): LOCAL_MICROS,
    ("long", "local-timestamp-nanos"): pa.int64(),
    ("float", ""): pa.float32(),
    ("double", ""): pa.float64(),
    ("bytes", ""): pa.binary(),
    ("string", ""): pa.string(),
    ("string", "uuid"): pa.string(),
    ("enum", ""): pa.string(),
    ("fixed", ""): pa.binary(),
    ("fixed", "uuid"): pa.string(),
    ("fixed", "duration"): pa.binary(),
}
"""Type and logical type of Avro -> its column."""
MEANT: dict[tuple[str, str], pa.DataType] = {
    ("int", "io.debezium.time.Date"): pa.date32(),
    ("long", "io.debezium.time.Timestamp"): LOCAL_MICROS,
    ("long", "io.debezium.time.MicroTimestamp"): LOCAL_MICROS,
    ("string", "io.debezium.time.ZonedTimestamp"): UTC_MICROS,
    ("string", "io.debezium.time.IsoTimestamp"): LOCAL_MICROS,
    ("string", "io.debezium.time.IsoDate"): pa.date32(),
}
"""Type of Avro and Debezium's name for it -> its column, before `NATURAL`."""


def columns_of(node: Node, has: pa.Schema) -> pa.Schema:
    """The columns of records of this schema. `has`: the table's, of the record.

    Raises `NoColumn` for a field that goes into no column, `SchemaError` for a schema that is no record's.
    """
    if node.kind != "record":
        raise SchemaError(f"the Avro schema is not a record but {node}")
    known = {field.name: field.type for field in has}
    made = _Types()
    return pa.schema([(name, made.of(one, known.get(name), name, name)) for name, one in node.fields])


class _Types:
    """The types of fields, bounded in number."""

    def __init__(self) -> None:
        self._count = FieldCount()

    def of(self, node: Node, has: pa.DataType | None, path: str, name: str = "") -> pa.DataType:
        """The type of a field, or of what is within an array, a map or a union."""
        self._count.add(path, name)
        return self._type(node, has, path)

    def _type(self, node: Node, has: pa.DataType | None, path: str) -> pa.DataType:
        match node.kind:
            case "union":
                real = [one for one in node.inside if one.kind != "null"]
                if len(real) != 1:
                    raise NoColumn(f"field {path}: {node} goes into no column: that has one type")
                return self.of(real[0], has, path)
            case "record" if has is None or not pa.types.is_decimal(has) or not _is_read_as(node, has):
                return pa.struct(
                    [
                        (name, self.of(one, child(has, name), f"{path}.{name}", name))
                        for name, one in node.fields
                    ]
                )
            case "array":
                return pa.list_(self.of(node.inside[0], child(has), f"{path}[]"))
            case "map":
                return pa.map_(pa.string(), self.of(node.inside[0], child(has), f"{path}{{}}"))
        if has is not None and _is_read_as(node, has):
            return has
        if node.logical == "decimal":
            places = max(node.scale, 0)
            digits = max(node.precision - node.scale, 0) + places
            if digits > DECIMAL_PRECISION_MAX or not said_digits(node):
                raise NoColumn(
                    f"field {path}: {node} goes into no column: that has {DECIMAL_PRECISION_MAX} digits at "
                    "most. Write a DECIMAL column in record.schema that has room for its numbers"
                )
            return pa.decimal128(digits, places)
        kind = MEANT.get((node.kind, node.connect)) or NATURAL.get((node.kind, node.logical))
        if kind is None:
            raise NoColumn(f"field {path}: {node} goes into no column")
        return kind


def _is_read_as(node: Node, kind: pa.DataType) -> bool:
    try:
        value_reader(node, pa.field("value", kind))
    except SchemaError:
        return False
    return True

"""The table's columns as Hudi keeps them: the Avro schema that is in its commits.

A table that both Lockstep and Spark write needs the same Avro from both, so records and fixed types are named
as Hudi 1.2 does for a Spark schema (`org.apache.hudi.HoodieSchemaConversionUtils`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from table.schema import LOCAL_MICROS, SUPPORTED, UTC_MICROS, SchemaError

AVRO_TYPES: dict[pa.DataType, Any] = {
    pa.string(): "string",
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.date32(): {"type": "int", "logicalType": "date"},
    UTC_MICROS: {"type": "long", "logicalType": "timestamp-micros"},
    LOCAL_MICROS: {"type": "long", "logicalType": "local-timestamp-micros"},
    pa.binary(): "bytes",
}


def sanitize(name: str) -> str:
    """A table's name as Hudi makes an Avro name of it: every character that Avro forbids becomes `__`."""
    first, rest = name[:1], name[1:]
    return re.sub(r"[^A-Za-z_]", "__", first) + re.sub(r"[^A-Za-z0-9_]", "__", rest)


def to_avro(schema: pa.Schema, name: str) -> str:
    """The Avro schema (JSON) of a table named `name`: record `<name>_record` in namespace `hoodie.<name>`."""
    name = sanitize(name)
    return json.dumps(_avro_record(schema, f"{name}_record", f"hoodie.{name}"), separators=(",", ":"))


def _avro_record(fields: Iterable[pa.Field], name: str, namespace: str) -> dict[str, Any]:
    inner = f"{namespace}.{name}"
    return {
        "type": "record",
        "name": name,
        "namespace": namespace,
        "fields": [_avro_field(field, inner) for field in fields],
    }


def _avro_field(field: pa.Field, namespace: str) -> dict[str, Any]:
    kind = _avro(field.type, field.name, namespace)
    if not field.nullable:
        return {"name": field.name, "type": kind}
    return {"name": field.name, "type": ["null", kind], "default": None}


def _avro(kind: pa.DataType, name: str, namespace: str) -> Any:
    """`name` and `namespace` name what is inside: an array's or a map's element takes its column's."""
    if kind in AVRO_TYPES:
        return AVRO_TYPES[kind]
    if pa.types.is_decimal128(kind):
        return {
            "type": "fixed",
            "name": "fixed",
            "namespace": f"{namespace}.{name}",
            "size": _decimal_bytes(kind.precision),
            "logicalType": "decimal",
            "precision": kind.precision,
            "scale": kind.scale,
        }
    if pa.types.is_list(kind):
        return {"type": "array", "items": ["null", _avro(kind.value_type, name, namespace)]}
    if pa.types.is_map(kind):
        return {"type": "map", "values": ["null", _avro(kind.item_type, name, namespace)]}
    if pa.types.is_struct(kind):
        return _avro_record(kind, name, namespace)
    raise SchemaError(f"column {name}: {kind} has no Avro type; the types are {SUPPORTED}")


def _decimal_bytes(precision: int) -> int:
    """The fewest bytes whose two's complement holds every number of `precision` digits."""
    size = 1
    while 2 ** (8 * size - 1) < 10**precision:
        size += 1
    return size

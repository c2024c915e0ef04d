"""Every type of Avro and the columns that take it, for tests: docs/formats.md line by line."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import fastavro

GUID = "89791762-2336-4186-9674-299b90a802e2"


def record(fields: Mapping[str, Any], name: str = "r") -> str:
    """The schema of a record, as text."""
    listed = [{"name": field, "type": kind} for field, kind in fields.items()]
    return json.dumps({"type": "record", "name": name, "fields": listed})


def written(text: str, row: Any) -> bytes:
    """A datum of the schema, by fastavro."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(text)), row)
    return out.getvalue()


def bare(avro: Any, value: Any) -> Any:
    """The type as fastavro is to write the value: numbers and bytes as they are, whatever they mean."""
    if isinstance(avro, dict) and isinstance(value, int | bytes):
        return {name: one for name, one in avro.items() if name != "logicalType"}
    return avro


def logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


MOMENT = datetime(2026, 11, 26, 15, 4, 5, 678_901, UTC)
MICROS = 1_795_705_445_678_901
MD5 = {"type": "fixed", "name": "md5", "size": 4}
UUID16 = {"type": "fixed", "name": "u", "size": 16, "logicalType": "uuid"}
FIXED_DECIMAL = {
    "type": "fixed",
    "name": "d",
    "size": 9,
    "logicalType": "decimal",
    "precision": 18,
    "scale": 2,
}
INNER = {
    "type": "record",
    "name": "inner",
    "fields": [{"name": "a", "type": "long"}, {"name": "b", "type": "string"}],
}

TAKEN: list[tuple[Any, str, Any, Any]] = [
    ("boolean", "BOOLEAN", True, True),
    ("int", "INT", -5, -5),
    ("int", "BIGINT", 2**31 - 1, 2**31 - 1),
    ("int", "DOUBLE", 3, 3.0),
    ("long", "BIGINT", -(2**63), -(2**63)),
    ("float", "FLOAT", 1.5, 1.5),
    ("float", "DOUBLE", 0.10000000149011612, 0.10000000149011612),
    ("double", "DOUBLE", 0.1, 0.1),
    ("string", "STRING", "ä\u2028\n", "ä\u2028\n"),
    ("bytes", "BINARY", b"\0\n\xff", b"\0\n\xff"),
    ({"type": "enum", "name": "e", "symbols": ["A", "B"]}, "STRING", "B", "B"),
    (MD5, "BINARY", b"abcd", b"abcd"),
    (logical("string", "uuid"), "STRING", UUID(GUID), GUID),
    (UUID16, "STRING", UUID(GUID).bytes, GUID),
    (UUID16, "BINARY", UUID(GUID).bytes, UUID(GUID).bytes),
    (logical("bytes", "decimal", precision=4, scale=2), "DECIMAL(4,2)", Decimal("-12.34"), Decimal("-12.34")),
    (
        logical("bytes", "decimal", precision=4, scale=2),
        "DECIMAL(10,4)",
        Decimal("12.34"),
        Decimal("12.3400"),
    ),
    (FIXED_DECIMAL, "DECIMAL(38,2)", Decimal("-1234567890123456.78"), Decimal("-1234567890123456.78")),
    (logical("int", "date"), "DATE", date(2026, 11, 26), date(2026, 11, 26)),
    (logical("int", "time-millis"), "INT", 86_399_999, 86_399_999),
    (logical("int", "time-millis"), "BIGINT", 1, 1),
    (logical("long", "time-micros"), "BIGINT", 86_399_999_999, 86_399_999_999),
    (logical("long", "timestamp-millis"), "TIMESTAMP", MICROS // 1000, MOMENT.replace(microsecond=678_000)),
    (logical("long", "timestamp-micros"), "TIMESTAMP", MICROS, MOMENT),
    (logical("long", "timestamp-nanos"), "BIGINT", 2**62, 2**62),
    (
        *(logical("long", "local-timestamp-millis"), "TIMESTAMP_NTZ"),
        *(MICROS // 1000, MOMENT.replace(microsecond=678_000, tzinfo=None)),
    ),
    (logical("long", "local-timestamp-micros"), "TIMESTAMP_NTZ", MICROS, MOMENT.replace(tzinfo=None)),
    (logical("long", "local-timestamp-nanos"), "BIGINT", -1, -1),
    (
        {"type": "fixed", "name": "f", "size": 12, "logicalType": "duration"},
        "BINARY",
        b"123456789012",
        b"123456789012",
    ),
    (["null", "string"], "STRING", None, None),
    (["string", "null"], "STRING", "s", "s"),
    (["long"], "BIGINT", 5, 5),
    ({"type": "array", "items": ["null", "int"]}, "ARRAY<INT>", [1, None], [1, None]),
    ({"type": "map", "values": "long"}, "MAP<STRING, BIGINT>", {"k": 1}, [("k", 1)]),
    (INNER, "STRUCT<b: STRING, c: INT>", {"a": 1, "b": "x"}, {"b": "x", "c": None}),
    (["null", INNER], "STRUCT<a: BIGINT NOT NULL>", None, None),
    (
        *({"type": "array", "items": INNER}, "ARRAY<STRUCT<a: BIGINT, b: STRING>>"),
        *([{"a": 1, "b": "x"}], [{"a": 1, "b": "x"}]),
    ),
]
"""Type of Avro, column, what is written, what is read: the table of docs/formats.md, line by line."""

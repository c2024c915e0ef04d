"""Every type of Protobuf and the columns that take it, for tests: docs/formats.md line by line."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from typing import Any

from google.protobuf.descriptor_pb2 import FileDescriptorSet

from tests.proto_files import Classes, compiled

IMPORTS = """
import "google/protobuf/any.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
"""
TYPES = """
enum Colour { NONE = 0; RED = 1; BLUE = 7; }
message Inner { int64 a = 1; string b = 2; optional bool c = 3; }
message Node { string name = 1; Node next = 2; repeated Node more = 3; }
"""
MOMENT = datetime(2026, 11, 26, 15, 4, 5, 678_901, UTC)
STAMP = {"seconds": 1_795_705_445, "nanos": 678_901_000}
WRAPPER = "google.protobuf."

TAKEN: list[tuple[str, str, Any, Any]] = [
    ("bool x = 1;", "BOOLEAN", True, True),
    ("bool x = 1;", "BOOLEAN", None, False),
    ("optional bool x = 1;", "BOOLEAN", None, None),
    ("optional bool x = 1;", "BOOLEAN", False, False),
    *(
        (f"{name} x = 1;", ddl, value, read)
        for name in ("int32", "sint32", "sfixed32")
        for ddl, value, read in (
            ("INT", -5, -5),
            ("BIGINT", 2**31 - 1, 2**31 - 1),
            ("DOUBLE", -(2**31), -(2.0**31)),
        )
    ),
    *(
        (f"{name} x = 1;", ddl, value, read)
        for name in ("uint32", "fixed32")
        for ddl, value, read in (("BIGINT", 2**32 - 1, 2**32 - 1), ("DOUBLE", 3, 3.0))
    ),
    *((f"{name} x = 1;", "BIGINT", -(2**63), -(2**63)) for name in ("int64", "sint64", "sfixed64")),
    *((f"{name} x = 1;", "DECIMAL(20,0)", 2**64 - 1, Decimal(2**64 - 1)) for name in ("uint64", "fixed64")),
    ("uint64 x = 1;", "DECIMAL(38,2)", 7, Decimal("7.00")),
    ("float x = 1;", "FLOAT", 1.5, 1.5),
    ("float x = 1;", "DOUBLE", 0.10000000149011612, 0.10000000149011612),
    ("double x = 1;", "DOUBLE", 0.1, 0.1),
    ("string x = 1;", "STRING", "ä\u2028\n", "ä\u2028\n"),
    ("string x = 1;", "STRING", None, ""),
    ("bytes x = 1;", "BINARY", b"\0\n\xff", b"\0\n\xff"),
    ("Colour x = 1;", "STRING", 7, "BLUE"),
    ("Colour x = 1;", "STRING", None, "NONE"),
    ("Colour x = 1;", "INT", -3, -3),
    ("Inner x = 1;", "STRUCT<b: STRING, c: BOOLEAN, d: INT>", {"b": "x"}, {"b": "x", "c": None, "d": None}),
    ("Inner x = 1;", "STRUCT<a: BIGINT NOT NULL>", None, None),
    ("Inner x = 1;", "STRUCT<a: BIGINT NOT NULL>", {}, {"a": 0}),
    (
        *("Node x = 1;", "STRUCT<name: STRING, next: STRUCT<name: STRING>>"),
        {"name": "a", "next": {"name": "b", "next": {"name": "c"}}},
        {"name": "a", "next": {"name": "b"}},
    ),
    ("google.protobuf.Timestamp x = 1;", "TIMESTAMP", STAMP, MOMENT),
    ("google.protobuf.Timestamp x = 1;", "TIMESTAMP", None, None),
    ("google.protobuf.Timestamp x = 1;", "STRUCT<seconds: BIGINT, nanos: INT>", STAMP, STAMP),
    (
        *("google.protobuf.Duration x = 1;", "STRUCT<seconds: BIGINT, nanos: INT>"),
        *({"seconds": -1, "nanos": -1}, {"seconds": -1, "nanos": -1}),
    ),
    (
        *("google.protobuf.Any x = 1;", "STRUCT<type_url: STRING, value: BINARY>"),
        *({"type_url": "t/a", "value": b"\1"}, {"type_url": "t/a", "value": b"\1"}),
    ),
    (
        *("google.protobuf.Struct x = 1;", "STRUCT<fields: MAP<STRING, STRUCT<number_value: DOUBLE>>>"),
        {"k": 1.5},
        {"fields": [("k", {"number_value": 1.5})]},
    ),
    (f"{WRAPPER}BoolValue x = 1;", "BOOLEAN", {"value": True}, True),
    (f"{WRAPPER}Int32Value x = 1;", "INT", {}, 0),
    (f"{WRAPPER}Int64Value x = 1;", "BIGINT", None, None),
    (f"{WRAPPER}UInt32Value x = 1;", "BIGINT", {"value": 5}, 5),
    (f"{WRAPPER}UInt64Value x = 1;", "DECIMAL(20,0)", {"value": 5}, Decimal(5)),
    (f"{WRAPPER}FloatValue x = 1;", "FLOAT", {"value": 1.5}, 1.5),
    (f"{WRAPPER}DoubleValue x = 1;", "DOUBLE", {"value": 1.5}, 1.5),
    (f"{WRAPPER}StringValue x = 1;", "STRING", {"value": "s"}, "s"),
    (f"{WRAPPER}BytesValue x = 1;", "BINARY", {"value": b"\xff"}, b"\xff"),
    ("repeated sint32 x = 1;", "ARRAY<INT>", [1, -1], [1, -1]),
    ("repeated sint32 x = 1 [packed = false];", "ARRAY<INT>", [1, -1], [1, -1]),
    ("repeated string x = 1;", "ARRAY<STRING>", None, []),
    ("repeated Colour x = 1;", "ARRAY<STRING>", [1, 0], ["RED", "NONE"]),
    (
        *("repeated Inner x = 1;", "ARRAY<STRUCT<a: BIGINT, b: STRING>>"),
        *([{"a": 1, "b": "x"}, {}], [{"a": 1, "b": "x"}, {"a": 0, "b": ""}]),
    ),
    ("repeated google.protobuf.Timestamp x = 1;", "ARRAY<TIMESTAMP>", [STAMP], [MOMENT]),
    ("map<string, int64> x = 1;", "MAP<STRING, BIGINT>", {"k": 1}, [("k", 1)]),
    ("map<string, Colour> x = 1;", "MAP<STRING, STRING>", {"k": 0}, [("k", "NONE")]),
    (
        *("map<string, Inner> x = 1;", "MAP<STRING, STRUCT<a: BIGINT>>"),
        *({"k": {"a": 1}}, [("k", {"a": 1})]),
    ),
    ("oneof o { int32 x = 1; string y = 2; }", "INT", 0, 0),
    ("oneof o { int32 x = 1; string y = 2; }", "INT", None, None),
]
"""What declares the field `x`, its column, what is written (None: it is not set), what is read: the table of
docs/formats.md, line by line."""


@cache
def one_file() -> FileDescriptorSet:
    """A message for each of them, by its place: `t.M0` …"""
    declared = "\n".join(f"message M{place} {{ {one[0]} }}" for place, one in enumerate(TAKEN))
    return compiled({"t.proto": f'syntax = "proto3"; package t; {IMPORTS} {TYPES} {declared}'})


@cache
def classes() -> Classes:
    return Classes(one_file())


def made(name: str, x: Any) -> Any:
    """Such a message with its `x` set, unless that is None."""
    return classes()[name](**({} if x is None else {"x": x}))

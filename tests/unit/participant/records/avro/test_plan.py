"""What the native decoder is told of a schema: each type before those that hold it, and what it means."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from participant.records.avro.plan import Type, plan_of
from participant.records.avro.schema import parse
from table.schema import parse_ddl
from tests.avro_types import FIXED_DECIMAL, INNER, UUID16, logical, record


def plan(avro: Any, ddl: str) -> list[Type]:
    """Of a record with one field, x, without that record itself."""
    types = plan_of(parse([record({"x": avro})]), list(parse_ddl(ddl)))
    assert types[-1] == ("record", [len(types) - 2, 0], [])
    return types[:-1]


@pytest.mark.parametrize(
    ("avro", "ddl", "types"),
    [
        ("long", "x BIGINT", [("long", [], [])]),
        ("int", "x DOUBLE", [("int", [], [])]),
        (logical("int", "date"), "x DATE", [("date", [], [])]),
        (logical("int", "time-millis"), "x INT", [("int", [], [])]),
        (logical("long", "timestamp-millis"), "x TIMESTAMP", [("millis", [], [])]),
        (logical("long", "local-timestamp-micros"), "x TIMESTAMP_NTZ", [("micros", [], [])]),
        (logical("long", "timestamp-nanos"), "x BIGINT", [("long", [], [])]),
        (UUID16, "x STRING", [("uuid", [], [])]),
        (UUID16, "x BINARY", [("fixed", [16], [])]),
        (FIXED_DECIMAL, "x DECIMAL(38,5)", [("decimal", [9, 18, 3], [])]),
        (logical("bytes", "decimal", precision=4, scale=2), "x DECIMAL(4,2)", [("decimal", [0, 4, 0], [])]),
        (["string", "null"], "x STRING", [("string", [], []), ("null", [], []), ("union", [0, 1], [])]),
        ({"type": "enum", "name": "e", "symbols": ["A", "B"]}, "x STRING", [("enum", [], ["A", "B"])]),
        (
            {"type": "map", "values": {"type": "array", "items": "long"}},
            "x MAP<STRING, ARRAY<BIGINT>>",
            [("long", [], []), ("array", [0], []), ("map", [1], [])],
        ),
        (
            INNER,
            "x STRUCT<b: STRING, c: INT>",
            [("long", [], []), ("string", [], []), ("record", [0, -1, 1, 0], [])],
        ),
    ],
)
def test_a_type_is_named_by_what_it_means_in_its_column(avro: Any, ddl: str, types: list[Type]) -> None:
    assert plan(avro, ddl) == types


def test_what_is_read_over_is_what_its_bytes_are_and_what_takes_none_is_not_there() -> None:
    text = record({"a": logical("long", "timestamp-millis"), "n": "null", "d": FIXED_DECIMAL, "x": "string"})
    assert plan_of(parse([text]), [pa.field("x", pa.string())]) == [
        ("long", [], []),
        ("fixed", [9], []),
        ("string", [], []),
        ("record", [0, -1, 1, -1, 2, 0], []),
    ]


def test_types_that_double_at_every_level_are_told_once_each() -> None:
    kind: Any = "int"
    for level in range(50):
        pair = [{"name": "l", "type": kind}, {"name": "r", "type": kind if level == 0 else f"n{level - 1}"}]
        kind = {"type": "record", "name": f"n{level}", "fields": pair}
    fields = [{"name": "x", "type": "long"}, {"name": "y", "type": kind}]
    node = parse([json.dumps({"type": "record", "name": "r", "fields": fields})])
    assert len(plan_of(node, [pa.field("x", pa.int64())])) < 60

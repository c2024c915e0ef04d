"""Which column each part of a JSON Schema has of itself, which it keeps, and what goes into none."""

from __future__ import annotations

import json
import time
from random import Random
from resource import RUSAGE_SELF, getrusage
from typing import Any

import pyarrow as pa
import pytest

from participant.records.by_schema.following import NoColumn, widened
from participant.records.json.decoder import JsonDecoder
from participant.records.json_schema.documents import spelled
from participant.records.json_schema.natural import columns_of
from table.schema import SchemaError, parse_ddl
from table.widening import ddl_of
from tests.decoding import batch

NONE = pa.schema([])
TEXT = {"type": "string"}
NULL = {"type": "null"}
CONNECT = "org.apache.kafka.connect.data"


def of_objects(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def columns(schema: Any, has: str = "", *others: str) -> pa.Schema:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    return columns_of([*others, text], parse_ddl(has) if has else NONE)


def refused(schema: Any, has: str = "") -> str:
    with pytest.raises(NoColumn) as caught:
        columns(schema, has)
    return str(caught.value)


GOES: list[tuple[Any, str, Any, Any]] = [
    ({"type": "boolean"}, "BOOLEAN", True, True),
    ({"type": "integer"}, "BIGINT", 2**40, 2**40),
    ({"type": "integer", "connect.type": "int8"}, "INT", 7, 7),
    ({"type": "integer", "connect.type": "int16"}, "INT", 7, 7),
    ({"type": "integer", "connect.type": "int32"}, "INT", 7, 7),
    ({"type": "integer", "connect.type": "int64"}, "BIGINT", 2**40, 2**40),
    ({"type": "integer", "format": "int32"}, "BIGINT", 7, 7),
    ({"type": "number"}, "DOUBLE", 0.1, 0.1),
    ({"type": "number", "connect.type": "float32"}, "FLOAT", 0.5, 0.5),
    ({"type": "number", "connect.type": "float64"}, "DOUBLE", 0.1, 0.1),
    ({"type": ["integer", "number"]}, "DOUBLE", 7, 7.0),
    ({"type": "string"}, "STRING", "x", "x"),
    ({"type": "string", "format": "date"}, "DATE", "2026-11-27", "2026-11-27"),
    ({"type": "string", "format": "date-time"}, "TIMESTAMP", "2026-11-27T01:02:03.000004+01:00", None),
    ({"type": "string", "format": "time"}, "STRING", "01:02:03Z", "01:02:03Z"),
    ({"type": "string", "format": "uuid"}, "STRING", "x", "x"),
    ({"type": "string", "connect.type": "bytes"}, "BINARY", "AQI=", b"\1\2"),
    ({"type": "string", "contentEncoding": "base64"}, "STRING", "AQI=", "AQI="),
    ({"enum": ["a", "b"]}, "STRING", "a", "a"),
    ({"enum": ["a", None]}, "STRING", None, None),
    ({"enum": [1, 2]}, "BIGINT", 1, 1),
    ({"enum": [1, 2.5]}, "DOUBLE", 2.5, 2.5),
    ({"const": "a"}, "STRING", "a", "a"),
    ({"const": True}, "BOOLEAN", True, True),
    ({"type": "string", "enum": ["a", 1]}, "STRING", "a", "a"),
    ({"type": ["string", "null"]}, "STRING", None, None),
    ({"type": ["null", "integer"]}, "BIGINT", 7, 7),
    ({"oneOf": [NULL, TEXT]}, "STRING", "x", "x"),
    ({"anyOf": [TEXT, NULL]}, "STRING", None, None),
    ({"anyOf": [TEXT, {"const": None}]}, "STRING", None, None),
    ({"anyOf": [TEXT, {"enum": [None]}]}, "STRING", None, None),
    ({"oneOf": [NULL, {"type": "integer", "connect.type": "int32"}], "connect.index": 3}, "INT", 7, 7),
    ({"anyOf": [{"const": "a"}, {"const": "b"}, {"type": "null"}]}, "STRING", "b", "b"),
    ({"anyOf": [{"type": "integer"}, {"type": "number"}]}, "DOUBLE", 0.5, 0.5),
    ({"type": "string", "oneOf": [{"maxLength": 3}, {"pattern": "^a"}]}, "STRING", "x", "x"),
    ({"allOf": [TEXT], "description": "as pydantic has it"}, "STRING", "x", "x"),
    ({"allOf": [{"type": "number"}, {"type": "integer"}]}, "BIGINT", 7, 7),
    ({"type": "array", "items": TEXT}, "ARRAY<STRING>", ["x", None], ["x", None]),
    ({"items": TEXT}, "ARRAY<STRING>", ["x"], ["x"]),
    ({"type": "array", "items": of_objects(y=TEXT)}, "ARRAY<STRUCT<y: STRING>>", [{"y": "z"}], [{"y": "z"}]),
    (of_objects(y=TEXT, z={"type": "integer"}), "STRUCT<y: STRING, z: BIGINT>", {"y": "a", "z": 1}, None),
    ({"properties": {"y": TEXT}}, "STRUCT<y: STRING>", {"y": "a"}, {"y": "a"}),
    ({**of_objects(y=TEXT), "additionalProperties": TEXT}, "STRUCT<y: STRING>", {"y": "a", "o": "b"}, None),
    ({"allOf": [of_objects(y=TEXT), of_objects(z=TEXT)]}, "STRUCT<y: STRING, z: STRING>", {"z": "a"}, None),
    ({**of_objects(y=TEXT), "oneOf": [{"required": ["y"]}, {"properties": {"y": {"const": "a"}}}]},
     "STRUCT<y: STRING>", {"y": "a"}, {"y": "a"}),
    (of_objects(y=TEXT, z=False), "STRUCT<y: STRING>", {"y": "a"}, {"y": "a"}),
    ({"type": "object", "additionalProperties": TEXT}, "MAP<STRING, STRING>", {"k": "v"}, [("k", "v")]),
    ({"type": "object", "connect.type": "map", "additionalProperties": {"type": "integer"}},
     "MAP<STRING, BIGINT>", {"k": 7}, [("k", 7)]),
    ({"type": "array", "connect.type": "map", "items": of_objects(key={"type": "integer"}, value=TEXT)},
     "ARRAY<STRUCT<key: BIGINT, value: STRING>>", [{"key": 1, "value": "v"}], [{"key": 1, "value": "v"}]),
    ({"type": "integer", "connect.type": "int32", "title": f"{CONNECT}.Date"}, "INT", 7, 7),
    ({"type": "integer", "connect.type": "int64", "title": f"{CONNECT}.Timestamp"}, "BIGINT", 7, 7),
    ({"type": "integer", "connect.type": "int32", "title": f"{CONNECT}.Time"}, "INT", 7, 7),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "ddl", "value", "row"), GOES, ids=lambda one: str(one)[:60])
def test_each_part_has_its_column_into_which_its_values_are_read(
    schema: Any, ddl: str, value: Any, row: Any
) -> None:
    found = columns(of_objects(id=TEXT, x=schema))
    assert found == parse_ddl(f"id STRING, x {ddl}")
    assert columns(of_objects(id=TEXT, x=schema), f"id STRING, x {ddl}") == found, "and it stays so"
    decoded = JsonDecoder(found).decode(batch([json.dumps({"id": "a", "x": value}).encode()]))
    assert not decoded.rejects
    read = decoded.table.column("x").to_pylist()[0]
    assert row is None or read == row or str(read) == row


@pytest.mark.parametrize(
    ("schema", "ddls"),
    [
        ({"type": "integer"}, "INT BIGINT DOUBLE DECIMAL(9,0)"),
        ({"type": "integer", "connect.type": "int16"}, "INT BIGINT FLOAT DOUBLE DECIMAL(9,0)"),
        ({"type": "integer", "connect.type": "int32"}, "INT BIGINT DOUBLE DECIMAL(20,0)"),
        ({"type": "integer", "connect.type": "int64"}, "BIGINT DECIMAL(20,0)"),
        ({"type": "number"}, "DOUBLE DECIMAL(9,2)"),
        ({"type": "number", "connect.type": "float32"}, "FLOAT DOUBLE DECIMAL(9,2)"),
        ({"type": "number", "connect.type": "bytes"}, "DECIMAL(9,2) BINARY"),
        (TEXT, "STRING DATE TIMESTAMP TIMESTAMP_NTZ BINARY DECIMAL(9,2)"),
        ({"type": "string", "format": "date"}, "DATE TIMESTAMP TIMESTAMP_NTZ STRING"),
        ({"type": "string", "format": "date-time"}, "TIMESTAMP TIMESTAMP_NTZ STRING"),
        ({"type": "string", "connect.type": "bytes"}, "BINARY STRING"),
        ({"type": "array", "items": {"type": "number"}}, "ARRAY<DECIMAL(9,2)>"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "MAP<STRING,INT>"),
        ({"type": "object"}, "STRUCT<y:INT> MAP<STRING,STRING>"),
        (of_objects(y=TEXT, z={"type": "string", "format": "date"}), "MAP<STRING,STRING>"),
        (of_objects(y={"type": "integer"}), "STRUCT<y:INT>"),
    ],
    ids=lambda one: str(one)[:60],
)
def test_of_a_column_that_the_table_has_the_type_stays_where_the_decoder_reads_it_so(
    schema: Any, ddls: str
) -> None:
    for ddl in ddls.split():
        has = parse_ddl(f"x {ddl}")
        assert columns_of([json.dumps(of_objects(x=schema))], has) == has


@pytest.mark.parametrize(
    ("schema", "has", "wide"),
    [
        ({"type": "integer", "connect.type": "int64"}, "INT", "BIGINT"),
        ({"type": "number"}, "FLOAT", "DOUBLE"),
        ({"type": "number"}, "INT", "DOUBLE"),
        (of_objects(y=TEXT, z=TEXT), "STRUCT<y: STRING>", "STRUCT<y: STRING, z: STRING>"),
    ],
    ids=lambda one: str(one)[:60],
)
def test_a_column_becomes_wider_where_the_table_can(schema: Any, has: str, wide: str) -> None:
    known = parse_ddl(f"x {has}")
    assert widened(known, columns_of([json.dumps(of_objects(x=schema))], known)) == parse_ddl(f"x {wide}")


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (True, "field x: no type goes into no column"),
        ({}, "field x: no type goes into no column"),
        ({"description": "anything"}, "field x: no type goes into no column"),
        (NULL, "field x: null alone goes into no column"),
        ({"const": None}, "field x: null alone goes into no column"),
        ({"type": ["string", "integer"]}, "field x: integer, string goes into no column: that has one type"),
        ({"enum": ["a", 1]}, "field x: integer, string goes into no column: that has one type"),
        ({"type": "date"}, "field x: its type is none that JSON Schema has"),
        ({"type": {"type": "string"}}, "field x: its type is none that JSON Schema has"),
        (
            {"anyOf": [TEXT, {"type": "integer"}]},
            "field x: a choice of 2 (integer, string) goes into no column",
        ),
        ({"oneOf": [of_objects(a=TEXT), of_objects(b=TEXT)]}, "field x: a choice of 2 (object) goes into no"),
        ({"oneOf": [NULL, {"const": None}]}, "field x: a choice of 0 (null alone) goes into no column"),
        (
            {"anyOf": [TEXT, {"type": "string", "format": "date"}]},
            "field x: a choice of several formats goes into no column",
        ),
        ({"allOf": [TEXT, {"type": "integer"}]}, "field x: null alone goes into no column"),
        ({"type": "array"}, "field x: an array that does not say of what goes into no column"),
        ({"type": "array", "items": {}}, "field x[]: no type goes into no column"),
        ({"type": "array", "items": [TEXT, TEXT]}, "field x: an array with a type for each place"),
        ({"type": "array", "prefixItems": [TEXT]}, "field x: an array with a type for each place"),
        ({"type": "object"}, "field x: an object that names no field goes into no column"),
        ({"type": "object", "additionalProperties": True}, "field x: an object that names no field"),
        ({"type": "object", "patternProperties": {"^a": TEXT}}, "field x: an object that names no field"),
        ({"type": "object", "additionalProperties": {}}, "field x{}: no type goes into no column"),
        (of_objects(y=of_objects(z=True)), "field x.y.z: no type goes into no column"),
        (
            {**of_objects(y=TEXT), "anyOf": [of_objects(z=TEXT), {"required": ["y"]}]},
            "field x.z: it is named for some values only, by a choice or a condition, and so goes into no",
        ),
        (
            {**of_objects(y=TEXT), "anyOf": [{"anyOf": [of_objects(z=TEXT), {}]}, {}]},
            "field x.z: it is named for some values only",
        ),
        ({**of_objects(y=TEXT), "if": {}, "then": of_objects(z=TEXT)}, "field x.z: it is named for some"),
        ({**of_objects(y=TEXT), "else": of_objects(z=TEXT)}, "field x.z: it is named for some values only"),
        ({**of_objects(y=TEXT), "dependentSchemas": {"y": of_objects(z=TEXT)}}, "field x.z: it is named for"),
        ({**of_objects(y=TEXT), "dependencies": {"y": of_objects(z=TEXT)}}, "field x.z: it is named for"),
        (of_objects(**{"a b": TEXT}), "field 'x.a b' goes into no column: a name is made of ASCII letters"),
        (of_objects(**{"a` INT, `b": TEXT}), "goes into no column: a name is made of ASCII letters"),
        (
            {"type": "number", "connect.type": "bytes", "title": f"{CONNECT}.Decimal"},
            "field x: a Decimal of Connect's is a number or base64, and no schema says which",
        ),
        ("string", "field x: what stands there is no JSON Schema"),
        ({"$ref": 7}, "field x: a $ref that is no short text"),
        ({"$ref": "#/definitions/none"}, "field x: $ref '#/definitions/none' leads to nothing that is known"),
        ({"$ref": "#anchor"}, "field x: $ref '#anchor' leads to nothing that is known"),
        ({"$ref": "other.json"}, "field x: $ref 'other.json' leads to nothing that is known"),
        ({"$ref": "http://[::1"}, "field x: $ref 'http://[::1' leads to nothing that is known"),
        ({"$ref": "#"}, "field x: what $ref '#' leads to holds itself, and so goes into no column"),
    ],
    ids=lambda one: str(one)[:70],
)
def test_what_goes_into_no_column_is_named(schema: Any, why: str) -> None:
    assert why in refused(of_objects(id=TEXT, x=schema))


def test_a_field_of_a_name_that_no_column_has_is_named() -> None:
    assert "field 'trace-id' goes into no column" in refused(of_objects(**{"trace-id": TEXT}))


def test_fields_that_other_columns_come_from_are_not_looked_at() -> None:
    text = json.dumps(of_objects(id=TEXT, **{"trace-id": TEXT, "any": True}))
    assert columns_of([text], NONE, {"trace-id", "any"}) == parse_ddl("id STRING")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"type":', "no JSON that can be read"),
        ("[" * 500_000, "no JSON that can be read"),
        ('{"a":' * 100_000, "no JSON that can be read"),
        ("[]", "no JSON Schema, but other JSON"),
        ('"x"', "no JSON Schema, but other JSON"),
        ('{"type":"string"}', "not of objects but of string"),
        ('{"type":"array","items":{"type":"string"}}', "not of objects but of array"),
        ("false", "not of objects but of no value at all"),
    ],
    ids=lambda one: str(one)[:30],
)
def test_what_is_no_schema_of_objects_is_refused_whole(text: str, why: str) -> None:
    with pytest.raises(SchemaError, match=why) as caught:
        columns(text)
    assert not isinstance(caught.value, NoColumn)


@pytest.mark.parametrize("schema", [True, {}, {"type": "object"}, {"type": ["object", "null"]}])
def test_one_that_names_no_field_has_no_column(schema: Any) -> None:
    assert len(columns(schema)) == 0


def test_fields_stand_in_the_order_that_connect_gives_them_else_in_the_texts() -> None:
    indexed = {
        name: {**TEXT, "connect.index": place} for name, place in {"c": 2, "a": 0, "b": 1, "z": 3}.items()
    }
    assert columns(of_objects(**indexed)).names == ["a", "b", "c", "z"]
    assert columns(of_objects(**{name: TEXT for name in "cabz"})).names == ["c", "a", "b", "z"]


def test_references_lead_within_the_schema_by_any_pointer() -> None:
    schema = {
        "$id": "http://x/event.json",
        **of_objects(
            a={"$ref": "#/definitions/t"},
            b={"$ref": "#/$defs/o", "description": "beside it"},
            c={"$ref": "#/properties/a"},
            d={"$ref": "#/$defs/with~1sl%61sh~0"},
            e={"$ref": "event.json#/definitions/t"},
            f={"$ref": "http://x/event.json#/$defs/list/allOf/0"},
        ),
        "definitions": {"t": TEXT},
        "$defs": {
            "o": of_objects(y={"$ref": "#/definitions/t"}),
            "with/slash~": {"type": "integer"},
            "list": {"allOf": [{"type": "number"}]},
        },
    }
    wanted = "a STRING, b STRUCT<y: STRING>, c STRING, d BIGINT, e STRING, f DOUBLE"
    assert columns(schema) == parse_ddl(wanted)
    assert columns({"$ref": "#/$defs/o", "$defs": {"o": of_objects(y=TEXT)}}) == parse_ddl("y STRING")


def test_references_lead_to_schemas_that_the_registry_has_for_it() -> None:
    address = json.dumps({**of_objects(zip={"$ref": "#/$defs/z"}), "$defs": {"z": {"type": "integer"}}})
    named = json.dumps({"$id": "http://x/person.json", **of_objects(name=TEXT, at={"$ref": "address.json"})})
    others = [spelled(address, "http://x/address.json"), spelled(named, "person")]
    schema = {
        "$id": "http://x/event.json",
        **of_objects(
            who={"$ref": "person"},
            also={"$ref": "person.json#/properties/name"},
            zip={"$ref": "http://x/address.json#/$defs/z"},
        ),
    }
    assert columns(schema, "", *others) == parse_ddl(
        "who STRUCT<name: STRING, at: STRUCT<zip: BIGINT>>, also STRING, zip BIGINT"
    )
    with pytest.raises(SchemaError, match="both called 'a'"):
        columns(schema, "", spelled("true", "a"), spelled("false", "a"))
    with pytest.raises(SchemaError, match="not told with its name"):
        columns(schema, "", address)
    back = spelled(json.dumps(of_objects(e={"$ref": "http://x/event.json"})), "person")
    with pytest.raises(
        NoColumn, match=r"field who\.e: what \$ref 'http://x/event\.json' leads to holds itself"
    ):
        columns({"$id": "http://x/event.json", **of_objects(who={"$ref": "person"})}, "", back)


def nested(count: int, inner: Any, outer: Any) -> Any:
    for _ in range(count):
        inner = outer(inner)
    return inner


def defined(count: int, one: Any) -> dict[str, Any]:
    """Definitions of which each refers twice to the next: 2^count of the last."""
    ways = {f"d{n}": one({"$ref": f"#/$defs/d{n + 1}"}) for n in range(count)}
    return {**of_objects(x={"$ref": "#/$defs/d0"}), "$defs": {**ways, f"d{count}": TEXT}}


WORDS = "x" * 900
HOSTILE: dict[str, Any] = {
    "fields within fields": of_objects(x=nested(300, TEXT, lambda one: of_objects(y=one))),
    "arrays within arrays": of_objects(x=nested(300, TEXT, lambda one: {"items": one})),
    "choices within choices": of_objects(x=nested(300, TEXT, lambda one: {"anyOf": [one, TEXT]})),
    "allOf within allOf": of_objects(x=nested(300, TEXT, lambda one: {"allOf": [one]})),
    "fields twice as many each time": defined(60, lambda one: of_objects(a=one, b=one)),
    "choices twice as many each time": defined(60, lambda one: {"anyOf": [one, one]}),
    "allOf twice as many each time": defined(60, lambda one: {"allOf": [one, one]}),
    "long names twice as many each time": defined(
        60, lambda one: of_objects(**{f"{WORDS}a": one, f"{WORDS}b": one})
    ),
    "a long way of references": {
        **of_objects(x={"$ref": "#/$defs/d0"}),
        "$defs": {f"d{n}": {"$ref": f"#/$defs/d{n + 1}"} for n in range(5_000)},
    },
    "many fields": of_objects(**{f"c{n}": TEXT for n in range(60_000)}),
    "many choices": of_objects(x={"anyOf": [TEXT] * 60_000}),
    "many types": of_objects(x={"type": ["string"] * 60_000}),
    "many values": of_objects(x={"enum": ["a"] * 100_000}),
    "a large list, looked at often": {
        **of_objects(**{f"c{n}": {"$ref": "#/$defs/large"} for n in range(4_000)}),
        "$defs": {"large": {"enum": ["a"] * 40_000}},
    },
    "a large object, looked at often": {
        **of_objects(**{f"c{n}": {"$ref": "#/$defs/large"} for n in range(4_000)}),
        "$defs": {"large": of_objects(**{f"y{n}": TEXT for n in range(20_000)})},
    },
    "a long reference": of_objects(x={"$ref": "#/" + "a/" * 100_000}),
    "a long name": of_objects(**{"a" * 900_000: TEXT}),
    "itself within all that is": {
        "$ref": "#/$defs/a",
        "$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"anyOf": [{"$ref": "#/$defs/a"}, NULL]}},
    },
    "a condition that is itself": {**of_objects(x=TEXT), "then": {"$ref": "#"}},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_schema_takes_more_than_so_much_time_and_memory(name: str) -> None:
    """The slowest takes a second or two of a core; memory is of the text, not of what it stands for."""
    text = json.dumps(HOSTILE[name])
    began, before_kb = time.process_time(), getrusage(RUSAGE_SELF).ru_maxrss
    with pytest.raises(NoColumn) as caught:
        columns(text)
    assert time.process_time() - began < 10
    assert getrusage(RUSAGE_SELF).ru_maxrss - before_kb < 300_000
    assert len(str(caught.value)) < 2_000


def test_a_schema_of_a_thousand_fields_is_read() -> None:
    found = columns(of_objects(**{f"c{n}": {"type": ["integer", "null"]} for n in range(1_000)}))
    assert found == parse_ddl(ddl_of(found)) and len(found) == 1_000


WORDS_OF_SCHEMAS = (
    *("type", "properties", "items", "prefixItems", "additionalProperties", "patternProperties", "enum"),
    *("const", "oneOf", "anyOf", "allOf", "$ref", "$id", "id", "$defs", "definitions", "then", "else"),
    *("dependencies", "dependentSchemas", "format", "connect.type", "connect.index", "title", "a", "b"),
)
VALUES: tuple[Any, ...] = (
    *("string", "integer", "number", "null", "object", "array", "int32", "bytes", "date", "#", "#/$defs/a"),
    *("#/properties/a", "x.json", "a b", "", None, True, False, 0, -1, 1.5, 10**30, [], {}),
    *(TEXT, NULL, {"type": "integer"}, {"items": TEXT}, {"additionalProperties": TEXT}, of_objects(a=TEXT))
    * 15,
)


def anything(random: Random, depth: int) -> Any:
    """JSON that is made of what schemas are made of, mostly in the wrong places."""
    choice = random.random()
    if depth == 0 or choice < 0.3:
        return random.choice(VALUES)
    count = random.randrange(4)
    if choice < 0.45:
        return [anything(random, depth - 1) for _ in range(count)]
    return {random.choice(WORDS_OF_SCHEMAS): anything(random, depth - 1) for _ in range(count)}


def test_whatever_json_stands_for_a_schema_it_has_columns_or_is_refused() -> None:
    random, found, refused = Random(20), 0, 0
    for _ in range(5_000):
        schema = {
            "type": "object",
            "properties": {name: anything(random, 4) for name in ("a", "b")},
            "$defs": {"a": anything(random, 3)},
            **({"allOf": [anything(random, 4)]} if random.random() < 0.2 else {}),
        }
        others = [spelled(json.dumps(anything(random, 3)), "x.json")]
        has = random.choice(("", "a STRING", "a STRUCT<a: INT>, b MAP<STRING,INT>", "a ARRAY<DATE>"))
        try:
            made = columns(schema, has, *others)
        except SchemaError as why:
            assert str(why)
            refused += 1
            continue
        assert not len(made) or parse_ddl(ddl_of(made)) == made
        found += 1
    assert found > 200 and refused > 200

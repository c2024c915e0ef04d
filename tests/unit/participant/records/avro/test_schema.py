"""Schemas of Avro: what is none, or could not be read in bounded time and memory, is refused by name."""

from __future__ import annotations

import json
from typing import Any

import pytest

from participant.records.avro.schema import DEPTH_MAX, TEXT_CHARS_MAX, fingerprint_of, parse
from table.schema import SchemaError


def record(kind: Any, name: str = "r") -> dict[str, Any]:
    return {"type": "record", "name": name, "namespace": "a.b", "fields": [{"name": "x", "type": kind}]}


def nested(depth: int) -> Any:
    kind: Any = "int"
    for _ in range(depth):
        kind = {"type": "array", "items": kind}
    return record(kind)


BAD = [
    ("{", "is not JSON"),
    ("[" * 100_000, "nested too deeply"),
    ('"nope"', "the Avro schema is none"),
    ("5", "is none"),
    ("null", "is none"),
    ("[]", "a union is empty"),
    (json.dumps(record("nope")), "nope"),
    (json.dumps(record(["null", ["int"]])), "in a union"),
    (json.dumps(record({"type": "array"})), "is none"),
    (json.dumps(record({"type": "enum", "name": "e", "symbols": []})), "enum a.b.e has no symbols"),
    (json.dumps(record({"type": "fixed", "name": "f", "size": 0})), "fixed a.b.f"),
    (json.dumps(record({"type": "fixed", "name": "f", "size": "3"})), "fixed a.b.f"),
    (json.dumps(record({"type": "fixed", "name": "f", "size": 2**40})), "fixed a.b.f"),
    (json.dumps(record(["null", "r"])), "recursive: a.b.r holds itself"),
    (json.dumps(record({"type": "array", "items": "r"})), "recursive: a.b.r"),
    (json.dumps(record({"type": "array", "items": "null"})), "an array of the Avro schema is of null"),
    (
        json.dumps(record({"type": "record", "name": "void", "fields": []})),
        "a.b.void of the Avro schema takes no",
    ),
    (json.dumps(nested(DEPTH_MAX + 5)), "nested more than"),
    ('{"type":"array","items":' * 3_000, "is n|nested too deeply"),
    (
        json.dumps({"type": "record", "name": "r", "fields": [{"name": "x", "type": "int"}] * 2}),
        "has a field twice",
    ),
    (
        json.dumps({"__fastavro_parsed": True, "__named_schemas": {}, "type": "record", "name": "z"}),
        "takes no byte",
    ),
    (" " * (TEXT_CHARS_MAX + 1), "more than 1,048,576 characters"),
]


@pytest.mark.parametrize(("text", "why"), BAD, ids=[str(number) for number in range(len(BAD))])
def test_what_is_no_schema_or_has_no_bound_is_refused_in_words(text: str, why: str) -> None:
    with pytest.raises(SchemaError, match=why):
        parse([text])


def test_types_that_double_at_every_level_are_read_once_each() -> None:
    """2**60 leaves, in a page of text."""
    kind: Any = "int"
    for level in range(60):
        pair = [{"name": "l", "type": kind}, {"name": "r", "type": kind if level == 0 else f"a.n{level - 1}"}]
        kind = {"type": "record", "name": f"n{level}", "namespace": "a", "fields": pair}
    assert parse([json.dumps(kind)]).least_bytes == 2**60


def test_a_schema_may_refer_to_those_before_it() -> None:
    inner = json.dumps({"type": "enum", "name": "colour", "namespace": "z", "symbols": ["RED"]})
    node = parse([inner, json.dumps(record("z.colour"))])
    assert node.fields[0][1].symbols == ("RED",)


def decimal(precision: Any, scale: Any = 0, **kind: Any) -> dict[str, Any]:
    return {"type": "bytes", **kind, "logicalType": "decimal", "precision": precision, "scale": scale}


@pytest.mark.parametrize(
    "kind",
    [
        {"type": "int", "logicalType": "timestamp-micros"},
        {"type": "long", "logicalType": "hours"},
        {"type": "bytes", "logicalType": "decimal"},
        {"type": "int", "logicalType": ["date"]},
        decimal(2, 5),
        decimal(5, -1),
        decimal("5"),
        decimal(5.0),
        decimal(True),
        decimal(0),
        decimal(3, type="fixed", name="f", size=1),
        decimal(10**9, type="fixed", name="f", size=3),
        {"type": "fixed", "name": "f", "size": 15, "logicalType": "uuid"},
    ],
    ids=str,
)
def test_a_logical_type_that_does_not_go_with_what_it_is_of_says_nothing(kind: Any) -> None:
    node = parse([json.dumps(record(kind))]).fields[0][1]
    assert (node.kind, node.logical, node.precision) == (kind["type"], "", 0)


def test_a_fixed_may_be_a_decimal_of_as_many_digits_as_it_holds() -> None:
    for size, digits in ((1, 2), (2, 4), (8, 18), (9, 21), (16, 38)):
        node = parse([json.dumps(record(decimal(digits, type="fixed", name="f", size=size)))]).fields[0][1]
        assert (node.logical, node.precision) == ("decimal", digits)
        wider = record(decimal(digits + 1, type="fixed", name="f", size=size))
        assert parse([json.dumps(wider)]).fields[0][1].logical == ""


@pytest.mark.parametrize(
    ("kind", "default"),
    [
        (["null", "int"], "null"),
        ("int", None),
        ("long", 0.0),
        ("boolean", "false"),
        ({"type": "long", "logicalType": "timestamp-millis"}, "2026-01-01"),
        ({"type": "enum", "name": "e", "symbols": ["A"], "default": "Z"}, "B"),
    ],
)
def test_a_default_says_nothing_though_it_be_none_of_its_type(kind: Any, default: Any) -> None:
    """Parsers took them for years, and a registry keeps what it has."""
    plain, wrong = record(kind), record(kind)
    wrong["fields"][0] |= {"default": default, "aliases": ["y"], "order": "ignore"}
    assert str(parse([json.dumps(wrong)]).fields[0][1]) == str(parse([json.dumps(plain)]).fields[0][1])
    assert fingerprint_of(json.dumps(wrong)) == fingerprint_of(json.dumps(plain))


@pytest.mark.parametrize("name", ["record", "enum", "fixed", "array", "map", "union", "error"])
def test_a_type_may_have_the_name_of_what_is_no_primitive_type(name: str) -> None:
    fields = [
        {"name": "x", "type": {"type": "enum", "name": name, "symbols": ["A"]}},
        {"name": "y", "type": name},
    ]
    node = parse([json.dumps({"type": "record", "name": "r", "fields": fields})])
    assert node.fields[0][1] is node.fields[1][1]


def test_a_fingerprint_is_the_specifications() -> None:
    """By the algorithm that the specification prints, of canonical forms that it gives."""
    for text, canonical in (
        ('"int"', '"int"'),
        (
            '{"type": "fixed", "name": "md5", "namespace": "x", "size": 16}',
            '{"name":"x.md5","type":"fixed","size":16}',
        ),
    ):
        assert fingerprint_of(text) == crc_64(canonical.encode()).to_bytes(8, "little")


def crc_64(data: bytes) -> int:
    empty = 0xC15D213AA4D7A795
    found = empty
    for byte in data:
        found ^= byte
        for _ in range(8):
            found = (found >> 1) ^ (empty & -(found & 1))
    return found

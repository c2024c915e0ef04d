"""The binary encoding: what fastavro writes is read as it was written, and nothing else is read at all."""

from __future__ import annotations

import io
import json
import math
import tracemalloc
from collections.abc import Callable
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from participant.records.avro.columns import row_reader
from participant.records.avro.datum import Read
from participant.records.avro.schema import parse
from participant.records.by_schema.misread import Misread

READ_MAX_BYTES = 1_000_000
"""Of memory, whatever is announced."""


def number(value: int) -> bytes:
    """As long is written."""
    value = (value << 1) ^ (value >> 63) if value < 0 else value << 1
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*written, value])


def reader(avro: Any, kind: pa.DataType, *, nullable: bool = True) -> Read:
    """Of a record with one field, x."""
    text = json.dumps({"type": "record", "name": "r", "fields": [{"name": "x", "type": avro}]})
    return row_reader(parse([text]), [pa.field("x", kind, nullable=nullable)])


ARRAY = {"type": "array", "items": "long"}
MAP = {"type": "map", "values": "long"}
ENUM = {"type": "enum", "name": "e", "symbols": ["A", "B"]}
LIST, PAIRS = pa.list_(pa.int64()), pa.map_(pa.string(), pa.int64())
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}

BAD: list[tuple[str, Any, pa.DataType, bytes, str]] = [
    ("nothing", "long", pa.int64(), b"", "field x: the value ends in the middle"),
    ("half a number", "long", pa.int64(), b"\x80", "field x: the value ends in the middle"),
    ("half a double", "double", pa.float64(), b"\0\0\0", "ends in the middle"),
    ("half a float", "float", pa.float32(), b"\0\0\0", "ends in the middle"),
    ("65 bits", "long", pa.int64(), b"\xff" * 9 + b"\x02", "more than 64 bits"),
    ("a number without an end", "long", pa.int64(), b"\x80" * 50 + b"\0", "more than 64 bits"),
    ("an int of 41 bits", "int", pa.int32(), number(2**40), "an int beyond its range"),
    ("a boolean of 2", "boolean", pa.bool_(), b"\x02", "neither 0 nor 1"),
    ("2 GB in 5 bytes", "string", pa.string(), number(2**31) + b"x", "ends in the middle"),
    ("4 EB in 10 bytes", "bytes", pa.binary(), number(2**62) + b"x", "ends in the middle"),
    ("a negative length", "bytes", pa.binary(), number(-1), "a length below zero"),
    ("a negative length, by far", "string", pa.string(), number(-(2**63)), "a length below zero"),
    ("not UTF-8", "string", pa.string(), b"\x02\xff", "not UTF-8"),
    ("branch 2 of 2", ["null", "long"], pa.int64(), number(2), "branch that there is not"),
    ("branch -1", ["null", "long"], pa.int64(), number(-1) + b"\x02", "branch that there is not"),
    ("symbol 2 of 2", ENUM, pa.string(), number(2), "symbol that there is not"),
    ("symbol -1", ENUM, pa.string(), number(-1), "symbol that there is not"),
    ("an array of 2**50", ARRAY, LIST, number(2**50) + b"\x02", "ends in the middle"),
    ("an array of -2**63", ARRAY, LIST, number(-(2**63)) + b"\x02\x02\0", "ends in the middle"),
    ("an array without an end", ARRAY, LIST, number(1) + b"\x02", "ends in the middle"),
    (
        "a block shorter than its size",
        ARRAY,
        LIST,
        number(-1) + number(2) + b"\x02\0\0",
        "as long as it says",
    ),
    ("a block of a negative size", ARRAY, LIST, number(-1) + number(-1) + b"\x02\0", "length below zero"),
    ("an item of 65 bits", ARRAY, LIST, number(1) + b"\xff" * 9 + b"\x02\0", r"field x\[\]: a number of"),
    (
        "a key twice",
        MAP,
        PAIRS,
        number(2) + b"\x02a\x02\x02a\x04\0",
        r"field x\{\}: a key that is there twice",
    ),
    ("a map of 2**50", MAP, PAIRS, number(2**50) + b"\x02", "ends in the middle"),
    ("five digits of four", DECIMAL, pa.decimal128(4, 2), b"\x06\x01\x86\xa0", "more digits"),
    ("a decimal of no byte", DECIMAL, pa.decimal128(4, 2), b"\0", "or of no byte"),
    (
        "after the year 9999",
        {"type": "int", "logicalType": "date"},
        pa.date32(),
        number(2**31 - 1),
        "years 1 to",
    ),
    (
        *("milliseconds after it", {"type": "long", "logicalType": "timestamp-millis"}),
        *(pa.timestamp("us", tz="UTC"), number(2**62), "years 1 to 9999"),
    ),
]


@pytest.mark.parametrize(
    ("avro", "kind", "data", "why"), [one[1:] for one in BAD], ids=[one[0] for one in BAD]
)
def test_what_is_no_datum_is_refused_in_words_and_within_little_memory(
    avro: Any, kind: pa.DataType, data: bytes, why: str
) -> None:
    read = reader(avro, kind)
    tracemalloc.start()
    try:
        with pytest.raises(Misread, match=why):
            read(data, 0)
        assert tracemalloc.get_traced_memory()[1] < READ_MAX_BYTES
    finally:
        tracemalloc.stop()


def test_a_required_field_that_is_null_is_refused_by_name() -> None:
    with pytest.raises(Misread, match="field x: null, and required"):
        reader(["null", "long"], pa.int64(), nullable=False)(b"\0", 0)


def test_blocks_may_be_several_and_may_say_how_long_they_are() -> None:
    read = reader(ARRAY, LIST)
    items = number(1) + number(7) + number(-2) + number(2) + number(8) + number(9) + b"\0"
    assert read(items, 0) == ({"x": [7, 8, 9]}, len(items))


def test_a_number_may_be_spelled_with_more_bytes_than_it_needs() -> None:
    assert reader("long", pa.int64())(b"\x82\x80\0", 0) == ({"x": 1}, 3)


def test_a_negative_zero_is_zero() -> None:
    for kind, column in (("double", pa.float64()), ("float", pa.float32())):
        data = fastavro_bytes(kind, -0.0)
        assert math.copysign(1.0, reader(kind, column)(data, 0)[0]["x"]) == 1.0


def fastavro_bytes(avro: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(
        out, {"type": "record", "name": "r", "fields": [{"name": "x", "type": avro}]}, {"x": value}
    )
    return out.getvalue()


LONGS = st.integers(-(2**63), 2**63 - 1)
TYPES: list[tuple[Any, pa.DataType, st.SearchStrategy[Any], Callable[[Any], Any]]] = [
    ("long", pa.int64(), LONGS, lambda value: value),
    ("int", pa.int64(), st.integers(-(2**31), 2**31 - 1), lambda value: value),
    ("double", pa.float64(), st.floats(allow_nan=False), lambda value: value),
    ("boolean", pa.bool_(), st.booleans(), lambda value: value),
    ("bytes", pa.binary(), st.binary(max_size=300), lambda value: value),
    ("string", pa.string(), st.text(max_size=100), lambda value: value),
    (["string", "null"], pa.string(), st.none() | st.text(max_size=9), lambda value: value),
    (ENUM, pa.string(), st.sampled_from("AB"), lambda value: value),
    (ARRAY, LIST, st.lists(LONGS, max_size=9), lambda value: value),
    (MAP, PAIRS, st.dictionaries(st.text(max_size=5), LONGS, max_size=9), lambda value: list(value.items())),
]


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(TYPES).flatmap(lambda one: st.tuples(st.just(one), one[2])))
def test_what_fastavro_writes_is_read_as_it_was_written(drawn: tuple[Any, Any]) -> None:
    (avro, kind, _, spelled), value = drawn
    data = fastavro_bytes(avro, value)
    assert reader(avro, kind)(data, 0) == ({"x": spelled(value)}, len(data))


ALL = json.dumps(
    {
        "type": "record",
        "name": "all",
        "fields": [
            {"name": "a", "type": ["null", "long", "string"]},
            {"name": "b", "type": ARRAY},
            {"name": "c", "type": MAP},
            {"name": "d", "type": {"type": "fixed", "name": "f", "size": 3}},
            {"name": "e", "type": ENUM},
            {
                "name": "g",
                "type": {"type": "record", "name": "s", "fields": [{"name": "h", "type": "bytes"}]},
            },
            {"name": "n", "type": "null"},
            {"name": "x", "type": "long"},
        ],
    }
)
UNWANTED = row_reader(parse([ALL]), [pa.field("x", pa.int64())])


def test_fields_that_are_no_columns_are_passed_over() -> None:
    out = io.BytesIO()
    value = {"a": "s", "b": [1, 2], "c": {"k": 1}, "d": b"xyz", "e": "B", "g": {"h": b"!"}, "n": None, "x": 5}
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(ALL)), value)
    assert UNWANTED(out.getvalue(), 0) == ({"x": 5}, len(out.getvalue()))


@settings(max_examples=500, deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused_and_never_read_beyond_their_end(data: bytes) -> None:
    try:
        _, end = UNWANTED(data, 0)
    except (Misread, IndexError):
        return
    assert end <= len(data)

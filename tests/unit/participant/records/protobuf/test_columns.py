"""Messages as rows: what each type becomes, what is refused, and what is a reject."""

from __future__ import annotations

import math
import tracemalloc
from base64 import b64encode
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from random import Random
from resource import RUSAGE_SELF, getrusage
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from participant.records.by_schema.misread import Misread
from participant.records.by_schema.one_by_one import table_of
from participant.records.protobuf.columns import RowReader
from participant.records.protobuf.files import message_of, texts_of
from table.schema import SchemaError, parse_ddl
from tests.fuzz.target import damaged
from tests.proto_files import Classes, compiled, encoded
from tests.proto_types import IMPORTS, TAKEN, TYPES, made, one_file

MEMORY_MAX_BYTES = 150_000_000
"""Of one record's million values."""


WHOLE = (
    "bool b = 1; int32 i = 2; uint32 u = 3; string s = 4; Colour e = 5; google.protobuf.Timestamp t = 6;"
    "Inner n = 7; repeated Inner a = 8; map<string, string> m = 9; sint32 z = 10; repeated int32 p = 11;"
    "repeated string q = 12;"
)
WHOLE_DDL = (
    "b BOOLEAN, i INT, u BIGINT, s STRING, e STRING, t TIMESTAMP, n STRUCT<a: BIGINT, b: STRING>,"
    "a ARRAY<STRUCT<b: STRING>>, m MAP<STRING, STRING>, z INT, p ARRAY<INT>, q ARRAY<STRING>"
)
FIELDS: Sequence[pa.Field] = list(parse_ddl(WHOLE_DDL))
GOOD = b"\x08\x01\x22\x01a\x3a\x02\x08\x01\x42\x00\x4a\x00\x5a\x01\x05"


@cache
def one_set() -> FileDescriptorSet:
    return compiled({"r.proto": f'syntax = "proto3"; package t; {IMPORTS} {TYPES} message R {{ {WHOLE} }}'})


@cache
def texts() -> tuple[str, ...]:
    return texts_of(encoded(one_file()))


def reader_of(declared: str, ddl: str, syntax: str = "proto3") -> RowReader:
    """Of a message `R` with these fields."""
    besides = f"{IMPORTS} {TYPES}" if syntax == "proto3" else ""
    files = compiled({"r.proto": f'syntax = "{syntax}"; package t; {besides} message R {{ {declared} }}'})
    return RowReader(message_of(texts_of(encoded(files)), "t.R"), list(parse_ddl(ddl)))


def varint(number: int) -> bytes:
    written = bytearray()
    while number > 0x7F:
        written.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*written, number))


def delimited(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


@pytest.mark.parametrize("place", range(len(TAKEN)), ids=[f"{one[0]} {one[1]}" for one in TAKEN])
def test_a_type_is_read_into_the_columns_that_take_all_of_it(place: int) -> None:
    _, ddl, value, read = TAKEN[place]
    schema = parse_ddl(f"x {ddl}")
    reader = RowReader(message_of(texts(), f"t.M{place}"), list(schema))
    row = reader.read(made(f"M{place}" and f"t.M{place}", value).SerializeToString())
    table = table_of([row], schema)
    table.validate(full=True)
    assert table.column("x").to_pylist() == [read]


REFUSED: list[tuple[str, str, str]] = [
    ("int64 x = 1;", "INT", "field x: an int64 is not read as INT; it is as BIGINT"),
    ("int64 x = 1;", "DOUBLE", "it is as BIGINT"),
    ("uint32 x = 1;", "INT", "field x: an uint32 is not read as INT; it is as BIGINT or DOUBLE"),
    ("uint64 x = 1;", "BIGINT", "field x: an uint64 is not read as BIGINT; it is as DECIMAL(20,0)"),
    ("fixed64 x = 1;", "DECIMAL(19,0)", "a fixed64 is not read as DECIMAL(19,0); it is as DECIMAL(20,0)"),
    ("int64 x = 1;", "DECIMAL(20,0)", "an int64 is not read as DECIMAL(20,0); it is as BIGINT"),
    ("double x = 1;", "FLOAT", "it is as DOUBLE"),
    ("string x = 1;", "BINARY", "a string is not read as BINARY; it is as STRING"),
    ("Colour x = 1;", "BIGINT", "an enum is not read as BIGINT; it is as STRING or INT"),
    ("Inner x = 1;", "STRING", "a t.Inner is not read as STRING; it is as STRUCT<…>"),
    ("google.protobuf.Timestamp x = 1;", "BIGINT", "it is as TIMESTAMP or STRUCT<…>"),
    ("google.protobuf.Timestamp x = 1;", "TIMESTAMP_NTZ", "it is as TIMESTAMP or STRUCT<…>"),
    ("google.protobuf.Duration x = 1;", "BIGINT", "a google.protobuf.Duration is not read as BIGINT"),
    ("google.protobuf.Struct x = 1;", "STRING", "a google.protobuf.Struct is not read as STRING"),
    ("google.protobuf.Any x = 1;", "BINARY", "a google.protobuf.Any is not read as BINARY"),
    ("google.protobuf.Int64Value x = 1;", "INT", "field x: an int64 is not read as INT; it is as BIGINT"),
    ("repeated int32 x = 1;", "INT", "an int32 that is repeated is not read as INT; it is as ARRAY<…>"),
    ("repeated int64 x = 1;", "ARRAY<INT>", "field x[]: an int64 is not read as INT"),
    ("int32 x = 1;", "ARRAY<INT>", "an int32 is not read as ARRAY; it is as INT"),
    ("map<int32, int32> x = 1;", "MAP<STRING, INT>", "a map is read whose keys are strings, not int32"),
    ("map<string, int32> x = 1;", "ARRAY<INT>", "a map is not read as ARRAY; it is as MAP<STRING,…>"),
    ("map<string, int64> x = 1;", "MAP<STRING, INT>", "field x{}: an int64 is not read as INT"),
    ("Inner x = 1;", "STRUCT<a: INT>", "field x.a: an int64 is not read as INT"),
    ("Inner x = 1;", "STRUCT<z: INT NOT NULL>", "message t.Inner has no field x.z, which is required"),
    ("int32 y = 1;", "INT NOT NULL", "message t.R has no field x, which is required"),
]


@pytest.mark.parametrize(("declared", "ddl", "why"), REFUSED, ids=[f"{one[0]} {one[1]}" for one in REFUSED])
def test_what_would_lose_something_is_refused_by_name(declared: str, ddl: str, why: str) -> None:
    with pytest.raises(SchemaError) as caught:
        reader_of(declared, f"x {ddl}")
    assert why in str(caught.value)


def forged(*messages: DescriptorProto) -> Descriptor:
    """A file that no protoc made, whose messages have the names of others'. The first is the one."""
    file = FileDescriptorProto(name="x.proto", package="google.protobuf", syntax="proto3")
    file.message_type.extend(messages)
    return message_of((f"{encoded(file)} ",), (0,))


def field(
    name: str, number: int, *, of: str = "", kind: int = 5, repeated: bool = False
) -> FieldDescriptorProto:
    made = FieldDescriptorProto(name=name, number=number, label=3 if repeated else 1, type=11 if of else kind)
    if of:
        made.type_name = f".google.protobuf.{of}"
    return made


ENTRY = DescriptorProto(name="XEntry", options={"map_entry": True}, field=[field("key", 1, kind=9)])


@pytest.mark.parametrize(
    ("messages", "ddl", "why"),
    [
        ([("Int64Value", [field("value", 1, of="Int64Value")])], "BIGINT", "is not read as BIGINT"),
        ([("Int64Value", [field("value", 1, repeated=True)])], "BIGINT", "is not read as BIGINT"),
        ([("Int64Value", [])], "BIGINT", "is not read as BIGINT"),
        ([("Timestamp", [field("nanos", 1)])], "TIMESTAMP", "has no field x.seconds, which is required"),
        ([("Timestamp", [field("seconds", 1, of="R")])], "TIMESTAMP", "is not read as BIGINT"),
    ],
)
def test_a_message_that_has_but_the_name_of_a_known_one_is_refused_or_read_as_what_it_is(
    messages: list[tuple[str, list[FieldDescriptorProto]]], ddl: str, why: str
) -> None:
    ((name, inside),) = messages
    top = DescriptorProto(name="R", field=[field("x", 1, of=name)])
    with pytest.raises(SchemaError) as caught:
        RowReader(forged(top, DescriptorProto(name=name, field=inside)), list(parse_ddl(f"x {ddl}")))
    assert why in str(caught.value)


def test_a_map_that_no_compiler_made_is_refused() -> None:
    top = DescriptorProto(name="R", field=[field("x", 1, of="R.XEntry", repeated=True)], nested_type=[ENTRY])
    with pytest.raises(SchemaError):
        RowReader(forged(top), list(parse_ddl("x MAP<STRING, INT>")))


@settings(max_examples=200)
@given(st.integers())
def test_a_damaged_schema_is_refused_in_words_or_is_another(seed: int) -> None:
    content = damaged(Random(seed), one_set().SerializeToString())
    try:
        reader = RowReader(message_of(texts_of(b64encode(content).decode()), "t.R"), FIELDS)
    except SchemaError as error:
        assert str(error)
        return
    with suppress(Misread):
        table_of([reader.read(GOOD)], pa.schema(FIELDS))


def test_a_group_is_refused_where_it_is_a_column_and_read_over_where_it_is_none() -> None:
    declared = "optional group X = 1 { optional int32 a = 1; } optional int32 y = 2;"
    with pytest.raises(SchemaError, match="field x: a group is not read"):
        reader_of(declared, "x STRUCT<a: INT>", "proto2")
    assert reader_of(declared, "y INT", "proto2").read(b"\x0b\x08\x05\x0c\x10\x07") == {"y": 7}


# --- presence ---------------------------------------------------------------------------------------


def test_what_is_not_set_is_null_where_that_can_be_told_and_its_types_default_where_not() -> None:
    declared = (
        "int32 x = 1; optional int32 y = 2; Inner z = 3; repeated int32 r = 4; map<string, int32> m = 5;"
    )
    reader = reader_of(
        declared, "x INT, y INT, z STRUCT<a: BIGINT>, r ARRAY<INT>, m MAP<STRING, INT>, gone STRING"
    )
    assert reader.read(b"") == {"x": 0, "y": None, "z": None, "r": [], "m": [], "gone": None}


def test_a_default_that_a_schema_declares_is_a_readers_and_says_nothing_here() -> None:
    assert reader_of("optional int32 x = 1 [default = 5];", "x INT", "proto2").read(b"") == {"x": None}


def test_what_a_schema_requires_and_what_a_column_does_must_be_there() -> None:
    with pytest.raises(Misread, match="field x: it is not there, and its schema requires it"):
        reader_of("required int32 x = 1;", "x INT", "proto2").read(b"")
    with pytest.raises(Misread, match=r"field z\.c: null, and required"):
        reader_of("Inner z = 3;", "z STRUCT<c: BOOLEAN NOT NULL>").read(b"\x1a\x00")


def test_of_a_oneof_the_last_that_is_set_counts_though_it_is_no_column() -> None:
    declared = "oneof o { int32 x = 1; string y = 2; Inner z = 3; fixed32 f = 4; double d = 5; }"
    reader = reader_of(declared, "x INT, z STRUCT<a: BIGINT>")
    x, z = b"\x08\x05", b"\x1a\x02\x08\x01"
    assert reader.read(x) == {"x": 5, "z": None}
    assert reader.read(x + z) == {"x": None, "z": {"a": 1}}
    assert reader.read(z + x) == {"x": 5, "z": None}
    for other in (b"\x12\x01a", b"\x25\0\0\0\0", b"\x29" + bytes(8)):
        assert reader.read(x + other) == {"x": None, "z": None}


def test_a_message_of_a_oneof_is_merged_with_what_is_there_of_it_since_another_was_set() -> None:
    declared = "oneof o { int32 x = 1; Inner z = 3; } optional fixed64 w = 20; repeated fixed32 v = 21;"
    reader = reader_of(declared, "x INT, z STRUCT<a: BIGINT, b: STRING>")
    x, a, b = b"\x08\x05", b"\x1a\x02\x08\x01", b"\x1a\x03\x12\x01q"
    besides = b"\xa1\x01" + bytes(8) + b"\xad\x01" + bytes(4) + b"\x7b\x1a\x02\x08\x09\x7c" + b"\xf0\x07\x01"
    for data in (a + b, a + besides + b, x + b + a, a + besides + x + a + b):
        assert reader.read(data) == {"x": None, "z": {"a": 1, "b": "q"}}
    assert reader.read(a + x + b) == {"x": None, "z": {"a": 0, "b": "q"}}
    assert reader.read(b"\x9a\x00\x02\x08\x01" + b)["z"] == {"a": 1, "b": "q"}, "a number of one byte in two"
    assert reader.read(a + b + x) == {"x": 5, "z": None}


@pytest.mark.parametrize("declared", ["Inner z = 3;", "oneof o { Inner z = 3; int32 x = 1; }"])
def test_halves_of_a_message_are_none_though_together_they_are_one(declared: str) -> None:
    reader = reader_of(declared, "z STRUCT<b: STRING>")
    assert reader.read(b"\x1a\x04\x12\x02qr") == {"z": {"b": "qr"}}
    with pytest.raises(Misread, match="field z: the bytes are no message"):
        reader.read(b"\x1a\x02\x12\x02" + b"\x1a\x02qr")


def test_a_oneof_with_a_group_in_it_is_refused_by_name() -> None:
    declared = "oneof o { int32 x = 1; group G = 2 { optional int32 a = 1; } }"
    with pytest.raises(SchemaError, match="field g: a oneof with a group in it is not read"):
        reader_of(declared, "x INT", "proto2")


def test_what_is_there_twice_is_the_last_or_merged_as_protobuf_has_it() -> None:
    declared = "int32 x = 1; Inner z = 3; map<string, Inner> m = 4; map<string, Colour> e = 5;"
    reader = reader_of(
        declared,
        "x INT, z STRUCT<a: BIGINT, b: STRING>, m MAP<STRING, STRUCT<a: BIGINT>>, e MAP<STRING, STRING>",
    )
    data = b"\x08\x01\x08\x02" + b"\x1a\x02\x08\x01" + b"\x1a\x03\x12\x01q"
    data += delimited(4, b"\x0a\x01k\x12\x02\x08\x01") + delimited(4, b"\x0a\x01k\x12\x02\x08\x02")
    data += delimited(4, b"") + delimited(5, b"")
    row = reader.read(data)
    assert (row["x"], row["z"]) == (2, {"a": 1, "b": "q"})
    assert row["m"] == [("k", {"a": 2}), ("", {"a": 0})] and row["e"] == [("", "NONE")]


def test_of_an_enum_with_two_names_for_a_number_the_first_is_it() -> None:
    declared = "enum E { option allow_alias = true; A = 0; B = 0; C = 1; } E x = 1; map<string, E> m = 2;"
    reader = reader_of(declared, "x STRING, m MAP<STRING, STRING>")
    assert reader.read(b"\x12\x00") == {"x": "A", "m": [("", "A")]}


def test_fields_that_are_no_columns_are_read_over_whatever_is_in_them() -> None:
    reader = reader_of("string x = 1; string y = 2; Inner z = 3;", "x STRING")
    assert reader.read(b"\x0a\x01a" + b"\x12\x01\xff" + b"\x1a\x01\xff" + b"\x78\x05") == {"x": "a"}


def test_a_negative_zero_is_zero() -> None:
    row = reader_of("double x = 1; float y = 2;", "x DOUBLE, y FLOAT").read(
        b"\x09" + bytes(7) + b"\x80" + b"\x15\0\0\0\x80"
    )
    assert [math.copysign(1, one) for one in row.values()] == [1, 1]


# --- rejects ----------------------------------------------------------------------------------------

NO_MESSAGE = "the bytes are no message of Protobuf, or end in the middle"
ANOTHER = "is encoded as another type than its schema says"
BAD: list[tuple[str, bytes, str]] = [
    ("a boolean of 2", b"\x08\x02", "field b: a boolean that is neither 0 nor 1"),
    ("an int32 of 33 bits", b"\x10" + varint(2**32), "field i: a number beyond the range of its type"),
    ("a negative one without its sign", b"\x10" + varint(2**32 - 1), "field i: a number beyond the range"),
    ("a uint32 of 33 bits", b"\x18" + varint(2**32), "field u: a number beyond the range of its type"),
    ("a sint32 of 33 bits", b"\x50" + varint(2**33), "field z: a number beyond the range of its type"),
    ("one in an array", b"\x5a\x05" + varint(2**32), "field p[]: a number beyond the range of its type"),
    ("a string that is not UTF-8", b"\x22\x01\xff", "field s: a string that is not UTF-8"),
    ("one in an array", b"\x62\x01\xff", "field q[]: a string that is not UTF-8"),
    ("one in a message", b"\x3a\x03\x12\x01\xff", "field n.b: a string that is not UTF-8"),
    ("one in an array's message", b"\x42\x03\x12\x01\xff", "field a[].b: a string that is not UTF-8"),
    ("a key that is not UTF-8", b"\x4a\x03\x0a\x01\xff", "field m[]: a string that is not UTF-8"),
    ("a strange enum", b"\x28\x05", "field e: an enum's number that its schema has no name for"),
    ("nanoseconds", b"\x32\x02\x10\x01", "field t: a time with nanoseconds, which a TIMESTAMP does not hold"),
    ("too many of them", b"\x32" + b"\x06\x10" + varint(10**9), "nanoseconds are not 0 to 999,999,999"),
    ("the year 10000", b"\x32" + b"\x07\x08" + varint(253_402_300_800), "outside the years 1 to 9999"),
    ("the year 0", delimited(6, b"\x08" + varint(2**64 - 62_135_596_801)), "outside the years 1 to 9999"),
    ("another wire type", b"\x0a\x00", f"field number 1 {ANOTHER}"),
    ("another in a message", b"\x3a\x02\x10\x01", f"field n: field number 2 {ANOTHER}"),
    ("another in an array", b"\x42\x02\x10\x01", f"field a[]: field number 2 {ANOTHER}"),
    ("another in a map", b"\x4a\x02\x08\x01", f"field m[]: field number 1 {ANOTHER}"),
    ("a group where a number is", b"\x0b\x0c", f"field number 1 {ANOTHER}"),
    ("a number that ends within", b"\x10\x80", NO_MESSAGE),
    ("a number of 11 bytes", b"\x10" + b"\xff" * 10 + b"\x01", NO_MESSAGE),
    ("a string that ends within", b"\x22\x05a", NO_MESSAGE),
    ("a length of 2**63", b"\x22" + varint(2**63), NO_MESSAGE),
    ("a wire type that there is not", b"\x7e", NO_MESSAGE),
    ("field number 0", b"\x00\x00", NO_MESSAGE),
    ("a group without an end", b"\x7b", NO_MESSAGE),
    ("an end without its group", b"\x7c", NO_MESSAGE),
    ("groups 200 deep", b"\x7b" * 200 + b"\x7c" * 200, NO_MESSAGE),
    ("bytes behind the end", b"\x08\x01\xff", NO_MESSAGE),
    ("a broken message in an array", b"\x42\x01\x0a", f"field a[]: {NO_MESSAGE}"),
]


@cache
def whole() -> RowReader:
    return reader_of(WHOLE, WHOLE_DDL)


@pytest.mark.parametrize(("data", "why"), [one[1:] for one in BAD], ids=[one[0] for one in BAD])
def test_what_is_no_such_message_is_refused_in_words(data: bytes, why: str) -> None:
    with pytest.raises(Misread) as caught:
        whole().read(data)
    assert why in str(caught.value)


WIDE = "".join(f"int32 f{number} = {number}; " for number in range(1, 201))
WIDE_DDL = ", ".join(f"f{number}: INT" for number in range(1, 201))


@pytest.mark.parametrize("kind", ["repeated Wide", "map<string, Wide>"])
def test_a_million_empty_messages_are_counted_before_they_are_made(kind: str) -> None:
    columns = f"ARRAY<STRUCT<{WIDE_DDL}>>" if "rep" in kind else f"MAP<STRING, STRUCT<{WIDE_DDL}>>"
    reader = reader_of(f"message Wide {{ {WIDE} }} {kind} x = 1;", f"x {columns}")
    tracemalloc.start()
    try:
        with pytest.raises(Misread, match="more than 2,000,000 values"):  # as many as it has bytes
            reader.read(b"\x0a\x00" * 1_000_000)
        assert tracemalloc.get_traced_memory()[1] < MEMORY_MAX_BYTES
    finally:
        tracemalloc.stop()
    assert reader.read(b"") == {"x": []}, "it counts from 0 again"


FLOOD_MAX_BYTES = 80_000_000
"""Of half a megabyte; as it is, Protobuf makes 100 MB of the second, and twice that of twice as much."""
FLOODS: list[tuple[str, str, bytes]] = [
    ("Wide z = 1;", "z STRUCT<%s>", b"\x0a\x00" * 250_000),
    (
        "oneof o { Wide z = 1; int32 x = 2; }",
        "z STRUCT<%s>",
        (b"\x0a\x00" + b"\x10\x01") * 125_000 + b"\x0a\x00",
    ),
    ("Wide z = 1; int32 x = 2;", "x INT", b"\x0a\x00" * 250_000),
    ("Wide z = 1; int32 x = 2;", "x INT", b"\x1b\x1c" * 250_000),
    ("repeated Wide z = 1;", "z ARRAY<STRUCT<%s>>", b"\x0a\x00" * 250_000),
]


@pytest.mark.parametrize(("declared", "ddl", "data"), FLOODS, ids=[one[0] for one in FLOODS])
def test_a_flood_of_empty_messages_takes_no_room_for_all_of_their_columns(
    declared: str, ddl: str, data: bytes
) -> None:
    reader = reader_of(f"message Wide {{ {WIDE} }} {declared}", ddl % WIDE_DDL if "%" in ddl else ddl)
    before = getrusage(RUSAGE_SELF).ru_maxrss
    with suppress(Misread):
        reader.read(data)
    grown_bytes = (getrusage(RUSAGE_SELF).ru_maxrss - before) * 1024
    assert grown_bytes < FLOOD_MAX_BYTES


def test_values_are_counted_for_whoever_holds_them() -> None:
    reader = reader_of("int32 y = 2; repeated Inner x = 1;", "y INT, x ARRAY<STRUCT<a: BIGINT, b: STRING>>")
    reader.read(b"")
    none = reader.values
    reader.read(b"\x0a\x00" * 5)
    assert (none, reader.values) == (3, 3 + 5 * 3)


@settings(max_examples=300)
@given(st.binary(max_size=60))
def test_any_bytes_are_a_row_that_a_table_takes_or_a_reject(data: bytes) -> None:
    try:
        row = whole().read(data)
    except Misread as misread:
        assert str(misread)
        return
    assert table_of([row], pa.schema(FIELDS)).num_rows == 1


@cache
def writers() -> Classes:
    return Classes(one_set())


@settings(max_examples=200)
@given(
    st.fixed_dictionaries(
        {
            "b": st.booleans(),
            "i": st.integers(-(2**31), 2**31 - 1),
            "u": st.integers(0, 2**32 - 1),
            "s": st.text(),
            "z": st.integers(-(2**31), 2**31 - 1),
            "p": st.lists(st.integers(-(2**31), 2**31 - 1)),
            "q": st.lists(st.text()),
            "m": st.dictionaries(st.text(max_size=5), st.text()),
            "a": st.lists(st.fixed_dictionaries({"b": st.text()})),
        }
    )
)
def test_what_protobuf_writes_is_read_as_it_was_written(row: dict[str, Any]) -> None:
    found = whole().read(writers()["t.R"](**row).SerializeToString())
    found["m"] = dict(found["m"])
    assert {name: found[name] for name in row} == row

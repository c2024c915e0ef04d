"""The native decoder of Protobuf: what it takes it reads alone, what it leaves the plain one looks at."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from participant.records.headers import pack
from participant.records.native import native_module
from participant.records.port import RecordSpec
from participant.records.protobuf.decoder import ProtobufDecoder
from participant.records.protobuf.files import message_of
from participant.records.protobuf.format import GivenFiles, ProtobufFormat
from participant.records.protobuf.native import NativeProtobuf
from participant.records.protobuf.plan import plan_of
from participant.records.raw import Values
from table.schema import parse_ddl
from tests.decoding import batch, fates
from tests.json_decoders import compiled as module_compiled
from tests.proto_files import Classes, compiled, encoded
from tests.proto_types import TAKEN, made, one_file
from tests.unit.participant.records.protobuf.test_columns import (
    BAD,
    GOOD,
    WHOLE_DDL,
    delimited,
    one_set,
)

pytestmark = pytest.mark.skipif(
    not module_compiled(), reason="participant.records._native is not compiled here"
)
SCHEMA = parse_ddl(WHOLE_DDL)


def refused(decoder: NativeProtobuf, values: Sequence[bytes | None]) -> list[int]:
    """By the native decoder alone."""
    held = Values.of(values)
    assert decoder._learn([b""])
    (_, places), unknown = decoder._native.decode(held.data, held.starts)
    assert not unknown
    return np.frombuffer(places, dtype=np.int64).tolist()


@cache
def given() -> GivenFiles:
    return GivenFiles(encoded(one_file()))


def whole() -> tuple[NativeProtobuf, ProtobufDecoder]:
    files = GivenFiles(encoded(one_set()))
    return NativeProtobuf(SCHEMA, "t.R", files), ProtobufDecoder(SCHEMA, "t.R", files)


@pytest.mark.parametrize("place", range(len(TAKEN)), ids=[f"{one[0]} {one[1]}" for one in TAKEN])
def test_whatever_goes_into_a_column_is_read_natively(place: int) -> None:
    _, ddl, value, read = TAKEN[place]
    schema = parse_ddl(f"x {ddl}")
    decoder = NativeProtobuf(schema, f"t.M{place}", given())
    # a field that there is not before it, so that no value is empty, which is left to the plain decoder
    data = b"\x80\x7d\x01" + made(f"t.M{place}", value).SerializeToString()
    assert refused(decoder, [data, data]) == []
    found = decoder.decode(batch([data, data]))
    found.table.validate(full=True)
    assert found.table.schema == schema
    assert found.table.column("x").to_pylist() == [read] * 2


@pytest.mark.parametrize(("data", "why"), [one[1:] for one in BAD], ids=[one[0] for one in BAD])
def test_what_is_no_such_message_is_refused_natively_too_and_the_plain_decoder_says_why(
    data: bytes, why: str
) -> None:
    decoder, _ = whole()
    assert refused(decoder, [GOOD, data, GOOD]) == [1]
    found = decoder.decode(batch([GOOD, data, GOOD]))
    assert found.table.num_rows == 2
    assert [one.index for one in found.rejects] == [1] and why in found.rejects[0].reason


LEFT: list[tuple[str, bytes]] = [
    ("nothing at all", b""),
    ("a field twice", b"\x08\x01\x08\x00"),
    ("a message twice", b"\x3a\x02\x08\x01\x3a\x02\x08\x02"),
    ("a key twice", b"\x4a\x03\x0a\x01a\x4a\x06\x0a\x01a\x12\x01b"),
    ("a key twice in its entry", b"\x4a\x06\x0a\x01a\x0a\x01b"),
    ("seconds twice", delimited(6, b"\x08\x01\x08\x02")),
    ("a group that is no column", b"\x7b\x7c"),
    ("a varint of more than 64 bits", b"\x08\x81" + b"\x80" * 8 + b"\x02"),
]


@pytest.mark.parametrize("data", [one[1] for one in LEFT], ids=[one[0] for one in LEFT])
def test_what_is_rare_is_left_to_the_plain_decoder_and_a_row_in_its_place(data: bytes) -> None:
    decoder, plain = whole()
    values = [GOOD, data, GOOD]
    assert refused(decoder, values) == [1]
    found = decoder.decode(batch(values))
    assert found.table.num_rows == 3
    assert fates(found, 3) == fates(plain.decode(batch(values)), 3)


STRICT: list[tuple[str, bytes]] = [
    ("a tag of six bytes", b"\x88\x80\x80\x80\x80\x00\x01"),
    ("a length of six bytes", b"\x22\x81\x80\x80\x80\x80\x00a"),
    ("a tag of more than 32 bits", b"\x88\x80\x80\x80\x10\x01"),
    ("a length beyond its message", b"\x3a\x03\x12\x02a" + b"bc"),
    ("a number beyond its message", b"\x3a\x02\x08\x80\x01"),
    ("eight bytes that are not there", b"\x79\x01"),
]


@pytest.mark.parametrize("data", [one[1] for one in STRICT], ids=[one[0] for one in STRICT])
def test_what_their_own_parser_does_not_read_is_no_row(data: bytes) -> None:
    decoder, plain = whole()
    found = decoder.decode(batch([data]))
    assert fates(found, 1) == fates(plain.decode(batch([data])), 1)
    assert found.table.num_rows == 0


def test_two_members_of_a_oneof_are_left_to_the_plain_decoder_also_where_one_is_no_column() -> None:
    text = 'syntax = "proto3"; package t; message R { oneof w { int32 a = 1; string b = 2; int64 c = 3; } }'
    files, schema = GivenFiles(encoded(compiled({"r.proto": text}))), parse_ddl("a INT, c BIGINT")
    decoder, plain = NativeProtobuf(schema, "t.R", files), ProtobufDecoder(schema, "t.R", files)
    values = [b"\x08\x05", b"\x12\x01x", b"\x08\x05\x12\x01x", b"\x12\x01x\x18\x07", b"\x18\x07\x08\x05"]
    assert refused(decoder, values) == [2, 3, 4]
    found = decoder.decode(batch(values))
    assert fates(found, 5) == fates(plain.decode(batch(values)), 5)
    assert found.table.column("c").to_pylist() == [None, None, None, 7, None]


def test_what_a_schema_of_proto2_requires_must_be_there() -> None:
    text = 'syntax = "proto2"; package t; message R { required int32 a = 1; optional string b = 2; }'
    files, schema = GivenFiles(encoded(compiled({"r.proto": text}))), parse_ddl("a INT, b STRING")
    decoder = NativeProtobuf(schema, "t.R", files)
    assert refused(decoder, [b"\x08\x05", b"\x12\x01x"]) == [1]


def test_no_more_values_are_made_of_a_record_than_by_the_plain_decoder() -> None:
    wide = "".join(f"int32 f{number} = {number}; " for number in range(1, 201))
    text = f'syntax = "proto3"; package t; message W {{ {wide} }} message R {{ repeated W w = 1; }}'
    files = GivenFiles(encoded(compiled({"r.proto": text})))
    columns = ", ".join(f"f{number}: INT" for number in range(1, 201))
    decoder = NativeProtobuf(parse_ddl(f"w ARRAY<STRUCT<{columns}>>"), "t.R", files)
    most = (1_000_000 - 2) // 201
    assert refused(decoder, [b"\x0a\x00" * most, b"\x0a\x00" * (most + 1)]) == [1]
    found = decoder.decode(batch([b"\x0a\x00" * most, b"\x0a\x00" * (most + 1)]))
    assert found.table.num_rows == 1 and "more than 1,000,000 values" in found.rejects[0].reason


class Places:
    """One file for every id, with two messages."""

    def find(self, key: Any) -> tuple[str, ...]:
        first = "message A { string id = 1; }"
        second = "message B { int64 n = 1; message C { string id = 3; } }"
        files = compiled({"r.proto": f'syntax = "proto3"; package t; {first} {second}'})
        return GivenFiles(encoded(files)).find(b"")


def test_which_message_it_is_stands_before_the_value_or_in_a_header(monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = NativeProtobuf(parse_ddl("id STRING, n BIGINT"), "", Places())
    monkeypatch.setattr(decoder._plain, "decode", lambda batch: pytest.fail("left to the plain decoder"))
    head = b"\0\0\0\0\x07"
    nested = pack([("__value_schema_id", head + b"\x04\x02\x00")])
    values = [head + b"\0\x0a\x01a", head + b"\x02\x02\x08\x05", b"\x1a\x01c", head + b"\x02\x00\x0a\x01d"]
    found = decoder.decode(batch(values, headers=[b"", b"", nested, b""]))
    assert found.table.to_pylist() == [
        {"id": "a", "n": None},
        {"id": None, "n": 5},
        {"id": "c", "n": None},
        {"id": "d", "n": None},
    ]


def test_a_place_that_is_none_is_refused_and_the_plain_decoder_says_why() -> None:
    decoder = NativeProtobuf(parse_ddl("id STRING, n BIGINT"), "", Places())
    plain = ProtobufDecoder(parse_ddl("id STRING, n BIGINT"), "", Places())
    head = b"\0\0\0\0\x07"
    values = [head, head[:3], head + b"\x01", head + b"\x02\x09", head + b"\x80" * 6, head + b"\x0e\x00\x00"]
    found, wanted = decoder.decode(batch(values)), plain.decode(batch(values))
    assert fates(found, len(values)) == fates(wanted, len(values)) and not found.table.num_rows


TYPES_OF_NONE: list[tuple[Any, str]] = [
    ([], "without a type"),
    ([("int32", [], [])], "a value is a message"),
    ([("message", [1, 1, 0, 0, 0, -1, 1], [])], "described otherwise"),
    ([("int32", [], []), ("message", [1, 0, 0, 0, 0, -1, 1], [])], "described otherwise"),
    ([("int32", [], []), ("message", [1, 1, 0, 0, 3, -1, 1], [])], "described otherwise"),
    ([("int32", [], []), ("message", [1, 1, 0, 0, 0, 64, 1], [])], "described otherwise"),
    ([("int32", [], []), ("message", [1, 2, 0, 0, 0, -1, 1, 1, 0, 1, 0, -1, 1], [])], "described otherwise"),
    ([("enum", [2, 1], ["A", "B"])], "described otherwise"),
    ([("int32", [], []), ("message", [1, 1, 0, 7, 0, -1, 1], [])], "a column that there is not"),
    ([("int32", [], []), ("message", [1, 1, 0, 0, 0, -1, 1], [])], "does not go into its column"),
    ([("string", [], []), ("message", [1, 1, 0, 0, 1, -1, 1], [])], "does not go into its column"),
    ([("string", [], []), ("message", [1, 1, 0, -1, 0, -1, 1], [])], "required, and not there"),
    ([("string", [], []), *(("wrapped", [1, at], []) for at in range(90))], "nested deeper"),
]


@pytest.mark.parametrize(("types", "why"), TYPES_OF_NONE, ids=[f"{at}" for at in range(len(TYPES_OF_NONE))])
def test_types_that_are_not_described_as_they_are_to_be_are_never_read_by(types: Any, why: str) -> None:
    decoder = native_module().BySchema(parse_ddl("id STRING NOT NULL, n BIGINT"), "protobuf", "none", "")
    with pytest.raises(ValueError, match=why):
        decoder.learn(b"", types)
    values = Values.of([b"\x0a\x01a"])
    (_, places), unknown = decoder.decode(values.data, values.starts)
    assert len(places) == 8 and not unknown


def test_how_many_values_a_message_has_is_told_as_the_plain_decoder_counts_them() -> None:
    *_, (name, numbers, _) = plan_of(message_of(given().find(b""), "t.Inner"), [pa.field("a", pa.int64())])
    assert (name, numbers[0]) == ("message", 2)


def test_who_asks_for_the_plain_decoder_gets_it_and_else_the_native_one_reads() -> None:
    spec = RecordSpec(format="protobuf", framing="none", schema_text=encoded(one_set()), message="t.R")
    assert isinstance(ProtobufFormat(spec).values(SCHEMA), NativeProtobuf)
    assert ProtobufFormat(spec).reads_by(SCHEMA) == "native, in one pass, by schemas of record.schema_file"
    plain = RecordSpec(
        format="protobuf", framing="none", schema_text=encoded(one_set()), message="t.R", decoder="plain"
    )
    assert isinstance(ProtobufFormat(plain).values(SCHEMA), ProtobufDecoder)
    assert "the configuration asks for it" in ProtobufFormat(plain).reads_by(SCHEMA)


def test_classes_write_what_is_read() -> None:
    message = Classes(one_set())["t.R"](b=True, i=-5, s="ä", p=[1, -1], m={"k": "v"})
    decoder, plain = whole()
    values = [message.SerializeToString()] * 100
    assert refused(decoder, values) == []
    assert decoder.decode(batch(values)).table.equals(plain.decode(batch(values)).table)

"""Records of Protobuf, whole or damaged: one row each with its own values, or a reject. Beside its parser."""

from __future__ import annotations

import math
from functools import cache
from random import Random
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from control_topic.messages import SourcePartition
from participant.records.port import Decoder, RecordSpec
from participant.records.protobuf.format import ProtobufFormat
from participant.records.protobuf.messages import fields
from participant.records.raw import RawBatch, Values
from table.schema import parse_ddl
from tests.fuzz.target import Target, damaged, require
from tests.proto_files import Classes, compiled, encoded

ODDS = (0.0, 0.05, 0.5)
FIRST_OFFSET = 10**6
SOURCE = """
syntax = "proto3"; package t;
import "google/protobuf/timestamp.proto"; import "google/protobuf/wrappers.proto";
enum Colour { NONE = 0; RED = 1; BLUE = 7; }
message Deep { repeated sint64 x = 1; }
message Inner { int64 a = 1; string b = 2; optional bool c = 3; Deep deep = 4; }
message R {
  bool b = 1; sint32 z = 2; int32 i = 3; uint32 u = 4; int64 l = 5; fixed32 f = 6; double d = 7; float g = 8;
  string s = 9; bytes y = 10; Colour e = 11; Colour number = 24; optional int32 o = 12;
  Inner n = 13; repeated Inner a = 14; repeated int32 p = 15; repeated string q = 16;
  map<string, Inner> m = 17; map<string, int64> k = 18;
  oneof w { int32 w1 = 19; Inner w2 = 20; string w3 = 21; }
  google.protobuf.StringValue v = 22; google.protobuf.Timestamp t = 23;
}
"""
INNER = "STRUCT<a: BIGINT, b: STRING, c: BOOLEAN, deep: STRUCT<x: ARRAY<BIGINT>>>"
DDL = (
    "b BOOLEAN, z INT, i INT, u BIGINT, l BIGINT, f BIGINT, d DOUBLE, g FLOAT, s STRING, y BINARY, e STRING,"
    f"number INT, o INT, n {INNER}, a ARRAY<{INNER}>, p ARRAY<INT>, q ARRAY<STRING>, m MAP<STRING, {INNER}>,"
    f"k MAP<STRING, BIGINT>, w1 INT, w2 {INNER}, w3 STRING, v STRING, t STRUCT<seconds: BIGINT, nanos: INT>"
)
"""All fields, all the way down: what their own parser does not read, no column can hide."""
MAPS = frozenset({17, 18})
RIVALS = frozenset({19, 20, 21})
WRAPPER = "google.protobuf.StringValue"


class Refused(Exception):
    """There is no column for what their own parser reads."""


@cache
def _class() -> Any:
    return Classes(compiled({"t.proto": SOURCE}))["t.R"]


@cache
def _decoder() -> Decoder:
    text = encoded(compiled({"t.proto": SOURCE}))
    spec = RecordSpec(format="protobuf", framing="none", schema_text=text, message="t.R")
    return ProtobufFormat(spec).values(parse_ddl(DDL))


def _text(random: Random) -> str:
    return random.choice(("", "x", "ä\u2028😀", "y" * random.randrange(200)))


def _inner(random: Random) -> dict[str, Any]:
    made = {
        "a": random.choice((0, -1, 2**63 - 1, -(2**63))),
        "b": _text(random),
        "c": random.random() < 0.5,
        "deep": {"x": [random.choice((0, -1, 2**62)) for _ in range(random.randrange(3))]},
    }
    return {name: value for name, value in made.items() if random.random() < 0.6}


def _row(random: Random) -> dict[str, Any]:
    small = (0, -1, 2**31 - 1, -(2**31))
    made: dict[str, Any] = {
        **{"b": random.random() < 0.5, "z": random.choice(small), "i": random.choice(small)},
        **{"u": random.choice((0, 2**32 - 1)), "l": random.choice((0, -1, 2**63 - 1)), "f": 2**32 - 1},
        **{"d": random.choice((0.1, -0.0, -1e300, math.inf)), "g": random.choice((-0.5, 1.5))},
        **{"s": _text(random), "y": random.randbytes(random.choice((0, 1, 150)))},
        **{"e": random.choice((0, 1, 7, 5)), "number": random.choice((0, 1, -5)), "o": random.choice(small)},
        **{"n": _inner(random), "a": [_inner(random) for _ in range(random.randrange(3))]},
        **{"p": [random.choice(small) for _ in range(random.randrange(4))], "q": [_text(random)]},
        **{"m": {_text(random): _inner(random)}, "k": {_text(random): 5, "z": -1}},
        **{"v": {"value": _text(random)}, "t": {"seconds": random.choice(small), "nanos": 7}},
        random.choice(("w1", "none")): random.choice(small),
        random.choice(("w2", "none")): _inner(random),
        random.choice(("w3", "none")): _text(random),
    }
    made.pop("none", None)
    return {name: value for name, value in made.items() if random.random() < 0.7}


def make_batch(random: Random, size: int) -> list[bytes | None]:
    """Messages, each damaged or not, some with a piece of another behind them."""
    odd = random.choice(ODDS)
    values: list[bytes | None] = []
    for _ in range(size):
        value = _class()(**_row(random)).SerializeToString(deterministic=True)
        if random.random() < odd:
            value += _class()(**_row(random)).SerializeToString(deterministic=True)
        values.append(damaged(random, value) if random.random() < odd else value)
    return values


def check_batch(values: list[bytes | None]) -> int:
    """Each value against what Protobuf's own parser makes of it, by the schema as it is."""
    decoded = _decoder().decode(batch_of(values))
    decoded.table.validate(full=True)
    kept = range(len(values)) if decoded.kept is None else decoded.kept.tolist()
    rows = dict(zip(kept, decoded.table.to_pylist(), strict=True))
    rejects = {one.index for one in decoded.rejects}
    require(len(rejects) == len(decoded.rejects), "a record is rejected twice", values)
    for index, value in enumerate(values):
        require((index in rows) != (index in rejects), "neither a row nor a reject, or both", value)
        _compare(value or b"", rows.get(index))
    return len(values)


def _compare(value: bytes, row: Any) -> None:
    try:
        read = _class().FromString(value)
        if any(one.field_number in MAPS and one.wire_type == 2 for one in UnknownFieldSet(read)):
            return  # of an entry with a strange field their parser makes a strange entry, which no rule says
    except DecodeError as error:
        if not _overwritten(value, str(error)):
            require(row is None, "a row of what Protobuf does not read", value)
        return
    try:
        wanted = _plain(read)
    except Refused:
        require(row is None, "a row of what no column holds", value)
        return
    if row is not None:
        require(_alike(row) == _alike(wanted), f"the row {row} where Protobuf reads {wanted}", value)
    else:
        require(
            read.SerializeToString(deterministic=True) != value,
            "a reject of what is written like that",
            value,
        )


def _overwritten(value: bytes, error: str) -> bool:
    """Whether what is wrong may stand where something else counts, which nobody looks at here."""
    if "UTF-8" in error:
        return True
    try:
        return sum(number in RIVALS for number, _, _ in fields(value)) > 1
    except IndexError:
        return False


def _plain(message: Any) -> dict[str, Any]:
    """Raises `Refused`."""
    known = message.DESCRIPTOR.fields_by_number
    if any(one.field_number in known for one in UnknownFieldSet(message)):
        raise Refused
    return {field.name: _field(message, field) for field in known.values()}


def _field(message: Any, field: Any) -> Any:
    if field.is_repeated:
        value = getattr(message, field.name)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            of = field.message_type.fields_by_name["value"]
            return [(key, _one(value[key], of)) for key in value]
        return [_one(one, field) for one in value]
    if field.has_presence and not message.HasField(field.name):
        return None
    return _one(getattr(message, field.name), field)


def _one(value: Any, field: Any) -> Any:
    if field.message_type is not None:
        made = _plain(value)
        return made["value"] if field.message_type.full_name == WRAPPER else made
    if field.enum_type is not None and field.name != "number":
        if value not in field.enum_type.values_by_number:
            raise Refused
        return field.enum_type.values_by_number[value].name
    return value


def _alike(value: Any) -> Any:
    """Comparable: in any order, and one that is not a number as another."""
    if isinstance(value, dict):
        return {name: _alike(one) for name, one in value.items()}
    if isinstance(value, list) and value and all(isinstance(one, tuple) for one in value):
        return {key: _alike(one) for key, one in value}
    if isinstance(value, list):
        return [_alike(one) for one in value]
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def batch_of(values: list[bytes | None]) -> RawBatch:
    offsets = FIRST_OFFSET + 3 * np.arange(len(values), dtype=np.int64)
    return RawBatch(
        partition=SourcePartition("events", 3),
        offsets=offsets,
        timestamps_ms=offsets,
        values=Values.of(values),
    )


TARGETS = (
    Target(
        name="protobuf",
        promise="each record of Protobuf is one row with its own values, or one reject",
        make=make_batch,
        check=check_batch,
        size=100,
        seeds=30,
    ),
)

"""What fuzzing of the native module begins with: values of what its targets read, sound and damaged.

Each target of native/fuzz has its columns and types written in Rust; here are the same as a schema of each
format, by which the formats' own writers make values.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import fastavro

from table.schema import parse_ddl
from tests.fuzz import documents
from tests.fuzz.target import damaged
from tests.proto_files import Classes, compiled

SEEDS = 400
ODDS = (0.0, 0.0, 0.1, 0.5)
PIECE_BYTES_MAX = 255
"""The length of a piece is told in one byte before it."""

ROWS = (
    "a STRING, b BIGINT, c INT, d DOUBLE, e FLOAT, f BOOLEAN, g DATE, h TIMESTAMP, i TIMESTAMP_NTZ,"
    "j DECIMAL(9,2), k DECIMAL(38,38), l BINARY, m STRUCT<x: STRING, y: BOOLEAN NOT NULL>,"
    "n ARRAY<STRUCT<x: STRING, y: BOOLEAN NOT NULL>>, o MAP<STRING, BIGINT>"
)
AVRO: Mapping[str, Any] = {
    "type": "record",
    "name": "r",
    "fields": [
        {"name": "a", "type": ["string", "null"]},
        {"name": "b", "type": ["null", "long"]},
        {"name": "c", "type": "int"},
        {"name": "d", "type": "double"},
        {"name": "e", "type": "float"},
        {"name": "f", "type": "boolean"},
        {"name": "g", "type": "int"},
        {"name": "h", "type": "long"},
        {"name": "i", "type": "long"},
        {"name": "j", "type": "bytes"},
        {"name": "k", "type": {"type": "fixed", "name": "k", "size": 17}},
        {"name": "l", "type": "bytes"},
        {
            "name": "m",
            "type": [
                "null",
                {
                    "type": "record",
                    "name": "m",
                    "fields": [{"name": "x", "type": "string"}, {"name": "y", "type": "boolean"}],
                },
            ],
        },
        {"name": "n", "type": {"type": "array", "items": ["null", "m"]}},
        {"name": "o", "type": {"type": "map", "values": ["null", "long"]}},
        {"name": "p", "type": {"type": "enum", "name": "p", "symbols": ["A", "BCD"]}},
        {"name": "q", "type": {"type": "fixed", "name": "q", "size": 16}},
        {"name": "r", "type": {"type": "fixed", "name": "three", "size": 3}},
        {
            "name": "over",
            "type": {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": "over",
                    "fields": [
                        {"name": "x", "type": {"type": "map", "values": ["null", "string", "long", "three"]}},
                        {"name": "y", "type": "long"},
                    ],
                },
            },
        },
    ],
}
PROTOBUF = """
syntax = "proto3"; package t;
import "google/protobuf/timestamp.proto"; import "google/protobuf/wrappers.proto";
enum E { N0 = 0; N7 = 7; N_1 = -1; }
message Inner { optional string x = 1; bool y = 2; }
message R {
  oneof one { bool a = 1; int32 b = 2; bytes over = 40; }
  int64 c = 3; uint32 d = 4; uint64 e = 5; sint32 f = 6; sint64 g = 7; fixed32 h = 8; fixed64 i = 9;
  sfixed32 j = 10; sfixed64 k = 11; float l = 12; double m = 13; string n = 14; bytes o = 15;
  google.protobuf.Timestamp p = 16; E q = 17; google.protobuf.StringValue r = 18; Inner s = 19;
  repeated sint32 t = 20; repeated Inner u = 21;
  map<string, Inner> v = 22;
}
"""
AVRO_TYPES = bytes([10, 0, 0, 0, 18 | 2 << 6, 0, 0, 0])
"""A string; a record whose one field is that, in the first column. As `any_types` of native/fuzz reads it."""
PROTOBUF_TYPES = bytes([13, 0, 18, 7, 0, 1, 0, 13, 0, 255, 1])
"""A string; a message whose field 1 is that, in the column for texts."""

TEXTS = ("", "x", "ä\u2028😀", "abcdefghijklmno", "0123456789abcdef", "y" * 40)
MICROS = (-62_135_596_800_000_000, 253_402_300_799_999_999, 1_700_000_000_123_456, 2**60)


def _integer(random: Random, bits: int) -> int:
    extreme = (0, -1, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)))
    drawn = random.getrandbits(random.randrange(1, bits)) * random.choice((1, -1))
    return random.choice((*extreme, drawn, drawn))


def _float(random: Random) -> float:
    return random.choice((0.0, -0.0, 1.5, float("inf"), float("nan"), random.uniform(-1e6, 1e6)))


def _keys(random: Random) -> list[str]:
    return random.sample(TEXTS, random.randrange(4))


def rows(random: Random) -> bytes:
    """Some documents, with a carriage return between them."""
    odd = random.choice(ODDS)
    schema = parse_ddl(ROWS)
    found = (documents.record(random, schema, at, odd) or b"" for at in range(random.choice((1, 1, 2, 5))))
    return b"\r".join(found)


def avro_value(random: Random) -> bytes:
    """One record of every type, as fastavro writes it."""
    inner = lambda: random.choice((None, {"x": random.choice(TEXTS), "y": random.random() < 0.5}))  # noqa: E731
    branches = (None, random.choice(TEXTS), _integer(random, 64), b"abc")
    record: dict[str, Any] = {
        **{"a": random.choice((None, *TEXTS)), "b": random.choice((None, _integer(random, 64)))},
        **{"c": _integer(random, 32), "d": _float(random), "e": _float(random), "f": random.random() < 0.5},
        **{"g": random.choice((-719_162, 2_932_896, 2_932_897, 20_000)), "h": random.choice(MICROS)},
        **{"i": random.choice(MICROS) // 1_000, "j": _integer(random, 23).to_bytes(4, "big", signed=True)},
        **{
            "k": _integer(random, 62).to_bytes(17, "big", signed=True),
            "l": random.randbytes(random.randrange(30)),
        },
        **{"m": inner(), "n": [inner() for _ in range(random.randrange(4))]},
        "o": {key: random.choice((None, _integer(random, 64))) for key in _keys(random)},
        **{"p": random.choice(("A", "BCD")), "q": random.randbytes(16), "r": random.randbytes(3)},
        "over": [
            {"x": {key: random.choice(branches) for key in _keys(random)}, "y": _integer(random, 40)}
            for _ in range(random.randrange(2))
        ],
    }
    written = io.BytesIO()
    fastavro.schemaless_writer(written, fastavro.parse_schema(dict(AVRO)), record)
    return written.getvalue()


@cache
def _message() -> Any:
    return Classes(compiled({"t.proto": PROTOBUF}))["t.R"]


def protobuf_value(random: Random) -> bytes:
    """One message of some of the fields, as Protobuf writes it."""
    inner = lambda: {"x": random.choice(TEXTS), "y": random.random() < 0.5}  # noqa: E731
    record: dict[str, Any] = {
        random.choice(("a", "b", "over")): None,
        **{name: _integer(random, 32) for name in ("f", "j")},
        **{name: _integer(random, 64) for name in ("c", "g", "k")},
        **{name: abs(_integer(random, 32)) for name in ("d", "h")},
        **{name: abs(_integer(random, 64)) for name in ("e", "i")},
        **{"l": _float(random), "m": _float(random), "n": random.choice(TEXTS), "o": random.randbytes(5)},
        "p": {"seconds": random.choice(MICROS) // 1_000_000, "nanos": random.choice((0, 1_000, 7))},
        **{"q": random.choice((0, 7, -1, 5)), "r": {"value": random.choice(TEXTS)}, "s": inner()},
        **{"t": [_integer(random, 32) for _ in range(random.randrange(4))]},
        **{"u": [inner() for _ in range(random.randrange(3))], "v": {key: inner() for key in _keys(random)}},
    }
    one_of = {"a": True, "b": _integer(random, 32), "over": b"abc"}
    kept = {name: one_of.get(name, value) for name, value in record.items() if random.random() < 0.6}
    written: bytes = _message()(**kept).SerializeToString(deterministic=True)
    return written


def _by_schema(value: Callable[[Random], bytes], types: bytes) -> Callable[[Random], bytes]:
    """Pieces, each with its length before it: types, mostly those of the target; then values."""

    def make(random: Random) -> bytes:
        odd = random.choice(ODDS)
        pieces = [types if random.random() < 0.05 else b""]
        for _ in range(random.choice((1, 1, 2, 5))):
            one = value(random)
            pieces.append(damaged(random, one) if random.random() < odd else one)
        return b"".join(bytes([len(one)]) + one for one in pieces if len(one) <= PIECE_BYTES_MAX)

    return make


MAKERS: Mapping[str, Callable[[Random], bytes]] = {
    "rows": rows,
    "avro": _by_schema(avro_value, AVRO_TYPES),
    "protobuf": _by_schema(protobuf_value, PROTOBUF_TYPES),
}


def inputs(target: str) -> Iterator[bytes]:
    """Those of this target; always the same."""
    random = Random(target)
    for _ in range(SEEDS):
        yield MAKERS[target](random)


def write(target: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for at, one in enumerate(inputs(target)):
        (folder / f"seed-{at:03}").write_bytes(one)

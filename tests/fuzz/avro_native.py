"""Records of Avro by random schemas, whole or damaged: both decoders make the same of each."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Any

import numpy as np

from control_topic.messages import SourcePartition
from participant.records.avro.decoder import AvroDecoder
from participant.records.avro.native import NativeAvro
from participant.records.avro.schema import fingerprint_of
from participant.records.avro.schemas import GivenSchemas
from participant.records.by_schema.framing import MARK, SchemaKey
from participant.records.errors import UnknownSchema
from participant.records.headers import pack
from participant.records.port import Decoded, Decoder
from participant.records.raw import RawBatch, Values
from table.schema import parse_ddl
from tests.fuzz.target import Target, damaged, noise, require
from tests.json_decoders import compiled

ODDS = (0.0, 0.02, 0.3)
DEPTH_MAX = 3
FRAMINGS = ("confluent", "confluent", "single_object", "none")
HEADER = "__value_schema_id"
Case = tuple[str, list[str], str, list[bytes | None], list[bytes]]
"""Framing, schemas, columns, values, headers."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of Avro, a column that takes it (empty: none does), and its values by chance, as bytes."""

    avro: Any
    ddl: str
    write: Callable[[Random], bytes]


def number(random: Random, value: int) -> bytes:
    """Variable-length, zig-zag; now and then with more bytes than it needs."""
    value = (value << 1) ^ (value >> 63)
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    if random.random() < 0.02 and len(written) < 9:
        written += bytes([value | 0x80, *[0x80] * random.randrange(9 - len(written)), 0])
        return bytes(written)
    return bytes([*written, value])


def _number(limits: Sequence[int], bits: int) -> Callable[[Random], bytes]:
    def write(random: Random) -> bytes:
        drawn = random.getrandbits(random.randrange(1, bits)) * random.choice((1, -1))
        return number(random, random.choice((0, *limits)) if random.random() < 0.05 else drawn)

    return write


def _sized(random: Random, data: bytes) -> bytes:
    return number(random, len(data)) + data


def _float(random: Random) -> float:
    return random.choice((0.0, -0.0, 1.5, -0.1, float("inf"), float("nan"), random.uniform(-1e6, 1e6)))


def _text(random: Random) -> bytes:
    text = random.choice(
        ("", "x", "ä\u2028😀", "abcdefghijklmno", "0123456789abcdef", "y" * random.randrange(99))
    )
    return _sized(random, text.encode())


INTS = _number((2**31 - 1, -(2**31), 2**31, 127, 128), 31)
LONGS = _number((2**63 - 1, -(2**63), 2**31, 2**56, -(2**55)), 63)
DAYS = _number((-719_162, 2_932_896, 2_932_897, -719_163), 21)
MICROS = _number((-62_135_596_800_000_000, 253_402_300_799_999_999, 253_402_300_800_000_000), 57)
MILLIS = _number((-62_135_596_800_000, 253_402_300_799_999, 2**60), 47)


def _logical(kind: str, name: str, ddl: str, write: Callable[[Random], bytes]) -> Kind:
    return Kind({"type": kind, "logicalType": name}, ddl, write)


PLAIN = (
    Kind("boolean", "BOOLEAN", lambda random: bytes([random.randrange(2)])),
    *(Kind("int", ddl, INTS) for ddl in ("INT", "BIGINT", "DOUBLE")),
    Kind("long", "BIGINT", LONGS),
    *(Kind("float", ddl, lambda random: struct.pack("<f", _float(random))) for ddl in ("FLOAT", "DOUBLE")),
    Kind("double", "DOUBLE", lambda random: struct.pack("<d", _float(random))),
    Kind("string", "STRING", _text),
    Kind("bytes", "BINARY", lambda random: _sized(random, noise(random, 30))),
    _logical("int", "date", "DATE", DAYS),
    _logical("long", "timestamp-millis", "TIMESTAMP", MILLIS),
    _logical("long", "timestamp-micros", "TIMESTAMP", MICROS),
    _logical("long", "local-timestamp-millis", "TIMESTAMP_NTZ", MILLIS),
    _logical("long", "local-timestamp-micros", "TIMESTAMP_NTZ", MICROS),
    _logical("long", "timestamp-nanos", "BIGINT", LONGS),
    _logical("int", "time-millis", "INT", INTS),
    _logical("string", "uuid", "STRING", _text),
    Kind("null", "", lambda _random: b""),
)


def _decimal(random: Random, name: str) -> Kind:
    size = random.choice((0, 0, 1, 9, 16, 17))
    digits = random.randint(1, {1: 2, 9: 21}.get(size, 30))
    scale = random.randint(0, digits)
    more = random.randint(0, 8)
    ddl = f"DECIMAL({digits + more + random.randint(0, 38 - digits - more)},{scale + more})"
    said = {"logicalType": "decimal", "precision": digits, "scale": scale}
    if not size:
        return Kind({"type": "bytes", **said}, ddl, lambda one: _sized(one, _unscaled(one, digits, 0)))
    fixed = {"type": "fixed", "name": name, "size": size, **said}
    return Kind(fixed, ddl, lambda one: _unscaled(one, digits, size))


def _unscaled(random: Random, digits: int, size: int) -> bytes:
    """In `size` bytes, or 0: in as many as it needs, or more."""
    drawn = random.randrange(10**digits)
    value = random.choice((0, 10**digits - 1, drawn, drawn, 10**digits)) * random.choice((1, -1))
    count = size or value.bit_length() // 8 + 1 + random.choice((0, 0, 5))
    whole = value.to_bytes(max(count, 20), "big", signed=True)
    return whole[-count:]


def _named(random: Random, name: str) -> Kind:
    symbols = ["A", "BC", "D" * 20][: random.randint(1, 3)]
    size = random.choice((1, 3, 16))
    uuid = {"type": "fixed", "name": name, "size": 16, "logicalType": "uuid"}
    return random.choice(
        (
            Kind(
                {"type": "enum", "name": name, "symbols": symbols},
                "STRING",
                lambda one: number(one, one.randrange(len(symbols))),
            ),
            Kind({"type": "fixed", "name": name, "size": size}, "BINARY", lambda one: one.randbytes(size)),
            Kind(uuid, random.choice(("STRING", "BINARY")), lambda one: one.randbytes(16)),
            _decimal(random, name),
        )
    )


def _blocks(random: Random, items: list[bytes]) -> bytes:
    """In one block or several, with their sizes or without."""
    out = b""
    while items:
        count = random.randint(1, len(items))
        block, items = b"".join(items[:count]), items[count:]
        sized = random.random() < 0.3
        out += number(random, -count) + number(random, len(block)) if sized else number(random, count)
        out += block
    return out + b"\0"


def kind_of(random: Random, name: str, depth: int = 0) -> Kind:
    """A type by chance; `name` is for types that want one."""
    which = random.randrange(4 if depth >= DEPTH_MAX else 10)
    if which < 3:
        return random.choice(PLAIN)
    if which == 3:
        return _named(random, name)
    inner = kind_of(random, f"{name}_", depth + 1)
    if which in (4, 5) and not isinstance(inner.avro, list) and inner.avro != "null":
        return _nullable(inner, null_at=which - 4)
    if which == 6 and not isinstance(inner.avro, list) and inner.avro not in ("null", "long"):
        branches = [inner, Kind("long", "", LONGS), Kind("null", "", lambda _random: b"")]
        return Kind([one.avro for one in branches], "", lambda one: _branch(one, branches))
    if which in (6, 7) and inner.avro != "null":
        ddl = inner.ddl and f"ARRAY<{inner.ddl}>"
        array = {"type": "array", "items": inner.avro}
        return Kind(array, ddl, lambda one: _blocks(one, [inner.write(one) for _ in range(one.randrange(4))]))
    if which == 8:
        return _map(inner)
    return _record(random, name, inner, depth)


def _nullable(inner: Kind, *, null_at: int) -> Kind:
    def write(random: Random) -> bytes:
        null = random.random() < 0.3
        return number(random, null_at if null else 1 - null_at) + (b"" if null else inner.write(random))

    return Kind(["null", inner.avro] if null_at == 0 else [inner.avro, "null"], inner.ddl, write)


def _branch(random: Random, branches: Sequence[Kind]) -> bytes:
    at = random.randrange(len(branches))
    return number(random, at) + branches[at].write(random)


def _map(inner: Kind) -> Kind:
    def write(random: Random) -> bytes:
        keys = [b"", b"a", "ä".encode(), b"k" * 20, *[f"k{at}".encode() for at in range(12)]]
        chosen = random.sample(keys, random.choice((0, 1, 3, 12)))
        if random.random() < 0.03:
            chosen += chosen[:1]
        return _blocks(random, [_sized(random, key) + inner.write(random) for key in chosen])

    return Kind({"type": "map", "values": inner.avro}, inner.ddl and f"MAP<STRING, {inner.ddl}>", write)


def _record(random: Random, name: str, inner: Kind, depth: int) -> Kind:
    other = kind_of(random, f"{name}o", depth + 1)
    made = {"x": inner, "y": Kind("int", "INT", INTS), "z": other}
    fields = [{"name": one, "type": kind.avro} for one, kind in made.items()]
    wanted = [f"{one}: {kind.ddl}" for one, kind in made.items() if kind.ddl and random.random() < 0.8]
    if random.random() < 0.3:
        wanted.append("absent: BIGINT")
    if "y: INT" in wanted and random.random() < 0.5:
        wanted[wanted.index("y: INT")] = "y: INT NOT NULL"
    random.shuffle(wanted)
    return Kind(
        {"type": "record", "name": name, "fields": fields},
        f"STRUCT<{', '.join(wanted)}>" if wanted else "",
        lambda one: b"".join(kind.write(one) for kind in made.values()),
    )


def make_batch(random: Random, size: int) -> Case:
    """Two schemas of the same fields, or of some of them; columns; values by either, damaged or not."""
    kinds = {f"f{at}": kind_of(random, f"t{at}") for at in range(random.randint(1, 6))}
    kinds["id"] = Kind("string", "STRING", _text)
    columns = {name: kind.ddl for name, kind in kinds.items() if kind.ddl and random.random() < 0.8}
    columns["id"] = "STRING"
    if random.random() < 0.3:
        columns["id"] += " NOT NULL"
    framing = random.choice(FRAMINGS)
    schemas: list[list[str]] = []
    for _ in range(1 if framing == "none" else 2):
        names = [name for name in kinds if name == "id" or random.random() < 0.8]
        random.shuffle(names)
        schemas.append(names)
    texts = [
        json.dumps(
            {
                "type": "record",
                "name": f"r{at}",
                "fields": [{"name": name, "type": kinds[name].avro} for name in names],
            }
        )
        for at, names in enumerate(schemas)
    ]
    odd = random.choice(ODDS)
    values: list[bytes | None] = []
    headers: list[bytes] = []
    for _ in range(size):
        which = random.randrange(len(schemas))
        datum = b"".join(kinds[name].write(random) for name in schemas[which])
        value, header = framed(random, framing, which, texts[which], datum)
        values.append(damaged(random, value) if random.random() < odd else value)
        headers.append(header)
        if random.random() < odd / 10:
            values[-1] = random.choice((None, b""))
    return framing, texts, ", ".join(f"{name} {ddl}" for name, ddl in columns.items()), values, headers


def framed(random: Random, framing: str, which: int, text: str, datum: bytes) -> tuple[bytes, bytes]:
    """A value and its headers, packed."""
    if framing == "single_object":
        return MARK + fingerprint_of(text) + datum, b""
    if framing == "none":
        return datum, b""
    key = b"\0" + which.to_bytes(4, "big") if random.random() < 0.97 else b"\0\0\0\0\x63"
    if random.random() < 0.5:
        return key + datum, b""
    return datum, pack([("other", b"x"), (HEADER, key), (HEADER, None)][random.randrange(2) :])


class _Registry:
    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts

    def find(self, key: SchemaKey) -> tuple[str, ...]:
        if isinstance(key, int) and key < len(self._texts):
            return (self._texts[key],)
        raise UnknownSchema("the registry does not know it")


@lru_cache(maxsize=16)
def _decoders(framing: str, texts: tuple[str, ...], ddl: str) -> tuple[NativeAvro, Decoder]:
    schemas: Any = _Registry(texts)
    if framing != "confluent":
        given = texts[0] if framing == "none" else f"[{', '.join(texts)}]"
        schemas = GivenSchemas(given, by_fingerprint=framing == "single_object")
    schema = parse_ddl(ddl)
    return NativeAvro(schema, framing, schemas), AvroDecoder(schema, framing, schemas)


def check_batch(case: Case) -> int:
    """Both decoders over the batch; and the native one without the plain one's help."""
    framing, texts, ddl, values, headers = case
    if not compiled():
        return len(values)
    native, plain = _decoders(framing, tuple(texts), ddl)
    offsets = np.arange(len(values), dtype=np.int64) * 3 + 10**6
    batch = RawBatch(
        partition=SourcePartition("events", 3),
        offsets=offsets,
        timestamps_ms=offsets,
        values=Values.of(values),
        headers=Values.of(headers) if any(headers) else None,
    )
    found, wanted = native.decode(batch), plain.decode(batch)
    found.table.validate(full=True)
    require(found.table.schema == wanted.table.schema, "the columns are not the schema's", ddl)
    strange = [
        at for at, pair in enumerate(zip(fates(found), fates(wanted), strict=True)) if len({*pair}) > 1
    ]
    require(
        not strange,
        "another fate than by the plain decoder",
        (ddl, texts, [values[at] for at in strange[:3]]),
    )
    require(_refused(native, batch) == sorted(wanted.rejects.by_place()), "refused, and a row", (ddl, texts))
    return len(values)


def fates(decoded: Decoded) -> list[str]:
    count = decoded.table.num_rows + len(decoded.rejects)
    kept = range(count) if decoded.kept is None else decoded.kept.tolist()
    fates = decoded.rejects.by_place()
    fates.update(zip(kept, map(repr, decoded.table.to_pylist()), strict=True))
    return [fates[place] for place in range(count)]


def _refused(decoder: NativeAvro, batch: RawBatch) -> list[int]:
    """By the native decoder alone, which has learned the schemas."""
    named = (batch.headers.data, batch.headers.starts) if batch.headers is not None else (None, None)
    (_, refused), _ = decoder._native.decode(batch.values.data, batch.values.starts, *named)
    return np.frombuffer(refused, dtype=np.int64).tolist()


TARGETS = (
    Target(
        name="avro, natively",
        promise="the native decoder of Avro and the plain one make the same of every record",
        make=make_batch,
        check=check_batch,
        size=200,
        seeds=30,
    ),
)

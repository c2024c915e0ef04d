"""Small records that become much, and what decoding them takes: each is decoded in a process of its own."""

from __future__ import annotations

import json
import multiprocessing
import resource
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

import pyarrow as pa

from participant.records.kinds import format_made
from participant.records.port import Decoder, RecordSpec, decoded_parts
from table.schema import table_schema
from tests.decoding import batch
from tests.proto_files import compiled, encoded

FIELDS = 400
ADDRESS_SPACE_BYTES = 6 << 30
"""Beyond it the process ends with an error, and not the machine's others."""
DEADLINE_S = 600.0
LOADED = (
    "tests.bombs",
    "participant.records.avro.decoder",
    "participant.records.json.decoder",
    "participant.records.protobuf.decoder",
)
"""Modules that the server imports from which each process is forked: importing them took most of a test."""
STATUS = Path("/proc/self/status")
DDL = "id STRING, items ARRAY<STRUCT<b: BOOLEAN, " + ", ".join(f"c{n}: STRING" for n in range(FIELDS)) + ">>"
MAP_DDL = DDL.replace("ARRAY<", "MAP<STRING, ")
NAME = "A" * 100_000


@dataclass(frozen=True, kw_only=True)
class Bomb:
    """Records of one format, and the columns that they go into."""

    ddl: str
    values: Callable[[int], list[bytes]]
    """By the number of items in each record."""
    spec: Mapping[str, str]


@dataclass(slots=True)
class Played:
    """What came of them."""

    rows: int = 0
    reasons: list[str] = field(default_factory=list)
    rejects: int = 0
    grown_bytes: int = 0
    """Peak resident memory, less what the process had before."""
    seconds: float = 0.0
    error: str = ""


def zigzag(number: int) -> bytes:
    """A number that is not negative, as Avro spells it."""
    return varint(number << 1)


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def avro(items: object) -> dict[str, str]:
    fields = [{"name": "id", "type": "string"}, {"name": "items", "type": items}]
    text = json.dumps({"type": "record", "name": "R", "fields": fields})
    return {"format": "avro", "framing": "none", "schema_text": text}


def protobuf(items: str, more: str = "") -> dict[str, str]:
    fields = " ".join(f"optional string c{n} = {n + 2};" for n in range(FIELDS))
    text = (
        f'syntax = "proto3"; message I {{ optional bool b = 1; {fields} }} {more} '
        f"message R {{ string id = 1; {items} items = 2; }}"
    )
    schema = encoded(compiled({"r.proto": text}))
    return {"format": "protobuf", "framing": "none", "schema_text": schema, "message": "R"}


ITEM = {"type": "record", "name": "I", "fields": [{"name": "b", "type": "boolean"}]}
ENUM = {"type": "enum", "name": "E", "symbols": [NAME]}
BIG = {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 0}
JSON = {"format": "json"}

BOMBS: Mapping[str, Callable[[], Bomb]] = {
    "json, objects of no field in an array": lambda: Bomb(
        ddl=DDL,
        spec=JSON,
        values=lambda count: [b'{"id":"a","items":[' + b",".join([b"{}"] * count) + b"]}"],
    ),
    "json, nulls in an array": lambda: Bomb(
        ddl=DDL,
        spec=JSON,
        values=lambda count: [b'{"id":"a","items":[' + b",".join([b"null"] * count) + b"]}"],
    ),
    "json, objects of no field in a map": lambda: Bomb(
        ddl=MAP_DDL,
        spec=JSON,
        values=lambda count: [
            b'{"id":"a","items":{' + b",".join(b'"%d":{}' % n for n in range(count)) + b"}}"
        ],
    ),
    "avro, records of a byte in an array": lambda: Bomb(
        ddl=DDL,
        spec=avro({"type": "array", "items": ITEM}),
        values=lambda count: [b"\x02a" + zigzag(count) + b"\0" * count + b"\0"],
    ),
    "avro, records of a byte in a map": lambda: Bomb(
        ddl=MAP_DDL,
        spec=avro({"type": "map", "values": ITEM}),
        values=lambda count: [
            b"\x02a" + zigzag(count) + b"".join(b"\x08%04x\0" % n for n in range(count)) + b"\0"
        ],
    ),
    "avro, nulls of a decimal in an array": lambda: Bomb(
        ddl="id STRING, items ARRAY<DECIMAL(38,0)>",
        spec=avro({"type": "array", "items": ["null", BIG]}),
        values=lambda count: [b"\x02a" + zigzag(400 * count) + b"\0" * (400 * count) + b"\0"],
    ),
    "avro, long symbols of an enum": lambda: Bomb(
        ddl="id STRING, items ARRAY<STRING>",
        spec=avro({"type": "array", "items": ENUM}),
        values=lambda count: [b"\x02a" + zigzag(count) + b"\0" * count + b"\0"],
    ),
    "protobuf, messages of no byte": lambda: Bomb(
        ddl=DDL, spec=protobuf("repeated I"), values=lambda count: [b"\x0a\x01a" + b"\x12\0" * count]
    ),
    "protobuf, messages of no byte in a map": lambda: Bomb(
        ddl=MAP_DDL,
        spec=protobuf("map<string, I>"),
        values=lambda count: [b"\x0a\x01a" + b"".join(b"\x12\x06\x0a\x04%04x" % n for n in range(count))],
    ),
    "protobuf, packed numbers": lambda: Bomb(
        ddl="id STRING, items ARRAY<DECIMAL(38,0)>",
        spec=protobuf("repeated uint64"),
        values=lambda count: [b"\x0a\x01a\x12" + varint(400 * count) + b"\0" * (400 * count)],
    ),
    "protobuf, long names of an enum": lambda: Bomb(
        ddl="id STRING, items ARRAY<STRING>",
        spec=protobuf("repeated E", f"enum E {{ {NAME[:30_000]} = 0; }}"),
        values=lambda count: [b"\x0a\x01a\x12" + varint(count) + b"\0" * count],
    ),
}
"""What the records hold -> how they are made."""


def play(name: str, decoder: str, count: int, records: int) -> Played:
    """Decode so many records with so many items each, as a worker does: a part, and then the next."""
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload([*LOADED])
    here, there = processes.Pipe(duplex=False)
    process = processes.Process(target=_send, args=(there, name, decoder, count, records))
    process.start()
    there.close()
    try:
        if not here.poll(DEADLINE_S):
            process.kill()
            return Played(error=f"the process did not end within {DEADLINE_S:.0f} s")
        played: Played = here.recv()
        return played
    except EOFError:
        process.join()
        return Played(error=f"the process ended with {process.exitcode}")
    finally:
        process.join()
        here.close()


def _send(there: Connection, name: str, decoder: str, count: int, records: int) -> None:
    there.send(_played(name, decoder, count, records))


def decoder_of(name: str, decoder: str) -> Decoder:
    """Of the records of a bomb. `decoder`: as `record.decoder`."""
    bomb = BOMBS[name]()
    spec = RecordSpec(**bomb.spec, decoder=decoder)  # type: ignore[arg-type]
    made: Decoder = format_made(spec.format, spec).values(table_schema(bomb.ddl, kafka_columns=False))
    return made


def _played(name: str, decoder: str, count: int, records: int) -> Played:
    bomb = BOMBS[name]()
    decode = decoder_of(name, decoder)
    raw = batch([*bomb.values(count) * records])
    list(decoded_parts(decode.decode, raw.head(0)))  # what is imported late is here now
    played = Played()
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE_BYTES, ADDRESS_SPACE_BYTES))
    before = _status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    began = time.monotonic()
    try:
        for part in decoded_parts(decode.decode, raw):
            played.rows += part.table.num_rows
            played.rejects += len(part.rejects)
            played.reasons = sorted({*played.reasons, *part.rejects.by_place().values()})
            del part
            pa.default_memory_pool().release_unused()
    except MemoryError as error:
        played.error = repr(error)
    played.seconds = time.monotonic() - began
    played.grown_bytes = _status("VmHWM") - before
    return played


def _status(name: str) -> int:
    """Of this process, in bytes."""
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1]) * 1_024

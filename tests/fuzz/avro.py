"""Records of Avro, whole or damaged: each one row with its own values, or one reject. Beside fastavro."""

from __future__ import annotations

import io
import json
import math
from functools import lru_cache
from random import Random
from typing import Any

import fastavro
import numpy as np

from control_topic.messages import SourcePartition
from participant.records.avro.format import AvroFormat
from participant.records.port import Decoder, RecordSpec
from participant.records.raw import RawBatch, Values
from table.schema import parse_ddl
from tests.fuzz.target import Target, damaged, require

ODDS = (0.0, 0.01, 0.3)
ALONE_MAX = 3
FIRST_OFFSET = 10**6
SYMBOLS = ("A", "B", "C")

Type = tuple[Any, str, Any]
"""In Avro, as a column (empty: none takes it), and a value by chance."""


def _plain(random: Random) -> Type:
    return random.choice(
        (
            ("boolean", "BOOLEAN", random.random() < 0.5),
            ("int", "INT", random.choice((0, -1, 2**31 - 1, -(2**31), random.getrandbits(20)))),
            ("long", "BIGINT", random.choice((0, -1, 2**63 - 1, -(2**63), random.getrandbits(50)))),
            ("float", "FLOAT", random.choice((0.0, -0.5, 1.5, math.inf))),
            ("double", "DOUBLE", random.choice((0.0, 0.1, -1e300, math.inf))),
            ("string", "STRING", random.choice(("", "x", "ä\u2028😀", "y" * random.randrange(200)))),
            ("bytes", "BINARY", random.randbytes(random.choice((0, 1, 5, 150)))),
        )
    )


def _type(random: Random, name: str, depth: int) -> Type:
    """A type and a value of it; `name` is for types that want one."""
    kind = random.randrange(4 if depth > 2 else 10)
    if kind < 3:
        return _plain(random)
    if kind == 3:
        return random.choice(
            (
                ({"type": "enum", "name": name, "symbols": list(SYMBOLS)}, "STRING", random.choice(SYMBOLS)),
                ({"type": "fixed", "name": name, "size": 3}, "BINARY", random.randbytes(3)),
                (["long", "string", "null"], "", random.choice((5, "s", None))),
            )
        )
    inner, column, value = _type(random, f"{name}_", depth + 1)
    if kind in (4, 5) and not isinstance(inner, list):
        shown = None if random.random() < 0.3 else value
        return (["null", inner] if kind == 4 else [inner, "null"]), column, shown
    if kind in (6, 7):
        items = [value] * random.choice((0, 1, 3))
        return {"type": "array", "items": inner}, column and f"ARRAY<{column}>", items
    if kind == 8:
        entries = {key: value for key in random.sample(("", "a", "ä"), random.randrange(4))}
        return {"type": "map", "values": inner}, column and f"MAP<STRING,{column}>", entries
    fields = [{"name": "x", "type": inner}, {"name": "y", "type": "int"}]
    struct = column and f"STRUCT<x: {column}, y: INT>"
    return {"type": "record", "name": name, "fields": fields}, struct, {"x": value, "y": 7}


def make_batch(random: Random, size: int) -> tuple[str, str, list[bytes | None]]:
    """A schema, columns, and a batch of values: one row again and again, each damaged or not."""
    made = {f"f{number}": _type(random, f"t{number}", 0) for number in range(random.randint(1, 6))}
    made["id"] = ("string", "STRING", "e")
    listed = [{"name": name, "type": avro} for name, (avro, _, _) in made.items()]
    schema = {"type": "record", "name": "r", "fields": listed}
    columns = {
        name: ddl for name, (_, ddl, _) in made.items() if ddl and (name == "id" or random.random() < 0.8)
    }
    out = io.BytesIO()
    row = {name: value for name, (_, _, value) in made.items()}
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), row)
    odd, whole = random.choice(ODDS), out.getvalue()
    values = [damaged(random, whole) if random.random() < odd else whole for _ in range(size)]
    ddl = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    return json.dumps(schema), ddl, [*values]


@lru_cache(maxsize=16)
def _decoder(text: str, ddl: str) -> Decoder:
    spec = RecordSpec(format="avro", framing="none", schema_text=text)
    return AvroFormat(spec).values(parse_ddl(ddl))


def _batch(values: list[bytes | None]) -> RawBatch:
    offsets = FIRST_OFFSET + 3 * np.arange(len(values), dtype=np.int64)
    return RawBatch(
        partition=SourcePartition("events", 3),
        offsets=offsets,
        timestamps_ms=offsets,
        values=Values.of(values),
    )


def check_batch(case: tuple[str, str, list[bytes | None]]) -> int:
    """Each value against what fastavro makes of it."""
    text, ddl, values = case
    decoder, batch = _decoder(text, ddl), _batch(values)
    decoded = decoder.decode(batch)
    decoded.table.validate(full=True)
    require(decoded.table.schema == parse_ddl(ddl), "the columns are not the schema's", ddl)
    kept = range(len(values)) if decoded.kept is None else decoded.kept.tolist()
    rows = dict(zip(kept, decoded.table.to_pylist(), strict=True))
    rejects = {one.index: one for one in decoded.rejects}
    require(len(rejects) == len(decoded.rejects), "a record is rejected twice", values)
    parsed = fastavro.parse_schema(json.loads(text))
    for index, value in enumerate(values):
        require((index in rows) != (index in rejects), "neither a row nor a reject, or both", value)
        _compare(value or b"", parsed, rows.get(index))
    for index, one in rejects.items():
        require(one.offset == batch.offsets[index] and bool(one.reason), "a reject of another", values[index])
    for index in [*rejects, *rows][:ALONE_MAX]:
        alone = decoder.decode(_batch([values[index]]))
        require(
            alone.table.num_rows == (index in rows), "neighbours decide what becomes of it", values[index]
        )
    return len(values)


def _compare(value: bytes, parsed: Any, row: Any) -> None:
    """What fastavro cannot read is no row; what it reads and writes alike is one, with the same values."""
    source = io.BytesIO(value)
    try:
        read = fastavro.schemaless_reader(source, parsed)
    except (EOFError, IndexError, ValueError, OverflowError, MemoryError):
        require(row is None, "a row of what fastavro cannot read", value)
        return
    if source.tell() != len(value):
        require(row is None, "a row of what has more behind it", value)
    elif row is not None:
        same = all(_plainly(read[name]) == _plainly(found) for name, found in row.items())
        require(same, f"the row {row} where fastavro reads {read}", value)
    else:
        require(not _written_alike(read, parsed, value), "a reject of what is written like that", value)


def _written_alike(read: Any, parsed: Any, value: bytes) -> bool:
    out = io.BytesIO()
    try:
        fastavro.schemaless_writer(out, parsed, read)
    except (ValueError, TypeError, OverflowError):
        return False
    return out.getvalue() == value and not _beyond(read)


def _beyond(read: Any) -> bool:
    """Whether an int of 32 bits may be beyond them: fastavro does not look."""
    if isinstance(read, dict | list):
        return any(map(_beyond, read.values() if isinstance(read, dict) else read))
    return isinstance(read, int) and not -(2**31) <= read < 2**31


def _plainly(value: Any) -> Any:
    """Comparable: a map is pairs to Arrow, not a number is none."""
    if isinstance(value, dict):
        return sorted((key, _plainly(inner)) for key, inner in value.items())
    if isinstance(value, list):
        pairs = [_plainly(one) for one in value]
        return sorted(pairs) if pairs and all(isinstance(one, tuple) for one in value) else pairs
    if isinstance(value, tuple):
        return tuple(map(_plainly, value))
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


TARGETS = (
    Target(
        name="avro",
        promise="each record of Avro is one row with its own values, or one reject",
        make=make_batch,
        check=check_batch,
        size=300,
        seeds=30,
    ),
)

"""Records: every one is exactly one row with its own offset and values, or exactly one reject.

The reference reads one value at a time with Python's `json` and shares no code with the decoder. Where the
documentation leaves a spelling open (other names of infinity, half a surrogate pair or a number beyond DOUBLE
in a field that the schema does not name, very deep nesting), the record may be a row or a reject; a row must
hold the values all the same.
"""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from random import Random
from typing import Any

import numpy as np

from control_topic.messages import SourcePartition
from participant.decode import JsonDecoder, RawBatch
from participant.derive import Deriver
from table.port import TableLayout
from table.schema import parse_ddl
from tests.fuzz.target import Target, damaged, require

DDL = (
    "id STRING NOT NULL, n BIGINT, i INT, x DOUBLE, f FLOAT, ok BOOLEAN, price DECIMAL(9,2), day DATE, "
    "at TIMESTAMP, tags ARRAY<BIGINT>, who STRUCT<name: STRING, age: BIGINT>, more MAP<STRING, BIGINT>"
)
SCHEMA = parse_ddl(DDL)
DECODERS = {True: JsonDecoder(SCHEMA), False: JsonDecoder(parse_ddl(DDL.rpartition(", more")[0]))}
RECORDS = 1_000
PLACE = SourcePartition("events", 3)
BLANK = b" \t\r\n"
NUMBER = re.compile(rb"[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
UNDECIDED = object()
"""The record may be a row or a reject."""


class Refused(Exception):
    """The reference says reject."""


class Open(Exception):
    """The documentation leaves it open."""


# --- the reference ------------------------------------------------------------------------------------


class Pairs(list):  # type: ignore[type-arg]
    """An object's members, repeated ones included."""


def expected(value: bytes | None, *, maps: bool) -> Any:
    """The row as a dict, or UNDECIDED; raises `Refused`."""
    if value is None:
        raise Refused
    stripped = value.strip(BLANK)
    if not stripped.startswith(b"{") or not stripped.endswith(b"}") or b"\0" in stripped:
        raise Refused
    if re.search(rb"Inf|NaN|\\u[dD][89a-fA-F]|[\[{]{40}", stripped) or stripped.count(b"[{") > 40:
        return UNDECIDED
    try:
        document = json.loads(
            stripped.decode("utf-8"), object_pairs_hook=Pairs, parse_int=_Spelled, parse_float=_Spelled
        )
    except (ValueError, RecursionError):
        raise Refused from None
    if not isinstance(document, Pairs):
        raise Refused
    if any(math.isinf(float(number)) for number in NUMBER.findall(stripped)):
        return UNDECIDED
    fields = FIELDS if maps else {name: take for name, take in FIELDS.items() if name != "more"}
    try:
        row = _members(document, fields)
    except Open:
        return UNDECIDED
    if row["id"] is None:
        raise Refused
    return row


class _Spelled(str):
    """A number as it was spelled."""


def _members(pairs: Pairs, fields: dict[str, Callable[[Any], Any]]) -> dict[str, Any]:
    found: dict[str, Any] = dict.fromkeys(fields)
    seen: set[str] = set()
    for name, value in pairs:
        if name in fields:
            if name in seen:
                raise Refused
            seen.add(name)
            found[name] = None if value is None else fields[name](value)
    return found


def _string(value: Any) -> str:
    if not isinstance(value, str) or isinstance(value, _Spelled):
        raise Refused
    return value


def _whole(bits: int) -> Callable[[Any], int]:
    def take(value: Any) -> int:
        if not isinstance(value, _Spelled) or not re.fullmatch(r"-?[0-9]+", value) or len(value) > 20:
            raise Refused
        if not -(2 ** (bits - 1)) <= int(value) < 2 ** (bits - 1):
            raise Refused
        return int(value)

    return take


def _double(value: Any) -> float:
    if not isinstance(value, _Spelled):
        raise Refused
    if math.isinf(float(value)):
        raise Refused
    return float(value)


def _single(value: Any) -> float:
    wide = _double(value)
    if abs(wide) > 3.4e38:
        raise Open  # where a single ends is rounding's matter, which other tests state
    return float(struct.unpack("<f", struct.pack("<f", wide))[0])


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Refused
    return value


def _price(value: Any) -> Decimal:
    if not isinstance(value, str):
        raise Refused
    if not re.fullmatch(r"-?[0-9]{1,30}(\.[0-9]{1,30})?", value):
        raise Open
    number = Decimal(value)
    if abs(number) >= 10**7 or number != round(number, 2):
        raise Refused
    return number.quantize(Decimal("0.01"))


def _day(value: Any) -> date:
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", _string(value), re.ASCII):
        raise Refused
    try:
        return date.fromisoformat(value)
    except ValueError:
        raise Refused from None


def _moment(value: Any) -> datetime:
    if not re.fullmatch(r"[0-9]{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z", _string(value), re.ASCII):
        raise Open
    try:
        return datetime.fromisoformat(value).astimezone(UTC)
    except ValueError:
        raise Refused from None


def _list(value: Any) -> list[int | None]:
    if not isinstance(value, list) or isinstance(value, Pairs):
        raise Refused
    return [None if item is None else _whole(64)(item) for item in value]


def _who(value: Any) -> dict[str, Any]:
    if not isinstance(value, Pairs):
        raise Refused
    return _members(value, {"name": _string, "age": _whole(64)})


def _map(value: Any) -> list[tuple[str, int | None]]:
    if not isinstance(value, Pairs) or len({name for name, _ in value}) != len(value):
        raise Refused
    return [(name, None if item is None else _whole(64)(item)) for name, item in value]


FIELDS: dict[str, Callable[[Any], Any]] = {
    "id": _string,
    "n": _whole(64),
    "i": _whole(32),
    "x": _double,
    "f": _single,
    "ok": _truth,
    "price": _price,
    "day": _day,
    "at": _moment,
    "tags": _list,
    "who": _who,
    "more": _map,
}

# --- the inputs ---------------------------------------------------------------------------------------

TEXTS = ("", "a", "b,c:d", '"', "\\", "\n", "\x00", "é", "☃", "😀", "}\n{", "null", "{}", "x" * 300)
NUMBERS = ("0", "-0", "1", "-7", "2147483648", "9223372036854775807", "9223372036854775808", "1e3", "1.0")
NUMBERS += ("0.1", "1e308", "1e309", "-1e-400", "3.4e38", "1e39", "12345.67", "123.456", "99999999.99")
NUMBERS += ("00012345678901234567890", "1" * 60, "12.5E+1", "-0.0")
TIMES = (
    "2026-12-31",
    "2026-02-30",
    "2026-12-31T23:59:59Z",
    "2026-12-31T23:59:59.123456Z",
    "12:00",
    "0001-01-01",
)
TIMES += (
    "2026-12-31T24:00:00Z",
    "9999-12-31T23:59:59.999999Z",
    "2026-12-31 23:59",
    "2026-12-31T23:59:59+02:00",
)
RAW: tuple[bytes | None, ...] = (
    None,
    b"",
    b" ",
    b"\n",
    b"null",
    b"[]",
    b"{}",
    b"0",
    b'"a"',
    b'{"id":"a"}{"id":"b"}',
    b'{"id":"a"}\n{"id":"b"}',
    b'{"id":"a"',
    b'"id":"a"}',
    b'{"id":"a\nb"}',
    b'{"id":"a"},',
    b'\xef\xbb\xbf{"id":"a"}',
    b'{"id":"\xff"}',
    b'{"id":"\xed\xa0\x80"}',
    b'{"id":"\\ud800"}',
    b'{"id":"\\ud83d\\ude00"}',
    b'{"id":"a","id":"b"}',
    b'{"id":"a","who":{"name":"x","name":"y"}}',
    b'{"id":"a","x":NaN}',
    b'{"id":"a","x":-Infinity}',
    b'{"id":"a",}',
    b'{"id":"a"/**/}',
    b"{'id':'a'}",
    b'{"id":"a","z":' + b"[" * 500 + b"]" * 500 + b"}",
    b'{"id":"a","z":' + b'{"z":' * 60 + b"1" + b"}" * 60 + b"}",
)


def _scalar(random: Random) -> str:
    """A JSON text of any kind."""
    return random.choice(
        (
            "null",
            "true",
            "false",
            random.choice(NUMBERS),
            str(random.randrange(-(10**6), 10**6)),
            json.dumps(random.choice(TEXTS), ensure_ascii=random.random() < 0.5),
            json.dumps(random.choice(TIMES)),
            json.dumps(random.choice(NUMBERS)),
            "[]",
            "{}",
            "[1, null, 2]",
            '{"name": "é", "age": 3, "other": [{}]}',
            '{"k": 1, "": null}',
        )
    )


FITTING: dict[str, Callable[[Random], str]] = {
    "n": lambda r: str(r.randrange(-(2**63), 2**63)),
    "i": lambda r: str(r.randrange(-(2**31), 2**31)),
    "x": lambda r: repr(r.uniform(-1e9, 1e9)),
    "f": lambda r: repr(r.uniform(-1e3, 1e3)),
    "ok": lambda r: r.choice(("true", "false", "null")),
    "price": lambda r: f"{r.randrange(10**7)}.{r.randrange(100):02}",
    "day": lambda r: f'"2026-{r.randrange(1, 13):02}-{r.randrange(1, 29):02}"',
    "at": lambda r: f'"2026-01-02T03:04:{r.randrange(60):02}.{r.randrange(10**6):06}Z"',
    "tags": lambda r: json.dumps([r.randrange(9)] * r.randrange(4)),
    "who": lambda r: json.dumps({"name": r.choice(TEXTS), "age": r.randrange(99)}, ensure_ascii=False),
    "more": lambda r: json.dumps({str(k): k for k in range(r.randrange(3))}),
    "other": _scalar,
}


def _value(random: Random, number: int, odd: float) -> bytes | None:
    """A record's value: its number is in it, so that a row can be told from its neighbours."""
    if random.random() < odd / 3:
        return random.choice(RAW)
    members = [f'"id":{json.dumps(f"r{number}")}']
    for name, fitting in FITTING.items():
        if random.random() < 0.6:
            text = _scalar(random) if random.random() < odd / 12 else fitting(random)
            members.append(f"{json.dumps(name)}:{text}")
    random.shuffle(members)
    between = random.choice((",", ", ", ",\n", " ,\r\n\t"))
    raw = ("{" + between.join(members) + "}").encode("utf-8", "surrogatepass")
    if random.random() < 0.1:
        raw = random.choice((b" ", b"\n", b"\r\n\t")) + raw + random.choice((b"", b" ", b"\n"))
    return damaged(random, raw) if random.random() < odd / 3 else raw


# --- the comparison -----------------------------------------------------------------------------------


def _same(row: Any, wanted: Any) -> bool:
    if isinstance(wanted, float) and isinstance(row, float):
        return row == wanted or (math.isnan(row) and math.isnan(wanted))
    if isinstance(wanted, dict) and isinstance(row, dict):
        return row.keys() == wanted.keys() and all(_same(row[k], wanted[k]) for k in wanted)
    return type(row) is type(wanted) and bool(row == wanted)


def decoder(random: Random) -> int:
    """One batch of records, compared record by record."""
    maps = random.random() < 0.3
    odd = random.choice((0.0, 0.003, 0.03, 0.5))
    count = RECORDS // 10 if odd == 0.5 else RECORDS
    values = [_value(random, number, odd) for number in range(count)]
    offsets = np.cumsum(np.array([random.choice((1, 1, 1, 5)) for _ in range(count)])) + random.randrange(
        10**9
    )
    batch = RawBatch(partition=PLACE, offsets=offsets, timestamps_ms=offsets * 2, values=values)
    decoded = DECODERS[maps].decode(batch)
    kept = range(count) if decoded.kept is None else [int(index) for index in decoded.kept]
    rows = dict(zip(kept, decoded.table.to_pylist(), strict=True))
    rejects = {reject.index: reject for reject in decoded.rejects}
    require(len(rows) + len(rejects) == count, "a record is dropped", values)
    require(not rows.keys() & rejects.keys(), "a record is a row and a reject", values)
    require(list(kept) == sorted(kept), "rows are out of order", values)
    for index, value in enumerate(values):
        try:
            wanted = expected(value, maps=maps)
        except Refused:
            require(index in rejects, f"a row {rows.get(index)} where a reject is due", value)
            continue
        if index in rejects:
            require(wanted is UNDECIDED, f"a reject ({rejects[index].reason}) where a row is due", value)
        elif wanted is not UNDECIDED:
            require(_same(rows[index], wanted), f"the row {rows[index]} instead of {wanted}", value)
    for index, reject in rejects.items():
        require(reject.offset == offsets[index], "a reject names another record's offset", values[index])
        require(bool(reject.reason), "a reject without a reason", values[index])
    return count


LAYOUT = TableLayout(
    path="/t",
    key_fields=("id",),
    key_format="plain",
    partition_field="day",
    hive_style=True,
    url_encode=True,
    kafka_columns=True,
    target_file_bytes=1 << 20,
    ddl=DDL,
)
DERIVER = Deriver(LAYOUT, SCHEMA)


def coordinates(random: Random) -> int:
    """Derived columns: each row carries its own offset, timestamp and key, whatever was rejected."""
    values = [_value(random, number, random.choice((0.0, 0.1))) for number in range(RECORDS // 4)]
    offsets = np.cumsum(np.array([random.choice((1, 3)) for _ in values])) + 17
    batch = RawBatch(partition=PLACE, offsets=offsets, timestamps_ms=offsets * 2, values=values)
    index_of = {int(offset): index for index, offset in enumerate(offsets)}
    decoded = DECODERS[True].decode(batch)
    derived = DERIVER.derive(batch, decoded)
    rejected = {reject.offset for reject in (*decoded.rejects, *derived.rejects)}
    table = derived.table.select(["id", "_kafka_offset", "_kafka_timestamp", "_kafka_topic"]).to_pylist()
    require(len(table) + len(rejected) == len(values), "a record is dropped", values)
    for row in table:
        index = index_of[row["_kafka_offset"]]
        moment_ms = round(row["_kafka_timestamp"].timestamp() * 1_000)
        require(row["_kafka_topic"] == PLACE.topic, "another topic", values[index])
        require(moment_ms == row["_kafka_offset"] * 2, "another record's timestamp", values[index])
        require(row["_kafka_offset"] not in rejected, "a row and a reject", values[index])
        if row["id"] == f"r{index}" or re.fullmatch(r"r\d+", row["id"]) is None:
            continue
        require(b'"%s"' % row["id"].encode() in (values[index] or b""), "another record's key", values[index])
    return len(values)


TARGETS = (
    Target("decoder", "each record is one row with its own values, or one reject", decoder),
    Target("coordinates", "each row carries its own offset, timestamp and key", coordinates),
)

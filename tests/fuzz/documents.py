"""Schemas and records by chance: sound ones, ones that almost fit, and bytes that are nothing."""

from __future__ import annotations

import base64
import json
from random import Random

import pyarrow as pa

from tests.fuzz.target import damaged, noise

PLAIN = ("STRING", "BOOLEAN", "INT", "BIGINT", "FLOAT", "DOUBLE", "DATE", "TIMESTAMP")
PLAIN += ("TIMESTAMP_NTZ", "BINARY")
DECIMALS = (
    "DECIMAL(9,2)",
    "DECIMAL(38,18)",
    "DECIMAL(38,38)",
    "DECIMAL(38,0)",
    "DECIMAL(1,1)",
    "DECIMAL(20,10)",
)
MARK = "Quokka"
"""In texts, so that a reason which repeats a record's content is seen."""

TEXTS = ("", "a", MARK, "b,c:d", '"', "\\", "\n", "\x00", "é", "☃", "😀", "}\n{", "null", "{}", MARK * 40)
WHOLE = ("0", "-0", "1", "-7", "2147483647", "2147483648", "-2147483648", "-2147483649", "4294967296")
WHOLE += ("9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809")
WHOLE += (
    "18446744073709551616",
    "1" * 19,
    "9" * 20,
    "1" * 38,
    "9" * 39,
    "1" * 60,
    "1" * 400,
    "340282366920938463463374607431768211457",
)
REAL = (
    "0.1",
    "-0.0",
    "1.0",
    "1e3",
    "1E+2",
    "1e308",
    "1e309",
    "-1e-400",
    "3.4e38",
    "3.4028235677973366e38",
    "1e39",
)
REAL += (
    "12345.67",
    "123.456",
    "99999999.99",
    "12.5E+1",
    "0.1e1",
    "1e-38",
    "1e-39",
    "0e-38",
    "0e-77",
    "0e38",
    "0e39",
)
REAL += (
    "0e-2147483647",
    "0e-99999999999",
    "1.000000000000000000000000",
    "0." + "0" * 40,
    "0." + "0" * 37 + "1",
)
REAL += (
    "100000e-5",
    "9007199254740993",
    "0.30000000000000004",
    "2.2250738585072011e-308",
    "5e-324",
    "0E-999999999",
)
NOT_JSON_NUMBERS = (
    "01",
    "1.",
    ".5",
    "+1",
    "-",
    "1e",
    "0x1",
    "1_0",
    "--1",
    "NaN",
    '"NaN"',
    '"-Infinity"',
    '"+INF"',
    "Infinity",
    "-Infinity",
    "Inf",
    "-NaN",
)
TIMES = (
    "2026-12-31",
    "2026-02-30",
    "0000-01-01",
    "0001-01-01",
    "9999-12-31",
    "10000-01-01",
    "2026-1-1",
    "2026-12-31 ",
    "2026-12-31T23:59:59Z",
    "2026-12-31T23:59:59.123456Z",
    "2026-12-31T23:59:59.1234567Z",
    "2026-12-31T24:00:00Z",
    "2026-12-31T23:59:60Z",
    "2026-12-31 23:59",
    "2026-12-31T23",
    "2026-12-31T23:59:59+02:00",
    "2026-12-31T23:59+0230",
    "2026-12-31T23:59:59-24:00",
    "2026-12-31T23:59:59+02:60",
    "9999-12-31T23:59:59.999999Z",
    "9999-12-31T23:59:59-01:00",
    "0001-01-01T00:00:00+01:00",
    "12:00",
    "2026-12-31t23:59:59z",
    "2026-12-31T23:59:59.Z",
    "１２３４-12-31",
    "2026-12-31T23:59:59,5Z",
)
RAW: tuple[bytes | None, ...] = (
    None,
    b"",
    b" ",
    b"\n",
    b"null",
    b"[]",
    b"{}",
    b"[{}]",
    b"0",
    b'"a"',
    b"{",
    b"}",
    b"}{",
    b"{}{}",
    b"{}\n{}",
    b"{} null",
    b'{"a":1}{"a":2}',
    b'{"a":1}\n{"a":2}',
    b'{"a":1',
    b'"a":1}',
    b'{"a":"x\ny"}',
    b'{"a":1},',
    b'\xef\xbb\xbf{"a":1}',
    b"\xff\xfe{\0}\0",
    b'{"a":"\xff"}',
    b'{"a":"\xed\xa0\x80"}',
    b'{"a":"\xc0\x80"}',
    b'{"a":"\\ud800"}',
    b'{"\\udc00":1}',
    b'{"a":"\\ud83d\\ude00"}',
    b'{"a":1,"a":2}',
    b'{"a":1,"\\u0061":2}',
    b'{"a":"\\u0000"}',
    b'{"a\\u0000":1}',
    b'{"a":"\0"}',
    b'{"a":NaN}',
    b'{"a":-Infinity}',
    b'{"a":1,}',
    b'{"a":1/**/}',
    b"{'a':1}",
    b'{"a":\x0b1}',
    b'{"a":1}\xc2\xa0',
    b"{}\0",
    b"\x1e{}",
    b'{"z":' + b"[" * 500 + b"]" * 500 + b"}",
    b'{"z":' + b'{"z":' * 60 + b"1" + b"}" * 60 + b"}",
    b"{" * 3_000,
    b"[" * 3_000,
)


def type_name(random: Random, depth: int = 0) -> str:
    """A column type of `record.schema`."""
    if depth < 3 and random.random() < 0.35:
        inner = type_name(random, depth + 1)
        match random.randrange(3):
            case 0:
                return f"ARRAY<{inner}>"
            case 1:
                required = random.choice(("", "", " NOT NULL"))
                return f"STRUCT<a: {inner}{required}, b: {type_name(random, depth + 1)}>"
            case _:
                return f"MAP<STRING, {inner}>"
    return random.choice(PLAIN + DECIMALS)


def ddl(random: Random) -> str:
    """A `record.schema`: a key, one to five columns; maps now and then."""
    columns = ["id STRING" + random.choice((" NOT NULL", ""))]
    for name in "abcde"[: random.randint(1, 5)]:
        columns.append(f"{name} {type_name(random)}{random.choice(('', '', '', ' NOT NULL'))}")
    return ", ".join(columns)


def record(random: Random, schema: pa.Schema, number: int, odd: float) -> bytes | None:
    """A record's value. Its number is in it, so that a row can be told from its neighbours. `odd`: 0 to 1."""
    if random.random() < odd / 3:
        return random.choice(RAW)
    members = [("id", json.dumps(f"r{number}"))]
    for one in schema:
        if one.name != "id" and (random.random() < 0.8 or not one.nullable):
            members.append((one.name, fitting(random, one.type, odd)))
    if random.random() < 0.3:
        members.append((random.choice(("z", "A", "ID", "a ", "")), scalar(random) if odd else "1"))
    if random.random() < odd / 6:
        members.append(random.choice(members))
    random.shuffle(members)
    return _wrapped(random, _object(random, members, odd), odd)


def _object(random: Random, members: list[tuple[str, str]], odd: float) -> str:
    between, colon = random.choice(((",", ":"), (", ", ": "), (",\n", ":"), (" ,\r\n\t", " : ")))
    return "{" + between.join(_name(random, name, odd) + colon + text for name, text in members) + "}"


def _name(random: Random, name: str, odd: float) -> str:
    if random.random() < odd / 10:
        return '"' + "".join(f"\\u{ord(c):04x}" for c in name) + '"'
    return json.dumps(name)


def _wrapped(random: Random, text: str, odd: float) -> bytes:
    raw = text.encode("utf-8", "surrogatepass")
    if random.random() < 0.1:
        raw = random.choice((b" ", b"\n", b"\r\n\t")) + raw + random.choice((b"", b" ", b"\n"))
    if random.random() < odd / 4:
        raw = damaged(random, raw)
    if random.random() < odd / 20:
        raw = noise(random, 20)
    return raw


def scalar(random: Random) -> str:
    """A JSON text, or almost one, of any kind."""
    return random.choice(
        (
            "null",
            "true",
            "false",
            random.choice(WHOLE),
            random.choice(REAL),
            random.choice(NOT_JSON_NUMBERS),
            _text(random, random.choice(TEXTS)),
            json.dumps(random.choice(TIMES)),
            json.dumps(random.choice(WHOLE + REAL)),
            json.dumps(random.choice(NOT_JSON_NUMBERS)),
            "[]",
            "{}",
            "[1, null, 2]",
            '{"a": "é", "b": 3, "z": [{}]}',
            '{"k": 1, "": null}',
            '{"k": 1, "k": 2}',
            '"\\ud800"',
            "[null]",
            '[{"a": null}]',
            '"Zg=="',
            '"Zg"',
            '"-_-_"',
            '"Zg==\\n"',
            "tru",
            "nul",
        )
    )


def _text(random: Random, text: str) -> str:
    return json.dumps(text, ensure_ascii=random.random() < 0.5)


def fitting(random: Random, kind: pa.DataType, odd: float) -> str:
    """A JSON text that fits the column; with `odd`, now and then one that does not."""
    if random.random() < odd / 8:
        return scalar(random)
    if random.random() < 0.08:
        return "null"
    if pa.types.is_list(kind):
        items = [fitting(random, kind.value_type, odd) for _ in range(random.randint(0, 3))]
        return f"[{', '.join(items)}]"
    if pa.types.is_struct(kind):
        members = [
            (f.name, fitting(random, f.type, odd)) for f in kind if random.random() < 0.9 or not f.nullable
        ]
        return _object(random, members, odd)
    if pa.types.is_map(kind):
        keys = random.sample(("k", "", "é", "a.b", "k2"), random.randint(0, 3))
        return _object(random, [(key, fitting(random, kind.item_type, odd)) for key in keys], odd)
    return _plain(random, kind)


def _plain(random: Random, kind: pa.DataType) -> str:
    if pa.types.is_decimal(kind):
        return _number(random, kind)
    if kind in (pa.int32(), pa.int64()):
        bits = random.randint(1, kind.bit_width)
        return str(random.randrange(-(2 ** (bits - 1)), 2 ** (bits - 1)))
    if pa.types.is_floating(kind):
        return random.choice(
            (
                repr(random.uniform(-1e3, 1e3)),
                str(random.randrange(10**6)),
                f"{random.random()}e-{random.randrange(30)}",
            )
        )
    if kind == pa.bool_():
        return random.choice(("true", "false"))
    if kind == pa.date32():
        return f'"2026-{random.randrange(1, 13):02}-{random.randrange(1, 29):02}"'
    if pa.types.is_timestamp(kind):
        zone = random.choice(("Z", "", "+02:00", "-0730")) if kind.tz else ""
        second = f"{random.randrange(60):02}.{random.randrange(10**6):06}"
        return f'"2026-01-02{random.choice("T ")}03:04:{second}{zone}"'
    if kind == pa.binary():
        return json.dumps(base64.b64encode(random.randbytes(random.randrange(6))).decode())
    return _text(random, random.choice(TEXTS))


def _number(random: Random, kind: pa.DataType) -> str:
    """A DECIMAL about as long as the column holds, as a number or in quotes; now and then it is longer."""
    spare = 1 if random.random() < 0.1 else 0
    whole = str(random.randrange(10 ** random.randint(0, kind.precision - kind.scale + spare)))
    places = random.randint(0, kind.scale + spare)
    text = whole + (f".{random.randrange(10**places):0{places}}" if places else "")
    text = random.choice(("", "-")) + text + (f"e{random.randint(-3, 3)}" if random.random() < 0.1 else "")
    return f'"{text}"' if random.random() < 0.4 else text

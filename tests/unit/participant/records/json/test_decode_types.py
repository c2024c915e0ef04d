"""What the decoder makes of single values: which become a column's value, and why others are rejects."""

from __future__ import annotations

import json
import math
from base64 import b64encode
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from control_topic.messages import SourcePartition
from participant.records.json.decoder import Decoded, JsonDecoder
from participant.records.json.values import explain
from participant.records.raw import RawBatch, Values
from table.schema import SchemaError, parse_ddl, table_schema
from tests.json_decoders import DECODERS, skip_unless_there

made = DECODERS["plain"]


@pytest.fixture(scope="module", params=DECODERS, autouse=True)
def name(request: pytest.FixtureRequest) -> str:
    """Every test here is played with each of them."""
    global made
    skip_unless_there(request.param)
    made = DECODERS[request.param]
    return str(request.param)


def batch_of(values: list[bytes | None]) -> RawBatch:
    offsets = np.arange(len(values), dtype=np.int64)
    return RawBatch(
        partition=SourcePartition("events", 0),
        offsets=offsets,
        timestamps_ms=offsets,
        values=Values.of(values),
    )


def decode_values(ddl: str, *values: bytes | str | None) -> Decoded:
    raw = [v.encode() if isinstance(v, str) else v for v in values]
    return made(parse_ddl(ddl)).decode(batch_of(raw))


def outcome(ddl: str, value: bytes | str | None) -> Any:
    """The row of a single value, or the reason why there is none."""
    decoded = decode_values(ddl, value)
    assert decoded.table.schema == parse_ddl(ddl)
    assert decoded.table.num_rows + len(decoded.rejects) == 1
    return decoded.rejects[0].reason if decoded.rejects else decoded.table.to_pylist()[0]


def field(ddl_type: str, text: str) -> Any:
    """What the JSON text becomes in a column of the type: its value, or the reason of the reject."""
    found = outcome(f"a {ddl_type}, other STRING", '{"a":' + text + "}")
    return found["a"] if isinstance(found, dict) else found


# --- types ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ddl_type", "text", "expected"),
    [
        ("BIGINT", "9223372036854775807", 2**63 - 1),
        ("BIGINT", "-9223372036854775808", -(2**63)),
        ("BIGINT", "null", None),
        ("INT", "-2147483648", -(2**31)),
        ("DOUBLE", "1", 1.0),
        ("DOUBLE", "1e-400", 0.0),
        ("DOUBLE", "-Infinity", -math.inf),
        ("DOUBLE", '"Infinity"', math.inf),
        ("DOUBLE", '"-INF"', -math.inf),
        ("FLOAT", '"+Infinity"', math.inf),
        ("FLOAT", r'"\u002bINF"', math.inf),
        ("ARRAY<STRUCT<d: DOUBLE, s: STRING>>", '[{"d":"-INF","s":"NaN"}]', [{"d": -math.inf, "s": "NaN"}]),
        ("MAP<STRING,DOUBLE>", '{"NaN":"Infinity"}', [("NaN", math.inf)]),
        ("FLOAT", "0.5", 0.5),
        ("FLOAT", "Infinity", math.inf),
        ("FLOAT", "1e-60", 0.0),
        ("BOOLEAN", "true", True),
        ("STRING", r'"\u0000\ud83d\ude00"', "\0\U0001f600"),
        ("STRING", '"a\\nb"', "a\nb"),
        ("DATE", '"2024-02-29"', date(2024, 2, 29)),
        ("DATE", '"0001-01-01"', date(1, 1, 1)),
        ("TIMESTAMP", '"2020-01-02T03:04:05.123456Z"', datetime(2020, 1, 2, 3, 4, 5, 123456, UTC)),
        ("TIMESTAMP", '"2020-01-02 03:04"', datetime(2020, 1, 2, 3, 4, tzinfo=UTC)),
        ("TIMESTAMP", '"2020-01-02"', datetime(2020, 1, 2, tzinfo=UTC)),
        ("TIMESTAMP", '"2020-01-02T03:04:05+02:00"', datetime(2020, 1, 2, 1, 4, 5, tzinfo=UTC)),
        ("TIMESTAMP_NTZ", '"2020-01-02T03:04:05.123456"', datetime(2020, 1, 2, 3, 4, 5, 123456)),
        ("TIMESTAMP_NTZ", '"2020-01-02 03:04"', datetime(2020, 1, 2, 3, 4)),
        ("TIMESTAMP_NTZ", '"0001-01-01"', datetime(1, 1, 1)),
        ("BINARY", '"AP+A"', b"\x00\xff\x80"),
        ("BINARY", r'"\u005ag=\u003d"', b"f"),
        ("BINARY", '""', b""),
        ("BINARY", "null", None),
        ("DECIMAL(10,2)", "12.3", Decimal("12.30")),
        ("DECIMAL(10,2)", '"1.500"', Decimal("1.50")),
        ("DECIMAL(38,0)", "9" * 38, Decimal("9" * 38)),
        ("ARRAY<INT>", "[1,null]", [1, None]),
        ("ARRAY<DATE>", '["2024-01-01",null]', [date(2024, 1, 1), None]),
        ("ARRAY<BINARY>", '["Zg==",null,""]', [b"f", None, b""]),
        ("ARRAY<TIMESTAMP_NTZ>", '[null,"2024-01-01"]', [None, datetime(2024, 1, 1)]),
        ("STRUCT<x: BINARY, y: TIMESTAMP_NTZ>", '{"x":"/w=="}', {"x": b"\xff", "y": None}),
        ("STRUCT<x: FLOAT, y: DATE>", '{"x":1.5,"z":[{}]}', {"x": 1.5, "y": None}),
        ("MAP<STRING,BIGINT>", '{"k":1,"":null}', [("k", 1), ("", None)]),
        ("MAP<STRING,BIGINT>", "{}", []),
        ("MAP<STRING,STRUCT<d: DATE>>", '{"k":{"d":"2020-01-02"}}', [("k", {"d": date(2020, 1, 2)})]),
        ("MAP<STRING,TIMESTAMP>", '{"k":"2020-01-02"}', [("k", datetime(2020, 1, 2, tzinfo=UTC))]),
        ("MAP<STRING,TIMESTAMP_NTZ>", '{"k":"2020-01-02"}', [("k", datetime(2020, 1, 2))]),
        ("MAP<STRING,STRUCT<b: BINARY>>", '{"k":{"b":"Zg=="},"l":null}', [("k", {"b": b"f"}), ("l", None)]),
        ("ARRAY<MAP<STRING,DECIMAL(4,1)>>", '[{"k":1.50}]', [[("k", Decimal("1.5"))]]),
    ],
)  # fmt: skip
def test_a_value_of_the_columns_type_is_kept_as_it_is(ddl_type: str, text: str, expected: Any) -> None:
    assert field(ddl_type, text) == expected


@pytest.mark.parametrize(
    ("ddl_type", "text", "reason"),
    [
        ("BIGINT", "1.0", "field a: not a BIGINT but a number that is not spelled as a whole one"),
        ("BIGINT", "9223372036854775808", "field a: not a BIGINT but a number beyond its range"),
        ("BIGINT", "1" * 5_000, "field a: not a BIGINT but a number beyond its range"),
        ("BIGINT", '"1"', "field a: not a BIGINT but a string"),
        ("BIGINT", "NaN", "field a: not a BIGINT but a number that is not spelled as a whole one"),
        ("INT", "2147483648", "field a: not a INT but a number beyond its range"),
        ("DOUBLE", "1e400", "field a: not a DOUBLE but a number beyond its range"),
        ("DOUBLE", '"nan"', "field a: not a DOUBLE but a string"),
        ("DOUBLE", '"1.5"', "field a: not a DOUBLE but a string"),
        ("DECIMAL(9,2)", '"NaN"', "field a: not a DECIMAL(9,2) but a string that is not spelled as a dec"),
        ("DOUBLE", "10e308", "field a: not a DOUBLE but a number beyond its range"),
        ("DOUBLE", "-1.7976931348623159e308", "field a: not a DOUBLE but a number beyond its range"),
        ("DOUBLE", "1" * 400, "field a: not a DOUBLE but a number beyond its range"),
        ("FLOAT", "10e308", "field a: not a FLOAT but a number beyond its range"),
        ("ARRAY<STRUCT<d: DOUBLE>>", '[{"d":1},{"d":99e307}]', "field a[].d: not a DOUBLE but a number bey"),
        ("FLOAT", "1e39", "field a: not a FLOAT but a number beyond its range"),
        ("ARRAY<STRUCT<f: FLOAT>>", '[{"f":1},{"f":1e39}]', "field a[].f: not a FLOAT but a number bey"),
        ("BOOLEAN", "0", "field a: not a BOOLEAN but a number"),
        ("STRING", "1.50", "field a: not a STRING but a number"),
        ("STRING", "{}", "field a: not a STRING but an object"),
        ("STRING", r'"\ud800"', "field a: not a STRING but a string with half"),
        ("DATE", '"2023-02-29"', "field a: not a DATE but a string that is no date like 2026-12-31"),
        ("DATE", '"0000-01-01"', "field a: not a DATE but a string that is no date like 2026-12-31"),
        ("DATE", "19000", "field a: not a DATE but a number"),
        ("TIMESTAMP", "1577934245", "field a: not a TIMESTAMP but a number"),
        ("TIMESTAMP", '"2020-01-02T03:04:05.1234567"', "field a: not a TIMESTAMP but a string that is"),
        ("TIMESTAMP", '"0001-01-01T00:00:00+01:00"', "field a: not a TIMESTAMP but a string that is no time"),
        ("TIMESTAMP_NTZ", '"2020-01-02T03:04:05Z"', "field a: not a TIMESTAMP_NTZ but a string that"),
        ("TIMESTAMP_NTZ", '"2020-01-02T03:04:05+00:00"', "field a: not a TIMESTAMP_NTZ but a string that"),
        ("TIMESTAMP_NTZ", '"0000-01-01"', "field a: not a TIMESTAMP_NTZ but a string that"),
        ("TIMESTAMP_NTZ", "1577934245", "field a: not a TIMESTAMP_NTZ but a number"),
        ("BINARY", '"Zg"', "field a: not a BINARY but a string that is not base64"),
        ("BINARY", '"Zg==Zg=="', "field a: not a BINARY but a string that is not base64"),
        ("BINARY", '"Zm9v=="', "field a: not a BINARY but a string that is not base64"),
        ("BINARY", '"Zm9v===="', "field a: not a BINARY but a string that is not base64"),
        ("BINARY", '"-_-_"', "field a: not a BINARY but a string that is not base64"),
        ("BINARY", r'"Zm9v\n"', "field a: not a BINARY but a string that is not base64"),
        ("BINARY", '"é"', "field a: not a BINARY but a string that is not base64"),
        ("BINARY", "[102]", "field a: not a BINARY but an array"),
        ("DECIMAL(10,2)", "1.555", "field a: not a DECIMAL(10,2) but a number with more digits"),
        ("DECIMAL(10,2)", "100000000", "field a: not a DECIMAL(10,2) but a number with more digits"),
        ("DECIMAL(10,2)", '"x"', "field a: not a DECIMAL(10,2) but a string that is not spelled"),
        ("ARRAY<INT>", "1", "field a: not a ARRAY but a number"),
        ("ARRAY<INT>", "{}", "field a: not a ARRAY but an object"),
        ("STRUCT<x: INT>", "[]", "field a: not a STRUCT but an array"),
        ("STRUCT<x: INT>", '{"x":1,"x":2}', "field a.x is there twice"),
        ("STRUCT<x: INT NOT NULL>", "{}", "required field a.x is missing"),
        ("MAP<STRING,INT>", '{"k":1,"k":1}', "field a: a key is there twice"),
        ("MAP<STRING,INT>", '{"k":"x"}', "field a{}: not a INT but a string"),
        ("MAP<STRING,INT>", "[]", "field a: not a MAP but an array"),
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit_is_a_reject_that_says_why(ddl_type: str, text: str, reason: str) -> None:
    found = outcome(f"a {ddl_type}, other STRING", '{"a":' + text + "}")
    assert isinstance(found, str) and found.startswith(reason), found


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "null value"),
        (b"", "empty value"),
        (b" \n", "empty value"),
        (b"[]", "not a JSON object but an array"),
        (b"null", "not a JSON object"),
        (b"\xef\xbb\xbf{}", "begins with a byte order mark"),
        (b'{"a":"x"', "not JSON: the object does not end"),
        (b"{} {}", "holds two documents"),
        (b"{}1}", "not JSON: more after the document's end at character 2"),
        (b'{"a":"x",}', "not JSON: "),
        (b'{"a":"\xff"}', "not UTF-8 at byte 6"),
        (b'{"a":"x","a":"y"}', "field a is there twice"),
        (b'{"b":1e999}', "not JSON: Number too big to be stored in double."),
        (b'{"a":"x\ny"}', "not JSON: Invalid control character at"),
    ],
)
def test_what_is_not_one_json_object_is_a_reject_that_says_why(value: bytes | None, reason: str) -> None:
    found = outcome("a STRING", value)
    assert isinstance(found, str) and found.startswith(reason), found


def test_a_missing_or_null_required_field_is_a_reject_and_the_rows_around_it_stay() -> None:
    decoded = decode_values(
        "a BIGINT NOT NULL, b STRING NOT NULL", *('{"a":1,"b":"x"}', '{"b":"x"}', '{"a":null}')
    )
    assert decoded.table.to_pylist() == [{"a": 1, "b": "x"}]
    assert [(r.index, r.reason) for r in decoded.rejects] == [
        (1, "required field a is missing or null"),
        (2, "required field a is missing or null"),
    ]
    assert decoded.table.schema == parse_ddl("a BIGINT NOT NULL, b STRING NOT NULL")


def test_what_is_spelled_as_infinite_is_kept_beside_a_number_beyond_the_range() -> None:
    decoded = decode_values(
        "a DOUBLE, b FLOAT, c ARRAY<DOUBLE>",
        *('{"a":Infinity,"b":-Infinity}', '{"c":[1,10e308]}', '{"a":-Infinity,"c":[Infinity]}'),
    )
    assert [list(row.values()) for row in decoded.table.to_pylist()] == [
        [math.inf, -math.inf, None],
        [-math.inf, None, [math.inf]],
    ]
    assert [reject.index for reject in decoded.rejects] == [1]


def test_a_name_in_another_case_is_another_field() -> None:
    assert outcome("a BIGINT", '{"A":1}') == {"a": None}


def test_no_reason_holds_what_the_value_held() -> None:
    secret = "4111111111111111"
    for text in (
        f'"{secret}"',
        f"{secret}.5",
        f'{{"{secret}":true}}',
        f'["{secret}"]',
        f'"{secret}',
        f"1e{secret}",
    ):
        for ddl_type in (
            "INT",
            "BOOLEAN",
            "DATE",
            "TIMESTAMP",
            "TIMESTAMP_NTZ",
            "DECIMAL(3,1)",
            "ARRAY<DATE>",
            "MAP<STRING,INT>",
        ):
            found = outcome(f"a {ddl_type}, b STRING", '{"a":' + text + "}")
            assert isinstance(found, str)
            assert secret not in found


def test_kafka_columns_in_the_schema_are_not_read_from_the_value() -> None:
    schema = table_schema("a BIGINT", kafka_columns=True)
    decoded = made(schema).decode(batch_of([b'{"a":1,"_kafka_offset":99}']))
    assert decoded.table.to_pylist() == [{"a": 1}]


def test_a_schema_of_maps_alone_is_refused() -> None:
    with pytest.raises(SchemaError, match="only MAP columns"):
        made(parse_ddl("m MAP<STRING,STRING>"))


# --- the reasons and Arrow agree --------------------------------------------------------------------

TYPES = [
    *("INT", "BIGINT", "FLOAT", "DOUBLE", "BOOLEAN", "STRING", "DATE", "TIMESTAMP", "DECIMAL(5,2)"),
    *("TIMESTAMP_NTZ", "BINARY", "ARRAY<INT>", "STRUCT<x: DATE>"),
]
two_digits = st.integers(0, 99).map("{:02}".format)
times = st.builds(
    '"{}-{}-{}{}{}{}"'.format,
    *(
        st.sampled_from(["2024", "0000", "0001", "9999", "24"]),
        two_digits,
        two_digits,
        st.sampled_from("T  :"),
    ),
    st.lists(two_digits, max_size=4).map(":".join)
    | st.sampled_from(["03:04:05.5", "23:59:59.1234567", "03:04:60"]),
    st.sampled_from(["", "Z", "z", "+02", "-02:30", "+0230", "+25:00", "+02:99", " Z", "+23:59", "-24:00"]),
)
numbers = st.one_of(
    st.sampled_from(
        [
            *("0", "-0", "1.0", "1e2", "1E+2", "01", "+1", ".5", "1."),
            *("NaN", "-NaN", "Inf", "-Inf", "Infinity", "-Infinity", "nan", "1e400", "1e-400"),
        ]
    ),
    st.integers(-(2**70), 2**70).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.decimals(-2000, 2000, places=3).map(str),
    st.builds("{}e{}".format, st.integers(0, 10_000), st.integers(-8, 45)),
)
base64 = st.one_of(
    st.binary(max_size=5).map(lambda raw: b64encode(raw).decode()),
    st.text("AZg9+/=-_ \n", max_size=6),
).map(json.dumps)
texts = st.one_of(
    numbers,
    numbers.map(json.dumps),
    times,
    base64,
    st.sampled_from(
        ["null", "true", "[]", "[1,null]", "{}", '{"x":"2024-01-01"}', '{"x":1}', '"\\ud800"', "oops"]
    ),
    st.text(max_size=4).map(json.dumps),
)


@settings(max_examples=1_000, deadline=None)
@given(st.sampled_from(["TIMESTAMP_NTZ", "BINARY"]), times | base64)
def test_base64_and_clock_times_are_the_same_in_a_column_and_in_a_map(ddl_type: str, text: str) -> None:
    assert in_map(ddl_type, text) == alone(ddl_type, text)


def alone(ddl_type: str, text: str) -> Any:
    found = outcome(f"a {ddl_type}", '{"a":' + text + "}")
    return found["a"] if isinstance(found, dict) else "refused"


def in_map(ddl_type: str, text: str) -> Any:
    found = outcome(f"a MAP<STRING,{ddl_type}>, other STRING", '{"a":{"k":' + text + "}}")
    return found["a"][0][1] if isinstance(found, dict) else "refused"


@settings(max_examples=2_000, deadline=None)
@given(st.sampled_from(TYPES), texts)
def test_what_is_explained_as_bad_arrow_refuses_too(ddl_type: str, text: str) -> None:
    """So the reasons, which also decide where there are many rejects, never turn away a good record."""
    schema = parse_ddl(f"a {ddl_type}")
    value = b'{"a":%s}' % text.encode()
    try:
        JsonDecoder(schema)._parse(Values.of([value]))
    except ValueError:
        return
    assert explain(value, schema) == ""


def test_the_reader_that_arrow_brings_still_refuses_what_the_proof_needs() -> None:
    """The alignment argument rests on these two; a new Arrow release must not change them."""
    decoder = JsonDecoder(parse_ddl("a STRING"))
    for split_document in ([b'{"other":"}', b'{"}'], [b'{"other":[{}', b"{}]}"], [b'{"o":{"p":{}', b"{}}}"]):
        with pytest.raises(pa.ArrowInvalid):
            decoder._parse(Values.of(split_document))

"""The decoder's promise: each row is the JSON of its own value at its own offset, all else is a reject."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from control_topic.messages import SourcePartition
from participant import decode
from participant.decode import Decoded, JsonDecoder, RawBatch
from participant.json_values import explain
from table.schema import SchemaError, parse_ddl, table_schema

PLACE = SourcePartition("events", 3)


def batch_of(values: Sequence[bytes | None], first: int = 1_000) -> RawBatch:
    """Offsets with gaps, so that an index is never mistaken for an offset."""
    offsets = np.arange(len(values), dtype=np.int64) * 7 + first
    return RawBatch(partition=PLACE, offsets=offsets, timestamps_ms=offsets + 5, values=values)


def decode_values(ddl: str, *values: bytes | str | None) -> Decoded:
    raw = [v.encode() if isinstance(v, str) else v for v in values]
    return JsonDecoder(parse_ddl(ddl)).decode(batch_of(raw))


def rows_by_offset(batch: RawBatch, decoded: Decoded) -> dict[int, dict[str, Any]]:
    kept = range(len(batch.values)) if decoded.kept is None else decoded.kept
    assert len(kept) == decoded.table.num_rows
    rows = decoded.table.to_pylist()
    return {int(batch.offsets[i]): row for i, row in zip(kept, rows, strict=True)}


def outcome(ddl: str, value: bytes | str | None) -> Any:
    """The row of a single value, or the reason why there is none."""
    decoded = decode_values(ddl, value)
    assert decoded.table.schema == parse_ddl(ddl)
    assert decoded.table.num_rows + len(decoded.rejects) == 1
    return decoded.rejects[0].reason if decoded.rejects else decoded.table.to_pylist()[0]


def field(ddl_type: str, text: str) -> Any:
    """What the JSON text becomes in a column of the type: its value, or the reason of the reject."""
    found = outcome(f"a {ddl_type}, other STRING", '{"a":%s}' % text)
    return found["a"] if isinstance(found, dict) else found


# --- alignment --------------------------------------------------------------------------------------

DDL = "a STRING, b BIGINT, c ARRAY<BIGINT>, d STRUCT<e: STRING>"
KNOWN = {"a": st.text(max_size=5), "b": st.integers(-(2**63), 2**63 - 1)}
documents = st.fixed_dictionaries(
    {},
    optional={
        **KNOWN,
        "c": st.lists(st.integers(0, 9), max_size=3),
        "d": st.fixed_dictionaries({}, optional={"e": st.none() | st.text(max_size=3)}),
        "other": st.recursive(
            st.none() | st.booleans() | st.text(max_size=4),
            lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
            max_leaves=4,
        ),
    },
)


@st.composite
def written(draw: st.DrawFn) -> bytes:
    """A document as producers write them: compact, spaced, pretty-printed, escaped or not."""
    return json.dumps(
        draw(documents),
        indent=draw(st.sampled_from([None, None, 1])),
        separators=draw(st.sampled_from([(",", ":"), (", ", ": "), (",\n", "\r:\t")])),
        ensure_ascii=draw(st.booleans()),
    ).encode()


blanks = st.text(" \t\r\n", max_size=2).map(str.encode)
AWKWARD: list[bytes | None] = [
    *(None, b"", b" ", b"\n", b"[]", b"[{}]", b"null", b"true", b"1", b'"x"', b"{", b"}", b"{}", b"}{", b"{}{}"),
    *(b"{} {}", b"{}\n{}", b'{"a":"x', b'y"}', b'{"a":', b'"x"}', b'{"c":[', b"]}", b'{"other":[{', b"}]}"),
    *(b'{"a":"\x00"}', b"{}\x00", b"\x00{}", b'{"a":"\xff"}', b'{"other":"\xc3"}', b'{"a":"x\ny"}'),
    *(b"\xef\xbb\xbf{}", b'{"a":"x"}null', b"{} null {}", b"null{}", b"{}[]", b"[]{}", b"{}1", b'{"a":1}'),
    *(b'{"b":"1"}', b'{"b":1.0}', b'{"b":9223372036854775808}', b'{"a":"x","a":"y"}', b'{"a":"\\ud800"}'),
    *(b"{,}", b'{"a"}', b"{}}", b"{{}", b'{"a":"}\n{"}', b'{"other":{}\n{}}', b"{}/**/{}", b"\x0b{}", b"{}\xc2\xa0"),
]
pieces = st.lists(st.sampled_from([v for v in AWKWARD if v]) | written() | blanks, min_size=1, max_size=3)
torn = st.builds(lambda v, at: v[: at % (len(v) + 1)], written(), st.integers(0, 80))
torn_end = st.builds(lambda v, at: v[at % (len(v) + 1) :], written(), st.integers(0, 80))
values = st.one_of(
    written(), written(), st.sampled_from(AWKWARD), pieces.map(b"".join), torn, torn_end, st.binary(max_size=6)
)


def reference(value: bytes | None) -> dict[str, Any] | None:
    """What Python's own JSON makes of one value: the row that it must be, None where it must be a reject."""
    try:
        pairs = json.loads((value or b"").decode(), object_pairs_hook=lambda p: p)
        document = json.loads((value or b"").decode())
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict):
        return None
    names = [name for name, _ in pairs if name in "abcd"]
    row = {name: document.get(name) for name in "abcd"}
    fits = (
        isinstance(row["a"], str | None)
        and (row["b"] is None or (type(row["b"]) is int and -(2**63) <= row["b"] < 2**63))
        and len(names) == len(set(names))
        and not _half_surrogate(json.dumps(document, ensure_ascii=False))
    )
    if row["d"] is not None:
        row["d"] = {"e": row["d"].get("e")}
    return row if fits else None


def _half_surrogate(text: str) -> bool:
    return any(0xD800 <= ord(c) < 0xE000 for c in text)


@settings(max_examples=600, deadline=None)
@given(st.lists(values, max_size=40))
def test_each_row_is_the_json_of_its_own_value_at_its_own_offset(drawn: list[bytes | None]) -> None:
    batch = batch_of(drawn)
    decoded = JsonDecoder(parse_ddl(DDL)).decode(batch)
    rows = rows_by_offset(batch, decoded)
    rejected = {r.offset: r for r in decoded.rejects}
    assert len(rows) + len(rejected) == len(drawn)
    for index, (offset, value) in enumerate(zip(batch.offsets.tolist(), drawn, strict=True)):
        expected = reference(value)
        if expected is None:
            assert rejected[offset].index == index
            assert rejected[offset].reason
        else:
            assert rows[offset] == expected


@settings(max_examples=300, deadline=None)
@given(st.lists(values, max_size=12))
def test_what_becomes_of_a_value_does_not_depend_on_its_neighbours(drawn: list[bytes | None]) -> None:
    decoder = JsonDecoder(parse_ddl(DDL))
    batch = batch_of(drawn)
    together = rows_by_offset(batch, decoder.decode(batch))
    alone: dict[int, dict[str, Any]] = {}
    for i, value in enumerate(drawn):
        one = batch_of([value], first=int(batch.offsets[i]))
        alone |= rows_by_offset(one, decoder.decode(one))
    assert together == alone


def test_a_value_with_two_documents_does_not_shift_the_rows_after_it() -> None:
    decoded = decode_values("a BIGINT", '{"a":1}', '{"a":2}{"a":3}', '{"a":4}')
    assert decoded.table.column("a").to_pylist() == [1, 4]
    assert decoded.kept is not None and decoded.kept.tolist() == [0, 2]
    assert [(r.offset, r.index, r.reason) for r in decoded.rejects] == [(1_007, 1, "holds two documents")]


def test_two_documents_in_one_value_and_none_in_the_next_are_not_two_rows() -> None:
    decoded = decode_values("a BIGINT", '{"a":1}{"a":2}', "", '{"a":3}')
    assert decoded.table.column("a").to_pylist() == [3]
    assert [r.reason for r in decoded.rejects] == ["holds two documents", "empty value"]


def test_two_halves_that_would_make_one_document_are_two_rejects() -> None:
    decoded = decode_values("a STRING", '{"other":[{}', '{}],"a":"x"}', '{"a":"y"}')
    assert decoded.table.column("a").to_pylist() == ["y"]
    assert [r.index for r in decoded.rejects] == [0, 1]


def test_a_pretty_printed_document_is_one_row_without_a_closer_look(monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = JsonDecoder(parse_ddl("a BIGINT"))
    monkeypatch.setattr(decoder, "_salvage", lambda values: pytest.fail("looked closer"))
    decoded = decoder.decode(batch_of([b'{\n  "a": 1\n}', b'{\n"a":\n2\n}']))
    assert decoded.table.column("a").to_pylist() == [1, 2]
    assert decoded.kept is None


def test_a_document_that_ends_with_a_newline_is_one_row() -> None:
    assert decode_values("a BIGINT", '{"a":1}\n', ' {"a":2}\r\n').table.column("a").to_pylist() == [1, 2]


def test_a_null_document_never_crashes_the_process() -> None:
    decoded = decode_values("a BIGINT", "null", "null\n{}", '{"a":1}', "{}null", " null")
    assert decoded.table.column("a").to_pylist() == [1]
    assert len(decoded.rejects) == 4


def test_deep_nesting_is_no_danger() -> None:
    depth = 200_000
    decoded = decode_values("a BIGINT", '{"a":1,"b":' + "[" * depth + "]" * depth + "}", '{"b":' + "[" * depth)
    assert decoded.table.column("a").to_pylist() == [1]
    assert len(decoded.rejects) == 1


def test_an_empty_batch_is_an_empty_table() -> None:
    decoded = decode_values("a BIGINT NOT NULL, m MAP<STRING,INT>")
    assert decoded.table.num_rows == 0
    assert decoded.table.schema == parse_ddl("a BIGINT NOT NULL, m MAP<STRING,INT>")


def test_a_batch_of_nothing_but_rejects_is_an_empty_table() -> None:
    decoded = decode_values("a BIGINT NOT NULL", None, "x", "{}")
    assert decoded.table.num_rows == 0
    assert decoded.kept is not None and decoded.kept.tolist() == []
    assert len(decoded.rejects) == 3


def test_one_bad_record_in_fifty_thousand_costs_few_parses(monkeypatch: pytest.MonkeyPatch) -> None:
    good = [b'{"a":%d}' % i for i in range(50_000)]
    bad = 31_415
    good[bad] = b'{"a":oops}'
    decoder = JsonDecoder(parse_ddl("a BIGINT"))
    parses: list[int] = []
    parse = decoder._parse
    monkeypatch.setattr(decoder, "_parse", lambda values: (parses.append(len(values)), parse(values))[1])
    decoded = decoder.decode(batch_of(good))
    assert [r.index for r in decoded.rejects] == [bad]
    assert decoded.table.column("a").to_pylist() == [i for i in range(50_000) if i != bad]
    assert len(parses) < 2 * math.log2(len(good))
    assert sum(parses) < 3 * len(good)


def test_more_than_fits_into_one_buffer_is_parsed_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode, "BUFFER_BYTES_MAX", 100)
    decoded = decode_values("a BIGINT", *['{"a":%d}' % i for i in range(500)])
    assert decoded.table.column("a").to_pylist() == list(range(500))
    assert decoded.kept is None and not decoded.rejects


def test_the_head_of_a_batch_decodes_like_the_whole() -> None:
    batch = batch_of([b'{"a":1}', b'{"a":2}', b"oops"])
    decoded = JsonDecoder(parse_ddl("a BIGINT")).decode(batch.head(2))
    assert decoded.table.column("a").to_pylist() == [1, 2]


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
        ("DECIMAL(10,2)", "12.3", Decimal("12.30")),
        ("DECIMAL(10,2)", '"1.500"', Decimal("1.50")),
        ("DECIMAL(38,0)", "9" * 38, Decimal("9" * 38)),
        ("ARRAY<INT>", "[1,null]", [1, None]),
        ("ARRAY<DATE>", '["2024-01-01",null]', [date(2024, 1, 1), None]),
        ("STRUCT<x: FLOAT, y: DATE>", '{"x":1.5,"z":[{}]}', {"x": 1.5, "y": None}),
        ("MAP<STRING,BIGINT>", '{"k":1,"":null}', [("k", 1), ("", None)]),
        ("MAP<STRING,BIGINT>", "{}", []),
        ("MAP<STRING,STRUCT<t: TIMESTAMP>>", '{"k":{"t":"2020-01-02"}}', [("k", {"t": datetime(2020, 1, 2, tzinfo=UTC)})]),
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
        ("FLOAT", "1e39", "field a: not a FLOAT but a number beyond its range"),
        ("ARRAY<STRUCT<f: FLOAT>>", '[{"f":1},{"f":1e39}]', "field a[].f: not a FLOAT but a number beyond its range"),
        ("BOOLEAN", "0", "field a: not a BOOLEAN but a number"),
        ("STRING", "1.50", "field a: not a STRING but a number"),
        ("STRING", "{}", "field a: not a STRING but an object"),
        ("STRING", r'"\ud800"', "field a: not a STRING but a string with half a surrogate pair"),
        ("DATE", '"2023-02-29"', "field a: not a DATE but a string that is no date like 2026-12-31"),
        ("DATE", '"0000-01-01"', "field a: not a DATE but a string that is no date like 2026-12-31"),
        ("DATE", "19000", "field a: not a DATE but a number"),
        ("TIMESTAMP", "1577934245", "field a: not a TIMESTAMP but a number"),
        ("TIMESTAMP", '"2020-01-02T03:04:05.1234567Z"', "field a: not a TIMESTAMP but a string that is no time like "),
        ("TIMESTAMP", '"0001-01-01T00:00:00+01:00"', "field a: not a TIMESTAMP but a string that is no time like "),
        ("DECIMAL(10,2)", "1.555", "field a: not a DECIMAL(10,2) but a number with more digits"),
        ("DECIMAL(10,2)", "100000000", "field a: not a DECIMAL(10,2) but a number with more digits"),
        ("DECIMAL(10,2)", '"x"', "field a: not a DECIMAL(10,2) but a string that is not spelled as a decimal"),
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
    found = outcome(f"a {ddl_type}, other STRING", '{"a":%s}' % text)
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
    decoded = decode_values("a BIGINT NOT NULL, b STRING NOT NULL", *('{"a":1,"b":"x"}', '{"b":"x"}', '{"a":null}'))
    assert decoded.table.to_pylist() == [{"a": 1, "b": "x"}]
    assert [(r.index, r.reason) for r in decoded.rejects] == [
        (1, "required field a is missing or null"),
        (2, "required field a is missing or null"),
    ]
    assert decoded.table.schema == parse_ddl("a BIGINT NOT NULL, b STRING NOT NULL")


def test_a_name_in_another_case_is_another_field() -> None:
    assert outcome("a BIGINT", '{"A":1}') == {"a": None}


def test_no_reason_holds_what_the_value_held() -> None:
    secret = "4111111111111111"
    for text in (f'"{secret}"', f"{secret}.5", f'{{"{secret}":true}}', f'["{secret}"]', f'"{secret}', f"1e{secret}"):
        for ddl_type in ("INT", "BOOLEAN", "DATE", "TIMESTAMP", "DECIMAL(3,1)", "ARRAY<DATE>", "MAP<STRING,INT>"):
            found = outcome(f"a {ddl_type}, b STRING", '{"a":%s}' % text)
            assert isinstance(found, str)
            assert secret not in found


def test_kafka_columns_in_the_schema_are_not_read_from_the_value() -> None:
    schema = table_schema("a BIGINT", kafka_columns=True)
    decoded = JsonDecoder(schema).decode(batch_of([b'{"a":1,"_kafka_offset":99}']))
    assert decoded.table.to_pylist() == [{"a": 1}]


def test_a_schema_of_maps_alone_is_refused() -> None:
    with pytest.raises(SchemaError, match="only MAP columns"):
        JsonDecoder(parse_ddl("m MAP<STRING,STRING>"))


# --- the reasons and Arrow agree --------------------------------------------------------------------

TYPES = "INT BIGINT FLOAT DOUBLE BOOLEAN STRING DATE TIMESTAMP DECIMAL(5,2) ARRAY<INT> STRUCT<x:DATE>".split()
two_digits = st.integers(0, 99).map("{:02}".format)
times = st.builds(
    '"{}-{}-{}{}{}{}"'.format,
    *(st.sampled_from(["2024", "0000", "0001", "9999", "24"]), two_digits, two_digits, st.sampled_from("T  :")),
    st.lists(two_digits, max_size=4).map(":".join) | st.sampled_from(["03:04:05.5", "23:59:59.1234567", "03:04:60"]),
    st.sampled_from(["", "Z", "z", "+02", "-02:30", "+0230", "+25:00", "+02:99", " Z", "+23:59", "-24:00"]),
)
numbers = st.one_of(
    st.sampled_from("0 -0 1.0 1e2 1E+2 01 +1 .5 1. NaN -NaN Inf -Inf Infinity -Infinity nan 1e400 1e-400".split()),
    st.integers(-(2**70), 2**70).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.decimals(-2000, 2000, places=3).map(str),
    st.builds("{}e{}".format, st.integers(0, 10_000), st.integers(-8, 45)),
)
texts = st.one_of(
    numbers,
    numbers.map(json.dumps),
    times,
    st.sampled_from(["null", "true", "[]", "[1,null]", "{}", '{"x":"2024-01-01"}', '{"x":1}', '"\\ud800"', "oops"]),
    st.text(max_size=4).map(json.dumps),
)


@settings(max_examples=2_000, deadline=None)
@given(st.sampled_from(TYPES), texts)
def test_what_is_explained_as_bad_arrow_refuses_too(ddl_type: str, text: str) -> None:
    """So the reasons, which also decide where there are many rejects, never turn away a good record."""
    schema = parse_ddl(f"a {ddl_type}")
    value = b'{"a":%s}' % text.encode()
    try:
        JsonDecoder(schema)._parse([value])
    except ValueError:
        return
    assert explain(value, schema) == ""


def test_the_reader_that_arrow_brings_still_refuses_what_the_proof_needs() -> None:
    """The alignment argument rests on these two; a new Arrow release must not change them."""
    decoder = JsonDecoder(parse_ddl("a STRING"))
    for split_document in ([b'{"other":"}', b'{"}'], [b'{"other":[{}', b"{}]}"], [b'{"o":{"p":{}', b'{}}}']):
        with pytest.raises(pa.ArrowInvalid):
            decoder._parse(split_document)

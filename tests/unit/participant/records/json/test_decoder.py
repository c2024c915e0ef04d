"""The decoder's promise: each row is the JSON of its own value at its own offset, all else is a reject."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from control_topic.messages import SourcePartition
from participant.records.json import decoder as decode
from participant.records.json.decoder import Decoded, JsonDecoder
from participant.records.raw import RawBatch, Values
from table.schema import parse_ddl
from tests.json_decoders import DECODERS, skip_unless_there

made = DECODERS["plain"]


@pytest.fixture(scope="module", params=DECODERS, autouse=True)
def name(request: pytest.FixtureRequest) -> str:
    """Every test here is played with each of them."""
    global made
    skip_unless_there(request.param)
    made = DECODERS[request.param]
    return str(request.param)


PLACE = SourcePartition("events", 3)


def batch_of(values: Sequence[bytes | None], first: int = 1_000) -> RawBatch:
    """Offsets with gaps, so that an index is never mistaken for an offset."""
    offsets = np.arange(len(values), dtype=np.int64) * 7 + first
    return RawBatch(partition=PLACE, offsets=offsets, timestamps_ms=offsets + 5, values=Values.of(values))


def decode_values(ddl: str, *values: bytes | str | None) -> Decoded:
    raw = [v.encode() if isinstance(v, str) else v for v in values]
    return made(parse_ddl(ddl)).decode(batch_of(raw))


def rows_by_offset(batch: RawBatch, decoded: Decoded) -> dict[int, dict[str, Any]]:
    kept = range(len(batch.values)) if decoded.kept is None else decoded.kept
    assert len(kept) == decoded.table.num_rows
    rows = decoded.table.to_pylist()
    return {int(batch.offsets[i]): row for i, row in zip(kept, rows, strict=True)}


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
            lambda inner: (
                st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2)
            ),
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
    *(
        None,
        b"",
        b" ",
        b"\n",
        b"[]",
        b"[{}]",
        b"null",
        b"true",
        b"1",
        b'"x"',
        b"{",
        b"}",
        b"{}",
        b"}{",
        b"{}{}",
    ),
    *(b"{} {}", b"{}\n{}", b'{"a":"x', b'y"}', b'{"a":', b'"x"}', b'{"c":[', b"]}", b'{"other":[{', b"}]}"),
    *(b'{"a":"\x00"}', b"{}\x00", b"\x00{}", b'{"a":"\xff"}', b'{"other":"\xc3"}', b'{"a":"x\ny"}'),
    *(b"\xef\xbb\xbf{}", b'{"a":"x"}null', b"{} null {}", b"null{}", b"{}[]", b"[]{}", b"{}1", b'{"a":1}'),
    *(b'{"b":"1"}', b'{"b":1.0}', b'{"b":9223372036854775808}', b'{"a":"x","a":"y"}', b'{"a":"\\ud800"}'),
    *(
        b"{,}",
        b'{"a"}',
        b"{}}",
        b"{{}",
        b'{"a":"}\n{"}',
        b'{"other":{}\n{}}',
        b"{}/**/{}",
        b"\x0b{}",
        b"{}\xc2\xa0",
    ),
]
pieces = st.lists(st.sampled_from([v for v in AWKWARD if v]) | written() | blanks, min_size=1, max_size=3)
torn = st.builds(lambda v, at: v[: at % (len(v) + 1)], written(), st.integers(0, 80))
torn_end = st.builds(lambda v, at: v[at % (len(v) + 1) :], written(), st.integers(0, 80))
values = st.one_of(
    written(),
    written(),
    st.sampled_from(AWKWARD),
    pieces.map(b"".join),
    torn,
    torn_end,
    st.binary(max_size=6),
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
    decoded = made(parse_ddl(DDL)).decode(batch)
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
    decoder = made(parse_ddl(DDL))
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
    decoded = decode_values(
        "a BIGINT", '{"a":1,"b":' + "[" * depth + "]" * depth + "}", '{"b":' + "[" * depth
    )
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
    decoded = decode_values("a BIGINT", *[f'{{"a":{i}}}' for i in range(500)])
    assert decoded.table.column("a").to_pylist() == list(range(500))
    assert decoded.kept is None and not decoded.rejects


def test_the_head_of_a_batch_decodes_like_the_whole() -> None:
    batch = batch_of([b'{"a":1}', b'{"a":2}', b"oops"])
    decoded = made(parse_ddl("a BIGINT")).decode(batch.head(2))
    assert decoded.table.column("a").to_pylist() == [1, 2]

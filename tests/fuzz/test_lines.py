"""The faster JSON reader: what it takes is what the strict one reads; what is not plain it leaves alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from participant.records.json.lines import line_reader, works
from participant.records.raw import Values
from table.schema import parse_ddl
from tests.fuzz import reference, strategies

pytestmark = pytest.mark.skipif(not works(), reason="polars is not installed")

SCHEMA = parse_ddl("id STRING, n BIGINT, x DOUBLE, ok BOOLEAN, k INT, note STRING")
TEXT = st.text(st.sampled_from('ab:",.-0 \\/}]é\t'), max_size=8)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False).map(repr) | st.sampled_from(
    ("-0", "-0.0", "0", "1E5", "123456789012345678901234567890", "0.1e-400", "4.9e-324", "2e308")
)
ROWS = st.fixed_dictionaries(
    {
        "id": TEXT.map(lambda text: json.dumps(text, ensure_ascii=False)),
        "n": st.integers(-(2**63), 2**63 - 1).map(str),
        "x": NUMBERS,
        "ok": st.sampled_from(("true", "false")),
        "k": st.integers(-(2**31), 2**31 - 1).map(str),
        "note": TEXT.map(lambda text: json.dumps(text, ensure_ascii=False)),
    }
)
ODD = st.sampled_from(
    (
        *("1", "1.0", "-1", '"1"', "null", "true", '""', '":"', '"\\u003a"', '"\\u0022"', '"\\ud800"', "{}"),
        *("[]", '{"id":"x"}', '["x"]', "NaN", "01", '"\\/"', '"}\\n{"', "9223372036854775808"),
    )
)


def spelled(members: list[tuple[str, str]], blank: str = "") -> bytes:
    inside = f",{blank}".join(f'"{name}"{blank}:{blank}{value}' for name, value in members)
    return f"{{{blank}{inside}{blank}}}".encode()


@st.composite
def values(draw: Callable[[Any], Any]) -> bytes:
    """A row in any order; sometimes with a field twice, missing, unknown, or of another kind."""
    members = draw(st.permutations(list(draw(ROWS).items())))
    for change in draw(st.lists(st.sampled_from(("twice", "missing", "unknown", "odd")), max_size=2)):
        place = draw(st.integers(0, len(members) - 1)) if members else 0
        if change == "twice" and members:
            members.insert(place, (members[place][0], draw(ODD | st.just(members[place][1]))))
        elif change == "missing" and members:
            del members[place]
        elif change == "unknown":
            members.insert(place, (draw(st.sampled_from(("z", "ID", "a:b", 'q"', "{"))), draw(ODD)))
        elif change == "odd" and members:
            members[place] = (members[place][0], draw(ODD))
    named = [(json.dumps(name)[1:-1], value) for name, value in members]
    return spelled(named, draw(st.sampled_from(("", " ", "\t"))))


def read(drawn: list[bytes]) -> list[dict[str, Any]] | None:
    reader = line_reader(SCHEMA)
    assert reader is not None
    table = reader.read(Values.of(drawn))
    return None if table is None else table.to_pylist()


def wanted(value: bytes) -> Any:
    try:
        return reference.read(value, SCHEMA).row
    except reference.Refused:
        return None


@settings(strategies.PROFILE, max_examples=600)
@given(st.lists(values(), min_size=1, max_size=3))
def test_whatever_it_takes_is_what_the_strict_reading_gives(drawn: list[bytes]) -> None:
    rows = read(drawn)
    if rows is not None:
        for row, value in zip(rows, drawn, strict=True):
            assert reference.same(row, wanted(value)), value


@settings(strategies.PROFILE, max_examples=300)
@given(st.lists(ROWS, min_size=1, max_size=4))
def test_what_is_plain_is_taken(drawn: list[dict[str, str]]) -> None:
    assume(not any(float(row["x"]) in (float("inf"), float("-inf")) for row in drawn))
    plain = [spelled(list(row.items())) for row in drawn]
    assume(not any(b"\\u" in value for value in plain))
    assert read(plain) is not None


@pytest.mark.parametrize(
    "value",
    [
        b'{"id":"a","n":1,"n":1,"x":1.5,"ok":true,"k":1,"note":""}',
        b'{"id":5,"n":1,"n":1,"x":1.5,"ok":true,"k":1,"note":"\\""}',
        b'{"id":5,"z":"","n":1,"x":1.5,"ok":true,"k":1,"note":""}',
        b'{"id":true,"n":1,"x":1.5,"ok":true,"k":1,"note":"\\u0022"}',
        b'{"id":"\\ud800","n":1,"x":1.5,"ok":true,"k":1,"note":""}',
        b'{"id":["x"],"n":1,"x":1.5,"ok":true,"k":1,"note":""}',
        b'{"id":{"x":"y"},"n":1,"x":1.5,"ok":true,"k":1,"note":""}',
        b'{"id":"a","n":1,"x":1.5,"ok":true,"k":1,"note":null}',
        b'{"id":"a","n":1,"x":1.5,"ok":true,"k":1}',
    ],
)
def test_what_polars_would_take_too_easily_is_left_to_the_strict_reader(value: bytes) -> None:
    good = b'{"id":"a","n":1,"x":1.5,"ok":true,"k":1,"note":"b"}'
    assert read([good, good]) is not None
    assert read([good, value]) is None


def test_two_halves_of_a_document_are_not_two_values() -> None:
    good = b'{"id":"a","n":1,"x":1.5,"ok":true,"k":1,"note":"b"}'
    assert read([good[:-1] + b"}" + good, b'{"id":"x}', b'{y"}']) is None


@pytest.mark.parametrize("ddl", ["a DATE", "a STRUCT<b: INT>", "a FLOAT", "a DECIMAL(9,2)"])
def test_other_schemas_are_the_strict_readers(ddl: str) -> None:
    assert line_reader(parse_ddl(ddl)) is None


def test_who_is_refused_again_and_again_is_tried_ever_more_seldom() -> None:
    reader = line_reader(SCHEMA)
    assert reader is not None
    tried: list[int] = []
    real = reader._read
    for attempt in range(200):
        reader._read = lambda drawn, attempt=attempt: tried.append(attempt) or real(drawn)  # type: ignore[method-assign]
        assert reader.read(Values.of([b'{"id":null}'])) is None
    assert tried == [0, 3, 8, 17, 34, 67, 132, 197]

"""Records under hypothesis: each is one row with its own values, or one reject."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Message
from hypothesis import example, given, settings
from hypothesis import strategies as st

from control_topic.messages import SourcePartition
from participant.source.fetcher import runs
from table.schema import parse_ddl
from tests.fuzz import records, reference, strategies
from tests.fuzz.reference import Refused

BATCHES, LAYOUTS = records.TARGETS
WIDE = (
    "id STRING, a BIGINT, b DOUBLE, c STRING, d STRUCT<a: STRING NOT NULL, b: ARRAY<BOOLEAN>>, "
    "e MAP<STRING, DOUBLE>, f DECIMAL(38,18), g FLOAT"
)


@settings(strategies.PROFILE, max_examples=300)
@given(strategies.cases(BATCHES))
@example(("id STRING, a DECIMAL(9,2)", [b'{"a":"0e-2147483647"}', b'{"a":1}']))
@example(("id STRING, a DECIMAL(9,2)", [b'{"a":"0\\u0065-2147483647"}']))
@example(("id STRING, a MAP<STRING, DECIMAL(9,2)>", [b'{"a":{"k":0E-999999999}}', b'{"a":{"k":"1"}}']))
@example(("id STRING, a DECIMAL(38,18)", [b'{"a":571016573983823738335044}', b'{"a":"1"}']))
@example(("id STRING, a DECIMAL(38,38)", [b'{"a":1e5}', b'{"a":"1E+2"}']))
@example(("id STRING, a STRUCT<a: STRING NOT NULL, b: INT>", [b"{}", b'{"a":null}', b'{"a":{"a":"x"}}']))
@example(("id STRING, a STRUCT<a: ARRAY<INT> NOT NULL>", [b'{"a":{"a":[1]}}', b'{"a":{"a":null}}']))
@example(("id STRING, a STRUCT<a: STRUCT<a: DATE> NOT NULL>", [b'{"a":{"a":{}}}', b'{"a":{}}', b"{}"]))
def test_each_record_is_one_row_with_its_own_values_or_one_reject(case: Any) -> None:
    BATCHES.check(case)


@settings(strategies.PROFILE, max_examples=200)
@given(strategies.cases(LAYOUTS))
def test_each_row_carries_its_own_coordinates_key_and_table_partition(case: Any) -> None:
    LAYOUTS.check(case)


@settings(strategies.PROFILE, max_examples=800)
@given(st.lists(strategies.values(), min_size=1, max_size=8))
def test_any_json_and_any_bytes_are_a_row_or_a_reject(drawn: list[bytes | None]) -> None:
    BATCHES.check((WIDE, drawn))


@settings(strategies.PROFILE, max_examples=300)
@given(st.lists(st.tuples(st.sampled_from(("t", "u")), st.integers(0, 2)), min_size=1, max_size=20))
def test_a_fetched_batch_is_cut_by_source_partition_and_keeps_its_order(
    places: list[tuple[str, int]],
) -> None:
    batch = [Message(topic=topic, partition=number) for topic, number in places]
    cut = list(runs(batch, single_topic=len({topic for topic, _ in places}) == 1))
    assert sorted(map(id, batch)) == sorted(id(one) for _, run in cut for one in run)
    assert len({place for place, _ in cut}) == len(cut)
    for place, run in cut:
        kept = [one for one, at in zip(batch, places, strict=True) if SourcePartition(*at) == place]
        assert list(map(id, run)) == list(map(id, kept))


# --- the reference itself -----------------------------------------------------------------------------

SCHEMA = parse_ddl("id STRING NOT NULL, n BIGINT, more MAP<STRING, BIGINT>")


def test_the_reference_reads_a_row() -> None:
    row = reference.read(b' {"id":"a","n":1,"more":{"k":2},"z":[{}]}\n', SCHEMA).row
    assert row == {"id": "a", "n": 1, "more": [("k", 2)]}


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b'{"n":1}',
        b'{"id":"a"}{"id":"b"}',
        b'{"id":"a","n":1.0}',
        b'{"id":"a","id":"b"}',
        b'{"id":"\xff"}',
    ],
)
def test_the_reference_refuses(value: bytes | None) -> None:
    with pytest.raises(Refused):
        reference.read(value, SCHEMA)


@pytest.mark.parametrize(
    ("row", "wanted"), [(1, 1.0), (0.0, -0.0), (True, 1), ({"a": 1}, {"a": 2}), ([1], [1, 2])]
)
def test_the_comparison_tells_types_and_values_apart(row: Any, wanted: Any) -> None:
    assert reference.same(wanted, wanted)
    assert not reference.same(row, wanted)


def test_a_decoder_that_shifts_rows_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = records._decoder("id STRING, a INT")
    assert decoder is not None
    parse = decoder._read

    def shifted(values: Any) -> pa.Table:
        read = parse(values)
        return read.take(pa.array([*range(1, read.num_rows), 0]))

    monkeypatch.setattr(decoder, "_read", shifted)
    with pytest.raises(AssertionError, match="instead of"):
        BATCHES.check(("id STRING, a INT", [b'{"id":"r0","a":1}', b'{"id":"r1","a":2}']))

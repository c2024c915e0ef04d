"""Columns that a table has for its partitions, and the rows that can have none."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from table.partitioners.bounds import ANY_TIME, Bounds
from table.partitioners.expressions import TermError, parse
from table.partitioners.making import at, codes, made, mark, type_of

HOUR = 3_600_000
TS = pa.timestamp("us", tz="UTC")


def of(text: str, values: Any, kind: pa.DataType, times_ms: Any = None, bounds: Bounds = ANY_TIME) -> Any:
    """The values, and the rows that have none."""
    column = pa.chunked_array([pa.array(values[:1], kind), pa.array(values[1:], kind)])
    table = pa.table({"x": column})
    times_ms = np.array(times_ms if times_ms is not None else [0] * len(values), dtype=np.int64)
    one = made(parse(text), table, times_ms, bounds)
    assert type_of(parse(text), pa.field("x", kind)) in (
        one.values.type,
        getattr(one.values.type, "value_type", None),
    )
    return one.values.to_pylist(), dict(one.bad)


def test_a_null_is_a_null_and_what_is_no_time_is_a_reject() -> None:
    values, bad = of("day(epoch_ms(x))", [0, None, 2**60], pa.int64())
    assert values == ["1970-01-01", None, None]
    assert bad == {2: "field x: no time of the years 1 to 9999, by which it is partitioned"}


def test_a_row_shows_its_own_time_whatever_is_beside_it() -> None:
    noon = datetime(2026, 11, 26, 12, tzinfo=UTC)
    assert of("hour(x)", [noon, None, noon], TS)[0] == ["2026-11-26-12", None, "2026-11-26-12"]
    assert of("year(x)", [noon], TS)[0] == ["2026"]
    assert of("month(x)", [noon], TS)[0] == ["2026-11"]
    assert of("minutes(30, x)", [noon], TS)[0] == ["2026-11-26-12-00"]
    assert of('format(x, "d.M.yyyy", "Asia/Tokyo") as f', [noon], TS)[0] == ["26.11.2026"]
    assert of("day(x)", [noon.date()], pa.date32())[0] == ["2026-11-26"]
    assert of("day(x)", [noon.replace(tzinfo=None)], pa.timestamp("us"))[0] == ["2026-11-26"]


def test_a_time_in_kafka_is_that_of_the_record_and_any_number_is_one() -> None:
    values, bad = of("day(_kafka_timestamp)", [0] * 4, pa.int64(), [0, -1, 2**62, -(2**62)])
    assert values == ["1970-01-01", "1969-12-31", "9999-12-31", "0001-01-01"] and not bad


def test_times_beyond_the_bounds_are_rejects_or_set_aside() -> None:
    record_ms = [100 * HOUR] * 4 + [-1]
    hours = [100, 98, 101, 102, 0]
    micros = [hour * HOUR * 1_000 for hour in hours]
    bounds = Bounds(max_age_ms=HOUR, max_ahead_ms=HOUR)
    values, bad = of("hour(x)", micros, TS, record_ms, bounds)
    assert set(bad) == {1, 3} and "partition.max_age" in bad[1]
    assert [values[row] for row in (0, 2, 4)] == ["1970-01-05-04", "1970-01-05-05", "1970-01-01-00"]
    aside = Bounds(max_age_ms=HOUR, max_ahead_ms=HOUR, set_aside=True)
    values, bad = of("hour(x)", micros, TS, record_ms, aside)
    assert values[1] == values[3] == "late" and not bad
    only_old = Bounds(max_age_ms=HOUR, set_aside=True)
    assert of("hour(x)", micros, TS, record_ms, only_old)[0].count("late") == 1
    absurd = of("hour(x)", [datetime(1, 1, 1, tzinfo=UTC), None], TS, [2**62, 2**62], aside)
    assert absurd == (["late", None], {})


def test_a_truncated_text_counts_characters_and_a_number_goes_down() -> None:
    assert of("truncate(2, x)", ["äöü", "a", "", None], pa.string())[0] == ["äö", "a", "", None]
    values, bad = of("truncate(10, x)", [19, -1, 0, None, -(2**31)], pa.int32())
    assert values[:4] == [10, -10, 0, None] and set(bad) == {4}


def test_buckets_are_numbers_and_long_texts_have_none() -> None:
    values, bad = of("bucket(7, x)", ["a", "b", None, "x" * 4_097], pa.string())
    assert all(0 <= value < 7 for value in values) and values[2] == 42 % 7 and set(bad) == {3}


def test_now_is_a_mark_until_the_instant_is_known() -> None:
    term = parse('hour(now(), "Europe/Berlin")')
    values, _ = of('hour(now(), "Europe/Berlin")', [1, 2], pa.int64())
    assert values == [mark(term)] * 2
    assert at(term, datetime(2026, 3, 29, 0, 59, 59, tzinfo=UTC)) == "2026-03-29-01"
    assert at(term, datetime(2026, 3, 29, 1, 0, 0, tzinfo=UTC)) == "2026-03-29-03"


@pytest.mark.parametrize(
    ("text", "kind", "sentence"),
    [
        ("day(x)", pa.int64(), r"no TIMESTAMP, TIMESTAMP_NTZ or DATE: say how.*epoch_s\(x\)"),
        ("day(x)", pa.string(), "no TIMESTAMP"),
        ("day(epoch_s(x))", pa.string(), "reads INT and BIGINT"),
        ('day(parse(x, "yyyy-MM-dd"))', pa.int64(), "reads a STRING"),
        ("hour(x)", pa.date32(), "a DATE has no hour"),
        ('day(x, "Asia/Tokyo")', pa.date32(), "leave the zone out"),
        ('day(x, "Asia/Tokyo")', pa.timestamp("us"), "leave the zone out"),
        ("bucket(4, x)", pa.float64(), "no STRING, INT or BIGINT"),
        ("truncate(4, x)", TS, "no STRING, INT or BIGINT"),
    ],
)
def test_a_field_of_another_type_is_refused_by_name(text: str, kind: pa.DataType, sentence: str) -> None:
    with pytest.raises(TermError, match=rf"\w+\(x\): .*{sentence}"):
        type_of(parse(text), pa.field("x", kind))


def test_every_value_has_one_code_and_null_its_own() -> None:
    for column in (
        pa.chunked_array([["monday"], [None, "monday"]]),
        pa.chunked_array([pa.array(["monday", None, "monday"]).dictionary_encode()]),
    ):
        found = codes(column)
        assert found.to_pylist() == ["monday", None, "monday"] and not found.indices.null_count

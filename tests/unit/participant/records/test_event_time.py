"""Which event times of a batch count, and what they are in milliseconds."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from control_topic.messages import EVENT_TIME_MAX_MS, SourcePartition
from participant.records.event_time import UNITS, BatchTimes, EventTimeReader
from participant.records.raw import RawBatch, Values
from table.rows import Rows, Tombstones
from table.watermark import KAFKA_TIMESTAMP

P0 = SourcePartition("events", 0)
NOW_MS = 1_764_000_000_000
AHEAD_MS = 3_600_000


def reader(column: str = "at", unit: str = "ms") -> EventTimeReader:
    return EventTimeReader(column, unit, AHEAD_MS, lambda: NOW_MS)


def rows(values: list[Any], kind: pa.DataType, stamps: list[int] | None = None) -> Rows:
    return Rows(
        source=P0,
        length=len(values),
        columns=pa.table({"at": pa.array(values, type=kind)}),
        offsets=np.arange(len(values), dtype=np.int64),
        timestamps_ms=np.array(stamps if stamps is not None else [NOW_MS] * len(values), dtype=np.int64),
    )


def batch(stamps: list[int]) -> RawBatch:
    return RawBatch(
        partition=P0,
        offsets=np.arange(len(stamps), dtype=np.int64),
        timestamps_ms=np.array(stamps, dtype=np.int64),
        values=Values.of([b"{}"] * len(stamps)),
    )


def read(given_rows: Rows, *, unit: str = "ms", refused: tuple[int, ...] = ()) -> BatchTimes:
    times = reader(unit=unit).read(given_rows, batch(given_rows.timestamps_ms.tolist()), refused)
    assert times is not None
    return times


@pytest.mark.parametrize(
    ("kind", "unit", "value", "time_ms"),
    [
        (
            pa.timestamp("us", tz="UTC"),
            "s",
            datetime(2025, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC),
            1_735_787_045_678,
        ),
        (pa.timestamp("us"), "ms", datetime(1969, 12, 31, 23, 59, 59, 999_999), -1),
        (pa.date32(), "ms", date(1970, 1, 3), 172_800_000),
        (pa.int64(), "s", 1_735_787_045, 1_735_787_045_000),
        (pa.int64(), "ms", -5, -5),
        (pa.int64(), "us", -1, -1),
        (pa.int64(), "ns", 1_735_787_045_678_999_999, 1_735_787_045_678),
        (pa.int64(), "s", -(2**63), -EVENT_TIME_MAX_MS),
    ],
)
def test_each_type_is_read_in_its_unit(kind: pa.DataType, unit: str, value: Any, time_ms: int) -> None:
    assert read(rows([value], kind), unit=unit).greatest_ms == time_ms


def test_nulls_what_was_refused_and_rows_that_delete_do_not_count() -> None:
    said = rows([10, None, 30, 40], pa.int64())
    assert read(said, refused=(3,)).greatest_ms == 30
    deleting = replace(said, deleted=np.array([False, False, False, True]))
    assert read(deleting).greatest_ms == 30
    assert read(rows([None], pa.int64())).greatest_ms is None
    assert read(rows([], pa.int64())).greatest_ms is None


def test_of_a_batch_with_gaps_it_is_told_by_place_who_was_refused() -> None:
    said = replace(rows([10, 20], pa.int64()), length=9, kept=np.array([3, 7], dtype=np.int64))
    assert read(said, refused=(7,)).greatest_ms == 10


def test_what_is_too_far_ahead_of_its_record_or_of_the_clock_is_absurd_and_counted() -> None:
    old = NOW_MS - 10 * AHEAD_MS
    said = rows(
        [old + AHEAD_MS, old + AHEAD_MS + 1, NOW_MS + AHEAD_MS + 1, 5], pa.int64(), [old, old, NOW_MS, old]
    )
    times = read(said)
    assert (times.greatest_ms, times.absurd, sorted(times.values.tolist())) == (
        old + AHEAD_MS,
        2,
        [5, old + AHEAD_MS],
    )


def test_a_record_that_has_no_timestamp_is_held_to_the_clock_alone() -> None:
    times = read(rows([NOW_MS + AHEAD_MS, NOW_MS + AHEAD_MS + 1], pa.int64(), [-1, 0]))
    assert (times.greatest_ms, times.absurd) == (NOW_MS + AHEAD_MS, 1)


def test_the_records_own_timestamps_count_of_those_too_that_delete_by_their_key() -> None:
    stamps = [NOW_MS, NOW_MS + 1, NOW_MS + 2, -1, NOW_MS + AHEAD_MS + 1]
    said = replace(
        rows([1, 2, 3, 4], pa.int64(), [stamps[0], stamps[1], stamps[3], stamps[4]]),
        length=5,
        kept=np.array([0, 1, 3, 4], dtype=np.int64),
        tombstones=Tombstones(
            columns=pa.table({"at": [1]}),
            places=np.array([2], dtype=np.int64),
            offsets=np.array([2], dtype=np.int64),
        ),
    )
    times = reader(KAFKA_TIMESTAMP).read(said, batch(stamps), (1,))
    assert times is not None and times.absurd == 1
    assert sorted(times.values.tolist()) == [NOW_MS, NOW_MS + 2]
    times = reader(KAFKA_TIMESTAMP).read(said, batch(stamps), (1, 2))
    assert times is not None and times.values.tolist() == [NOW_MS], "one without a key deletes nothing"


@pytest.mark.parametrize("kind", [None, pa.string()])
def test_a_column_that_schemas_never_bring_or_bring_as_no_time_has_none_and_is_told_once(
    kind: pa.DataType | None, caplog: pytest.LogCaptureFixture
) -> None:
    reading = reader("at" if kind is not None else "missing")
    for _ in range(2):
        assert reading.read(rows(["x"] if kind else [1], kind or pa.int64()), batch([NOW_MS]), ()) is None
    assert len([r for r in caplog.records if "has no event times" in r.getMessage()]) == 1


numbers = st.integers(-(2**63), 2**63 - 1) | st.integers(0, 2 * NOW_MS)


@given(
    st.lists(
        st.tuples(st.none() | numbers, st.integers(-1, 2**62) | st.integers(0, 2 * NOW_MS)), max_size=20
    ),
    st.sampled_from(sorted(UNITS)),
    st.integers(-EVENT_TIME_MAX_MS, EVENT_TIME_MAX_MS) | st.integers(0, 2 * NOW_MS),
)
def test_a_whole_batch_says_what_its_rows_say_one_by_one(
    given_rows: list[tuple[int | None, int]], unit: str, watermark_ms: int
) -> None:
    over, under = UNITS[unit]
    counted, absurd = [], 0
    for value, stamp in given_rows:
        limit_ms = (min(stamp, NOW_MS) if stamp > 0 else NOW_MS) + AHEAD_MS
        if value is None:
            continue
        if value * over // under > limit_ms:
            absurd += 1
        else:
            counted.append(max(-EVENT_TIME_MAX_MS, value * over // under))
    times = read(rows([v for v, _ in given_rows], pa.int64(), [s for _, s in given_rows]), unit=unit)
    assert times.greatest_ms == max(counted, default=None)
    assert times.absurd == absurd
    whole = [v * over // under for v in times.values.tolist()]
    assert times.late(watermark_ms) == sum(at < watermark_ms for at in whole)
    assert times.late(None) == 0

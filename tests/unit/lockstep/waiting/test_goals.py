"""What is waited for, and how much of it the table has."""

from __future__ import annotations

import pytest

from control_topic.messages import SourcePartition
from lockstep.errors import ConfigError
from lockstep.waiting.goals import (
    LISTED_MAX,
    ToLag,
    ToOffsets,
    ToTime,
    judge,
    listed,
    parse_wanted,
    sentence,
)
from table.watermark import Mark, Watermark

A, B = SourcePartition("events", 0), SourcePartition("events", 1)


def test_offsets_are_reached_once_each_next_offset_is_there_or_beyond() -> None:
    goal = ToOffsets(wanted={A: 10, B: 5})
    assert judge(goal, {A: 10, B: 7}, None).reached
    verdict = judge(goal, {A: 9, B: 7}, None)
    assert not verdict.reached
    assert sentence(goal, verdict) == "events:0 is at 9, 10 is waited for"


def test_a_source_partition_that_nobody_has_begun_to_read_is_not_reached_even_at_0() -> None:
    goal = ToOffsets(wanted={A: 0})
    assert not judge(goal, {}, None).reached
    verdict = judge(goal, None, None)
    assert not verdict.reached and verdict.missing[0].committed is None
    assert "has no offset in the table" in sentence(goal, verdict)
    assert judge(goal, {A: 0}, None).reached


def test_ends_that_are_not_known_are_not_reached() -> None:
    assert not judge(ToOffsets(wanted=None), {A: 10**9}, None).reached
    assert not judge(ToLag(records_max=10**9), {A: 1}, None).reached


def test_a_lag_is_of_all_source_partitions_together() -> None:
    ends = {A: 10, B: 10}
    assert judge(ToLag(records_max=5), {A: 8, B: 7}, ends).reached
    verdict = judge(ToLag(records_max=4), {A: 8, B: 7}, ends)
    assert not verdict.reached and verdict.lag == 5
    assert sentence(ToLag(records_max=4), verdict).startswith(
        "the table is 5 records behind, 4 are waited for"
    )


def test_a_table_that_is_ahead_of_an_end_makes_up_for_nothing() -> None:
    """Another topic of the same name: one partition beyond its end, another behind."""
    verdict = judge(ToLag(records_max=0), {A: 100, B: 0}, {A: 10, B: 3})
    assert not verdict.reached and verdict.lag == 3


def test_without_an_offset_there_is_no_lag_however_many_are_allowed() -> None:
    verdict = judge(ToLag(records_max=10**12), {A: 8}, {A: 8, B: 0})
    assert not verdict.reached and verdict.lag is None


def test_a_time_is_reached_once_the_watermark_is_there_or_beyond() -> None:
    goal = ToTime(at_ms=1_763_596_800_000)
    marks = {A: Mark(1_763_596_799_999), B: Mark(1_763_600_000_000)}
    before = Watermark(of="at", at_ms=1_763_596_799_999, marks=marks)
    verdict = judge(goal, {A: 1, B: 1}, None, before)
    assert not verdict.reached
    said = "the table is complete through 2025-11-19T23:59:59.999Z; it waits for events:0"
    assert sentence(goal, verdict) == said
    assert judge(goal, {}, None, Watermark(of="at", at_ms=goal.at_ms)).reached


def test_no_watermark_is_not_reached_and_neither_is_one_of_another_event_time() -> None:
    goal = ToTime(at_ms=0, of="at")
    assert "has no watermark of the record.event_time" in sentence(goal, judge(goal, {}, None, None))
    other = judge(goal, {}, None, Watermark(of="at:s", at_ms=9))
    assert not other.reached and "has no watermark of" in sentence(goal, other)
    nobody = judge(goal, {}, None, Watermark(of="at", marks={A: Mark()}))
    assert sentence(goal, nobody) == "nobody knows yet how far the table is complete; it waits for events:0"
    idle = judge(goal, {}, None, Watermark(of="at", at_ms=-1, marks={A: Mark(-1, 5, True)}))
    assert sentence(goal, idle).endswith("every source partition is idle")


def test_offsets_are_written_as_topic_partition_offset() -> None:
    assert parse_wanted(["events:0=12", "events:1=0"], ["events"]) == {A: 12, B: 0}


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["events"], "write TOPIC:P=OFFSET"),
        (["events:0"], "write TOPIC:P=OFFSET"),
        (["events:0=latest"], "write TOPIC:P=OFFSET"),
        (["events:0=-1"], "write TOPIC:P=OFFSET"),
        (["events:٣=1"], "write TOPIC:P=OFFSET"),
        (["other:0=1"], "not one of the pipeline's source topics"),
        (["events:0=1", "events:0=2"], "given twice"),
        (["events:0=9999999999999999999"], "no offset is greater"),
    ],
)
def test_what_is_no_offset_is_a_sentence(texts: list[str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        parse_wanted(texts, ["events"])


def test_a_thousand_missing_are_neither_all_said_nor_all_listed() -> None:
    goal = ToOffsets(wanted={SourcePartition("events", n): 1 for n in range(1_000)})
    verdict = judge(goal, None, None)
    assert len(sentence(goal, verdict)) < 400 and "997 more" in sentence(goal, verdict)
    assert len(listed(verdict.missing)) == LISTED_MAX

"""The watermark's sentences: what moves it, what holds it, and that nothing takes it back."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from control_topic.messages import EVENT_TIME_MAX_MS, EventTimes, Range, SourcePartition
from table.watermark import (
    Mark,
    MarkRule,
    Progress,
    Watermark,
    advance,
    from_json,
    might_be_idle,
    to_json,
)

P0, P1, P2 = (SourcePartition("events", number) for number in range(3))
RULE = MarkRule(of="at", lateness_ms=10, idle_after_ms=100)


@dataclass
class Topic:
    """What commits bring, one after the other. `offsets`: the table's."""

    rule: MarkRule = RULE
    present: tuple[SourcePartition, ...] = (P0, P1)
    offsets: dict[SourcePartition, int] = field(default_factory=lambda: dict.fromkeys((P0, P1, P2), 0))
    ends: dict[SourcePartition, int] = field(default_factory=dict)
    now: Watermark | None = None

    def commit(
        self,
        greatest: dict[SourcePartition, int | None] | None = None,
        *,
        read: tuple[SourcePartition, ...] | None = None,
        elapsed_ms: int = 0,
        late: int = 0,
    ) -> Watermark:
        """`greatest`: event times of those that bring a record. `read`: who is in the transaction."""
        seen = greatest or {}
        ranges = []
        for partition in self.present if read is None else read:
            start = self.offsets[partition]
            self.offsets[partition] += partition in seen
            ranges.append(
                Range(
                    partition=partition,
                    start=start,
                    next=start + (partition in seen),
                    records=partition in seen,
                )
            )
        self.now = advance(
            self.rule,
            self.now,
            Progress(
                ranges=ranges,
                offsets=dict(self.offsets),
                seen=[
                    EventTimes(partition=p, greatest_ms=at, late=late)
                    for p, at in seen.items()
                    if at is not None
                ],
                present=self.present,
                ends={**self.offsets, **self.ends},
                elapsed_ms=elapsed_ms,
            ),
        )
        return self.now


# --- what moves it ------------------------------------------------------------------------------


def test_the_tables_is_the_smallest_of_what_each_source_partition_may_still_bring() -> None:
    topic = Topic()
    marked = topic.commit({P0: 1_000, P1: 500})
    assert (marked.at_ms, marked.holder) == (490, P1)
    assert topic.commit({P1: 2_000}).at_ms == 990


def test_an_event_time_behind_the_greatest_takes_nothing_back() -> None:
    topic = Topic()
    topic.commit({P0: 1_000, P1: 1_000})
    assert topic.commit({P0: 20, P1: 20}).at_ms == 990


def test_until_every_source_partition_has_had_an_event_time_there_is_none() -> None:
    """A record without one says nothing: what may come of its source partition nobody knows."""
    topic = Topic()
    assert topic.commit({P0: 1_000, P1: None}).at_ms is None
    assert topic.commit({P1: 30}).at_ms == 20


def test_a_longer_lateness_from_now_on_takes_nothing_back() -> None:
    topic = Topic()
    topic.commit({P0: 1_000, P1: 1_000})
    topic.rule = replace(RULE, lateness_ms=500)
    assert topic.commit({P0: 1_100, P1: 1_100}).at_ms == 990
    assert topic.commit({P0: 2_000, P1: 2_000}).at_ms == 1_500


def test_another_declaration_is_another_watermark() -> None:
    """Else one that a wrong unit has carried away would stay there for ever."""
    topic = Topic()
    topic.commit({P0: 1_000_000, P1: 1_000_000})
    topic.rule = replace(RULE, of="at:s")
    assert topic.commit({P0: 70}).at_ms is None
    assert topic.commit({P1: 50}).at_ms == 40


def test_each_commit_says_where_it_came_from() -> None:
    """So that what it has completed is known of it alone."""
    topic = Topic()
    topic.commit({P0: 1_000, P1: 500})
    marked = topic.commit({P1: 2_000})
    assert (marked.before_ms, marked.at_ms) == (490, 990)
    assert (marked.carried().before_ms, marked.moved_to({P0: 0}).before_ms) == (990, 990)
    assert topic.commit().before_ms == 990


# --- what holds it ------------------------------------------------------------------------------


def test_who_is_read_to_the_end_and_has_had_nothing_for_long_enough_is_idle_and_holds_nothing() -> None:
    topic = Topic()
    topic.commit({P0: 100, P1: 100})
    assert topic.commit({P0: 900}, elapsed_ms=99).at_ms == 90
    marked = topic.commit({P0: 1_000}, elapsed_ms=1)
    assert (marked.at_ms, marked.marks[P1].idle, marked.holder) == (990, True, P0)


def test_who_is_behind_holds_it_however_long_nothing_has_come() -> None:
    """Stuck, or waiting for a schema: what it will bring is in the log already."""
    topic = Topic(ends={P1: 5})
    topic.commit({P0: 100, P1: 100})
    marked = topic.commit({P0: 1_000}, elapsed_ms=1_000)
    assert (marked.at_ms, marked.holder) == (90, P1)


def test_whom_nobody_reads_holds_it_even_at_the_logs_end() -> None:
    topic = Topic()
    topic.commit({P0: 100, P1: 100})
    assert topic.commit({P0: 1_000}, read=(P0,), elapsed_ms=1_000).at_ms == 90
    assert topic.commit({P0: 1_000}).at_ms == 990, "its log had nothing all the while"


def test_whose_logs_end_nobody_knows_holds_it() -> None:
    topic = Topic()
    topic.commit({P0: 100, P1: 100})
    assert topic.now is not None
    ranges = [Range(partition=P1, start=1, next=1)]
    progress = Progress(ranges=ranges, offsets={P1: 1}, seen=(), present=(P0, P1), ends={}, elapsed_ms=10**6)
    assert advance(RULE, topic.now, progress).holder == P0


def test_who_has_no_offset_yet_holds_it_as_soon_as_it_is_there() -> None:
    topic = Topic()
    topic.commit({P0: 100, P1: 100})
    topic.present = (P0, P1, P2)
    marked = topic.commit({P0: 1_000, P1: 1_000}, read=(P0, P1))
    assert (marked.at_ms, marked.holder) == (90, P2)
    assert topic.commit({P2: 5_000}).at_ms == 990


def test_one_that_never_had_a_record_leaves_it_when_it_is_idle() -> None:
    topic = Topic()
    assert topic.commit({P0: 100}).at_ms is None
    assert topic.commit({P0: 200}, elapsed_ms=100).at_ms == 190


def test_a_topic_that_is_read_no_more_does_not_hold_it() -> None:
    other = SourcePartition("other", 0)
    topic = Topic(present=(P0, other))
    topic.offsets[other] = 0
    topic.commit({P0: 100, other: 100})
    topic.present = (P0,)
    assert topic.commit({P0: 1_000}).at_ms == 990


def test_one_that_a_broker_does_not_name_for_once_still_holds_it() -> None:
    """A broker that lags behind the others does not know yet of a source partition that is new."""
    topic = Topic()
    topic.commit({P0: 1_000, P1: 700})
    topic.present = (P0,)
    assert topic.commit({P0: 2_000}, read=(P0,)).at_ms == 690


def test_where_all_are_idle_it_stays() -> None:
    topic = Topic()
    topic.commit({P0: 100, P1: 200})
    marked = topic.commit(elapsed_ms=1_000)
    assert (marked.at_ms, marked.holder) == (90, None)


def test_who_wakes_holds_it_where_it_is_and_does_not_take_it_back() -> None:
    topic = Topic()
    topic.commit({P0: 100, P1: 100})
    topic.commit({P0: 1_000}, elapsed_ms=100)
    marked = topic.commit({P0: 2_000, P1: 300}, late=1)
    assert (marked.at_ms, marked.holder, marked.late) == (990, P1, 2)


def test_whose_offset_was_moved_is_not_idle_until_it_is_known_again() -> None:
    topic = Topic()
    topic.commit({P0: 100, P1: 100})
    before = topic.commit({P0: 1_000}, elapsed_ms=100)
    topic.now = before.moved_to({P1: 0})
    assert topic.now.marks[P1] == Mark(90)
    topic.offsets[P1] = 0
    topic.ends[P1] = 1
    marked = topic.commit({P0: 5_000}, elapsed_ms=1_000)
    assert (marked.at_ms, marked.holder) == (990, P1)


def test_one_that_an_operator_has_taken_out_with_its_topic_made_anew_holds_nothing() -> None:
    topic = Topic()
    before = topic.commit({P0: 1_000, P1: 700})
    topic.now, topic.present = before.moved_to({P1: None}), (P0,)
    del topic.offsets[P1]
    marked = topic.commit({P0: 2_000})
    assert (marked.at_ms, list(marked.marks)) == (1_990, [P0])


def test_a_clock_that_seems_to_go_back_counts_as_one_that_stands() -> None:
    topic = Topic()
    topic.commit({P0: 100, P1: 100})
    topic.commit({P0: 1_000}, elapsed_ms=60)
    assert topic.commit({P0: 1_000}, elapsed_ms=-1_000).marks[P1] == Mark(90, 60)


def test_only_those_are_asked_about_that_could_be_idle() -> None:
    topic = Topic()
    assert might_be_idle(RULE, None, 1_000) == []
    topic.commit({P0: 100, P1: 100})
    topic.commit({P0: 100}, elapsed_ms=60)
    assert might_be_idle(RULE, topic.now, 40) == [P1]
    assert might_be_idle(replace(RULE, of="other"), topic.now, 40) == []


# --- whatever happens ---------------------------------------------------------------------------

partitions = st.sampled_from([P0, P1, P2])
times = st.integers(-EVENT_TIME_MAX_MS, EVENT_TIME_MAX_MS) | st.integers(0, 1_000)


@st.composite
def steps(draw: st.DrawFn) -> tuple[Progress, bool]:
    """A commit of anything, after an operator's or not."""
    read = draw(st.sets(partitions))
    records = {p: draw(st.integers(0, 2)) for p in sorted(read)}
    progress = Progress(
        ranges=[Range(partition=p, start=0, next=n, records=n) for p, n in records.items()],
        offsets={p: draw(st.integers(0, 3)) for p in (P0, P1, P2)},
        seen=[EventTimes(partition=p, greatest_ms=draw(st.none() | times)) for p, n in records.items() if n],
        present=draw(st.sets(partitions, min_size=1)),
        ends=draw(st.dictionaries(partitions, st.integers(0, 3))),
        elapsed_ms=draw(st.integers(-5, 200)),
    )
    return progress, draw(st.booleans())


@given(st.lists(steps(), max_size=12), st.lists(st.integers(0, 1_000), min_size=12, max_size=12))
def test_neither_the_tables_nor_a_source_partitions_ever_goes_back(
    taken: list[tuple[Progress, bool]], lateness_ms: list[int]
) -> None:
    """Through any commits, aborts (which leave none), restarts (which know the last commit alone), resets."""
    now = Watermark(of="at")
    for (progress, moved), late_ms in zip(taken, lateness_ms, strict=False):
        before = from_json(to_json(now))
        assert before == now
        if moved:
            before = before.moved_to(dict.fromkeys(before.marks, 0))
            assert before.at_ms == now.at_ms
        after = advance(replace(RULE, lateness_ms=late_ms), before, progress)
        assert now.at_ms is None or (after.at_ms is not None and after.at_ms >= now.at_ms)
        for partition, mark in now.marks.items():
            later = after.marks[partition].at_ms
            assert mark.at_ms is None or (later is not None and later >= mark.at_ms)
        now = after


@given(st.lists(steps(), max_size=12))
def test_it_never_passes_what_one_that_is_not_idle_may_still_bring(
    taken: list[tuple[Progress, bool]],
) -> None:
    now = Watermark(of="at")
    for progress, _ in taken:
        after = advance(RULE, now, progress)
        holding = [mark.at_ms for mark in after.marks.values() if not mark.idle]
        if after.at_ms != now.at_ms:
            assert after.at_ms is not None and holding and None not in holding
            assert all(at is not None and at >= after.at_ms for at in holding)
        now = after


@given(st.lists(steps(), max_size=6), steps())
def test_the_same_commit_after_the_same_one_leaves_the_same(
    taken: list[tuple[Progress, bool]], last: tuple[Progress, bool]
) -> None:
    """So that a commit that is made again, by whomever, says nothing else."""
    now = Watermark(of="at")
    for progress, _ in taken:
        now = advance(RULE, now, progress)
    shuffled = replace(last[0], ranges=list(last[0].ranges)[::-1], seen=list(last[0].seen)[::-1])
    assert to_json(advance(RULE, now, last[0])) == to_json(advance(RULE, from_json(to_json(now)), shuffled))


@pytest.mark.parametrize("value", [1.5, True, "7", EVENT_TIME_MAX_MS + 1])
def test_what_is_no_time_is_not_read(value: object) -> None:
    with pytest.raises(ValueError, match="is no event time"):
        from_json({**to_json(Watermark(of="at")), "at_ms": value})

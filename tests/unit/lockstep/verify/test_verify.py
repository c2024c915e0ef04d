"""Every fault that `lockstep verify` is there for is found, and nothing else is called one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from control_topic.messages import REJECTS_LISTED_MAX, Lost, Range, Reject, SourcePartition
from lockstep.verify.chain import follow
from lockstep.verify.counts import (
    PAGE_OFFSETS,
    Intervals,
    OffsetCounts,
    coalesced,
    first_of,
    minus,
    pairs,
    size,
    without,
)
from lockstep.verify.judge import judge
from lockstep.verify.log import Looked
from lockstep.verify.report import VerifyReport
from lockstep.verify.rows import RowCounter
from table.state import TableState, decode, encode

P0, P1 = SourcePartition("events", 0), SourcePartition("events", 1)
Row = tuple[str, SourcePartition | None, int]


@dataclass
class MemoryLog:
    """A log that holds these offsets, and nothing below `earliest`."""

    offsets: Mapping[SourcePartition, Iterable[int]] = field(default_factory=dict)
    earliest: int = 0
    topic_id: str = ""

    def look(self, partition: SourcePartition, missing: Intervals, *, topic_id: str, cluster: str) -> Looked:
        if topic_id != self.topic_id:
            return Looked(unknown=size(missing), why=f"{partition}: the topic was recreated since")
        asked = [offset for start, end in pairs(missing) for offset in range(start, end)]
        there = set(self.offsets.get(partition, ()))
        lost = [offset for offset in asked if offset >= self.earliest and offset in there]
        unknown = sum(offset < self.earliest for offset in asked)
        return Looked(
            lost=len(lost),
            examples=lost,
            gaps=len(asked) - len(lost) - unknown,
            unknown=unknown,
            why=f"{partition}: retention" if unknown else "",
        )


class Nowhere:
    """A broker that does not answer."""

    def look(self, partition: SourcePartition, missing: Intervals, *, topic_id: str, cluster: str) -> Looked:
        return Looked(unknown=size(missing), why="the broker did not answer")


def genesis(offsets: Mapping[SourcePartition, int], **more: object) -> TableState:
    return replace(
        TableState(
            pipeline="p", run="r", epoch=1, transaction="t0", offsets=offsets, kind="genesis", instant="100"
        ),
        **more,  # type: ignore[arg-type]
    )


def commit(before: TableState, ranges: Mapping[SourcePartition, int], **more: object) -> TableState:
    """The next commit: each partition goes on to the given offset."""
    number = int(before.instant) + 1
    made = tuple(
        Range(partition=p, start=before.offsets.get(p, 0), next=end, records=end - before.offsets.get(p, 0))
        for p, end in ranges.items()
    )
    return replace(
        before,
        kind="data",
        instant=str(number),
        transaction=f"t{number}",
        ranges=made,
        offsets={**before.offsets, **ranges},
        rejects=(),
        reject_count=0,
        **more,  # type: ignore[arg-type]
    )


def by_hand(before: TableState, offsets: Mapping[SourcePartition, int], **more: object) -> TableState:
    number = int(before.instant) + 1
    return replace(
        before,
        kind="operator",
        instant=str(number),
        transaction=f"t{number}",
        ranges=(),
        offsets=offsets,
        operator="ann",
        reason="poison",
        **more,  # type: ignore[arg-type]
    )


def rows_of(*states: TableState) -> list[Row]:
    """The rows that these commits should have written."""
    return [
        (state.instant, item.partition, offset)
        for state in states
        for item in state.ranges
        for offset in range(item.start, item.next)
        if (item.partition, offset) not in {(r.partition, r.offset) for r in state.rejects}
    ]


def batch(rows: list[Row]) -> pa.RecordBatch:
    return pa.record_batch(
        {
            "instant": pa.array([row[0] for row in rows], pa.string()),
            "_kafka_topic": pa.array([row[1] and row[1].topic for row in rows], pa.string()),
            "_kafka_partition": pa.array([row[1] and row[1].number for row in rows], pa.int32()),
            "_kafka_offset": pa.array([row[2] for row in rows], pa.int64()),
        }
    )


def verdict(
    states: list[TableState],
    rows: list[Row],
    log: MemoryLog | Nowhere | None = None,
    *,
    foreign: Mapping[str, bool] | None = None,
    excusable: int = 0,
    kafka_columns: bool = True,
) -> VerifyReport:
    """Verify constructed commits against constructed rows; every state goes through its stored form."""
    stored = [decode(encode(state), instant=state.instant) for state in states]
    chain = follow([state for state in stored if state is not None])
    counter = RowCounter(chain, until=max(chain.eras), foreign=foreign or {}, kafka_columns=kafka_columns)
    half = len(rows) // 2
    for part in (rows[:half], rows[half:]):
        if part:
            counter.add(batch(part))
    report = VerifyReport(pipeline="p", table="/t", commits=len(states))
    judge(report, chain, counter.rows, log or MemoryLog())
    report.conclude(excusable=excusable)
    return report


START = genesis({P0: 0, P1: 5})
FIRST = commit(START, {P0: 4})
SECOND = commit(FIRST, {P0: 6, P1: 9})
HISTORY = [START, FIRST, SECOND]
ROWS = rows_of(*HISTORY)
WHOLE_LOG = MemoryLog({P0: range(10), P1: range(5, 15)})


def test_commits_and_their_rows_are_exact() -> None:
    report = verdict(HISTORY, ROWS)
    assert report.exact is True
    assert (report.rows, report.missing, report.duplicated, report.unexpected) == (10, 0, 0, 0)
    assert [(p.partition, p.committed, p.rows) for p in report.partitions] == [(0, 6, 6), (1, 9, 4)]


@pytest.mark.parametrize("gone", range(len(ROWS)))
def test_any_row_that_is_gone_is_missing(gone: int) -> None:
    report = verdict(HISTORY, ROWS[:gone] + ROWS[gone + 1 :], WHOLE_LOG)
    assert report.exact is False
    assert report.missing == 1
    (part,) = [p for p in report.partitions if p.missing]
    assert (SourcePartition(part.topic, part.partition), part.missing_examples) == (
        ROWS[gone][1],
        [ROWS[gone][2]],
    )


@pytest.mark.parametrize("twice", range(len(ROWS)))
def test_any_row_that_is_there_twice_is_duplicated(twice: int) -> None:
    report = verdict(HISTORY, [*ROWS, ROWS[twice]])
    assert report.exact is False
    assert report.duplicated == 1
    (part,) = [p for p in report.partitions if p.duplicated]
    assert part.duplicated_examples == [ROWS[twice][2]]


@pytest.mark.parametrize(
    "row", [("101", P0, 4), ("101", P0, 99), ("101", P1, 5), ("102", P1, 4), ("100", P0, 0)]
)
def test_a_row_that_its_instant_did_not_commit_is_unexpected(row: Row) -> None:
    report = verdict(HISTORY, [*ROWS, row])
    assert report.exact is False
    assert report.unexpected == 1


def test_a_row_in_another_instant_than_the_one_that_committed_it_is_missing_and_unexpected() -> None:
    moved = [("102", P0, 3) if row == ("101", P0, 3) else row for row in ROWS]
    report = verdict(HISTORY, moved, WHOLE_LOG)
    assert report.exact is False
    assert (report.missing, report.unexpected) == (1, 1)


def test_a_missing_row_and_a_doubled_one_do_not_make_up_for_each_other() -> None:
    rows = [row for row in ROWS if row != ("101", P0, 1)] + [("101", P0, 2)]
    report = verdict(HISTORY, rows, WHOLE_LOG)
    assert report.exact is False
    assert (report.rows, report.missing, report.duplicated) == (10, 1, 1)


def test_a_row_of_our_instant_without_coordinates_is_unexpected() -> None:
    report = verdict(HISTORY, [*ROWS, ("101", None, 0)])
    assert report.exact is False
    assert report.unexpected == 1


def test_a_gap_that_the_log_has_too_is_no_loss() -> None:
    """An offset of a marker: the commit counted one record less than its range is long."""
    counted = (replace(FIRST.ranges[0], records=3),)
    report = verdict(
        [START, replace(FIRST, ranges=counted), SECOND],
        [row for row in ROWS if row != ("101", P0, 2)],
        MemoryLog({P0: [0, 1, 3, 4, 5]}),
    )
    assert report.exact is True
    assert report.gaps == 1


def test_a_record_that_was_counted_and_that_neither_table_nor_log_has_is_missing() -> None:
    rows = [row for row in ROWS if row != ("101", P0, 2)]
    report = verdict(HISTORY, rows, MemoryLog({P0: [0, 1, 3, 4, 5]}))
    assert report.exact is False
    assert report.missing == 1


def test_a_row_where_the_commit_counted_no_record_is_unexpected() -> None:
    counted = (replace(FIRST.ranges[0], records=3),)
    report = verdict([START, replace(FIRST, ranges=counted), SECOND], ROWS)
    assert report.exact is False
    assert report.unexpected == 1


@pytest.mark.parametrize("log", [Nowhere(), MemoryLog(earliest=1_000), MemoryLog(topic_id="another")])
def test_a_gap_that_cannot_be_looked_up_is_not_checkable(log: MemoryLog | Nowhere) -> None:
    counted = (replace(FIRST.ranges[0], records=3),)
    rows = [row for row in ROWS if row != ("101", P0, 2)]
    report = verdict([START, replace(FIRST, ranges=counted), SECOND], rows, log)
    assert report.exact is None
    assert report.not_checkable
    assert report.partitions[0].unknown == 1


def test_nothing_is_looked_up_where_no_row_is_missing() -> None:
    assert verdict(HISTORY, ROWS, Nowhere()).exact is True


def test_rejected_records_are_no_rows_and_not_missing() -> None:
    rejects = (Reject(partition=P0, offset=1, reason="not JSON"),)
    first = replace(FIRST, rejects=rejects, reject_count=1)
    history = [START, first, commit(first, {P0: 6, P1: 9})]
    report = verdict(history, rows_of(*history), WHOLE_LOG)
    assert report.exact is True
    assert report.rejected == 1


def test_a_rejected_record_that_is_a_row_too_is_unexpected() -> None:
    rejects = (Reject(partition=P0, offset=1, reason="not JSON"),)
    first = replace(FIRST, rejects=rejects, reject_count=1)
    report = verdict([START, first, commit(first, {P0: 6, P1: 9})], ROWS)
    assert report.exact is False
    assert report.unexpected == 1


def rejecting_more_than_is_listed() -> tuple[list[TableState], list[Row]]:
    total = REJECTS_LISTED_MAX + 500
    rejects = tuple(Reject(partition=P0, offset=offset, reason="not JSON") for offset in range(total))
    state = replace(commit(START, {P0: total + 100}), rejects=rejects, reject_count=total)
    return [START, state], rows_of(state)


def test_rejects_beyond_what_a_commit_lists_are_checked_by_number() -> None:
    states, rows = rejecting_more_than_is_listed()
    report = verdict(states, rows, Nowhere())
    assert report.exact is True
    assert report.rejected == REJECTS_LISTED_MAX + 500
    assert verdict(states, rows[1:], Nowhere()).missing == 1
    assert verdict(states, [*rows, rows[0]], Nowhere()).exact is False


def test_what_retention_took_before_it_was_read_is_told_and_not_missing() -> None:
    lost = (Lost(partition=P0, start=0, next=3),)
    state = replace(
        FIRST, lost=lost, ranges=(Range(partition=P0, start=0, next=4, records=1),), offsets={P0: 4, P1: 5}
    )
    report = verdict([START, state], [("101", P0, 3)], WHOLE_LOG)
    assert report.exact is True
    assert report.lost == 3
    assert report.partitions[0].lost == [(0, 3)]


def test_a_row_of_a_lost_interval_is_unexpected() -> None:
    lost = (Lost(partition=P0, start=0, next=3),)
    state = replace(FIRST, lost=lost, ranges=(Range(partition=P0, start=0, next=4, records=1),))
    report = verdict([START, state], [("101", P0, 3), ("101", P0, 2)])
    assert report.exact is False
    assert report.unexpected == 1


# --- chains --------------------------------------------------------------------------------------------


def broken(states: list[TableState]) -> str:
    report = verdict(states, rows_of(*states), WHOLE_LOG)
    assert report.exact is False
    return "\n".join(report.ranges_broken)


def shifted(state: TableState, start: int, end: int) -> TableState:
    return replace(
        state,
        ranges=(Range(partition=P0, start=start, next=end, records=end - start),),
        offsets={**state.offsets, P0: end},
    )


def test_an_overlap_of_two_commits_breaks_the_chain_and_doubles_rows() -> None:
    states = [START, FIRST, shifted(SECOND, 3, 6)]
    assert "S2: instant 102: the range [3, 6) of events:0 overlaps" in broken(states)


def test_a_hole_between_two_commits_breaks_the_chain() -> None:
    assert "leaves a hole: 4 was due" in broken([START, FIRST, shifted(SECOND, 5, 6)])


def test_an_offset_that_moves_without_a_range_breaks_the_chain() -> None:
    state = replace(SECOND, ranges=SECOND.ranges[:1])
    assert "S5: instant 102 moved events:1 from 5 to 9 without a range" in broken([START, FIRST, state])


def test_an_offset_that_goes_back_breaks_the_chain() -> None:
    state = replace(FIRST, instant="102", transaction="t102", ranges=(), offsets={P0: 2, P1: 5})
    assert "S5: instant 102 moved events:0 from 4 to 2" in broken([START, FIRST, state])


def test_a_committed_offset_that_is_not_its_ranges_end_breaks_the_chain() -> None:
    state = replace(SECOND, offsets={P0: 7, P1: 9})
    assert "ends at 6, its committed offset is 7" in broken([START, FIRST, state])


def test_a_transaction_that_is_committed_twice_breaks_the_chain() -> None:
    state = replace(SECOND, transaction=FIRST.transaction)
    assert "S1: transaction t101 is committed twice" in broken([START, FIRST, state])


def test_an_epoch_that_goes_back_breaks_the_chain() -> None:
    first = replace(FIRST, epoch=3)
    state = replace(commit(first, {P0: 5}), epoch=2)
    assert "S6: instant 102 is of epoch 2" in broken([START, first, state])


def test_a_history_that_does_not_begin_with_its_genesis_is_broken() -> None:
    assert "is no genesis" in broken([FIRST, SECOND])
    assert "a second genesis" in broken([START, FIRST, replace(FIRST, kind="genesis", instant="102")])


def test_another_topic_or_cluster_without_an_operator_breaks_the_chain() -> None:
    start = genesis({P0: 0}, topics={"events": "A"}, cluster="one")
    assert "S13" in broken([start, commit(start, {P0: 1}, topics={"events": "B"})])
    assert "S13" in broken([start, commit(start, {P0: 1}, cluster="two")])


def test_a_partition_that_appears_later_begins_at_its_beginning() -> None:
    start = genesis({P0: 0})
    second = commit(start, {P0: 2, P1: 3})
    assert verdict([start, second], rows_of(second)).exact is True
    assert "leaves a hole" in broken([start, replace(second, ranges=(second.ranges[0], shifted_p1()))])


def test_a_partition_may_be_admitted_at_any_offset_once_and_then_only_ranges_move_it() -> None:
    start = genesis({P0: 0})
    admitted = replace(
        start, kind="admission", instant="101", transaction="t101", offsets={**start.offsets, P1: 600}
    )
    second = commit(admitted, {P0: 2, P1: 603})
    assert verdict([start, admitted, second], rows_of(second)).exact is True
    again = replace(second, kind="admission", instant="103", transaction="t103", ranges=())
    moved = replace(again, offsets={**again.offsets, P1: 700})
    assert "S5: instant 103 moved" in broken([start, admitted, second, moved])
    assert "S5: instant 103 moved" in broken([start, admitted, second, replace(again, offsets={P0: 2})])
    ranged = replace(again, ranges=second.ranges)
    assert "which admits source partitions, holds ranges" in broken([start, admitted, second, ranged])


def shifted_p1() -> Range:
    return Range(partition=P1, start=1, next=3, records=2)


# --- operators -----------------------------------------------------------------------------------------


def test_what_an_operator_skipped_is_not_due() -> None:
    skip = by_hand(FIRST, {P0: 10, P1: 5})
    after = commit(skip, {P0: 12})
    report = verdict([START, FIRST, skip, after], rows_of(FIRST, after), Nowhere())
    assert report.exact is True
    (move,) = report.operator
    assert (move.partition, move.before, move.after, move.operator, move.reason) == (
        P0,
        4,
        10,
        "ann",
        "poison",
    )


def test_what_is_read_again_on_an_operators_order_is_there_twice_and_told() -> None:
    back = by_hand(FIRST, {P0: 1, P1: 5})
    again = commit(back, {P0: 6})
    states = [START, FIRST, back, again]
    report = verdict(states, rows_of(*states), Nowhere())
    assert report.exact is True
    assert report.partitions[0].reread == 3
    assert verdict(states, rows_of(*states)[:-1], WHOLE_LOG).missing == 1
    assert verdict(states, [*rows_of(*states), ("101", P0, 2)]).duplicated == 1
    assert verdict(states, [*rows_of(*states), ("103", P0, 0)]).unexpected == 1


def test_a_recreated_topics_offsets_are_other_ones() -> None:
    start = genesis({P0: 0}, topics={"events": "A"})
    first = commit(start, {P0: 4})
    adopt = by_hand(first, {P0: 0}, topics={"events": "B"})
    again = commit(adopt, {P0: 4})
    states = [start, first, adopt, again]
    report = verdict(states, rows_of(*states), Nowhere())
    assert report.exact is True
    assert report.partitions[0].reread == 0


# --- other writers -------------------------------------------------------------------------------------


def test_rows_that_others_insert_are_neither_counted_nor_a_fault() -> None:
    report = verdict(HISTORY, [*ROWS, ("1015", P0, 0), ("1015", None, 0)], foreign={"1015": False})
    assert report.exact is True
    assert (report.rows, report.foreign_rows) == (10, 2)


def test_rows_that_others_rewrote_make_it_not_checkable_and_never_exact() -> None:
    rows = [("1015", P0, 2) if row == ("101", P0, 2) else row for row in ROWS]
    report = verdict(HISTORY, rows, Nowhere(), foreign={"1015": True})
    assert report.partitions[0].rewritten == 1
    assert report.missing == 0
    assert report.exact is not False


def test_rows_that_others_deleted_make_it_not_checkable_but_no_more_than_they_deleted() -> None:
    rows = [row for row in ROWS if row[2] not in (1, 2)]
    assert verdict(HISTORY, rows, WHOLE_LOG, excusable=2).exact is None
    assert verdict(HISTORY, rows, WHOLE_LOG, excusable=1).exact is False


def test_a_doubled_row_is_a_fault_whatever_others_did() -> None:
    assert verdict(HISTORY, [*ROWS, ROWS[0]], foreign={"1015": True}, excusable=5).exact is False


def test_rows_that_are_committed_while_it_looks_are_left_out() -> None:
    report = verdict(HISTORY, [*ROWS, ("103", P0, 6)])
    assert report.exact is True
    assert report.later_rows == 1


def test_without_kafka_columns_it_is_never_exact_but_a_lost_row_is_found() -> None:
    rows = [(row[0], None, 0) for row in ROWS]
    assert verdict(HISTORY, rows, kafka_columns=False).exact is None
    assert verdict(HISTORY, rows[1:], kafka_columns=False).exact is False
    assert verdict(HISTORY, [*rows, rows[0]], kafka_columns=False).exact is False


# --- what is shown -------------------------------------------------------------------------------------


def shown(report: VerifyReport) -> str:
    console = Console(width=200, record=True, file=open("/dev/null", "w"))  # noqa: SIM115 - ends with the test
    console.print(report.to_text())
    return console.export_text()


def test_the_text_begins_with_the_verdict_and_names_examples() -> None:
    assert shown(verdict(HISTORY, ROWS)).startswith("Exact: 10 rows in 3 commits")
    text = shown(verdict(HISTORY, ROWS[1:], WHOLE_LOG))
    assert text.startswith("NOT EXACT: 1 missing")
    assert "events:0 missing: 0" in text
    assert shown(verdict(HISTORY, ROWS, kafka_columns=True, excusable=0)).count("events:") == 2


def test_examples_are_bounded() -> None:
    state = commit(START, {P0: 10_000})
    report = verdict([START, state], [], MemoryLog({P0: range(10_000)}))
    assert report.missing == 10_000
    assert report.partitions[0].missing_examples == list(range(20))
    assert report.to_json()["missing"] == 10_000


# --- counting ------------------------------------------------------------------------------------------

offsets_lists = st.lists(st.integers(0, 3 * PAGE_OFFSETS), max_size=60)
near_page_edges = st.lists(
    st.builds(lambda page, step: max(0, page * PAGE_OFFSETS + step), st.integers(0, 3), st.integers(-3, 3)),
    max_size=60,
)


@given(
    offsets=offsets_lists | near_page_edges, start=st.integers(0, 2 * PAGE_OFFSETS), more=st.integers(0, 50)
)
def test_counts_agree_with_a_plain_list(offsets: list[int], start: int, more: int) -> None:
    counts = OffsetCounts()
    for half in (offsets[::2], offsets[1::2]):
        counts.add(np.array(half, np.int64))
    near = sorted({o for o in offsets if start <= o < start + more})
    missing = counts.missing([(start, start + more)]) if more else np.empty((0, 2), np.int64)
    assert [o for a, b in pairs(missing) for o in range(a, b)] == [
        o for o in range(start, start + more) if o not in near
    ]
    assert counts.met(start, start + more) == len(near)
    extra = {
        int(offset): int(times)
        for some, often in counts.repeated()
        for offset, times in zip(some, often, strict=True)
    }
    assert extra == {o: offsets.count(o) - 1 for o in offsets if offsets.count(o) > 1}


@given(
    edges=st.lists(st.integers(0, 60), max_size=12, unique=True),
    single=st.lists(st.integers(0, 60), max_size=20),
    taken=st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=4),
)
def test_intervals_agree_with_plain_sets(
    edges: list[int], single: list[int], taken: list[tuple[int, int]]
) -> None:
    ends = sorted(edges)[: len(edges) // 2 * 2]
    intervals = np.array(ends, np.int64).reshape(-1, 2)
    members = {o for a, b in pairs(intervals) for o in range(a, b)}
    assert {o for a, b in pairs(without(intervals, single)) for o in range(a, b)} == members - set(single)
    away = [(a, a + n) for a, n in taken]
    expected = members - {o for a, b in away for o in range(a, b)}
    left = minus(intervals, away)
    assert {o for a, b in pairs(left) for o in range(a, b)} == expected
    assert size(left) == len(expected)
    assert first_of(coalesced(left), 5) == sorted(expected)[:5]

"""The in-memory table keeps the port's promises, also where a driver dies or is paused inside a call."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from control_topic.messages import DataFile, Offsets, Range, SourcePartition
from table.errors import ClockBehind, OutcomeUnknown, Refused, Unavailable
from table.memory.table import Interruption, MemoryTable
from table.memory.timeline import InstantPhase, MemoryTimeline
from table.port import Commit
from table.state import TableState

P0 = SourcePartition("events", 0)


class Died(Exception):
    """The process is gone: nothing after it runs, nothing is given back."""


@pytest.fixture
def timeline() -> MemoryTimeline:
    return MemoryTimeline()


@pytest.fixture
def table(timeline: MemoryTimeline) -> MemoryTable:
    return MemoryTable(timeline, "p")


def at(wanted: Interruption, do: Callable[[], None]) -> Callable[[Interruption], None]:
    def step(reached: Interruption) -> None:
        if reached is wanted:
            do()

    return step


def dies() -> None:
    raise Died


def commit_of(
    instant: str,
    transaction: str,
    start: int,
    end: int,
    *,
    expected: Offsets,
    files: tuple[DataFile, ...] = (),
) -> Commit:
    state = TableState(
        pipeline="p",
        run="run-1",
        epoch=1,
        transaction=transaction,
        offsets={P0: end},
        ranges=(Range(partition=P0, start=start, next=end),),
    )
    return Commit(instant=instant, expected=expected, state=state, files=files)


def passes(_newest: TableState | None) -> str:
    return ""


def committed(table: MemoryTable, transaction: str, start: int, end: int, expected: Offsets) -> str:
    instant = table.begin(run="run-1", transaction=transaction)
    table.commit(commit_of(instant, transaction, start, end, expected=expected), fence=passes)
    return instant


def test_the_newest_state_is_ours_whatever_others_committed_since(timeline: MemoryTimeline) -> None:
    table, other = MemoryTable(timeline, "p"), MemoryTable(timeline, "q")
    assert table.newest() is None
    first = committed(table, "t1", 0, 5, {})
    timeline.foreign_commit()
    newest = table.newest()
    assert newest is not None
    assert (newest.instant, newest.offsets, newest.transaction) == (first, {P0: 5}, "t1")
    assert other.newest() is None
    assert other.find("t1") is None
    assert table.find("t1") == newest


def test_a_commit_is_refused_where_the_offsets_moved_on(table: MemoryTable) -> None:
    committed(table, "t1", 0, 5, {})
    instant = table.begin(run="run-1", transaction="t2")
    for expected in ({}, {P0: 4}, {P0: 5, SourcePartition("events", 1): 0}):
        with pytest.raises(Refused, match="no longer those"):
            table.commit(commit_of(instant, "t2", 0, 9, expected=expected), fence=passes)
    table.commit(commit_of(instant, "t2", 5, 9, expected={P0: 5}), fence=passes)


def test_the_fence_sees_the_newest_state_under_the_lock_and_its_objection_refuses(
    timeline: MemoryTimeline, table: MemoryTable
) -> None:
    committed(table, "t1", 0, 5, {})
    instant = table.begin(run="run-1", transaction="t2")

    def objects(newest: TableState | None) -> str:
        assert timeline.lock_holder is not None
        assert newest is not None and newest.transaction == "t1"
        return "the epoch is stale"

    with pytest.raises(Refused, match="the epoch is stale"):
        table.commit(commit_of(instant, "t2", 5, 9, expected={P0: 5}), fence=objects)
    assert timeline.lock_holder is None
    assert [one.transaction for one in table.unfinished()] == ["t2"]


def test_a_commit_is_idempotent_by_transaction_and_refused_with_other_ranges(table: MemoryTable) -> None:
    instant = table.begin(run="run-1", transaction="t1")
    commit = commit_of(instant, "t1", 0, 5, expected={})
    table.commit(commit, fence=passes)
    table.commit(commit, fence=passes)
    with pytest.raises(Refused, match="already committed"):
        table.commit(commit_of(instant, "t1", 0, 6, expected={}), fence=passes)
    with pytest.raises(Refused, match="committed already"):
        committed(table, "t1", 0, 5, {P0: 5})


def test_a_commit_whose_connection_broke_after_it_completed_is_on_the_timeline(
    timeline: MemoryTimeline, table: MemoryTable
) -> None:
    def breaks() -> None:
        raise OutcomeUnknown("the connection broke")

    table.at = at(Interruption.COMMIT_COMPLETED, breaks)
    with pytest.raises(OutcomeUnknown):
        committed(table, "t1", 0, 5, {})
    assert table.find("t1") is not None
    assert timeline.lock_holder is None


def test_a_driver_that_dies_inside_the_lock_keeps_it_until_it_expires(timeline: MemoryTimeline) -> None:
    dead = MemoryTable(timeline, "p", at=at(Interruption.COMMIT_CHECKED, dies))
    with pytest.raises(Died):
        committed(dead, "t1", 0, 5, {})
    table = MemoryTable(timeline, "p")
    (left,) = table.unfinished()
    with pytest.raises(Unavailable, match="lock is held"):
        table.roll_back(left.instant)
    timeline.expire_lock()
    assert table.roll_back(left.instant)
    assert not table.unfinished()


def test_a_paused_driver_that_lost_the_lock_cannot_complete_what_its_successor_rolled_back(
    timeline: MemoryTimeline,
) -> None:
    successor, paused = MemoryTable(timeline, "p"), MemoryTable(timeline, "p")

    def meanwhile() -> None:
        timeline.expire_lock()
        assert successor.roll_back(successor.unfinished()[0].instant)
        committed(successor, "t2", 0, 7, {})

    paused.at = at(Interruption.COMMIT_CHECKED, meanwhile)
    with pytest.raises(Refused, match="inflight file is not there"):
        committed(paused, "t1", 0, 5, {})
    newest = successor.newest()
    assert newest is not None and newest.offsets == {P0: 7}
    assert successor.find("t1") is None


def test_a_paused_driver_whose_instant_is_younger_than_its_successors_recovery_cannot_commit_after_it(
    timeline: MemoryTimeline,
) -> None:
    """It began when its successor had rolled back already; the lock expired after its check."""
    successor = MemoryTable(timeline, "p")
    objections: list[str] = []

    def the_lock_expires() -> None:
        timeline.expire_lock()
        later = successor.begin(run="run-2", transaction="t2")
        with pytest.raises(Refused) as refused:
            successor.commit(commit_of(later, "t2", 0, 7, expected={}), fence=passes)
        objections.append(str(refused.value))
        assert successor.roll_back(earlier)  # what a refused commit leads to
        successor.commit(commit_of(later, "t2", 0, 7, expected={}), fence=passes)

    paused = MemoryTable(timeline, "p", at=at(Interruption.COMMIT_CHECKED, the_lock_expires))
    earlier = paused.begin(run="run-1", transaction="t1")
    with pytest.raises(Refused):
        paused.commit(commit_of(earlier, "t1", 0, 5, expected={}), fence=passes)
    assert earlier in objections[0] and "rolled back first" in objections[0]
    assert [state.transaction for state in timeline.states("p")] == ["t2"]


def test_a_commit_that_meets_a_requested_rollback_is_refused(timeline: MemoryTimeline) -> None:
    table, late = MemoryTable(timeline, "p"), MemoryTable(timeline, "p")
    instant = table.begin(run="run-1", transaction="t1")

    def commits_late() -> None:
        assert table.unfinished()[0].rollback_requested
        with pytest.raises(Refused, match="rollback is requested"):
            late.commit(commit_of(instant, "t1", 0, 5, expected={}), fence=passes)

    table.at = at(Interruption.ROLLBACK_REQUESTED, commits_late)
    assert table.roll_back(instant)
    assert timeline.instants[instant].phase is InstantPhase.ROLLED_BACK


def test_a_rollback_that_was_only_requested_is_carried_out_by_whoever_recovers(
    timeline: MemoryTimeline,
) -> None:
    dead = MemoryTable(timeline, "p", at=at(Interruption.ROLLBACK_REQUESTED, dies))
    instant = dead.begin(run="run-1", transaction="t1")
    with pytest.raises(Died):
        dead.roll_back(instant)
    table = MemoryTable(timeline, "p")
    (left,) = table.unfinished()
    assert left.rollback_requested
    assert table.roll_back(left.instant)


def test_a_rollback_never_takes_a_completed_instant_nor_somebody_elses(
    timeline: MemoryTimeline, table: MemoryTable
) -> None:
    ours = committed(table, "t1", 0, 5, {})
    assert not table.roll_back(ours)
    theirs = MemoryTable(timeline, "q").begin(run="run-1", transaction="t9")
    for instant in (theirs, timeline.foreign_begin()):
        with pytest.raises(Refused, match="left alone"):
            table.roll_back(instant)
    assert not table.roll_back(timeline.foreign_commit())
    assert table.find("t1") is not None


def test_a_driver_that_dies_before_its_instant_says_whose_it_is_leaves_nobodys_instant(
    timeline: MemoryTimeline,
) -> None:
    dead = MemoryTable(timeline, "p", at=at(Interruption.BEGIN_REQUESTED, dies))
    with pytest.raises(Died):
        dead.begin(run="run-1", transaction="t1")
    assert not MemoryTable(timeline, "p").unfinished()


def test_the_sweep_removes_what_no_commit_names_after_the_grace_time(
    timeline: MemoryTimeline, table: MemoryTable
) -> None:
    done = table.begin(run="run-1", transaction="t1")
    timeline.write_file("t1.parquet", done)
    file = DataFile(path="t1.parquet", body="f", table_partition="", rows=0, size_bytes=1)
    table.commit(commit_of(done, "t1", 0, 5, expected={}, files=(file,)), fence=passes)
    aborted, open_one = (table.begin(run="run-1", transaction=name) for name in ("t2", "t3"))
    table.roll_back(aborted)
    timeline.write_file("late-of-completed.parquet", done)
    timeline.write_file("late-of-aborted.parquet", aborted)
    timeline.write_file("open.parquet", open_one)
    timeline.write_file("foreign.parquet", timeline.foreign_commit(), ours=False)
    timeline.now_ms += 999
    assert table.sweep(grace_ms=1_000).removed == 0
    timeline.now_ms += 1
    assert table.sweep(grace_ms=1_000).removed == 2
    assert sorted(timeline.files) == ["foreign.parquet", "open.parquet", "t1.parquet"]


def test_a_rollback_removes_the_files_of_its_instant(timeline: MemoryTimeline, table: MemoryTable) -> None:
    instant = table.begin(run="run-1", transaction="t1")
    timeline.write_file("t1.parquet", instant)
    assert table.roll_back(instant)
    assert not timeline.files
    assert table.roll_back(instant)


def test_storage_that_is_away_proves_that_nothing_happened(
    timeline: MemoryTimeline, table: MemoryTable
) -> None:
    instant = table.begin(run="run-1", transaction="t1")
    timeline.available = False
    with pytest.raises(Unavailable):
        table.commit(commit_of(instant, "t1", 0, 5, expected={}), fence=passes)
    timeline.available = True
    assert [one.instant for one in table.unfinished()] == [instant]


# --- clocks -------------------------------------------------------------------------------------


class Wall:
    """A wall clock that is set by hand."""

    def __init__(self, ms: int) -> None:
        self.ms = ms

    def __call__(self) -> int:
        return self.ms


def test_the_commit_that_follows_is_the_newest_though_it_completed_earlier() -> None:
    timeline, wall = MemoryTimeline(), Wall(10_000)

    def back(step: Interruption) -> None:
        if step is Interruption.COMMIT_CHECKED and wall.ms > 60_000:
            wall.ms = 20_000  # between the look at the clock and the completion

    table = MemoryTable(timeline, "p", at=back, wall_ms=wall)
    committed(table, "t1", 0, 5, {})
    wall.ms = 70_000
    second = committed(table, "t2", 5, 9, {P0: 5})
    assert [state.transaction for state in timeline.states("p")] == ["t2", "t1"]
    wall.ms = 90_000
    third = table.begin(run="run-1", transaction="t3")
    assert third > second
    assert table.newest() == MemoryTable(timeline, "p").newest()
    newest = table.newest()
    assert newest is not None and newest.transaction == "t2"


def test_nothing_is_begun_committed_or_rolled_back_while_the_clock_is_behind() -> None:
    timeline, wall = MemoryTimeline(), Wall(10_000)
    table = MemoryTable(timeline, "p", wall_ms=wall)
    committed(table, "t1", 0, 5, {})
    instant = table.begin(run="run-1", transaction="t2")
    wall.ms = 8_000
    behind = MemoryTable(timeline, "p", wall_ms=Wall(1_000))
    for doing in (
        lambda: behind.begin(run="run-2", transaction="t3"),
        lambda: table.roll_back(instant),
        lambda: table.commit(commit_of(instant, "t2", 5, 6, expected={P0: 5}), fence=passes),
    ):
        with pytest.raises(ClockBehind, match="ms behind the table"):
            doing()
    wall.ms = 10_000
    assert table.roll_back(instant)


def test_a_clock_that_is_a_moment_behind_is_waited_for() -> None:
    timeline, wall = MemoryTimeline(), Wall(10_000)
    table = MemoryTable(timeline, "p", wall_ms=wall)
    first = committed(table, "t1", 0, 5, {})
    wall.ms -= 500
    second = committed(table, "t2", 5, 6, {P0: 5})
    assert second > timeline.instants[first].completed_at
    assert timeline.instants[second].completed_at >= second

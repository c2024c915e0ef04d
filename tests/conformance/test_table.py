"""The table: what the one in memory, and so the simulator's storage and lock, assume, on Hudi as well."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from control_topic.messages import SourcePartition
from table.port import Commit
from table.state import TableState
from tests.conformance.table_sides import HudiSide, MemorySide, TableDriver, TableSide, accept, answer
from tests.integration.test_hudi_table import SOURCE

pytestmark = pytest.mark.integration


@pytest.fixture(params=["hudi", "memory"])
def lake(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Iterator[TableSide]:
    with ExitStack() as opened:
        if request.param == "hudi":
            yield HudiSide(spark, tmp_path / "t", opened)
        else:
            yield MemorySide()


def newest(driver: TableDriver) -> tuple[str, int] | None:
    """Transaction and committed offset of the newest state."""
    state = driver.table.newest()
    return (state.transaction, state.offsets[SOURCE]) if state is not None else None


def open_ones(driver: TableDriver) -> list[tuple[str, bool]]:
    return [(one.transaction, one.rollback_requested) for one in driver.table.unfinished()]


TIMED = ["files", "lock", "check", "write"]
"""Of a commit that lands: the parts that it says the time of, in their order."""
FOUND: list[str] = []
"""Of one that was complete already."""


def commit(driver: TableDriver, planned: Commit, why_not: str = "") -> Any:
    """`TIMED` or `FOUND`, or the kind of error that it raised."""
    said = answer(partial(driver.table.commit, planned, fence=lambda _: why_not))
    return said if isinstance(said, str) else list(said)


def begin(driver: TableDriver, transaction: str) -> Any:
    return answer(partial(driver.begin, transaction))


def roll_back(driver: TableDriver, instant: str) -> Any:
    return answer(partial(driver.table.roll_back, instant))


# --- instants -------------------------------------------------------------------------------------------


def test_instants_rise_and_a_transaction_has_one_of_them(lake: TableSide) -> None:
    one, other = lake.driver(), lake.driver()
    first = one.begin("t1")
    assert other.begin("t1") == first
    second = other.begin("t2")
    assert second > first
    assert open_ones(one) == [("t1", False), ("t2", False)]
    assert roll_back(one, first) is True
    again = one.begin("t1")
    assert again > second
    assert open_ones(other) == [("t2", False), ("t1", False)]


def test_a_transaction_that_is_committed_is_not_begun_again_nor_one_whose_rollback_is_requested(
    lake: TableSide,
) -> None:
    driver = lake.driver()
    driver.run("t1", rows=2)
    assert begin(driver, "t1") == "Refused"
    instant = driver.begin("t2")
    lake.request_rollback_and_die(instant)
    assert begin(driver, "t2") == "Refused"
    assert open_ones(driver) == [("t2", True)]


def test_what_others_commit_or_open_is_nobodys_business(lake: TableSide) -> None:
    driver, neighbour = lake.driver(), lake.driver("another")
    driver.run("t1", rows=2)
    theirs = [neighbour.begin("n1"), lake.foreign_begin()]
    done = lake.foreign_commit()
    assert newest(driver) == ("t1", 2)
    assert open_ones(driver) == []
    assert open_ones(neighbour) == [("n1", False)]
    assert [roll_back(driver, instant) for instant in theirs] == ["Refused", "Refused"]
    assert roll_back(driver, done) is False
    driver.run("t2", rows=1)
    assert newest(driver) == ("t2", 3)
    assert newest(neighbour) is None
    assert neighbour.table.find("t2") is None


def test_a_writer_that_rolls_back_what_is_open_takes_ours_with_it_and_the_commit_is_refused(
    lake: TableSide,
) -> None:
    driver = lake.driver()
    instant = driver.begin("t1")
    planned = driver.planned("t1", instant, 0)
    lake.foreign_rollback(instant)
    assert open_ones(driver) == []
    assert commit(driver, planned) == "Refused"
    assert newest(driver) is None


# --- times ----------------------------------------------------------------------------------------------


def test_which_commit_is_newest_follows_from_what_they_say_and_not_from_their_times(lake: TableSide) -> None:
    driver = lake.driver()
    first = driver.run("t1", rows=2)
    driver.run("t2", rows=1)
    lake.complete_ahead(first)
    assert newest(driver) == newest(lake.driver()) == ("t2", 3)
    assert begin(driver, "t3") == "ClockBehind"


def test_nothing_is_begun_completed_or_rolled_back_while_the_clock_is_behind_a_requested_time(
    lake: TableSide,
) -> None:
    driver = lake.driver()
    driver.run("t1", rows=2)
    instant = driver.begin("t2")
    planned = driver.planned("t2", instant, 0)
    lake.request_ahead()
    assert begin(driver, "t3") == "ClockBehind"
    assert commit(driver, planned) == "ClockBehind"
    assert roll_back(driver, instant) == "ClockBehind"
    assert newest(driver) == ("t1", 2)
    assert open_ones(driver) == [("t2", False)]


def test_while_the_clock_is_behind_nobody_asks_for_the_lock_that_somebody_else_has(lake: TableSide) -> None:
    driver = lake.driver()
    instant = driver.begin("t1")
    planned = driver.planned("t1", instant, 0)
    lake.request_ahead()
    lake.take_lock()
    assert begin(driver, "t2") == "ClockBehind"
    assert commit(driver, planned) == "ClockBehind"
    assert roll_back(driver, instant) == "ClockBehind"


# --- commits --------------------------------------------------------------------------------------------


def test_a_commit_is_refused_where_the_offsets_moved_on_or_the_fence_objects(lake: TableSide) -> None:
    driver, other = lake.driver(), lake.driver()
    other.run("t1", rows=5)
    instant = driver.begin("t2")
    right = driver.planned("t2", instant, 3, driver.write(instant, 3, first=5))
    for expected in ({}, {SOURCE: 4}, {SOURCE: 5, SourcePartition("events", 1): 0}):
        late = Commit(instant=instant, expected=expected, state=right.state, files=right.files)
        assert commit(driver, late) == "Refused"
    assert commit(driver, right, "the epoch is stale") == "Refused"
    assert newest(driver) == ("t1", 5)
    assert commit(driver, right) == TIMED
    assert newest(other) == ("t2", 8)


def test_a_repeated_commit_is_answered_alike_without_fence_or_lock_and_another_one_refused(
    lake: TableSide,
) -> None:
    driver = lake.driver()
    instant = driver.begin("t1")
    file = driver.write(instant, 3)
    planned = driver.planned("t1", instant, 3, file)
    assert commit(driver, planned) == TIMED
    lake.take_lock()
    assert commit(driver, planned, "nobody is asked any more") == FOUND
    assert commit(lake.driver(), driver.planned("t1", instant, 4, file)) == "Refused"
    lake.expire_lock()
    assert newest(driver) == ("t1", 3)


def test_a_commit_says_how_long_each_of_its_parts_took_and_one_that_was_found_says_nothing(
    lake: TableSide,
) -> None:
    driver = lake.driver()
    instant = driver.begin("t1")
    planned = driver.planned("t1", instant, 3, driver.write(instant, 3))
    took_ms = driver.table.commit(planned, fence=accept)
    assert list(took_ms) == TIMED
    assert all(isinstance(ms, int) and ms >= 0 for ms in took_ms.values())
    assert driver.table.commit(planned, fence=accept) == {}


def test_a_file_that_is_not_on_storage_is_not_committed(lake: TableSide) -> None:
    driver = lake.driver()
    instant = driver.begin("t1")
    file = driver.write(instant, 3)
    planned = driver.planned("t1", instant, 3, file)
    lake.remove(file.path)
    assert commit(driver, planned) == "Refused"
    assert newest(driver) is None


def test_a_commit_is_refused_while_another_instant_of_the_pipeline_is_open_and_an_only_requested_one_is_none(
    lake: TableSide,
) -> None:
    driver, rival = lake.driver(), lake.driver()
    earlier, instant = rival.begin("t1"), driver.begin("t2")
    lake.foreign_begin()
    planned = driver.planned("t2", instant, 0)
    assert commit(driver, planned) == "Refused"
    assert roll_back(driver, earlier) is True
    assert commit(driver, planned) == TIMED


# --- the lock -------------------------------------------------------------------------------------------


def test_while_somebody_holds_the_lock_nothing_is_begun_committed_or_rolled_back_and_all_is_read(
    lake: TableSide,
) -> None:
    driver = lake.driver()
    driver.run("t1", rows=2)
    instant = driver.begin("t2")
    planned = driver.planned("t2", instant, 0)
    lake.take_lock()
    assert begin(driver, "t3") == "Unavailable"
    assert begin(driver, "t2") == instant  # which is there already
    assert commit(driver, planned) == "Unavailable"
    assert roll_back(driver, instant) == "Unavailable"
    assert newest(driver) == ("t1", 2)
    assert open_ones(driver) == [("t2", False)]
    lake.expire_lock()
    assert commit(driver, planned) == TIMED
    assert not lake.is_locked()


def test_a_lock_that_expired_under_its_holder_lets_a_successor_in_and_the_holder_cannot_complete(
    lake: TableSide,
) -> None:
    paused = lake.driver()
    instant = paused.begin("t1")
    planned = paused.planned("t1", instant, 3, paused.write(instant, 3))

    def pause(_newest: TableState | None) -> str:
        lake.expire_lock()
        assert lake.successor_rolls_back(instant)
        return ""

    assert answer(partial(paused.table.commit, planned, fence=pause)) == "Refused"
    assert newest(paused) is None
    assert lake.files() == set()


def test_a_holder_whose_lock_expired_gives_back_its_successors(lake: TableSide) -> None:
    paused = lake.driver()
    instant = paused.begin("t1")
    planned = paused.planned("t1", instant, 0)

    def pause(_newest: TableState | None) -> str:
        lake.expire_lock()
        lake.take_lock()  # by whoever comes next
        return ""

    assert list(answer(partial(paused.table.commit, planned, fence=pause))) == TIMED
    assert not lake.is_locked()


# --- rollback and sweep ---------------------------------------------------------------------------------


def test_a_rollback_takes_the_files_of_its_instant_and_of_no_other_and_may_be_asked_for_again(
    lake: TableSide,
) -> None:
    driver = lake.driver()
    driver.run("t1", rows=2)
    kept = lake.files()
    instant = driver.begin("t2")
    driver.write(instant, 3, first=2)
    driver.write(instant, 1, first=5)
    assert roll_back(driver, instant) is True
    assert lake.files() == kept
    assert roll_back(driver, instant) is True
    assert roll_back(driver, f"{int(instant) + 10_000_000:017d}") is True  # nobody's: nothing is there
    done = driver.run("t3", rows=1)
    assert roll_back(driver, done) is False
    assert newest(driver) == ("t3", 3)


def test_a_half_written_instant_whose_rollback_was_begun_is_rolled_back_by_whoever_comes_next(
    lake: TableSide,
) -> None:
    driver = lake.driver()
    instant = driver.begin("t1")
    first, second = driver.write(instant, 2), driver.write(instant, 3, first=2)
    planned = driver.planned("t1", instant, 5, first, second)
    lake.request_rollback_and_die(instant)
    lake.remove(first.path)  # it had come so far
    assert commit(driver, Commit(instant=instant, expected={}, state=planned.state, files=())) == "Refused"
    successor = lake.driver()
    assert open_ones(successor) == [("t1", True)]
    assert roll_back(successor, instant) is True
    assert open_ones(driver) == []
    assert lake.files() == set()


def test_a_file_that_is_closed_once_the_rollback_is_requested_stays_and_is_swept(lake: TableSide) -> None:
    driver = lake.driver()
    instant = driver.begin("t1")
    driver.write(instant, 2)
    lake.request_rollback_and_die(instant)
    late = driver.write(instant, 3, first=2)
    assert driver.table.sweep(grace_ms=0).removed == 0, "its instant is still on the timeline"
    assert roll_back(driver, instant) is True
    assert lake.files() == {late.path}
    assert driver.table.sweep(grace_ms=60_000).removed == 0
    assert driver.table.sweep(grace_ms=0).removed == 1
    assert lake.files() == set()


def test_a_sweep_takes_what_no_commit_names_and_leaves_what_is_open(lake: TableSide) -> None:
    driver, neighbour = lake.driver(), lake.driver("another")
    done, theirs = driver.run("t1", rows=2), neighbour.run("n1", rows=1)
    kept = lake.files()
    open_one = driver.begin("t2")
    left = driver.write(open_one, 1, first=2).path
    for instant in (done, theirs):
        driver.write(instant, 1, first=7)
    assert driver.table.sweep(grace_ms=0).removed == 2
    assert lake.files() == {*kept, left}


def test_archiving_changes_no_answer(lake: TableSide) -> None:
    driver = lake.driver()
    done = driver.run("t1", rows=2)
    orphan = driver.write(done, 1, first=7).path
    lake.archive(driver)
    late = driver.write(done, 1, first=9).path
    successor = lake.driver()
    state = successor.table.newest()
    assert state is not None and state.offsets == {SOURCE: 2}
    assert newest(driver) == newest(successor)
    assert successor.table.find(state.transaction) == state
    assert roll_back(successor, done) is False
    assert orphan in lake.files() and late in lake.files()
    assert successor.table.sweep(grace_ms=0).removed == 2
    assert len(lake.files()) == 1
    assert successor.run("t2", rows=1) > done
    assert newest(driver) == ("t2", 3)


def test_storage_that_is_away_is_told_from_a_table_that_says_no(lake: TableSide) -> None:
    driver = lake.driver()
    driver.run("t1", rows=2)
    instant = driver.begin("t2")
    planned = driver.planned("t2", instant, 0)
    with lake.away():
        assert {
            "newest": answer(driver.table.newest),
            "unfinished": answer(driver.table.unfinished),
            "find": answer(partial(driver.table.find, "t9")),
            "begin": begin(driver, "t3"),
            "commit": commit(driver, planned),
            "roll back": roll_back(driver, instant),
        } == dict.fromkeys(("newest", "unfinished", "find", "begin", "commit", "roll back"), "Unavailable")
    assert open_ones(driver) == [("t2", False)]
    assert commit(driver, planned) == TIMED
    assert newest(driver) == ("t2", 2)

"""Clocks that were set back, or forth, between the commits of a table: on real Spark, Hudi and files.

A completion by a clock that was ahead is made here by its file's name, which is where Hudi keeps the time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from table.errors import ClockAhead, ClockBehind, Contradiction, Unavailable
from table.hudi.driver.file_lock import lock_held_s
from table.hudi.driver.guard import guarded
from table.hudi.driver.held import Page, page_file
from table.hudi.driver.history import _stretches
from table.hudi.driver.watchdog import CLOCK
from table.hudi.reader.stored import table_properties
from table.hudi.reader.timeline import Timeline
from table.hudi.upkeep import plans
from tests.integration.test_hudi_table import PIPELINE, PLAIN, QUICK_ARCHIVE, SOURCE, WITHIN_COMMITS, Driver

pytestmark = pytest.mark.integration

FORMAT = "%Y%m%d%H%M%S%f"
HOUR_S = 3_600


@pytest.fixture
def driver(spark: SparkSession, tmp_path: Path) -> Callable[..., Driver]:
    """Opens the same table again and again, as successors do."""
    return lambda *given, **changes: Driver(spark, tmp_path / "table", *given, **changes)


def completed_at(made: Driver, instant: str, time: str) -> None:
    """As if the instant had been completed when the clock said `time`."""
    [file] = (made.path / ".hoodie" / "timeline").glob(f"{instant}_*")
    file.rename(file.with_name(f"{instant}_{time}{file.suffix}"))


def from_now(seconds: float) -> str:
    """A time of a timeline in UTC."""
    return (datetime.now(UTC) + timedelta(seconds=seconds)).strftime(FORMAT)[:17]


def test_the_timeline_of_a_new_table_is_in_utc(driver: Callable[..., Driver]) -> None:
    made = driver()
    instant = made.run("t1", rows=1)
    assert table_properties(str(made.path))["hoodie.table.timeline.timezone"] == "UTC"
    assert from_now(-600) < instant <= from_now(0)


@pytest.fixture
def later_process(spark: SparkSession) -> Iterator[Callable[[str], None]]:
    """As if this JVM had been started in that zone just now: what Hudi keeps in a static is as it begins."""
    jvm = spark._jvm
    zones = jvm.org.apache.hudi.common.model.HoodieTimelineTimeZone
    generator = jvm.org.apache.hudi.common.table.timeline.HoodieInstantTimeGenerator
    was = jvm.java.util.TimeZone.getDefault()

    def begin(zone: str) -> None:
        generator.setCommitTimeZone(zones.LOCAL)
        jvm.java.util.TimeZone.setDefault(jvm.java.util.TimeZone.getTimeZone(zone))

    yield begin
    jvm.java.util.TimeZone.setDefault(was)


@pytest.mark.parametrize("zone", ["America/New_York", "Europe/Berlin", "Asia/Tokyo", "Australia/Lord_Howe"])
def test_a_later_run_writes_a_table_in_utc_in_utc_wherever_it_is(
    driver: Callable[..., Driver], later_process: Callable[[str], None], zone: str
) -> None:
    driver().run("t1", rows=1)
    later_process(zone)
    later = driver()
    instant = later.run("t2", rows=1)
    assert from_now(-600) < instant <= from_now(0)
    assert completed_file(later, instant).name.split("_")[1][:17] <= from_now(0)


def test_another_table_s_zone_in_the_same_process_is_not_taken_for_ones_own(
    driver: Callable[..., Driver], later_process: Callable[[str], None]
) -> None:
    made = driver()
    made.run("t1", rows=1)
    later_process("Asia/Tokyo")  # as opening a table in local time would
    instant = made.run("t2", rows=1)
    assert from_now(-600) < instant <= from_now(0)


def test_of_two_commits_the_one_that_follows_is_the_newest_though_it_completed_earlier_by_the_clock(
    driver: Callable[..., Driver],
) -> None:
    made = driver()
    first = made.run("t1", rows=2)
    made.table.newest()
    second = made.run("t2", rows=2)
    completed_at(made, first, from_now(0))
    for one in (made, driver()):
        newest = one.table.newest()
        assert newest is not None
        assert (newest.instant, dict(newest.offsets)) == (second, {SOURCE: 4})
    read = Timeline(made.path).newest(PIPELINE)
    assert read is not None and read.instant == second


def test_a_commit_that_completed_before_what_was_seen_last_is_seen_all_the_same(
    driver: Callable[..., Driver],
) -> None:
    made, successor = driver(), driver()
    first = made.run("t1", rows=2)
    second = successor.run("t2", rows=2)
    file = completed_file(made, second)
    hidden = file.rename(file.with_name(f"{file.name}.not_yet"))
    newest = made.table.newest()
    assert newest is not None and newest.instant == first
    hidden.rename(file.with_name(f"{second}_{first}{file.suffix}"))  # its clock was far behind
    newest = made.table.newest()
    assert newest is not None
    assert (newest.instant, dict(newest.offsets)) == (second, {SOURCE: 4})


def completed_file(made: Driver, instant: str) -> Path:
    [file] = (made.path / ".hoodie" / "timeline").glob(f"{instant}_*")
    return file


def test_the_newest_in_the_archive_is_the_one_that_follows_whatever_the_clock_said(
    driver: Callable[..., Driver],
) -> None:
    properties = {"hoodie.metadata.enable": "false", **QUICK_ARCHIVE, **WITHIN_COMMITS}
    made = driver(properties)
    first = made.run("t1", rows=2)
    second = made.run("t2", rows=2)
    completed_at(made, first, from_now(0))
    foreign = driver(properties, pipeline="other")
    for number in range(8):
        foreign.run(f"f{number}")
    assert not any(name.startswith((first, second)) for name in made.timeline()), "not archived yet"
    newest = driver(properties).table.newest()
    assert newest is not None and newest.instant == second
    read = Timeline(made.path).newest(PIPELINE)
    assert read is not None and read.instant == second


def requested_at(made: Driver, instant: str, seconds: float) -> str:
    """As if the instant had been requested so many seconds from now, in a local time that comes twice."""
    time = from_now(seconds)
    for file in (made.path / ".hoodie" / "timeline").glob(f"{instant}[_.]*"):
        name = file.name.replace(instant, time, 1)
        file.rename(
            file.with_name(name.replace(name.split("_")[-1].split(".")[0], time) if "_" in name else name)
        )
    return time


def test_of_a_table_in_local_time_the_newest_in_the_archive_may_have_been_requested_before_the_one_it_follows(
    driver: Callable[..., Driver],
) -> None:
    properties = {"hoodie.metadata.enable": "false"}
    made, foreign = driver(properties), driver(properties, pipeline="other")
    first, second = made.run("t1", rows=2), made.run("t2", rows=2)
    between = [foreign.run(f"b{number}") for number in range(4)]
    in_local_time(made.path)
    first = requested_at(made, first, -1_800)
    second = requested_at(made, second, -3_000)
    for minute, instant in enumerate(between):
        requested_at(made, instant, -2_700 + 60 * minute)
    foreign = driver({**properties, **QUICK_ARCHIVE, **WITHIN_COMMITS}, pipeline="other")
    for number in range(8):
        foreign.run(f"f{number}")
    assert not any(name.startswith((first, second)) for name in made.timeline()), "not archived yet"
    again = driver(properties)
    again.table.unfinished()
    stretches = _stretches(again.table._session)
    assert any(second <= end < first for _, end in stretches), "one file holds both"
    newest = again.table.newest()
    assert newest is not None and (newest.instant, dict(newest.offsets)) == (second, {SOURCE: 4})
    read = Timeline(made.path).newest(PIPELINE)
    assert read is not None and read.instant == second


def in_local_time(path: Path) -> None:
    """As tables are that were made before timelines were in UTC."""
    file = path / ".hoodie" / "hoodie.properties"
    text = file.read_text()
    assert "hoodie.table.timeline.timezone=UTC" in text
    file.write_text(
        text.replace("hoodie.table.timeline.timezone=UTC", "hoodie.table.timeline.timezone=LOCAL")
    )
    (path / ".hoodie" / ".hoodie.properties.crc").unlink(missing_ok=True)


def test_nothing_is_begun_while_the_clock_is_behind_the_table_and_the_lock_stays_free(
    driver: Callable[..., Driver],
) -> None:
    made = driver()
    first = made.run("t1", rows=1)
    ahead = from_now(HOUR_S)
    completed_at(made, first, ahead)
    for one in (made, driver()):
        with pytest.raises(ClockBehind, match=r"clock is (1 h|5\d min[^,]*) behind the table") as behind:
            one.begin("t2")
        assert ahead in str(behind.value) and behind.value.patience_ms == 0
        with one.table._session.locked():
            pass
    assert [name for name in made.timeline() if not name.startswith(first)] == []


def test_while_the_clock_is_behind_nobody_asks_for_the_lock_that_somebody_else_has(
    driver: Callable[..., Driver],
) -> None:
    made = driver()
    first = made.run("t1", rows=1)
    instant = made.begin("t2")
    commit = made.planned("t2", instant, 3, made.write(instant, 3))
    completed_at(made, first, from_now(HOUR_S))
    (made.path / ".hoodie" / "lock").write_text("somebody has it")
    steps: list[Callable[[], object]] = [
        lambda: made.begin("t3"),
        lambda: made.table.commit(commit, fence=lambda _newest: ""),
        lambda: made.table.roll_back(instant),
        lambda: plans.schedule(made.table._session, "compaction", "", lambda _extra: None, str),
    ]
    for step in steps:
        with pytest.raises(ClockBehind):  # and not that the lock could not be had
            step()


def test_nothing_is_committed_or_rolled_back_while_the_clock_is_behind_and_afterwards_it_is(
    driver: Callable[..., Driver],
) -> None:
    made = driver()
    first = made.run("t1", rows=1)
    was = completed_file(made, first).name.split("_")[1].split(".")[0]
    instant = made.begin("t2")
    commit = made.planned("t2", instant, 3, made.write(instant, 3))
    completed_at(made, first, from_now(HOUR_S))
    with pytest.raises(ClockBehind):
        made.table.commit(commit, fence=lambda _newest: "")
    with pytest.raises(ClockBehind):
        made.table.roll_back(instant)
    completed_at(made, first, was)
    made.table.commit(commit, fence=lambda _newest: "")
    assert made.table.newest().instant == instant  # type: ignore[union-attr]


def test_a_clock_that_is_a_moment_behind_is_waited_for(driver: Callable[..., Driver]) -> None:
    made = driver()
    first = made.run("t1", rows=1)
    ahead = from_now(0.8)
    completed_at(made, first, ahead)
    assert made.begin("t2") > ahead


def test_a_clock_that_goes_back_inside_the_lock_leaves_the_instant_open_and_is_waited_for(
    driver: Callable[..., Driver],
) -> None:
    made = driver()
    first = made.run("t1", rows=1)
    was = completed_file(made, first).name.split("_")[1].split(".")[0]
    instant = made.begin("t2")
    commit = made.planned("t2", instant, 3, made.write(instant, 3))

    def fence(_newest: object) -> str:
        completed_at(made, first, from_now(HOUR_S))
        made.table._session.reload()
        return ""

    with pytest.raises(ClockBehind):
        made.table.commit(commit, fence=fence)
    completed_at(made, first, was)
    made.table.commit(commit, fence=lambda _newest: "")
    assert made.table.newest().instant == instant  # type: ignore[union-attr]


def test_a_column_that_others_add_is_seen_though_they_did_so_earlier_by_the_clock(
    spark: SparkSession, driver: Callable[..., Driver]
) -> None:
    made = driver()
    made.run("t1", rows=1)
    spark.sql(f"create table if not exists clocks using hudi location '{made.path}'")
    try:
        spark.sql("alter table clocks add columns (note string)")
    finally:
        spark.sql("drop table clocks")
    [theirs] = [one for one in Timeline(made.path).completed() if one.operation == "ALTER_SCHEMA"]
    instant = made.begin("t2")
    commit = made.planned("t2", instant, 1, made.write(instant, 1))
    completed_at(made, theirs.requested, theirs.requested[:8].ljust(17, "0"))
    with pytest.raises(Contradiction, match="note"):
        made.table.commit(commit, fence=lambda _newest: "")


def test_what_a_zombie_writes_after_the_clock_was_set_back_is_swept_all_the_same(
    driver: Callable[..., Driver], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = driver()
    complete = made.run("t1", rows=1)
    now_s = time.time()
    monkeypatch.setattr("table.hudi.upkeep.candidates.time.time", lambda: now_s + 3_600)
    assert made.table.sweep(grace_ms=0).removed == 0
    monkeypatch.undo()
    late = made.write(complete, 1)
    assert made.table.sweep(grace_ms=0).removed == 1
    assert not (made.path / late.path).exists()


def test_a_heartbeat_that_looks_expired_since_the_clock_was_set_forth_does_not_hold_the_commit_up(
    driver: Callable[..., Driver],
) -> None:
    made = driver()
    instant = made.begin("t1")
    heart = made.table._session.client.getHeartbeatClient()
    hours_ago = made.table._session.jvm.java.lang.Long(int(time.time() * 1_000) - 3 * 3_600_000)
    heart.getHeartbeat(instant).setLastHeartbeatTime(hours_ago)
    assert heart.isHeartbeatExpired(instant)
    made.table.commit(made.planned("t1", instant, 2, made.write(instant, 2)), fence=lambda _newest: "")
    assert made.table.newest().instant == instant  # type: ignore[union-attr]


def test_a_heartbeat_whose_first_beat_storage_did_not_take_holds_the_commit_up_no_longer_than_that(
    driver: Callable[..., Driver],
) -> None:
    """A commit that failed has stopped it; Hudi takes the one that was begun anew for started."""
    made = driver()
    instant = made.begin("t1")
    session = made.table._session
    session.let_die(instant)
    beats, aside = made.path / ".hoodie" / ".heartbeat", made.path / ".hoodie" / "aside"
    beats.rename(aside)
    beats.write_bytes(b"")
    with pytest.raises(Py4JJavaError):
        session.keep_alive(instant)
    beats.unlink()
    aside.rename(beats)
    made.table.commit(made.planned("t1", instant, 2, made.write(instant, 2)), fence=lambda _newest: "")
    assert made.table.newest().instant == instant  # type: ignore[union-attr]


def set_forth(made: Driver, seconds: float) -> None:
    """This machine's clock is ahead of the file system's by so much, for those who compare the two."""
    made.table._session.lock.clock._clock_s = lambda: time.time() + seconds


def test_nothing_takes_the_table_lock_while_the_clock_is_ahead_of_the_file_systems_and_afterwards_all_does(
    driver: Callable[..., Driver],
) -> None:
    made = driver()
    made.run("t1", rows=1)
    second = made.begin("t2")
    commit = made.planned("t2", second, 3, made.write(second, 3))
    session, before = made.table._session, sorted(made.timeline())
    lock = made.path / ".hoodie" / "lock"
    taken: list[str] = []

    def complete() -> None:
        with guarded(session, lambda: taken.append("looked")):
            session.client.getTableServiceClient().getTransactionManager().beginStateChange(
                session.none(), session.none()
            )

    steps: list[Callable[[], object]] = [
        lambda: made.table.commit(commit, fence=lambda _newest: ""),
        lambda: made.table.roll_back(second),
        lambda: made.begin("t3"),
        session.archive,
        complete,
        lambda: plans.schedule(session, "compaction", "", lambda _extra: taken.append("asked"), str),
        lambda: plans.abandon(session, "compaction", PIPELINE, list, lambda _plan: set()),
        made.table.compare_clocks,
    ]
    set_forth(made, HOUR_S)
    for step in steps:
        with pytest.raises(ClockAhead, match="ahead of the file system's"):
            step()
        assert not lock.exists()
    assert (taken, sorted(made.timeline())) == ([], before)
    made.table.sweep(grace_ms=0)  # tends the metadata table where it may
    set_forth(made, 0)
    made.table.commit(commit, fence=lambda _newest: "")
    assert made.table.newest().instant == second  # type: ignore[union-attr]
    assert made.table.compare_clocks().endswith("agree to 10 s")


def test_a_clock_that_goes_ahead_before_the_lock_is_had_leaves_the_instant_open(
    driver: Callable[..., Driver],
) -> None:
    made = driver()
    instant = made.begin("t1")
    commit = made.planned("t1", instant, 3, made.write(instant, 3))

    def fence(_newest: object) -> str:
        set_forth(made, HOUR_S)  # of what happens under the lock the look at the clock is the last
        return ""

    with pytest.raises(ClockAhead):
        made.table.commit(commit, fence=fence)
    assert made.table.newest() is None and not (made.path / ".hoodie" / "lock").exists()
    set_forth(made, 0)
    made.table.commit(commit, fence=lambda _newest: "")
    assert made.table.newest().instant == instant  # type: ignore[union-attr]


def test_a_lock_of_which_hudi_says_late_that_it_is_held_has_no_effect(
    driver: Callable[..., Driver], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The JVM stood still between taking it and its call: no guardian has known, and others may have it."""
    made = driver()
    made.run("t1", rows=1)
    instant = made.begin("t2")
    commit = made.planned("t2", instant, 3, made.write(instant, 3))
    monkeypatch.setattr("table.hudi.driver.holder.UNSAID_S", -1.0)
    with pytest.raises(Unavailable, match="the JVM was stopped, or storage is too slow"):
        made.table.commit(commit, fence=lambda _newest: "")
    assert not list((made.path / ".hoodie" / "timeline").glob(f"{instant}_*")), "it is complete"
    assert not (made.path / ".hoodie" / "lock").exists()
    monkeypatch.undo()
    made.table.commit(commit, fence=lambda _newest: "")
    assert made.table.newest().instant == instant  # type: ignore[union-attr]


def test_how_long_the_lock_is_held_is_known(driver: Callable[..., Driver]) -> None:
    made = driver()
    jvm, lock = made.table._session.jvm, str(made.path / ".hoodie" / "lock")
    assert lock_held_s(jvm, lock) < 0
    with made.table._session.locked():
        assert 0 <= lock_held_s(jvm, lock) < 60
        assert lock_held_s(jvm, f"{lock}2") < 0
    assert lock_held_s(jvm, lock) < 0


def test_a_guardian_sees_each_lock_that_the_jvm_holds_and_since_when(driver: Callable[..., Driver]) -> None:
    """Whoever takes it: Hudi by itself, too, as it does to clean."""
    made, other = driver(), driver()
    page = Page(page_file().number)
    manager = made.table._session.client.getTableServiceClient().getTransactionManager()
    nobody = made.table._session.none()
    assert page.held() == []
    for _ in range(2):
        before_s = time.clock_gettime(CLOCK)
        manager.beginStateChange(nobody, nobody)
        try:
            shown = page.held()
            assert len(shown) == 1
            held = shown[0]
            assert -0.1 <= held.since_s - before_s < 30 and held.lives_s == 60
            seconds = made.table._session.jvm.java.util.concurrent.TimeUnit.SECONDS
            assert not lock_provider(other).tryLock(0, seconds)
            assert page.held() == [held], "whoever is refused it holds nothing"
        finally:
            manager.endStateChange(nobody)
        assert page.held() == []


def lock_provider(made: Driver) -> Any:
    return made.table._session.client.getTransactionManager().getLockManager().getLockProvider()


def test_a_clock_that_is_set_forth_gives_nobody_the_lock_that_another_of_the_same_driver_holds(
    driver: Callable[..., Driver],
) -> None:
    """A compaction that is being completed, and a commit."""
    holder, other = driver(), driver()
    holder.run("t1", rows=1)
    lock = holder.path / ".hoodie" / "lock"
    seconds = holder.table._session.jvm.java.util.concurrent.TimeUnit.SECONDS
    with holder.table._session.locked():
        file = lock.stat().st_ino
        os.utime(lock, (time.time() - HOUR_S,) * 2)
        provider = lock_provider(other)
        assert not provider.tryLock(0, seconds)
        provider.unlock()
        provider.close()  # as Hudi does where it was refused
        assert lock.stat().st_ino == file
    assert not lock.exists()
    with other.table._session.locked():
        assert lock.exists()
    assert not lock.exists()


IMPATIENT = {
    "hoodie.write.lock.client.num_retries": "1",
    "hoodie.write.lock.wait_time_ms": "300",
    "hoodie.write.lock.client.wait_time_ms_between_retry": "100",
}


def test_nor_does_whoever_wants_the_time_of_a_new_instant_or_to_complete_or_roll_back_one(
    driver: Callable[..., Driver],
) -> None:
    """Hudi makes a provider of the lock for each of its clocks and clients, by the name of its class."""
    holder, other = driver(), driver({**PLAIN, **IMPATIENT})
    holder.run("t1", rows=1)
    instant = other.begin("t2")
    planned = other.planned("t2", instant, 3, other.write(instant, 3))
    before = sorted(other.timeline())
    lock = holder.path / ".hoodie" / "lock"
    steps: list[Callable[[], object]] = [
        lambda: other.begin("t3"),
        lambda: other.table.commit(planned, fence=lambda _newest: ""),
        lambda: other.table.roll_back(instant),
    ]
    with holder.table._session.locked():
        os.utime(lock, (time.time() - HOUR_S,) * 2)
        file = lock.stat().st_ino
        for step in steps:
            with pytest.raises(Unavailable):
                step()
            assert lock.stat().st_ino == file
        assert sorted(other.timeline()) == before
    other.table.commit(planned, fence=lambda _newest: "")
    assert other.table.newest().instant == instant  # type: ignore[union-attr]


def test_a_lock_that_somebody_of_the_same_driver_never_lets_go_of_lives_as_long_as_any(
    driver: Callable[..., Driver],
) -> None:
    holder, other = driver(), driver()
    holder.run("t1", rows=1)
    jvm = holder.table._session.jvm
    seconds = jvm.java.util.concurrent.TimeUnit.SECONDS
    lost = lock_provider(holder)
    assert lost.tryLock(0, seconds)
    since = lost.getClass().getDeclaredField("since_ns")
    since.setAccessible(True)
    os.utime(holder.path / ".hoodie" / "lock", (time.time() - HOUR_S,) * 2)
    assert not lock_provider(other).tryLock(0, seconds)
    since.setLong(lost, since.getLong(lost) - HOUR_S * 1_000_000_000)
    assert lock_provider(other).tryLock(0, seconds)
    lost.close()  # comes to its senses
    assert (holder.path / ".hoodie" / "lock").exists()
    lock_provider(other).close()
    assert not (holder.path / ".hoodie" / "lock").exists()
    assert Page(page_file().number).held() == [], (
        "a guardian would end this process for a lock that is another's"
    )

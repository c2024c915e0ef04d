"""Table partitions that are past their time go out of the table, beside the transactions, on real Hudi."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from control_topic.messages import DataFile
from table.errors import TableError, Unavailable
from table.hudi.driver.session import Session
from table.hudi.files.base_file import create_marker, create_partition, file_name, new_file_id
from table.hudi.reader.timeline import Timeline
from table.hudi.upkeep import retention
from table.hudi.upkeep.cleaning import Cleaning
from table.hudi.upkeep.clustering import Clustering, plan
from table.hudi.upkeep.clustering import tidy as tidy_clusterings
from table.hudi.upkeep.due import Done
from table.hudi.upkeep.retention import FIRST_LOOK_S, LOOKS_EVERY_S, Retention, request, take_out, tidy
from table.port import ServiceProgress
from table.store.local import LocalStore
from tests.harness import Pipeline, await_that
from tests.integration.test_hudi_table import PIPELINE, PLAIN, Driver, accept
from tests.integration.test_services import rows, rows_without_jvm

pytestmark = pytest.mark.integration

OLD, OLDER, NEW, NO_DAY = "2020-01-02", "2020-01-01", "2099-12-31", "late"
WITH_METADATA = {"hoodie.clean.commits.retained": "1"}


class Days(Driver):
    """Its transactions write into the table partition of a day."""

    day = OLD

    def write(self, instant: str, rows: int, *, first: int = 0) -> DataFile:
        file_id = new_file_id(uuid.uuid4())
        name = file_name(file_id, "0-0-0", instant)
        store = LocalStore(self.path)
        create_partition(store, instant, self.day)
        create_marker(store, instant, self.day, name)
        made = self.rows(instant, name, rows, first)
        for column in ("_hoodie_partition_path", "day"):
            at = made.schema.get_field_index(column)
            made = made.set_column(at, made.schema.field(at), pa.array([self.day] * rows, pa.string()))
        target = self.path / self.day / name
        pq.write_table(made, target)
        return DataFile(
            path=f"{self.day}/{name}",
            body=file_id,
            table_partition=self.day,
            rows=rows,
            size_bytes=target.stat().st_size,
        )


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def driver(spark: SparkSession, tmp_path: Path) -> Iterator[Callable[..., Days]]:
    made: list[Days] = []

    def make(**changes: object) -> Days:
        changes = {"retention_ms": 90 * 86_400_000, **changes}
        made.append(Days(spark, tmp_path / "t", **changes))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for one in made:
        one.table.close()


def run(driver: Days, number: int, day: str) -> str:
    """Four rows of this day."""
    driver.day = day
    return str(driver.run(f"t{number}", rows=4))


def session_of(driver: Days) -> Session:
    return Retention(driver.spec, PIPELINE).open(driver.table._session_beside)


def look(driver: Days, session: Session | None = None) -> Done | None:
    """A look by a service that has not looked before."""
    return Retention(driver.spec, PIPELINE).run(session or session_of(driver), lambda _doing: None)


def keys(*numbers: int) -> list[str]:
    """Of the rows of these transactions."""
    return sorted(f"e{4 * number + row}" for number in numbers for row in range(4))


def days_of(path: Path) -> dict[str, int]:
    """Data files by table partition, whether or not they are in the table."""
    return {
        folder.name: len(list(folder.glob("*.parquet")))
        for folder in path.iterdir()
        if folder.is_dir() and not folder.name.startswith(".")
    }


@pytest.mark.parametrize("properties", [PLAIN, WITH_METADATA])
def test_what_is_past_its_time_goes_out_its_files_later_and_what_comes_late_stays_until_the_next_time(
    spark: SparkSession, driver: Callable[..., Days], properties: dict[str, str]
) -> None:
    made = driver(properties=properties)
    for number, day in enumerate((OLDER, NEW, OLD, NO_DAY, OLD)):
        run(made, number, day)
    before = days_of(made.path)
    done = look(made)
    assert done is not None and done.what == "2 table partitions taken out, of 3 file groups"
    assert days_of(made.path) == before, "who has begun to read goes on"
    assert rows(spark, made.path) == rows_without_jvm(made.path) == keys(1, 3)
    assert look(made) is None, "what is empty is not taken out again"
    newest = Timeline(made.path).newest(PIPELINE)
    assert newest is not None and sum(newest.offsets.values()) == 20 and newest == made.table.newest()

    run(made, 5, OLD)
    assert rows(spark, made.path) == rows_without_jvm(made.path) == keys(1, 3, 5)
    for number in (6, 7):
        run(made, number, NEW)
    cleaning = Cleaning(made.spec)
    cleaned = cleaning.run(cleaning.open(made.table._session_beside), lambda _doing: None)
    assert cleaned is not None
    if properties is WITH_METADATA:
        assert cleaned.what.startswith("3 files removed")
        assert days_of(made.path)[OLD] == 1
    assert rows(spark, made.path) == rows_without_jvm(made.path) == keys(1, 3, 5, 6, 7)
    again = look(made)
    assert again is not None and again.what == "1 table partitions taken out, of 1 file groups"
    assert rows(spark, made.path) == rows_without_jvm(made.path) == keys(1, 3, 6, 7)
    run(made, 8, OLD)
    assert rows(spark, made.path) == rows_without_jvm(made.path) == keys(1, 3, 6, 7, 8)
    assert made.table.sweep(grace_ms=0).removed == 0


def test_a_transaction_that_is_open_meanwhile_is_committed_and_keeps_its_rows(
    spark: SparkSession, driver: Callable[..., Days]
) -> None:
    made = driver()
    run(made, 0, OLD)
    instant = made.begin("t1")
    file = made.write(instant, 4, first=4)
    assert look(made) is not None
    made.table.commit(made.planned("t1", instant, 4, file), fence=accept)
    assert rows(spark, made.path) == rows_without_jvm(made.path) == keys(1)


def test_the_service_does_it_after_a_commit_and_says_so(
    spark: SparkSession, driver: Callable[..., Days]
) -> None:
    made = driver(services=True)

    def progress() -> ServiceProgress:
        return next(one for one in made.table.services() if one.name == "retention")

    await_that("a service that has tidied", lambda: progress().running_ms is None)
    run(made, 0, OLD)
    run(made, 1, NEW)
    await_that("retention", lambda: progress().done >= 1)
    assert progress().problem == ""
    assert progress().last_what == "1 table partitions taken out, of 1 file groups"
    assert rows(spark, made.path) == keys(1)


def test_it_looks_again_after_a_while_only(driver: Callable[..., Days]) -> None:
    made, clock = driver(), Clock()
    work = Retention(made.spec, PIPELINE, clock_s=clock)
    session = work.open(made.table._session_beside)
    run(made, 0, NEW)
    assert work.run(session, lambda _doing: None) is None
    run(made, 1, OLD)
    assert work.run(session, lambda _doing: None) is None
    clock.now_s = LOOKS_EVERY_S
    assert work.run(session, lambda _doing: None) is not None


def test_it_looks_by_time_as_well_for_a_day_is_over_whether_or_not_anything_is_committed(
    driver: Callable[..., Days],
) -> None:
    made, clock = driver(), Clock()
    work = Retention(made.spec, PIPELINE, clock_s=clock)
    session = work.open(made.table._session_beside)
    work.tidy(session)
    assert work.due_in_s(0) == FIRST_LOOK_S
    run(made, 0, OLD)
    clock.now_s = FIRST_LOOK_S
    assert work.due_in_s(clock.now_s) == 0
    assert work.run_early(session, lambda _doing: None, clock.now_s) is not None
    assert work.due_in_s(clock.now_s) == LOOKS_EVERY_S


def test_an_empty_table_is_looked_at_again_with_the_first_commit_and_else_when_it_is_time(
    driver: Callable[..., Days],
) -> None:
    made, clock = driver(), Clock()
    work = Retention(made.spec, PIPELINE, clock_s=clock)
    session = work.open(made.table._session_beside)
    assert work.run_early(session, lambda _doing: None, 0) is None
    assert work.due_in_s(0) == LOOKS_EVERY_S, "nobody looks again and again at nothing"
    run(made, 0, OLD)
    assert work.run(session, lambda _doing: None) is not None


def test_a_day_goes_once_it_is_over_for_longer_than_the_retention_and_no_moment_before(
    driver: Callable[..., Days],
) -> None:
    made = driver(retention_ms=86_400_000)
    run(made, 0, "2026-11-20")
    due_s = datetime(2026, 11, 22, tzinfo=UTC).timestamp()
    early = Retention(made.spec, PIPELINE, wall_s=lambda: due_s - 1)
    on_time = Retention(made.spec, PIPELINE, wall_s=lambda: due_s)
    session = session_of(made)
    assert early.run(session, lambda _doing: None) is None
    assert on_time.run(session, lambda _doing: None) is not None


# --- a clustering -------------------------------------------------------------------------------------


def test_what_a_clustering_has_in_its_hands_is_left_for_the_next_time(
    spark: SparkSession, driver: Callable[..., Days]
) -> None:
    made = driver(clustering="async")
    for number in range(2):
        run(made, number, OLD)
    run(made, 2, OLDER)
    clusterings = Clustering(made.spec, PIPELINE).open(made.table._session_beside)
    planned = plan(clusterings, PIPELINE)
    assert planned is not None and planned.folders == {OLD}
    done = look(made)
    assert done is not None and done.what == "1 table partitions taken out, of 1 file groups"
    assert tidy_clusterings(clusterings, PIPELINE).taken == [planned.instant]
    assert look(made) is not None
    assert rows(spark, made.path) == []


def test_what_a_clustering_takes_into_its_hands_meanwhile_is_not_taken_out(
    spark: SparkSession, driver: Callable[..., Days]
) -> None:
    made = driver(clustering="async")
    for number in range(2):
        run(made, number, OLD)
    session, clusterings = session_of(made), Clustering(made.spec, PIPELINE).open(made.table._session_beside)
    instant = request(session, PIPELINE)
    planned, _, _ = plan(clusterings, PIPELINE)
    with pytest.raises(Unavailable, match="a clustering has table partition '2020-01-02' in its hands"):
        take_out(session, PIPELINE, instant, {OLD: None})
    assert tidy(session, PIPELINE).taken == [instant]
    assert rows(spark, made.path) == keys(0, 1)
    assert tidy_clusterings(clusterings, PIPELINE).taken == [planned]
    assert look(made) is not None
    assert rows(spark, made.path) == rows_without_jvm(made.path) == []


# --- a driver that dies, or is paused -----------------------------------------------------------------


class Killed(Exception):
    """The driver is gone at this moment."""


@pytest.mark.parametrize("properties", [PLAIN, WITH_METADATA])
@pytest.mark.parametrize("step", ["requested", "noted", "inflight", "checked"])
def test_what_a_driver_leaves_that_died_at_any_step_is_taken_away_and_done_anew(
    spark: SparkSession,
    driver: Callable[..., Days],
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    properties: dict[str, str],
) -> None:
    made = driver(properties=properties)
    run(made, 0, OLD)
    run(made, 1, NEW)
    dead, successor = session_of(made), session_of(made)
    instant = request(dead, PIPELINE)

    def dies(*_: object, **__: object) -> None:
        raise Killed

    if step == "noted":
        monkeypatch.setattr(dead, "keep_alive", dies)
    elif step == "inflight":
        monkeypatch.setattr(retention, "file_groups", dies)
    elif step == "checked":
        monkeypatch.setattr(retention, "_check", _refuses)
    if step != "requested":
        with pytest.raises((Killed, TableError)):
            take_out(dead, PIPELINE, instant, {OLD: None})
    monkeypatch.undo()
    run(made, 2, OLD)
    assert tidy(successor, PIPELINE).taken == [instant]
    assert rows(spark, made.path) == rows_without_jvm(made.path) == keys(0, 1, 2)
    done = look(made, successor)
    assert done is not None and done.instant > instant
    assert rows(spark, made.path) == rows_without_jvm(made.path) == keys(1)
    run(made, 3, NEW)
    assert rows(spark, made.path) == rows_without_jvm(made.path) == keys(1, 3)


def _refuses(*_: object) -> None:
    raise Unavailable("the driver is gone at this moment")


def test_a_driver_that_was_paused_completes_nothing_that_was_taken_away(
    spark: SparkSession, driver: Callable[..., Days], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = driver()
    run(made, 0, OLD)
    paused, successor = session_of(made), session_of(made)
    instant = request(paused, PIPELINE)
    begun = retention._begin

    def begins(*all_of_it: object) -> object:
        groups = begun(*all_of_it)  # type: ignore[arg-type]
        assert tidy(successor, PIPELINE).taken == [instant]
        return groups

    monkeypatch.setattr(retention, "_begin", begins)
    with pytest.raises(TableError):
        take_out(paused, PIPELINE, instant, {OLD: None})
    assert rows(spark, made.path) == rows_without_jvm(made.path) == keys(0)
    run(made, 1, NEW)
    assert rows(spark, made.path) == keys(0, 1)


def test_columns_that_came_meanwhile_are_not_taken_away(
    spark: SparkSession, driver: Callable[..., Days]
) -> None:
    made = driver()
    run(made, 0, OLD)
    session = session_of(made)
    spark.sql(f"create table if not exists retained using hudi location '{made.path}'")
    try:
        spark.sql("alter table retained add columns (more string)")
        done = look(made, session)
        assert done is not None
        assert "more" in spark.read.format("hudi").load(str(made.path)).columns
    finally:
        spark.sql("drop table retained")


# --- a whole pipeline -----------------------------------------------------------------------------------


@pytest.mark.timeout(900)
def test_a_run_takes_out_what_is_past_its_time_while_it_ingests_and_verify_says_what_it_cannot_check(
    pipeline: Pipeline,
) -> None:
    pipeline.settings["table.retention"] = "90d"
    old, new = (
        [f'{{"event_id": "{day}-{number}", "day": "{day}"}}'.encode() for number in range(500)]
        for day in (OLD, NEW)
    )
    pipeline.produce_raw([*old, *new], partition=0)
    run = pipeline.start()  # so late that all of them are in the first commit
    run.await_rows(1_000)
    await_that("retention", lambda: "table partitions taken out" in run.text())
    later = [f'{{"event_id": "later-{number}", "day": "{NEW}"}}'.encode() for number in range(500)]
    pipeline.produce_raw(later, partition=0)
    run.await_rows(1_500)
    assert run.stop() == 0
    after = run.text().split("table partitions taken out")[1].splitlines()
    assert not [line for line in after if " WARNING " in line and " table." in line]
    verdict = pipeline.verify()
    assert (verdict["exact"], verdict["rows"], verdict["duplicated"]) == (None, 1_000, 0)
    assert verdict["missing"] == 500 and "deleted or replaced" in verdict["not_checkable"][0]

"""Clustering, cleaning and archiving beside the transactions, and compaction between them, on real Hudi."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hudi import HudiTableBuilder
from pyspark.sql import SparkSession

from lockstep.driver.capacity import free_slots
from table.errors import TableError
from table.hudi.driver.guard import Guard
from table.hudi.driver.session import Session
from table.hudi.reader.timeline import Timeline
from table.hudi.upkeep import clustering as clustering_of_hudi
from table.hudi.upkeep.cleaning import Cleaning
from table.hudi.upkeep.clustering import Clustering, Planned, carry_out, plan, tidy
from table.port import ServiceProgress
from tests.harness import Pipeline, await_that
from tests.integration.clusterings import copied, put_together
from tests.integration.test_hudi_table import FOREIGN, OFTEN_COMPACTED, PIPELINE, PLAIN, QUICK_ARCHIVE, Driver
from tests.integration.test_upserts import PATIENTLY, Upserts, history, record
from tests.merge_model import Model

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]


@pytest.fixture
def driver(spark: SparkSession, tmp_path: Path) -> Iterator[Callable[..., Driver]]:
    made: list[Driver] = []

    def make(**changes: object) -> Driver:
        made.append(Driver(spark, tmp_path / "t", **changes))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for one in made:
        one.table.close()


def run(driver: Driver, number: int, rows: int = 4) -> str:
    """A transaction that waits for the table lock as a coordinator does."""
    return str(PATIENTLY(driver.run, f"t{number}", rows=rows))


def rows(spark: SparkSession, path: Path) -> list[str]:
    """Record keys as Spark's snapshot query has them, in order."""
    spark.catalog.clearCache()
    return sorted(row[0] for row in spark.read.format("hudi").load(str(path)).select("event_id").collect())


def rows_without_jvm(path: Path) -> list[str]:
    batches = HudiTableBuilder.from_base_uri(str(path)).build().read()
    return sorted(one for batch in batches for one in batch.column("event_id").to_pylist())


def keys(count: int) -> list[str]:
    return sorted(f"e{number}" for number in range(count))


def progress(driver: Driver | Upserts, name: str) -> ServiceProgress:
    return next(one for one in driver.table.services() if one.name == name)


def completed(path: Path, action: str) -> list[str]:
    return [one.name for one in path.glob(f".hoodie/timeline/*_*.{action}")]


def test_services_are_given_the_slots_that_workers_leave_and_one_at_least(spark: SparkSession) -> None:
    slots = spark.sparkContext.defaultParallelism
    assert [free_slots(spark, workers) for workers in (0, slots - 1, slots, slots + 1)] == [slots, 1, 1, 1]


# --- clustering ---------------------------------------------------------------------------------------


def test_small_files_are_put_together_beside_the_transactions(
    spark: SparkSession, driver: Callable[..., Driver]
) -> None:
    made = driver(services=True, clustering="async", clustering_every=3)
    for number in range(7):
        run(made, number)
    await_that("clustering", lambda: progress(made, "clustering").done >= 1)
    done = progress(made, "clustering")
    assert (done.problem, done.last_what.endswith("files put together")) == ("", True)
    run(made, 7)
    assert rows(spark, made.path) == rows_without_jvm(made.path) == keys(32)
    newest = Timeline(made.path).newest(PIPELINE)
    assert newest is not None and sum(newest.offsets.values()) == 32 and newest == made.table.newest()
    assert completed(made.path, "replacecommit")
    assert made.table.sweep(grace_ms=0).removed == 0


def test_what_another_writer_has_left_is_found_by_a_look_at_the_whole_table(
    spark: SparkSession, driver: Callable[..., Driver]
) -> None:
    made = driver(
        properties=PLAIN,
        services=True,
        clustering="async",
        clustering_every=2,
        clustering_after_ms=1_000,
        clustering_share=1.0,
    )
    run(made, 0)
    frame = spark.read.format("hudi").load(str(made.path))
    frame = frame.drop(*(name for name in frame.columns if name.startswith("_hoodie_")))
    options = {**FOREIGN, **PLAIN, "hoodie.clean.automatic": "false"}
    options["hoodie.datasource.write.operation"] = "bulk_insert"  # which grows no file
    for _ in range(3):
        frame.coalesce(1).write.format("hudi").options(**options).mode("append").save(str(made.path))
    before = rows(spark, made.path)
    run(made, 1)
    await_that("two small files", lambda: len(small_files(made.path)) <= 2)
    assert progress(made, "clustering").problem == ""
    assert sorted(rows(spark, made.path)) == sorted([*before, *keys(8)[4:]])


def small_files(path: Path) -> list[Path]:
    """Base files that no clustering has taken out: what a reader opens now."""
    taken_out: set[str] = set()
    for one in Timeline(path).active()[0]:
        if one.action == "replacecommit":
            replaced = Timeline(path).metadata(one)["partitionToReplaceFileIds"]
            taken_out |= {file_id for ids in replaced.values() for file_id in ids}
    return [one for one in path.glob("a/*.parquet") if one.name.partition("_")[0] not in taken_out]


def test_small_files_are_put_together_as_soon_as_commits_have_added_many(
    spark: SparkSession, driver: Callable[..., Driver]
) -> None:
    made = driver(services=True, clustering="async", clustering_files=4)
    for number in range(5):
        run(made, number)
    await_that("clustering", lambda: progress(made, "clustering").done >= 1)
    assert progress(made, "clustering").problem == ""
    assert len(small_files(made.path)) <= 2
    assert rows(spark, made.path) == rows_without_jvm(made.path) == keys(20)


def test_a_few_small_files_are_put_together_when_nothing_comes_any_more(
    spark: SparkSession, driver: Callable[..., Driver]
) -> None:
    """Those of an earlier run, which the timeline tells of, with this run's."""
    before = driver()
    for number in range(2):
        run(before, number)
    made = driver(services=True, clustering="async", clustering_after_ms=1_000)
    run(made, 2)
    await_that("clustering", lambda: progress(made, "clustering").done == 1)
    assert progress(made, "clustering").last_what.startswith("3 files")
    assert len(small_files(made.path)) == 1
    assert rows(spark, made.path) == rows_without_jvm(made.path) == keys(12)
    assert made.table.sweep(grace_ms=0).removed == 0


def test_what_others_have_put_together_is_not_looked_for_again(
    spark: SparkSession, driver: Callable[..., Driver]
) -> None:
    """Commits told of files that are no more: Hudi plans nothing, and they are forgotten."""
    made = with_small_files(driver)
    ours = Clustering(made.spec, PIPELINE)
    session = ours.open(made.table._session_beside)
    ours.tidy(session)
    now_s = time.monotonic() + 1_000
    assert ours.due_in_s(now_s) == 0
    assert clustered(clusterings(made))
    assert ours.run_early(session, lambda _doing: None, now_s) is None
    assert ours.due_in_s(now_s) is None


def test_files_of_which_no_two_fit_into_one_are_not_copied_again_and_again(
    driver: Callable[..., Driver], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a limit of the configuration's own they are small. Hudi plans to copy each of them alone."""
    monkeypatch.setattr(clustering_of_hudi, "COPIED_FROM_BYTES", 0)
    made = with_small_files(driver)
    size_bytes = max(path.stat().st_size for path in made.path.glob("a/*.parquet"))
    limit = {"hoodie.clustering.plan.strategy.small.file.limit": str(2 * size_bytes)}
    spec = replace(made.spec, target_file_bytes=size_bytes * 11 // 10, properties={**PLAIN, **limit})
    ours = Clustering(spec, PIPELINE)
    session = ours.open(made.table._session_beside)
    ours.tidy(session)
    now_s = time.monotonic() + 1_000
    assert ours.due_in_s(now_s) == 0
    in_vain = ours.run_early(session, lambda _doing: None, now_s)
    assert in_vain is not None and len(small_files(made.path)) == 3
    assert ours.due_in_s(now_s) == 0
    assert ours.run_early(session, lambda _doing: None, now_s) is None  # of rewriting it plans nothing
    assert ours.due_in_s(now_s) is None
    assert rows_without_jvm(made.path) == keys(12)


def test_what_is_copied_together_says_what_it_said_and_has_no_file_of_a_task_that_was_lost(
    spark: SparkSession, driver: Callable[..., Driver], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hudi makes no markers for copies: it cannot tell what a lost executor has written beside them."""
    made = with_small_files(driver)
    before = history_of(spark, made.path)
    lost: list[Path] = []
    real = Guard.tryLock

    def late(self: Guard, time: int, unit: Any) -> bool:
        if not lost:  # all is written, and it wants the lock
            (instant,) = (
                one.requested for one in Timeline(made.path).pending() if one.action == "clustering"
            )
            (copy,) = copied(made.path, instant)
            lost.append(copy.with_name(f"{uuid.uuid4()}-0_0-1-2_{instant}.parquet"))
            lost[0].write_bytes(copy.read_bytes())
        return real(self, time, unit)

    with monkeypatch.context() as patched:
        patched.setattr(Guard, "tryLock", late)
        with pytest.raises(TableError, match="had 12 rows"):
            put_together(made.table, PIPELINE, monkeypatch)
    assert lost[0].exists() and not completed(made.path, "replacecommit")
    assert rows(spark, made.path) == rows_without_jvm(made.path) == keys(12)

    put_together(made.table, PIPELINE, monkeypatch)  # which takes the other away first
    assert not lost[0].exists()
    assert len(small_files(made.path)) == 1
    assert history_of(spark, made.path) == before
    assert rows_without_jvm(made.path) == keys(12)
    assert made.table.sweep(grace_ms=0).removed == 0


@pytest.mark.parametrize("archived", [False, True])
def test_a_copy_that_comes_once_its_clustering_is_complete_is_swept_and_others_are_left_alone(
    driver: Callable[..., Driver], monkeypatch: pytest.MonkeyPatch, archived: bool
) -> None:
    """Of an executor that was taken for lost. Whoever lists folders would find its rows twice."""
    made = driver(properties={**PLAIN, **QUICK_ARCHIVE})
    for number in range(3):
        run(made, number)
    instant = put_together(made.table, PIPELINE, monkeypatch)
    (copy,) = copied(made.path, instant)
    content = copy.read_bytes()
    theirs = clustered_by_somebody_else(made)
    if archived:
        archive_clusterings(made)
    files = made.files()
    late, foreign = (copy.with_name(f"{uuid.uuid4()}-0_0-1-2_{of}.parquet") for of in (instant, theirs))
    for path in (late, foreign):
        path.write_bytes(content)
    assert made.table.sweep(grace_ms=0).removed == 1
    assert made.files() == files | {foreign.name}
    assert copy.exists() != archived, "of what is archived Hudi has cleaned what was replaced"


def archive_clusterings(driver: Driver) -> None:
    """By transactions, cleans and archiving, one after the other."""
    cleaning = Cleaning(driver.spec)
    session = cleaning.open(driver.table._session_beside)
    for number in range(5, 20):
        if not completed(driver.path, "replacecommit"):
            return
        run(driver, number)
        cleaning.run(session, lambda _doing: None)
        driver.table._session.archive()
    raise AssertionError("the clusterings are not archived yet")


def clustered_by_somebody_else(driver: Driver) -> str:
    """Two more files, and what was there."""
    for number in (3, 4):
        run(driver, number)
    session = Clustering(driver.spec, PIPELINE).open(driver.table._session_beside)
    planned = planned_of(session, "")
    session.client.cluster(planned.instant, True)
    return planned.instant


def test_rows_are_sorted_where_their_files_are_put_together(
    spark: SparkSession, driver: Callable[..., Driver]
) -> None:
    """Keys come in the order of their numbers, which is not that of their spelling."""
    made = driver(services=True, clustering="async", clustering_files=4, sort_fields=("event_id",))
    for number in range(4):
        run(made, number)
    await_that("clustering", lambda: progress(made, "clustering").done == 1)
    (only,) = small_files(made.path)
    assert pq.read_table(only)["event_id"].to_pylist() == keys(16)
    assert rows(spark, made.path) == rows_without_jvm(made.path) == keys(16)


def history_of(spark: SparkSession, path: Path) -> list[tuple[str, ...]]:
    """Keys with the commits that brought them."""
    spark.catalog.clearCache()
    names = ("_hoodie_record_key", "_hoodie_commit_time", "_hoodie_commit_seqno")
    return sorted(tuple(row) for row in spark.read.format("hudi").load(str(path)).select(*names).collect())


def clustered(session: Session) -> str:
    """By somebody else."""
    planned = planned_of(session, "")
    carry_out(session, planned)
    return planned.instant


def planned_of(session: Session, owner: str = PIPELINE) -> Planned:
    planned = plan(session, owner)
    assert planned is not None
    return planned


def with_small_files(driver: Callable[..., Driver]) -> Driver:
    """A table of three files that a clustering puts together, and no services of its own."""
    made = driver()
    for number in range(3):
        run(made, number)
    return made


def clusterings(driver: Driver) -> Session:
    """As the clustering of another driver has it."""
    return Clustering(driver.spec, PIPELINE).open(driver.table._session_beside)


def test_what_a_paused_driver_was_clustering_is_taken_away_and_it_cannot_complete_it_any_more(
    spark: SparkSession, driver: Callable[..., Driver]
) -> None:
    made = with_small_files(driver)
    files = made.files()
    paused, successor = clusterings(made), clusterings(made)
    planned = planned_of(paused)
    instant = planned.instant
    assert (planned.files, planned.folders) == (3, {"a"})
    assert tidy(successor, PIPELINE).taken == [instant]
    with pytest.raises(TableError):
        carry_out(paused, planned)
    assert not completed(made.path, "replacecommit")

    again = Clustering(made.spec, PIPELINE)
    done = again.run(successor, lambda _doing: None)
    assert done is not None and done.instant > instant
    assert rows(spark, made.path) == rows_without_jvm(made.path) == keys(12)
    assert {name for name in made.files() - files if f"_{done.instant}." not in name} == set()
    assert tidy(successor, PIPELINE).taken == []


def test_what_was_written_for_a_clustering_that_was_taken_away_goes_with_its_failure(
    spark: SparkSession, driver: Callable[..., Driver]
) -> None:
    """The paused driver has planned; its successor takes that away; the paused one goes on, and fails."""
    made = with_small_files(driver)
    files = made.files()
    paused, successor = clusterings(made), clusterings(made)

    def meanwhile(_doing: str) -> None:
        assert tidy(successor, PIPELINE).taken

    with pytest.raises(TableError):
        Clustering(made.spec, PIPELINE).run(paused, meanwhile)
    assert made.files() == files
    assert rows(spark, made.path) == keys(12)


def test_what_a_paused_driver_writes_later_than_that_is_swept(
    spark: SparkSession, driver: Callable[..., Driver]
) -> None:
    """It was ended before it could remove it; nothing in the name of such a file says whose it is."""
    made = with_small_files(driver)
    files = made.files()
    instant = planned_of(clusterings(made)).instant
    assert tidy(clusterings(made), PIPELINE).taken == [instant]
    source = next(made.path.glob("a/*.parquet"))
    late = made.path / "a" / f"{uuid.uuid4()}-0_0-1-2_{instant}.parquet"
    foreign = made.path / "a" / f"{uuid.uuid4()}-0_0-1-2_20200101000000000.parquet"
    for path in (late, foreign):
        path.write_bytes(source.read_bytes())
    marker = made.path / ".hoodie" / ".temp" / instant / "a" / f"{late.name}.marker.CREATE"
    marker.parent.mkdir(parents=True)
    marker.touch()
    assert made.table.sweep(grace_ms=0).removed == 1
    assert made.files() == files | {foreign.name} and not marker.exists()


def test_a_plan_that_others_carry_out_is_left_alone(
    spark: SparkSession, driver: Callable[..., Driver]
) -> None:
    made = driver(services=True, clustering="schedule", clustering_every=3)
    for number in range(3):
        run(made, number)
    await_that("plan", lambda: progress(made, "clustering").done == 1)
    assert tidy(clusterings(made), PIPELINE).taken == []
    spark.sql(f"call run_clustering(path => '{made.path}', op => 'execute')").collect()
    assert completed(made.path, "replacecommit")
    run(made, 3)
    assert rows(spark, made.path) == keys(16)


# --- cleaning and archiving ---------------------------------------------------------------------------


def test_file_versions_that_a_foreign_update_replaced_are_cleaned_beside_the_commits(
    spark: SparkSession, driver: Callable[..., Driver]
) -> None:
    properties = {**PLAIN, "hoodie.clean.commits.retained": "1"}
    made = driver(properties=properties, services=True, cleaning="async", cleaning_every=2)
    run(made, 0, rows=3)
    frame = spark.read.format("hudi").load(str(made.path))
    frame = frame.drop(*(name for name in frame.columns if name.startswith("_hoodie_")))
    options = {**FOREIGN, **PLAIN, "hoodie.datasource.write.operation": "upsert"}
    options["hoodie.clean.automatic"] = "false"
    for _ in range(2):
        frame.write.format("hudi").options(**options).mode("append").save(str(made.path))
    before = made.files()
    assert not completed(made.path, "clean")
    for number in range(1, 4):
        run(made, number, rows=1)
    await_that("cleaning", lambda: completed(made.path, "clean"))
    await_that("its end", lambda: progress(made, "cleaning").running_ms is None)
    assert before - made.files()
    assert rows(spark, made.path) == keys(6)


@pytest.mark.parametrize("mode", ["async", "inline"])
def test_instants_are_archived_outside_the_commits_and_offsets_found_again(
    spark: SparkSession, driver: Callable[..., Driver], mode: str
) -> None:
    properties = {**QUICK_ARCHIVE, **OFTEN_COMPACTED}
    made = driver(properties=properties, services=True, cleaning=mode, cleaning_every=4)
    for number in range(16):
        run(made, number, rows=1)
        made.table.sweep(grace_ms=0)  # the metadata table's own compaction lets instants be archived
    await_that("cleaning", lambda: progress(made, "cleaning").done)
    await_that("its end", lambda: progress(made, "cleaning").running_ms is None)
    assert progress(made, "cleaning").problem == ""
    made.table.tend()
    assert "instants archived" in progress(made, "cleaning").last_what
    assert len(completed(made.path, "commit")) < 16
    first = made.table.find("t0")
    assert first is not None and sum(first.offsets.values()) == 1
    newest = driver(properties=properties).table.newest()
    assert newest is not None and sum(newest.offsets.values()) == 16
    assert rows(spark, made.path) == keys(16)


@pytest.mark.parametrize("half_done", [False, True], ids=["planned", "half done"])
def test_a_clean_that_was_begun_by_a_dead_driver_is_finished_by_the_next(
    spark: SparkSession, driver: Callable[..., Driver], half_done: bool
) -> None:
    properties = {**PLAIN, "hoodie.clean.commits.retained": "1"}
    made = driver(properties=properties)
    run(made, 0, rows=3)
    spark.sql(f"create table cleaned using hudi location '{made.path}'")
    try:
        for amount in (1, 2, 3):
            for name, value in {**FOREIGN, **PLAIN, "hoodie.clean.automatic": "false"}.items():
                spark.sql(f"set {name}={value}")
            spark.sql(f"update cleaned set amount = {amount} where event_id = 'e1'")
    finally:
        spark.sql("drop table cleaned")
        spark.sql("reset")
    session = Cleaning(made.spec).open(made.table._session_beside)
    session.client.scheduleTableService(session.none(), session.hudi.common.model.TableServiceType.CLEAN)
    assert list(made.path.glob(".hoodie/timeline/*.clean.requested")) and not completed(made.path, "clean")
    before = made.files()
    if half_done:
        timeline = session.reload()
        planned = timeline.filterInflightsAndRequested().lastInstant().get()
        timeline.transitionCleanRequestedToInflight(planned)
        doomed = timeline.readCleanerPlan(planned).getFilePathsToBeDeletedPerPartition()
        Path(str(doomed.get("a")[0].getFilePath()).removeprefix("file:")).unlink()
    successor = driver(properties=properties)
    done = Cleaning(made.spec).run(
        Cleaning(made.spec).open(successor.table._session_beside), lambda _doing: None
    )
    assert done is not None and completed(made.path, "clean")
    assert before - made.files()
    assert rows(spark, made.path) == keys(3)


# --- compaction ---------------------------------------------------------------------------------------


def test_inline_compaction_is_done_before_the_next_commit(spark: SparkSession, tmp_path: Path) -> None:
    table = Upserts(spark, tmp_path / "t", services=True, compaction="inline", compaction_every=2)
    model = Model(by_event_time=True)
    for number in range(6):
        changes = history(number, length=30, tombstones=False, late=False)
        table.run([record(one) for one in changes], meanwhile=table.table.tend)
        for one in changes:
            model.apply(one)
        # the transaction that was open while it was compacted is not in it
        assert len(completed(table.path, "commit")) == number // 2
        assert table.rows() == model.rows(), number
    assert progress(table, "compaction").done == 2
    table.table.close()


# --- the whole ----------------------------------------------------------------------------------------


def test_a_driver_killed_while_it_clusters_leaves_nothing_that_its_successor_does_not_mend(
    pipeline: Pipeline,
) -> None:
    every = {"services.clustering_every": "2", "services.cleaning_every": "3"}
    pipeline.settings |= {"services.clustering": "async", "transaction.interval": "300ms", **every}
    left: set[str] = set()
    for _ in range(10):  # a clustering that was too quick for the kill is no use
        started = pipeline.start()
        deadline = time.monotonic() + 60
        while not clustering(pipeline.table) and time.monotonic() < deadline:
            pipeline.produce(200)
            await_that(
                "commit, or clustering",
                lambda: clustering(pipeline.table) or pipeline.committed() == pipeline.produced,
            )
        started.kill()
        left = clustering(pipeline.table)
        if left:
            break
    assert left
    pipeline.produce(200)
    started = pipeline.start()
    await_that("end of what was left", lambda: not left & clustering(pipeline.table))
    await_that("last record", lambda: pipeline.committed() == pipeline.produced)
    assert started.stop() == 0, started.text()
    assert all(f"clustering {instant} was begun and not completed" in started.text() for instant in left)
    pipeline.assert_exact(pipeline.produced)


def clustering(table: Path) -> set[str]:
    """Clusterings that have been begun and are not complete."""
    names = [path.name for path in (table / ".hoodie" / "timeline").glob("*.*")]
    begun = {name.split(".")[0] for name in names if name.endswith(".clustering.inflight")}
    return begun - {name.split("_")[0] for name in names if name.endswith(".replacecommit")}

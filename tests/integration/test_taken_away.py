"""A compaction or a clustering that was taken away leaves nothing behind, in the metadata table neither: what
its driver does about it later, or was killed at, changes no row that readers find, then or ever."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from table.errors import Refused
from table.hudi.driver.guard import Guard, guarded
from table.hudi.driver.session import Session
from table.hudi.upkeep import clustering, compaction, plans
from table.hudi.upkeep.clustering import Clustering
from table.hudi.upkeep.compaction import Compaction
from tests.integration.test_hudi_table import PIPELINE, Driver
from tests.integration.test_services import clusterings, driver, keys, rows, run, with_small_files
from tests.integration.test_upserts import Upserts, completed_compactions, history, record, upserts
from tests.merge_model import Model

__all__ = ["driver", "upserts"]
pytestmark = pytest.mark.integration


class Changes:
    """Transactions of an upsert table, and the rows that they are to leave."""

    def __init__(self, table: Upserts) -> None:
        self.table, self.model, self._number = table, Model(by_event_time=True), 0

    def bring(self, transactions: int) -> None:
        for _ in range(transactions):
            changes = history(self._number, length=30, tombstones=False, late=False)
            self._number += 1
            self.table.run([record(one) for one in changes])
            for one in changes:
                self.model.apply(one)

    def check(self) -> None:
        assert self.table.rows() == self.model.rows()


def in_metadata(path: Path, instant: str) -> list[str]:
    """What the metadata table's timeline says of an instant."""
    return [one.name for one in path.glob(f".hoodie/metadata/.hoodie/timeline/{instant}*")]


def compact(table: Upserts, session: Session) -> None:
    done = Compaction(table.spec, "changes").run(session, lambda _doing: None)
    assert done is not None


@pytest.fixture
def changes(upserts: Callable[..., Upserts]) -> Changes:
    made = Changes(upserts(compaction_every=1))
    made.bring(3)
    return made


def test_a_paused_driver_s_compaction_is_refused_before_the_metadata_table_hears_of_it(
    changes: Changes,
) -> None:
    """It goes on after its plan was taken away: writes all of its files, then wants to complete."""
    table = changes.table
    paused, successor = table.service_session(), table.service_session()
    taken: list[str] = []

    def meanwhile() -> int:
        taken.extend(compaction.tidy(successor, "changes").taken)
        return 1

    with pytest.raises(Refused, match="was taken away by a later run"):
        Compaction(table.spec, "changes", meanwhile).run(paused, lambda _doing: None)
    (instant,) = taken
    assert in_metadata(table.path, instant) == []
    changes.check()
    changes.bring(2)
    changes.check()
    compact(table, successor)
    assert completed_compactions(table) == 1
    changes.check()
    changes.bring(1)
    compact(table, paused)
    changes.check()
    assert table.table.sweep(grace_ms=0).removed > 0
    changes.check()


def killed_before_it_was_complete(path: Path, suffix: str) -> str:
    """Make it so that the driver was killed between Hudi's two writes: to the metadata table, and to the
    timeline, of which the file that completes the instant is taken. The instant."""
    (completed,) = path.glob(f".hoodie/timeline/*_*.{suffix}")
    completed.unlink()
    instant = completed.name.partition("_")[0]
    assert in_metadata(path, instant)
    return instant


def test_a_compaction_of_a_driver_that_was_killed_between_its_two_writes_is_taken_out_of_both(
    changes: Changes,
) -> None:
    table = changes.table
    killed, successor = table.service_session(), table.service_session()
    compact(table, killed)
    instant = killed_before_it_was_complete(table.path, "commit")
    assert compaction.tidy(successor, "changes").taken == [instant]
    changes.check()
    changes.bring(2)
    changes.check()
    compact(table, successor)
    changes.check()
    changes.bring(1)
    changes.check()
    assert table.table.sweep(grace_ms=0).removed == 0
    assert compaction.tidy(successor, "changes").taken == []


def test_taking_away_that_was_itself_interrupted_is_gone_on_with(
    changes: Changes, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = changes.table
    first, second, third = (table.service_session() for _ in range(3))
    instant, _ = compaction.plan(first, "changes")
    plans.begin(first, compaction.ACTION, instant)
    first.client.compact(instant)
    with monkeypatch.context() as patch:
        patch.setattr("table.hudi.upkeep.plans._roll_back", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            compaction.tidy(second, "changes")
    assert list(table.path.glob(".hoodie/timeline/*.rollback.requested"))
    with monkeypatch.context() as patch:
        patch.setattr("table.hudi.upkeep.plans._note", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            compaction.tidy(second, "changes")
    assert compaction.tidy(third, "changes").taken == []
    changes.bring(1)
    compact(table, third)
    changes.check()


def test_a_paused_driver_s_clustering_is_refused_before_the_metadata_table_hears_of_it(
    spark: SparkSession, driver: Callable[..., Driver], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = with_small_files(partial(driver, properties={}))
    files = made.files()
    paused, successor = clusterings(made), clusterings(made)
    taken: list[str] = []
    real = Guard.tryLock

    def late(self: Guard, time: int, unit: Any) -> bool:
        if not taken:  # all is written, and it wants the lock
            taken.extend(clustering.tidy(successor, PIPELINE).taken)
        return real(self, time, unit)

    monkeypatch.setattr(Guard, "tryLock", late)
    with pytest.raises(Refused, match="was taken away by a later run"):
        Clustering(made.spec, PIPELINE).run(paused, lambda _doing: None)
    assert in_metadata(made.path, taken[0]) == []
    assert made.files() == files
    run(made, 3)
    assert rows(spark, made.path) == keys(16)
    assert Clustering(made.spec, PIPELINE).run(successor, lambda _doing: None)
    assert rows(spark, made.path) == keys(16)


def test_a_clustering_of_a_driver_that_was_killed_between_its_two_writes_is_taken_out_of_both(
    spark: SparkSession, driver: Callable[..., Driver]
) -> None:
    made = with_small_files(partial(driver, properties={}))
    files = made.files()
    killed, successor = clusterings(made), clusterings(made)
    assert Clustering(made.spec, PIPELINE).run(killed, lambda _doing: None)
    instant = killed_before_it_was_complete(made.path, "replacecommit")
    assert clustering.tidy(successor, PIPELINE).taken == [instant]
    assert made.files() == files
    run(made, 3)
    assert rows(spark, made.path) == keys(16)
    assert Clustering(made.spec, PIPELINE).run(successor, lambda _doing: None)
    run(made, 4)
    assert rows(spark, made.path) == keys(20)


# --- what somebody else has begun ---------------------------------------------------------------------


def test_a_compaction_of_ours_that_somebody_else_carries_out_is_left_to_them(changes: Changes) -> None:
    """Our driver planned it and died; CALL run_compaction has begun when the pipeline is started again."""
    table = changes.table
    dead, somebody, restarted = (table.service_session() for _ in range(3))
    instant, _ = compaction.plan(dead, "changes")
    done = somebody.client.compact(instant)
    assert compaction.tidy(restarted, "changes") == ([], [instant])
    changes.bring(1)
    assert compaction.tidy(restarted, "changes") == ([], [instant])
    changes.check()
    somebody.client.commitCompaction(instant, done, somebody.none())
    assert completed_compactions(table) == 1
    changes.check()
    changes.bring(2)
    changes.check()
    compact(table, restarted)
    assert compaction.tidy(restarted, "changes") == ([], [])
    changes.bring(1)
    changes.check()
    assert table.table.sweep(grace_ms=0).removed == 0
    changes.check()


def test_a_compaction_that_somebody_began_and_never_completed_waits_for_them_and_nothing_else_does(
    changes: Changes,
) -> None:
    """What an operator is told to do then: CALL run_compaction once more."""
    table = changes.table
    dead, somebody, restarted = (table.service_session() for _ in range(3))
    instant, _ = compaction.plan(dead, "changes")
    somebody.client.compact(instant).getWriteStatuses().collect()
    somebody.close()
    os.utime(table.path / ".hoodie" / ".heartbeat" / instant, (0, 0))  # of whom Hudi takes for dead by then
    work = Compaction(table.spec, "changes")
    assert f"compaction {instant} was planned by this pipeline" in work.tidy(restarted)
    changes.bring(2)
    assert work.run(restarted, lambda _doing: None) is None  # its file groups are all there are
    changes.check()
    table.spark.sql(
        f"call run_compaction(op => 'run', path => '{table.path}', timestamp => {instant})"
    ).collect()
    assert completed_compactions(table) == 1
    changes.check()
    compact(table, restarted)
    assert work.tidy(restarted) == ""
    changes.bring(1)
    changes.check()


def test_a_clustering_of_ours_that_somebody_else_carries_out_is_left_to_them(
    spark: SparkSession, driver: Callable[..., Driver], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = with_small_files(partial(driver, properties={}))
    dead, somebody, restarted = (clusterings(made) for _ in range(3))
    planned = clustering.plan(dead, PIPELINE)
    assert planned is not None
    instant = planned.instant
    looked: list[plans.Tidied] = []
    real = Guard.tryLock

    def late(self: Guard, time: int, unit: Any) -> bool:
        if not looked:  # all is written, and it wants the lock
            looked.append(clustering.tidy(restarted, PIPELINE))
        return real(self, time, unit)

    monkeypatch.setattr(Guard, "tryLock", late)
    with guarded(somebody, lambda: None):
        somebody.client.cluster(instant, True)
    assert looked == [([], [instant])]
    assert rows(spark, made.path) == keys(12)
    run(made, 3)
    run(made, 4)
    assert rows(spark, made.path) == keys(20)
    assert Clustering(made.spec, PIPELINE).tidy(restarted) == ""
    assert Clustering(made.spec, PIPELINE).run(restarted, lambda _doing: None)
    assert made.table.sweep(grace_ms=0).removed == 0
    assert rows(spark, made.path) == keys(20)


def test_a_clustering_of_ours_that_somebody_rolled_back_and_began_anew_is_theirs(
    spark: SparkSession, driver: Callable[..., Driver]
) -> None:
    """As CALL run_clustering does at once with what our driver had begun: Hudi asks no heartbeat of one."""
    made = with_small_files(partial(driver, properties={}))
    dead, somebody, restarted = (clusterings(made) for _ in range(3))
    planned = clustering.plan(dead, PIPELINE)
    assert planned is not None
    instant = planned.instant
    plans.begin(dead, clustering.ACTION, instant)
    dead.client.cluster(instant, False)
    somebody.client.cluster(instant, False)
    work = Clustering(made.spec, PIPELINE)
    assert f"clustering {instant} was planned by this pipeline" in work.tidy(restarted)
    run(made, 3)
    spark.sql(f"call run_clustering(path => '{made.path}', op => 'execute')").collect()
    assert rows(spark, made.path) == keys(16)
    assert work.tidy(restarted) == ""
    run(made, 4)
    assert work.run(restarted, lambda _doing: None)
    assert rows(spark, made.path) == keys(20)


def test_a_clustering_that_somebody_has_begun_is_not_begun_by_its_own_driver_as_well(
    spark: SparkSession, driver: Callable[..., Driver]
) -> None:
    """CALL run_clustering comes between plan and work."""
    made = with_small_files(partial(driver, properties={}))
    ours, somebody = clusterings(made), clusterings(made)

    def meanwhile(_doing: str) -> None:
        (planned,) = made.path.glob(".hoodie/timeline/*.clustering.requested")
        somebody.client.cluster(planned.name.partition(".")[0], True)

    work = Clustering(made.spec, PIPELINE)
    with pytest.raises(Refused, match="carried out by somebody else already"):
        work.run(ours, meanwhile)
    assert rows(spark, made.path) == keys(12)
    assert work.tidy(ours) == ""
    run(made, 3)
    assert rows(spark, made.path) == keys(16)
    assert made.table.sweep(grace_ms=0).removed == 0


@pytest.mark.parametrize("begun_before", [False, True])
def test_what_somebody_begins_between_the_look_and_the_removal_is_theirs(
    spark: SparkSession, driver: Callable[..., Driver], monkeypatch: pytest.MonkeyPatch, begun_before: bool
) -> None:
    """They need no lock to begin."""
    made = with_small_files(partial(driver, properties={}))
    dead, somebody, restarted = (clusterings(made) for _ in range(3))
    planned = clustering.plan(dead, PIPELINE)
    assert planned is not None
    instant = planned.instant
    if begun_before:
        plans.begin(dead, clustering.ACTION, instant)
        dead.client.cluster(instant, False)
    real = plans._roll_back

    def meanwhile(*arguments: Any) -> None:
        real(*arguments)
        somebody.client.cluster(instant, False)

    monkeypatch.setattr(plans, "_roll_back", meanwhile)
    assert clustering.tidy(restarted, PIPELINE) == ([], [instant])
    spark.sql(f"call run_clustering(path => '{made.path}', op => 'execute')").collect()
    assert rows(spark, made.path) == keys(12)
    run(made, 3)
    assert rows(spark, made.path) == keys(16)

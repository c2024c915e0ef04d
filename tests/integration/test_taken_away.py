"""A compaction or a clustering that was taken away leaves nothing behind, in the metadata table neither: what
its driver does about it later, or was killed at, changes no row that readers find, then or ever."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from table.errors import Refused
from table.hudi import clustering, compaction
from table.hudi.clustering import Clustering
from table.hudi.compaction import Compaction
from table.hudi.guard import Guard
from table.hudi.session import Session
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
        taken.extend(compaction.abandon(successor, "changes"))
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
    assert table.table.sweep(grace_ms=0) > 0
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
    assert compaction.abandon(successor, "changes") == [instant]
    changes.check()
    changes.bring(2)
    changes.check()
    compact(table, successor)
    changes.check()
    changes.bring(1)
    changes.check()
    assert table.table.sweep(grace_ms=0) == 0
    assert compaction.abandon(successor, "changes") == []


def test_taking_away_that_was_itself_interrupted_is_gone_on_with(
    changes: Changes, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = changes.table
    first, second, third = (table.service_session() for _ in range(3))
    instant, _ = compaction.plan(first, "changes")
    first.client.compact(instant)
    with monkeypatch.context() as patch:
        patch.setattr("table.hudi.plans._roll_back", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            compaction.abandon(second, "changes")
    assert list(table.path.glob(".hoodie/timeline/*.rollback.requested"))
    with monkeypatch.context() as patch:
        patch.setattr("table.hudi.plans._note", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            compaction.abandon(second, "changes")
    assert compaction.abandon(third, "changes") == []
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
            taken.extend(clustering.abandon(successor, PIPELINE))
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
    assert clustering.abandon(successor, PIPELINE) == [instant]
    assert made.files() == files
    run(made, 3)
    assert rows(spark, made.path) == keys(16)
    assert Clustering(made.spec, PIPELINE).run(successor, lambda _doing: None)
    run(made, 4)
    assert rows(spark, made.path) == keys(20)

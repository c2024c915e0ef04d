"""Incremental queries on upsert tables: what Spark says has changed since a commit equals a model.

Hudi 1.2 answers with rows, each as it is now, whose newest version was written by a commit that completed
after the given time. So a row that was deleted since is not among them, nor one whose change lost against a
version that was there before; and a compaction changes nothing, although it writes every row again.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.integration.test_upserts import Upserts, record
from tests.merge_model import Change, Key, Model

pytestmark = pytest.mark.integration

Rows = dict[Key, tuple[int, int]]
"""(table partition, key) -> (amount, ts)."""


@dataclass(slots=True)
class Timed:
    """The model, with the transaction of each version: no two changes have the same amount."""

    model: Model
    written: list[int] = field(default_factory=list)
    """How many amounts there were at the end of each transaction."""

    def apply(self, changes: list[Change]) -> None:
        for one in changes:
            self.model.apply(one)
        self.written.append(1 + max((one.amount for one in changes), default=-1))

    def changed_since(self, transaction: int) -> Rows:
        """Rows whose version is younger than this transaction, the first being 0."""
        return {key: row for key, row in self.model.rows().items() if row[0] >= self.written[transaction]}


def history(seed: int, transactions: int, *, tombstones: bool) -> Iterator[list[Change]]:
    """By transaction: updates, late versions, deletes of both kinds, re-inserts, and rows that move."""
    chance = random.Random(seed)
    amount = 0
    for _ in range(transactions):
        changes: list[Change] = []
        for _ in range(chance.randrange(1, 16)):
            key = (chance.choice("ab"), f"k{chance.randrange(12)}")
            kind = chance.random()
            one = Change(key=key, amount=amount, ts=amount + chance.choice((0, 0, 0, -30, 5)))
            if kind < 0.15:
                one = replace(one, deleted=True)
            elif kind < 0.25 and tombstones:
                one = replace(one, tombstone=True)
            elif kind < 0.45:  # the row moves to the other table partition
                changes.append(replace(one, deleted=True))
                amount += 1
                one = replace(one, key=("b" if key[0] == "a" else "a", key[1]), amount=amount)
            changes.append(one)
            amount += 1
        yield changes


def incremental(spark: SparkSession, path: Path, since: str) -> Rows:
    """What Spark's incremental query says; `since`: when a commit was completed. A key twice is an error."""
    spark.catalog.clearCache()
    read = (
        spark.read.format("hudi")
        .option("hoodie.datasource.query.type", "incremental")
        .option("hoodie.datasource.read.begin.instanttime", since)
        .load(str(path))
        .select("region", "id", "amount", "ts")
    )
    found = [((one[0], one[1]), (one[2], one[3])) for one in read.collect()]
    assert len(dict(found)) == len(found), "a key is there twice"
    return dict(found)


def completed(path: Path, instant: str) -> str:
    """When the instant was completed, as its file's name says."""
    (name,) = (one.name for one in path.glob(f".hoodie/timeline/{instant}_*.deltacommit"))
    return name.removeprefix(f"{instant}_").removesuffix(".deltacommit")


def compact(spark: SparkSession, path: Path) -> None:
    options = "options => 'hoodie.compact.inline.max.delta.commits=1'"
    spark.sql(f"call run_compaction(op => 'scheduleandexecute', path => '{path}', {options})").collect()


@pytest.fixture
def upserts(spark: SparkSession, tmp_path: Path) -> Iterator[Callable[..., Upserts]]:
    made: list[Upserts] = []

    def make(folder: str = "t", **changes: Any) -> Upserts:
        made.append(Upserts(spark, tmp_path / folder, **changes))
        return made[-1]

    yield make
    for one in made:
        one.table.close()


def killed(table: Upserts, changes: list[Change]) -> None:
    """Workers that wrote all of their files and died: the transaction is rolled back."""
    _, instant = table.begin()
    table.write(instant, [record(one) for one in changes])
    assert table.table.roll_back(instant)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("ordering", ["ts", ""])
def test_an_incremental_query_since_any_commit_gives_exactly_the_rows_whose_version_is_younger(
    spark: SparkSession, upserts: Callable[..., Upserts], ordering: str, seed: int
) -> None:
    table = upserts(ordering_field=ordering)
    timed = Timed(Model(by_event_time=bool(ordering)))
    ends: list[str] = []
    chance = random.Random(seed)
    for number, changes in enumerate(history(seed, 7, tombstones=True)):
        if number % 3 == 1:
            killed(table, changes)
        instant = table.run([record(one) for one in changes])
        ends.append(completed(table.path, instant))
        timed.apply(changes)
        if number in (2, 5):
            compact(spark, table.path)
            timed.model.compact()
        assert table.rows() == timed.model.rows()
        for earlier in {number, max(0, number - 1), chance.randrange(number + 1)}:
            found = incremental(spark, table.path, ends[earlier])
            assert found == timed.changed_since(earlier), f"after {number}, since {earlier}"


BY_SPARK = {
    "hoodie.table.name": "theirs",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "region",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.num.buckets": "2",
    "hoodie.compact.inline": "false",
}


def written_by_spark(spark: SparkSession, path: Path, changes: list[Change]) -> str:
    """Write changes, one for each key, with Hudi's datasource; when that commit was completed."""
    rows = [(*one.key[::-1], one.amount, one.ts, one.deleted) for one in changes]
    ddl = "id STRING, region STRING, amount BIGINT, ts BIGINT, _hoodie_is_deleted BOOLEAN"
    spark.createDataFrame(rows, ddl).write.format("hudi").options(**BY_SPARK).mode("append").save(str(path))
    newest = max(path.glob(".hoodie/timeline/*_*.deltacommit"), key=lambda one: one.name.split("_")[1])
    return newest.name.split("_")[1].removesuffix(".deltacommit")


def test_a_table_that_spark_wrote_of_the_same_history_answers_alike(
    spark: SparkSession, upserts: Callable[..., Upserts], tmp_path: Path
) -> None:
    table, theirs = upserts(), tmp_path / "theirs"
    ends: list[tuple[str, str]] = []
    for number, changes in enumerate(history(3, 5, tombstones=False)):
        instant = table.run([record(one) for one in changes])
        winners = Model(by_event_time=True)
        for one in changes:
            winners.apply(one)
        theirs_end = written_by_spark(spark, theirs, list(winners.held.values()))
        ends.append((completed(table.path, instant), theirs_end))
        if number == 2:
            compact(spark, table.path)
            compact(spark, theirs)
        for ours, of_spark in ends:
            assert incremental(spark, table.path, ours) == incremental(spark, theirs, of_spark), number

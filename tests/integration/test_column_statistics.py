"""Hudi's index of column statistics: what another writer made of it, our commits remove."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.integration.test_foreign_writers import INSERT, TOLD, Foreign
from tests.integration.test_upserts import Upserts, record
from tests.merge_model import Change

pytestmark = pytest.mark.integration

INDEX = "hoodie.metadata.index.column.stats.enable"
ROWS = 10


@pytest.fixture
def make(spark: SparkSession, tmp_path: Path) -> Iterator[Callable[..., Upserts]]:
    made: list[Upserts] = []

    def make(**properties: str) -> Upserts:
        made.append(Upserts(spark, tmp_path / "t", **{**INSERT, "properties": properties}))
        return made[-1]

    spark.conf.set("spark.sql.adaptive.enabled", "false")  # a plan that is made anew counts in another place
    yield make
    spark.conf.unset("spark.sql.adaptive.enabled")
    for one in made:
        one.table.close()


def add(table: Upserts, file: int) -> None:
    """A transaction of a file, whose range of `amount` is its own."""
    numbers = range(file * ROWS, (file + 1) * ROWS)
    table.run([record(Change(key=("a", f"k{n}"), amount=n, ts=n)) for n in numbers])


def asked(table: Upserts, where: str) -> tuple[list[str], int]:
    """The ids that Spark finds when it skips what it can, and how many files it opens for them."""
    table.spark.catalog.clearCache()
    options = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true", INDEX: "true"}
    found = table.spark.read.format("hudi").options(**options).load(str(table.path)).where(where).select("id")
    ids = sorted(row[0] for row in found.collect())
    leaf: Any = found._jdf.queryExecution().executedPlan().collectLeaves().head()
    return ids, int(leaf.metrics().apply("numFiles").value())


def indexes(table: Upserts) -> set[str]:
    session = table.table._session_beside()
    session.load()
    return {str(one) for one in session.meta.getTableConfig().getMetadataPartitions().toArray()}


def test_what_another_writer_made_of_it_goes_with_our_next_commit_and_hides_no_row(
    make: Callable[..., Upserts], tmp_path: Path
) -> None:
    table = make()
    add(table, 0)
    told = {name: value for name, value in TOLD.items() if name != INDEX}
    foreign = Foreign(table.spark, tmp_path / "t", tmp_path, told)
    try:
        foreign.run("update {t} set ts = 77 where id = 'k3'")
    finally:
        foreign.close()
    assert "column_stats" in indexes(table)
    add(table, 1)
    assert "column_stats" not in indexes(table)
    for number in range(2 * ROWS):
        assert asked(table, f"amount = {number}")[0] == [f"k{number}"]

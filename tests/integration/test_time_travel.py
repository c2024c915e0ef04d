"""Which time to ask Hudi for, to see an upsert table as one commit left it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from table.hudi.reader.timeline import Timeline
from table.hudi.upkeep.compaction import plan
from tests.integration.test_upserts import Upserts, record, upserts
from tests.merge_model import Change

__all__ = ["upserts"]

pytestmark = pytest.mark.integration
KEY = ("a", "k1")


def amount_as_of(spark: SparkSession, table: Upserts, time: str) -> int | None:
    """Of the one row, as a query at that time finds it; None where it finds none."""
    spark.catalog.clearCache()
    read = spark.read.format("hudi").option("as.of.instant", time).load(str(table.path))
    return next((row.amount for row in read.select("amount").collect()), None)


def test_a_commit_is_seen_as_of_its_completion_also_where_a_compaction_was_planned_while_it_was_open(
    spark: SparkSession, upserts: Callable[..., Upserts]
) -> None:
    """Asked as of its instant, Hudi passes it over: its log files belong to a later file slice."""
    table = upserts(compaction_every=1)
    table.run([record(Change(key=KEY, amount=1, ts=1))])
    session = table.service_session()
    instant = table.run([record(Change(key=KEY, amount=2, ts=2))], meanwhile=lambda: plan(session, "changes"))
    completed = {one.requested: one.completed for one in Timeline(table.path).completed()}
    assert table.rows() == {KEY: (2, 2)}
    assert amount_as_of(spark, table, completed[instant]) == 2
    assert amount_as_of(spark, table, instant) == 1, "Hudi has changed: the documents and the demo say so"

"""Upserts beside statements that take whole file groups out: nothing is committed that Hudi would hide."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import pytest
from pyspark.sql import SparkSession

from table.errors import Contradiction
from tests.integration.test_upserts import Record, Upserts, record, upserts
from tests.merge_model import Change

__all__ = ["upserts"]
pytestmark = pytest.mark.integration

NAME = "taken_out"


@pytest.fixture
def table(upserts: Callable[..., Upserts], spark: SparkSession) -> Iterator[Upserts]:
    """A row in table partition `a` and one in `b`; SQL that is told nothing knows the table by `NAME`."""
    made = upserts()
    made.run([row("a", 1), row("b", 1)])
    spark.sql(f"create table {NAME} using hudi location '{made.path}'")
    yield made
    spark.sql(f"drop table {NAME}")


def row(region: str, amount: int) -> Record:
    return record(Change(key=(region, "k"), amount=amount, ts=amount))


def refused(table: Upserts, *records: Record, meanwhile: Callable[[], object] = lambda: None) -> str:
    """What a transaction is refused with; its instant is rolled back, as the next run would."""
    with pytest.raises(Contradiction) as caught:
        table.run(list(records), meanwhile=meanwhile)
    for one in table.table.unfinished():
        assert table.table.roll_back(one.instant)
    return str(caught.value)


@pytest.mark.parametrize("statement", ["alter table {} drop", "truncate table {}"])
def test_what_would_be_hidden_is_refused_and_other_table_partitions_go_on(
    table: Upserts, spark: SparkSession, statement: str
) -> None:
    spark.sql(f"{statement.format(NAME)} partition (region = 'a')")
    assert table.rows() == {("b", "k"): (1, 1)}
    table.run([row("b", 2)])
    said = refused(table, row("a", 3), row("b", 3))
    assert "table partition 'a' out" in said
    assert table.rows() == {("b", "k"): (2, 2)}


def test_a_transaction_that_was_open_is_refused_as_well(table: Upserts, spark: SparkSession) -> None:
    drop = partial(spark.sql, f"alter table {NAME} drop partition (region = 'a')")
    assert "table partition 'a' out" in refused(table, row("a", 2), meanwhile=drop)
    assert table.rows() == {("b", "k"): (1, 1)}


@contextmanager
def setting(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    spark.sql(f"set {name}={value}")
    try:
        yield
    finally:
        spark.conf.unset(name)


def test_rolled_back_as_documented_it_can_be_written_again(table: Upserts, spark: SparkSession) -> None:
    spark.sql(f"alter table {NAME} drop partition (region = 'a')")
    (dropped,) = table.path.glob(".hoodie/timeline/*_*.replacecommit")
    first = dropped.name.partition("_")[0]
    table.run([row("b", 2)])
    refused(table, row("a", 3))
    with setting(spark, "hoodie.metadata.compact.max.delta.commits", "1"):  # else now and then
        spark.sql(f"delete from {NAME} where region = 'b'")
    later = [one.name[:17] for one in table.path.glob(".hoodie/timeline/*_*.deltacommit")]
    spark.sql(f"call delete_metadata_table(table => '{NAME}')").collect()
    with setting(spark, "hoodie.metadata.enable", "false"):
        for instant in [*sorted((one for one in later if one > first), reverse=True), first]:
            spark.sql(f"call rollback_to_instant(table => '{NAME}', instant_time => '{instant}')").collect()
        assert table.rows() == {("a", "k"): (1, 1), ("b", "k"): (1, 1)}
        spark.sql(f"delete from {NAME} where region = 'a'")
    table.run([row("b", 2), row("a", 3)])
    assert table.rows() == {("a", "k"): (3, 3), ("b", "k"): (2, 2)}

"""Readers who look for one value leave out row groups by parquet's bloom filters, and lose no row by it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from table.hudi.upkeep import clustering
from tests.data_files import data_files
from tests.integration.test_copied_files import Copying, content, made_files
from tests.integration.test_foreign_writers import INSERT, TOLD, Foreign
from tests.integration.test_hudi_table import PLAIN
from tests.integration.test_upserts import Upserts, record
from tests.merge_model import Change
from tests.unit.table.hudi.files.test_lookup import filters

pytestmark = pytest.mark.integration

FILES, ROWS = 6, 40
KEYS = FILES * ROWS
SCANNED = "numOutputRows"


@pytest.fixture
def make(spark: SparkSession, tmp_path: Path) -> Iterator[Callable[..., Upserts]]:
    """Insert tables of so many files, each of whose ranges of `id` and `amount` is nearly that of all."""
    made: list[Upserts] = []

    def make(**changes: Any) -> Upserts:
        fields = {**INSERT, "properties": PLAIN, "lookup_fields": ("id", "amount"), **changes}
        table = Upserts(spark, tmp_path / "t", **fields)
        made.append(table)
        for file in range(FILES):
            numbers = range(file, KEYS, FILES)
            table.run([record(Change(key=("a", f"k{n:04}"), amount=n, ts=n % 3)) for n in numbers])
        return table

    yield make
    for one in made:
        one.table.close()


def asked(table: Upserts, where: str) -> tuple[list[str], int]:
    """The ids that Spark finds, and how many rows it has read for them.

    In a session of its own: Hudi's incremental queries leave settings in theirs, by which rows are filtered
    while they are read.
    """
    session = table.spark.newSession()
    session.conf.set("spark.sql.adaptive.enabled", "false")  # a plan made anew counts in another place
    session.catalog.clearCache()
    found = session.read.format("hudi").load(str(table.path)).where(where).select("id")
    ids = sorted(row[0] for row in found.collect())
    leaf = found._jdf.queryExecution().executedPlan().collectLeaves().head()
    return ids, int(leaf.metrics().apply(SCANNED).value())


def test_spark_reads_row_groups_that_have_a_value_and_few_others(make: Callable[..., Upserts]) -> None:
    table, read = make(), 0
    numbers = range(0, KEYS, 41)
    for number in numbers:
        for where in (f"id = 'k{number:04}'", f"amount = {number}"):
            ids, rows = asked(table, where)
            assert ids == [f"k{number:04}"], where
            read += rows
    assert read <= 2 * len(numbers) * 2 * ROWS, "of six row groups one holds it, and few seem to"
    assert sum(asked(table, f"id = 'k{number:04}x'")[1] for number in numbers) <= 2 * len(numbers) * ROWS
    assert asked(table, "id in ('k0001', 'k0002')")[0] == ["k0001", "k0002"]
    assert asked(table, "id is null")[0] == []


def test_without_them_it_reads_them_all(make: Callable[..., Upserts]) -> None:
    assert asked(make(lookup_fields=()), "id = 'k0100'") == (["k0100"], KEYS)


def test_files_that_are_put_together_keep_them(make: Callable[..., Upserts]) -> None:
    table = make()
    before = content(table)
    done = Copying(table).run()
    assert done is not None
    (path,) = made_files(table, done)
    assert [set(one) for one in filters(path)] == [{"id", "amount"}]
    assert content(table) == before
    for number in range(0, KEYS, 61):
        assert asked(table, f"id = 'k{number:04}'")[0] == [f"k{number:04}"]
    assert asked(table, "id = 'k0100x'") == ([], 0)


def test_files_that_have_some_are_not_copied_where_no_more_are_asked_for(
    make: Callable[..., Upserts], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hudi's copies of row groups lack them."""
    monkeypatch.setattr(clustering, "COPIED_FROM_BYTES", 0)
    table = make()
    table.spec = replace(table.spec, lookup_fields=())
    before, copying = content(table), Copying(table)
    assert copying.run() is None and copying.is_due()
    done = copying.run()
    assert done is not None
    (path,) = made_files(table, done)
    assert filters(path) == [{}]
    assert content(table) == before


def test_a_statement_of_others_on_what_is_looked_up_finds_its_row(
    make: Callable[..., Upserts], tmp_path: Path
) -> None:
    """It reads the table by the same filters; the file that it writes in the place of ours has none."""
    table = make()
    foreign = Foreign(table.spark, tmp_path / "t", tmp_path, TOLD)
    try:
        foreign.run("update {t} set ts = 77 where id = 'k0100'")
        foreign.run("delete from {t} where amount = 101")
    finally:
        foreign.close()
    rows = table.rows()
    assert rows["a", "k0100"] == (100, 77) and ("a", "k0101") not in rows and len(rows) == KEYS - 1
    assert asked(table, "id = 'k0100'")[0] == ["k0100"]
    assert len(data_files(table.path)) == FILES + 2

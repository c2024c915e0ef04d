"""A real table is counted as Spark reads it and Hudi has it: clustered, compacted, with a column more."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from table.census import Census
from table.hudi.upkeep.clustering import Clustering
from table.hudi.upkeep.compaction import Compaction
from table.kinds import HUDI, table_kind
from table.port import TableSpec
from tests.data_files import data_files
from tests.integration.test_evolution import DDL, KINDS, record, table
from tests.integration.test_services import completed
from tests.integration.test_upserts import Upserts

__all__ = ["table"]

pytestmark = pytest.mark.integration


def take(spec: TableSpec) -> Census:
    found = table_kind(HUDI).census(spec).take(unless=None, files_max=100_000, enough=lambda: False)
    assert found is not None
    return found


def files_of_spark(spark: SparkSession, path: Path) -> set[Path]:
    """Those whose rows its snapshot query reads."""
    spark.catalog.clearCache()
    read = spark.read.format("hudi").load(str(path)).select(F.input_file_name()).distinct()
    return {Path(unquote(urlsplit(row[0]).path)) for row in read.collect()}


def slices_of_hudi(made: Upserts) -> tuple[int, int, int, int]:
    """Base files, their bytes, log files, theirs, of the newest file slices, as Hudi's own view has them."""
    made.spark.sql(f"create table counted using hudi location '{made.path}'")
    try:
        shown = made.spark.sql("call show_fsview_latest(table => 'counted', partition_path => 'a')").collect()
    finally:
        made.spark.sql("drop table counted")
    found = [one.asDict() for one in shown]
    bases = [one for one in found if one["data_file"]]
    return (
        len(bases),
        sum(one["data_file_size"] for one in bases),
        sum(one["num_delta_files"] for one in found),
        sum(one["total_delta_file_size"] for one in found),
    )


def agrees(census: Census, files: Collection[Path]) -> None:
    found = census.files
    assert (found.files, found.size_bytes) == (len(files), sum(file.stat().st_size for file in files))
    assert found.is_whole and not found.log_files


def on_disk(path: Path) -> set[Path]:
    return set(data_files(path))


def test_a_table_of_inserts_is_counted_as_spark_reads_it(
    spark: SparkSession, table: Callable[..., Upserts]
) -> None:
    made = table("insert", DDL)
    for number in range(3):
        made.run([record(f"k{number}", number), record(f"other{number}", number, region="b")])
    agrees(take(made.spec), files_of_spark(spark, made.path))
    assert take(made.spec).files.table_partitions == 2

    _, instant = made.begin()
    assert made.write(instant, [record("lost", 9)])
    assert len(on_disk(made.path)) == 7
    agrees(take(made.spec), files_of_spark(spark, made.path))
    assert made.table.roll_back(instant)

    work = Clustering(made.spec, "changes")
    assert work.run(work.open(made.table._session_beside), print) is not None
    assert completed(made.path, "replacecommit") and len(on_disk(made.path)) == 8
    clustered = take(made.spec)
    agrees(clustered, files_of_spark(spark, made.path))
    assert clustered.files.files == 2 == clustered.files.small_files
    assert clustered.schema.changes == ()


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_column_that_is_added_is_named_with_the_instant_that_brought_it(
    table: Callable[..., Upserts], kind: str
) -> None:
    first = table(kind, f"{DDL}, note INT")
    began = first.run([record("k1", 1, note=1)])
    wider = table(kind, f"{DDL}, note BIGINT, inner STRUCT<a: INT>")
    instant = wider.run([record("k2", 2, note=2, inner={"a": 1})])
    told = take(wider.spec).schema
    assert [(one.name, one.kind, one.nullable) for one in told.columns[:1]] == [("id", "STRING", False)]
    assert told.columns[-1].name == "inner" and told.columns[-1].kind == "STRUCT<a: INT>"
    (change,) = told.changes
    assert change.instant == instant and told.since <= began
    assert {(one.name, one.was, one.now) for one in change.changes} == {
        ("inner", "", "STRUCT"),
        ("note", "INT", "BIGINT"),
    }


def test_a_table_of_upserts_is_counted_with_its_log_files(table: Callable[..., Upserts]) -> None:
    def as_hudi_has_it() -> tuple[int, int, int, int]:
        found = take(made.spec).files
        counted = (found.files, found.size_bytes, found.log_files, found.log_bytes)
        assert counted == slices_of_hudi(made)
        return counted

    made = table("upsert", DDL)
    for number in range(3):
        made.run([record(f"k{one}", 10 * number + one) for one in range(8)])
    bases, _, logs, _ = as_hudi_has_it()
    assert (bases, logs) == (0, len(made.logs())) and logs

    work = Compaction(made.spec, "changes")
    assert work.run(work.open(made.table._session_beside), print) is not None
    bases, _, logs, _ = as_hudi_has_it()
    assert bases and not logs and made.logs(), "what was compacted is there until it is cleaned"

    made.run([record("k1", 99)])
    assert as_hudi_has_it()[2] == 1

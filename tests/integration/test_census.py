"""A real table is counted as Spark and Hudi's own reader see it: clustered, compacted, with a column more."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from hudi import HudiTable
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from table.census import Census
from table.hudi.upkeep.clustering import Clustering
from table.hudi.upkeep.compaction import Compaction
from table.kinds import HUDI, table_kind
from table.port import TableSpec
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


def files_of_hudi(path: Path) -> tuple[set[Path], set[Path]]:
    """Base files and log files, as the reader without a JVM has them."""
    slices = HudiTable(str(path)).get_file_slices()
    bases = {path / base for one in slices if (base := one.base_file_relative_path())}
    return bases, {path / log for one in slices for log in one.log_files_relative_paths()}


def bytes_of(files: Collection[Path]) -> int:
    return sum(file.stat().st_size for file in files)


def agrees(census: Census, bases: Collection[Path], logs: Collection[Path] = ()) -> None:
    found = census.files
    assert (found.files, found.size_bytes) == (len(bases), bytes_of(bases))
    assert (found.log_files, found.log_bytes) == (len(logs), bytes_of(logs))
    assert found.is_whole


def on_disk(path: Path) -> set[Path]:
    return {file for file in path.rglob("*.parquet") if ".hoodie" not in file.relative_to(path).parts}


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
    made = table("upsert", DDL)
    for number in range(3):
        made.run([record(f"k{one}", 10 * number + one) for one in range(8)])
    bases, logs = files_of_hudi(made.path)
    assert not bases and logs
    agrees(take(made.spec), bases, logs)

    work = Compaction(made.spec, "changes")
    assert work.run(work.open(made.table._session_beside), print) is not None
    bases, logs = files_of_hudi(made.path)
    assert bases and not logs and made.logs(), "what was compacted is there until it is cleaned"
    agrees(take(made.spec), bases)

    made.run([record("k1", 99)])
    bases, logs = files_of_hudi(made.path)
    assert len(logs) == 1
    agrees(take(made.spec), bases, logs)

"""A savepoint that Spark made keeps all later instants from the archive: after a day it is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lockstep.watch.looks import SAVEPOINT_FORGOTTEN_MS, TableLook
from table.kinds import HUDI, table_kind

pytestmark = pytest.mark.integration


def test_the_oldest_savepoint_of_a_table_is_found_and_named_once_it_may_be_forgotten(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = f"file://{tmp_path}/t"
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.operation": "insert",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.metadata.enable": "false",
    }
    for number in range(4):
        frame = spark.createDataFrame([(f"{number}",)], "id STRING")
        frame.write.format("hudi").options(**options).mode("append").save(path)
    reader = table_kind(HUDI).reader(path, None)
    assert reader.oldest_savepoint() is None
    commits = sorted(one.requested for one in reader.completed())
    for commit in (commits[2], commits[1]):
        spark.sql(f"CALL create_savepoint(path => '{path}', commit_time => '{commit}')").collect()
    found = reader.oldest_savepoint()
    assert found is not None and (found.instant, found.kept) == (commits[1], 2)

    created_ms = reader.time_ms(found.created)
    look = TableLook(exists=True, savepoint=found, savepoint_ms=created_ms)
    assert look.savepoint_problem(created_ms + SAVEPOINT_FORGOTTEN_MS - 1) == ""
    said = look.savepoint_problem(created_ms + SAVEPOINT_FORGOTTEN_MS)
    assert f"The savepoint of instant {commits[1]}, created 1 d 00 h ago, keeps 2 instants" in said
    assert f"CALL delete_savepoint(table => …, instant_time => '{commits[1]}')" in said
    for commit in commits[1:3]:
        spark.sql(f"CALL delete_savepoint(path => '{path}', instant_time => '{commit}')").collect()
    assert reader.oldest_savepoint() is None
    assert TableLook(exists=True).savepoint_problem(created_ms) == ""

"""A whole pipeline onto HDFS, as its user has it: `lockstep run`, `validate`, and the commands that read."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import SparkSession

from lockstep.stores.hdfs import HdfsServer
from table.hudi.driver.reach import USER_VARIABLE
from table.store.location import Location
from tests.harness import Pipeline
from tests.integration.test_s3_pipeline import tried_from_both, written_and_read
from tests.integration.test_upsert_pipelines import compact
from tests.place import OnHdfs

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("hdfs")]

DEADLINE_S = 240


def on_hdfs(pipeline: Pipeline, hdfs: HdfsServer, *, kind: str = "insert") -> OnHdfs:
    """The pipeline's table, in a folder of its own."""
    place = OnHdfs(hdfs)
    pipeline.put_at(place, kind=kind)
    return place


def test_validate_tries_hdfs_from_here_and_from_an_executor(pipeline: Pipeline, hdfs: HdfsServer) -> None:
    on_hdfs(pipeline, hdfs)
    checks = tried_from_both(pipeline)
    assert checks["table"]["verdict"] == "ok", checks["table"]


def test_a_pipeline_writes_to_hdfs_and_all_commands_read_it(pipeline: Pipeline, hdfs: HdfsServer) -> None:
    place = on_hdfs(pipeline, hdfs)
    written_and_read(pipeline)
    done = pipeline.command("validate", "--output", "json")
    assert done.returncode == 0, done.stderr
    table = next(one for one in json.loads(done.stdout)["checks"] if one["name"] == "table")
    assert "file system agree to 10 s" in table["detail"], table
    assert not place.is_locked()


def test_upserts_on_hdfs_are_merged_and_compacted_beside_the_transactions(
    pipeline: Pipeline, hdfs: HdfsServer, spark: SparkSession
) -> None:
    place = on_hdfs(pipeline, hdfs, kind="upsert")
    compact(pipeline, spark, place.address, place.settings)
    verdict = pipeline.verify()
    assert verdict["exact"] is not False, verdict


def test_whose_files_they_are_is_said_by_one_variable_to_python_and_its_jvm_alike(
    pipeline: Pipeline, hdfs: HdfsServer
) -> None:
    place = on_hdfs(pipeline, hdfs)
    folder = Location.parse(place.address).path
    client = place.store._calls.client()  # type: ignore[attr-defined]
    client.mkdirs(folder, 0o777, True)
    client.set_owner(folder, "ingest", None)
    pipeline.environment[USER_VARIABLE] = "ingest"
    pipeline.produce(100)
    run = pipeline.run_to_end(deadline_s=DEADLINE_S)
    assert run.process.returncode == 0, run.text()
    below = client.list_status(folder, True)
    assert {one.owner for one in below} == {"ingest"}

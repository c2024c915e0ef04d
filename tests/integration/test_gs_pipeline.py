"""A whole pipeline into Google's storage, as its user has it: Google's own connector, and fake-gcs-server."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from lockstep.stores.gs import GsServer
from tests.harness import Pipeline
from tests.integration.test_s3_pipeline import tried_from_both, written_and_read
from tests.integration.test_upsert_pipelines import compact
from tests.place import OnGoogle

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("gs")]

DEADLINE_S = 240


def at_google(pipeline: Pipeline, gs: GsServer, *, kind: str = "insert") -> OnGoogle:
    """The pipeline's table, in a bucket of its own."""
    place = OnGoogle(gs)
    pipeline.put_at(place, kind=kind)
    return place


def test_validate_tries_googles_storage_from_here_and_from_an_executor(
    pipeline: Pipeline, gs: GsServer
) -> None:
    at_google(pipeline, gs)
    checks = tried_from_both(pipeline)
    assert checks["table"]["verdict"] == "ok", checks["table"]


def test_a_pipeline_writes_to_googles_storage_and_all_commands_read_it(
    pipeline: Pipeline, gs: GsServer
) -> None:
    place = at_google(pipeline, gs)
    written_and_read(pipeline)
    assert not place.is_locked()


def test_a_driver_that_is_killed_at_google_is_followed_by_one_that_goes_on_exactly(
    pipeline: Pipeline, gs: GsServer
) -> None:
    at_google(pipeline, gs)
    pipeline.produce(2_000)
    first = pipeline.start()
    first.await_commits(1, deadline_s=DEADLINE_S)
    first.kill()
    pipeline.produce(2_000)
    run = pipeline.run_to_end(deadline_s=DEADLINE_S)
    assert run.process.returncode == 0, run.text()
    pipeline.assert_exact(4_000)


def test_upserts_at_google_are_merged_and_compacted_beside_the_transactions(
    pipeline: Pipeline, gs: GsServer, spark: SparkSession
) -> None:
    place = at_google(pipeline, gs, kind="upsert")
    compact(pipeline, spark, place.address, place.settings)
    verdict = pipeline.verify()
    assert verdict["exact"] is not False, verdict

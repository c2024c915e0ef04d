"""A whole pipeline into Google's storage, as its user has it: Google's own connector, and fake-gcs-server."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import SparkSession

from lockstep.stores.gs import GsServer
from tests.harness import Pipeline
from tests.integration.test_s3_pipeline import compact
from tests.place import OnGoogle

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("gs")]

DEADLINE_S = 240


def at_google(pipeline: Pipeline, gs: GsServer, *, kind: str = "insert") -> OnGoogle:
    """The pipeline's table, in a bucket of its own."""
    pipeline.bucket = OnGoogle(gs)
    text = pipeline.config.read_text(encoding="utf-8")
    text = text.replace('name = "events"', f'name = "events"\nkind = "{kind}"')
    pipeline.config.write_text(text, encoding="utf-8")
    return pipeline.bucket


def test_validate_tries_googles_storage_from_here_and_from_an_executor(
    pipeline: Pipeline, gs: GsServer
) -> None:
    at_google(pipeline, gs)
    done = pipeline.command("validate", "--output", "json")
    checks = {one["name"]: one for one in json.loads(done.stdout)["checks"]}
    for name in ("storage", "executor writes", "table"):
        assert checks[name]["verdict"] == "ok", checks[name]
    assert "put a file only where there is none" in checks["storage"]["detail"]


def test_a_pipeline_writes_to_googles_storage_and_all_commands_read_it(
    pipeline: Pipeline, gs: GsServer
) -> None:
    place = at_google(pipeline, gs)
    pipeline.produce(3_000)
    run = pipeline.run_to_end(deadline_s=DEADLINE_S)
    assert run.process.returncode == 0, run.text()
    pipeline.assert_exact(3_000)
    for name in ("status", "offsets", "events"):
        done = pipeline.command(name, "--output", "json")
        assert done.returncode == 0, done.stderr
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

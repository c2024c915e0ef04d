"""A pipeline whose workers are tasks of a Spark standalone cluster, in executors that its workers start."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.cluster import standalone_cluster
from lockstep.errors import EXIT_HALTED
from tests.harness import Pipeline

STARTED_S = 360
"""Two more JVMs than elsewhere start first."""

pytestmark = [pytest.mark.integration, pytest.mark.nightly]


def test_workers_on_a_standalone_cluster_commit_everything_and_a_killed_one_is_replaced(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    with standalone_cluster(tmp_path, workers=2, cores=2) as cluster:
        pipeline.produce(5_000)
        run = pipeline.start(*cluster.run_arguments())
        run.await_commits(1, deadline_s=STARTED_S)
        pipeline.produce(5_000)
        run.kill_worker(coordinator=True)
        pipeline.produce(5_000)
        run.await_rows(pipeline.produced)
        assert run.stop() == 0
        pipeline.assert_exact(pipeline.produced)


def test_a_table_on_one_machines_own_disk_is_said_at_the_start_and_by_validate(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    """Of four slots two are there, and three workers take three."""
    pipeline.settings["pipeline.workers"] = "3"
    pipeline.table.mkdir()
    pipeline.produce(1_000)
    with standalone_cluster(tmp_path, workers=2, cores=2, unshared=pipeline.table) as cluster:
        asked = pipeline.command(
            "validate", "--output", "json", *cluster.run_arguments(), deadline_s=STARTED_S
        )
        found = {one["name"]: one for one in json.loads(asked.stdout)["checks"]}["executor writes"]
        assert found["verdict"] == "failed"
        assert "does not see what the driver writes" in found["detail"], found
        run = pipeline.start(*cluster.run_arguments())
        assert run.wait(STARTED_S) == EXIT_HALTED, run.text()
    *_, said = [line for line in run.text().splitlines() if " ERROR " in line]
    assert "halted: worker-" in said and "is not the one that the driver has" in said
    assert "share under one path" in said and "Traceback" not in run.text()


def test_a_cluster_with_too_few_slots_is_refused_with_what_it_has(pipeline: Pipeline, tmp_path: Path) -> None:
    with standalone_cluster(tmp_path, workers=1, cores=2) as cluster:
        run = pipeline.run_to_end(*cluster.run_arguments())
    assert run.process.returncode == 2
    assert f"Spark has 2 slots ({cluster.master}); pipeline.workers = 2 takes 2" in run.log.read_text()

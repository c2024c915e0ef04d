"""A run that a shell in the POSIX locale starts: table partitions beyond ASCII are served like all others."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence

import pytest
from pyspark.sql import SparkSession

from lockstep.config import load
from lockstep.errors import EXIT_FAILED
from lockstep.launch.submit import Submission, compose, environment, find_jars, find_spark_home, needs_of
from tests.harness import Pipeline, await_that

pytestmark = pytest.mark.integration

POSIX = {"LC_ALL": "POSIX", "LANG": "C"}
DAYS = ("München", "日本", "ok")
SERVICES = {
    "insert": '[services]\nclustering = "inline"\nclustering_files = 2\nclustering_after = "1s"\n',
    "upsert": '[services]\ncompaction = "inline"\ncompaction_every = 2\n',
}
COMPLETED = {"insert": "*.replacecommit", "upsert": "*.commit"}
COMMITS = 5


def produce(pipeline: Pipeline, names: Sequence[str]) -> None:
    records = [
        {"event_id": f"{day}-{name}", "user_id": 1, "amount": 1.0, "day": day}
        for day in DAYS
        for name in names
    ]
    pipeline.produce_raw([json.dumps(record).encode() for record in records], partition=0)


@pytest.mark.parametrize("kind", SERVICES)
def test_services_complete_in_table_partitions_beyond_ascii_where_the_shell_is_in_the_posix_locale(
    pipeline: Pipeline, spark: SparkSession, kind: str
) -> None:
    text = pipeline.config.read_text(encoding="utf-8")
    text = text.replace('name = "events"', f'name = "events"\nkind = "{kind}"')
    pipeline.config.write_text(f"{text}\n{SERVICES[kind]}", encoding="utf-8")
    pipeline.environment.update(POSIX)
    run = pipeline.start()
    for number in range(COMMITS):
        produce(pipeline, [f"k{number}"])
        run.await_commits(number + 1)
    timeline = pipeline.table / ".hoodie" / "timeline"
    await_that("completed service", lambda: list(timeline.glob(COMPLETED[kind])))
    assert run.stop() == 0, run.text()[-4_000:]
    assert set(DAYS) <= {one.name for one in pipeline.table.iterdir()}
    read = spark.read.format("hudi").load(str(pipeline.table)).select("event_id").collect()
    wanted = [f"{day}-k{number}" for day in DAYS for number in range(COMMITS)]
    assert sorted(row.event_id for row in read) == sorted(wanted)


def test_a_spark_submit_in_the_posix_locale_is_refused_before_it_writes(pipeline: Pipeline) -> None:
    """One that `lockstep run` has not composed."""
    produce(pipeline, ["k"])
    config = load(pipeline.config, conf={}, sets=())
    home = find_spark_home()
    jars = find_jars(needs_of(config).packages, {})
    command = compose(
        config, Submission(config_path=pipeline.config, until="latest", jars=jars), spark_home=home
    )
    env = {**environment(os.environ, spark_home=home), **POSIX}
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", env=env, timeout=240)
    said = done.stdout + done.stderr
    assert done.returncode == EXIT_FAILED and not list(pipeline.table.rglob("*.parquet"))
    assert (
        "the driver's JVM encodes file names in ANSI_X3.4-1968, which cannot spell every table partition"
        in said
    )

"""A whole pipeline into S3, as its user has it: `lockstep run`, `validate`, and the commands that read."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bench.cluster import standalone_cluster
from lockstep.errors import EXIT_FAILED
from lockstep.stores.local import SECRET_KEY, S3Server, secret_of
from table.kinds import HUDI, table_kind
from tests.harness import Pipeline
from tests.integration.test_upsert_pipelines import compact
from tests.place import Bucket

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("s3"), pytest.mark.timeout(900)]


DEADLINE_S = 240
NO_OUTAGE_S = 240
"""What a start of Spark takes on a loaded machine: an outage is waited out for 600."""
POOL, READING_MAX = 12, 4


def in_s3(pipeline: Pipeline, s3: S3Server, *, kind: str = "insert") -> str:
    """The pipeline's table in a bucket of its own, whose keys are in the environment; its address."""
    place = Bucket(s3)
    pipeline.put_at(place, kind=kind)
    return place.address


def test_validate_tries_the_store_from_here_and_from_an_executor(pipeline: Pipeline, s3: S3Server) -> None:
    in_s3(pipeline, s3)
    tried_from_both(pipeline)


def tried_from_both(pipeline: Pipeline) -> dict[str, dict[str, str]]:
    """What `validate` says of its checks, by name: driver and executor can use the store."""
    done = pipeline.command("validate", "--output", "json")
    checks = {one["name"]: one for one in json.loads(done.stdout)["checks"]}
    assert SECRET_KEY not in done.stdout + done.stderr
    for name in ("storage", "executor writes"):
        assert checks[name]["verdict"] == "ok", checks[name]
        assert "put a file only where there is none" in checks[name]["detail"]
    return checks


@pytest.mark.parametrize(
    ("environment", "endpoint", "sentence"),
    [
        ({}, "http://127.0.0.1:9", "cannot be reached"),
        ({"LAKE_KEY": "nobody"}, "", "nobody has this access key"),
        ({"LAKE_KEY": "reader", "LAKE_SECRET": secret_of("reader")}, "", "must allow s3:PutObject"),
    ],
)
def test_a_store_that_cannot_be_used_ends_a_run_at_its_start_with_one_sentence(
    pipeline: Pipeline, s3: S3Server, environment: dict[str, str], endpoint: str, sentence: str
) -> None:
    """And validate says the same. Neither waits for an outage to pass."""
    pipeline.bucket = Bucket(s3, endpoint=endpoint)
    pipeline.environment = environment
    run = pipeline.start()
    assert run.wait(NO_OUTAGE_S) == EXIT_FAILED, run.text()
    (error,) = [line for line in run.text().splitlines() if " ERROR " in line]
    assert sentence in error and error.count(sentence) == 1
    assert "Traceback" not in run.text() and SECRET_KEY not in run.text()
    if endpoint:
        done = pipeline.command("validate", "--output", "json", deadline_s=NO_OUTAGE_S)
        checks = {one["name"]: one for one in json.loads(done.stdout)["checks"]}
        for name in ("storage", "executor writes", "table"):
            assert checks[name]["verdict"] == "failed"
            assert checks[name]["detail"].count(sentence) == 1, checks[name]


@pytest.mark.smoke("s3")
def test_a_pipeline_writes_to_s3_and_all_commands_read_it(pipeline: Pipeline, s3: S3Server) -> None:
    in_s3(pipeline, s3)
    shown = written_and_read(pipeline)
    assert not [text for text in shown if SECRET_KEY in text]


def written_and_read(pipeline: Pipeline) -> list[str]:
    """3,000 records run to the topics' end; every command reads them, and tells the same of them. What was
    said by the run and the commands.
    """
    pipeline.produce(3_000)
    run = pipeline.run_to_end(deadline_s=DEADLINE_S)
    assert run.process.returncode == 0, run.text()
    pipeline.assert_exact(3_000)
    done = {name: pipeline.command(name, "--output", "json") for name in ("status", "offsets", "events")}
    for one in done.values():
        assert one.returncode == 0, one.stderr
    rows = committed_rows(done["events"].stdout)
    assert sum(rows.values()) == 3_000, rows
    status = json.loads(done["status"].stdout)
    last = status["last_commit"]
    assert (last["rows"], status["lag"]) == (rows[last["transaction"]], 0), status
    return [run.text(), *(one.stdout + one.stderr for one in done.values())]


def committed_rows(events: str) -> Counter[str]:
    """By transaction that was acknowledged, the rows that its workers have reported, from JSON lines."""
    told = [json.loads(line) for line in events.splitlines()]
    acknowledged = {one["transaction"] for one in told if one["type"] == "ACK_COMMIT"}
    said = {  # by worker: to an END that is repeated it says the same again
        (one["transaction"], one["sender"]): sum(file["rows"] for file in one["content"]["files"])
        for one in told
        if one["type"] == "WRITE_STATUS" and one["transaction"] in acknowledged
    }
    rows: Counter[str] = Counter()
    for (transaction, _), count in said.items():
        rows[transaction] += count
    return rows


def test_upserts_are_written_to_s3(pipeline: Pipeline, s3: S3Server) -> None:
    path = in_s3(pipeline, s3, kind="upsert")
    pipeline.produce(2_000)
    run = pipeline.run_to_end(deadline_s=DEADLINE_S)
    assert run.process.returncode == 0, run.text()
    reader = table_kind(HUDI).reader(path, s3.settings)
    newest = reader.newest(pipeline.id)
    assert newest is not None and sum(newest.offsets.values()) == 2_000
    ours = [one for one in reader.completed() if one.state is not None]
    assert sum(file.rows for one in ours for file in one.files) == 2_000


def test_compactions_are_completed_beside_a_pipelines_transactions_in_s3(
    pipeline: Pipeline, s3: S3Server, spark: SparkSession
) -> None:
    compact(pipeline, spark, in_s3(pipeline, s3), s3.settings)


def test_executors_in_jvms_of_their_own_compact_by_few_connections(
    pipeline: Pipeline, s3: S3Server, spark: SparkSession, tmp_path: Path
) -> None:
    """Hudi leaves more log files open than the pool has connections, which Hadoop's own would wait for."""
    few = {"connection.maximum": POOL, "lockstep.reading.max": READING_MAX}
    said = [f"--conf=spark.hadoop.fs.s3a.{name}={value}" for name, value in few.items()]
    with standalone_cluster(tmp_path, workers=1, cores=3) as cluster:
        compact(pipeline, spark, in_s3(pipeline, s3), s3.settings, *cluster.run_arguments(), *said)

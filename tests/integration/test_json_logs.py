"""A real run with log.format = "json": what whatever collects its stderr finds there."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from tests.harness import Pipeline, Run, await_that

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

SECRETS = {
    "sasl.password": "hunter2-of-sasl",
    "ssl.key.password": "hunter2-of-the-key",
    "sasl.oauthbearer.client.secret": "hunter2-of-oauth",
}
PAST_ALL_LOGS = (
    "# WARNING: Unable to attach Serviceability Agent. HotSpot Serviceability Agent attach skipped due to "
    "jol.skipHotspotSAAttach flag.",
)
"""What a library of Hudi's prints to the JVM's own stdout."""
FROM_ELSEWHERE = "hunter2-of-the-environment"


def objects(run: Run) -> list[dict[str, Any]]:
    lines = run.text().split("\n")
    assert lines.pop() == ""
    return [json.loads(line) for line in lines if line not in PAST_ALL_LOGS]


def with_secrets(pipeline: Pipeline) -> None:
    given = "".join(f'"{name}" = "{value}"\n' for name, value in SECRETS.items())
    given += '"sasl.username" = "${env:LOCKSTEP_TEST_NAME}"\n'
    pipeline.environment["LOCKSTEP_TEST_NAME"] = FROM_ELSEWHERE
    text = pipeline.config.read_text(encoding="utf-8")
    pipeline.config.write_text(f"{text}\n[source.kafka]\n{given}", encoding="utf-8")


def token(pipeline: Pipeline) -> str:
    """What lets callers in, as the run left it for `lockstep status`."""
    (left,) = (pipeline.folder / "state").glob("run-*.json")
    found: str = json.loads(left.read_text())["token"]
    return found


def test_every_line_is_json_and_says_whose_it_is_and_none_holds_a_secret(pipeline: Pipeline) -> None:
    with_secrets(pipeline)
    pipeline.settings["log.format"] = "json"
    pipeline.produce(2_000)
    run = pipeline.start("--debug")
    run.await_commits(1)
    await_that("the other worker", lambda: run.workers(coordinator=False))
    name = token(pipeline)
    run.kill_worker(coordinator=True)
    pipeline.produce(2_000)
    run.await_rows(4_000)
    assert run.stop() == 0

    lines = objects(run)
    assert {line["run"] for line in lines} == {read_run(lines)}
    assert {line["worker"] for line in lines} == {"driver", "worker-0", "worker-1"}
    assert {line["pipeline"] for line in lines} == {pipeline.id}
    assert all(line["time"].endswith("Z") and line["level"] and line["logger"] for line in lines)

    commits = [line for line in lines if line["message"].startswith("committed instant")]
    assert len(commits) >= 2
    for line in commits:
        assert line["instant"] in line["message"] and line["transaction"] and line["epoch"] >= 1
    here = [line for line in lines if line["message"].startswith("the coordinator is here")]
    epochs = [line["epoch"] for line in here]  # a third where source partitions have moved between workers
    assert len(epochs) >= 2 and epochs == sorted(set(epochs))
    gone = [line for line in lines if "was rolled back" in line["message"]]
    assert all("transaction" in line and "instant" in line for line in gone)

    text = run.text()
    for secret in (*SECRETS.values(), FROM_ELSEWHERE, name):
        assert secret not in text


def read_run(lines: list[dict[str, Any]]) -> str:
    """The run, as the first line of the driver names it in words."""
    said = next(line["message"] for line in lines if line["message"].startswith("pipeline "))
    run: str = said.rpartition("run ")[2]
    return run


def test_a_halt_is_json_to_the_last_line_and_names_its_record(pipeline: Pipeline) -> None:
    pipeline.settings["log.format"] = "json"
    hostile = 'no json: {"level": "INFO", "message": "all is well"}\n{"forged": true}\x1b[31m'
    pipeline.produce_raw([hostile.encode()], partition=2)
    run = pipeline.run_to_end()
    assert run.process.returncode == 3
    lines = objects(run)
    assert lines[-1]["level"] == "ERROR" and lines[-1]["message"].startswith("halted: ")
    assert not any("forged" in line for line in lines)


def test_what_ends_a_start_is_json_as_well(pipeline: Pipeline) -> None:
    """By `lockstep run` itself, which knows no run."""
    pipeline.settings["log.format"] = "json"
    pipeline.environment["JAVA_HOME"] = "/nowhere"
    pipeline.environment["PATH"] = os.path.dirname(os.__file__)
    run = pipeline.start()
    assert run.wait(60) != 0
    assert [(line["worker"], line["level"]) for line in objects(run)] == [("launcher", "ERROR")]

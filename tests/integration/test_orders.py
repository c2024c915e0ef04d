"""Orders to a run that goes on, from the command line: each on a real run, judged by the table."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest

from tests.harness import Pipeline, await_that

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

LONG = {"transaction.interval": "10m", "transaction.write_timeout": "10m"}
"""No transaction ends by itself within a test."""


def told(pipeline: Pipeline, *arguments: str) -> dict[str, Any]:
    done = pipeline.command(*arguments, "--output", "json")
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def events(pipeline: Pipeline, kind: str) -> list[dict[str, Any]]:
    done = pipeline.command("events", "--from-beginning", "--type", kind, "--output", "json")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_commit_ends_the_transaction_now_and_answers_when_all_that_was_consumed_is_durable(
    pipeline: Pipeline,
) -> None:
    pipeline.settings.update(LONG)
    run = pipeline.start()
    await_that("a run that answers", run.status)
    for _ in range(2):
        pipeline.produce(2_000)
        run.await_consumed(pipeline.produced)
        said = told(pipeline, "commit", "--why", "before a deployment")
        assert pipeline.committed() == pipeline.produced
        assert said["instant"] and said["committed"]
    nothing_new = told(pipeline, "commit")
    assert nothing_new["instant"] == said["instant"]
    assert {one["content"]["reason"] for one in events(pipeline, "END_COMMIT")} == {"requested"}
    assert run.stop() == 0
    pipeline.assert_exact(pipeline.produced)


def test_set_takes_effect_with_the_next_transaction_and_is_refused_where_the_configuration_refuses_it(
    pipeline: Pipeline,
) -> None:
    pipeline.settings.update(LONG)
    run = pipeline.start()
    await_that("a run that answers", run.status)
    pipeline.produce(1_000)
    said = told(pipeline, "set", "transaction.interval=1s", "--why", "catching up")
    assert said["settings"]["transaction.interval"] == 1_000
    assert said["settings"]["transaction.write_timeout"] == 600_000
    run.await_consumed(pipeline.produced)
    told(pipeline, "commit")  # what may have begun with the interval that was
    for _ in range(2):
        pipeline.produce(1_000)
        run.await_rows(pipeline.produced)
    told(pipeline, "set", "transaction.interval=21s")  # longer than the write timeout in the file
    told(pipeline, "set", "transaction.interval=1s", "transaction.max_records=0", "transaction.max_bytes=1GB")
    status = run.status()
    assert status is not None
    changed = {"transaction.interval": 1_000, "transaction.max_bytes": 1_000_000_000}
    assert status["control"]["settings"] == changed
    seen = pipeline.command("status")
    assert "transaction.interval = 1s" in seen.stdout and "until this run ends" in seen.stdout

    for wrong, code in (
        ("transaction.interval=1ms", 2),
        ("transaction.interval=soon", 2),
        ("table.name=other", 2),
        ("transaction.write_limit=5m", 2),
        ("transaction.write_timeout=11m", 1),  # longer than the limit that the run began with
        ("transaction.interval=11m", 1),
    ):
        refused = pipeline.command("set", wrong)
        assert refused.returncode == code, (wrong, refused.stdout, refused.stderr)
        assert "Traceback" not in refused.stderr
    assert run.stop() == 0
    pipeline.assert_exact(pipeline.produced)


def test_a_schedule_is_set_outlives_its_coordinator_and_is_taken_away(pipeline: Pipeline) -> None:
    pipeline.settings.update(LONG)
    run = pipeline.start()
    await_that("a run that answers", run.status)
    pipeline.produce(1_000)
    told(pipeline, "set", "transaction.schedule=every 5s")
    told(pipeline, "commit")  # what may have begun without it
    run.kill_worker(coordinator=True, with_signal=signal.SIGKILL)
    for _ in range(2):
        pipeline.produce(1_000)
        run.await_rows(pipeline.produced)
    assert told(pipeline, "status")["next_end"]["reason"] == "schedule"
    refused = pipeline.command("set", "transaction.schedule=hourly")
    assert refused.returncode == 2 and "cron's five fields" in refused.stderr
    told(pipeline, "set", "transaction.schedule=")
    told(pipeline, "commit")
    before = len(events(pipeline, "END_COMMIT"))
    pipeline.produce(1_000)
    assert told(pipeline, "status")["next_end"] is None
    await_that(  # one commits what is consumed: not yet what was produced a moment ago
        "commit of all", lambda: told(pipeline, "commit") and pipeline.committed() == pipeline.produced
    )
    assert run.stop() == 0
    reasons = [one["content"]["reason"] for one in events(pipeline, "END_COMMIT")]
    assert "schedule" in reasons[:before] and "schedule" not in reasons[before:]
    pipeline.assert_exact(pipeline.produced)


def test_a_paused_run_commits_nothing_keeps_its_workers_outlives_its_coordinator_and_is_resumed(
    pipeline: Pipeline,
) -> None:
    run = pipeline.start()
    pipeline.produce(2_000)
    run.await_rows(pipeline.produced)
    said = told(pipeline, "pause", "--why", "the <b>table</b> is moved")
    assert said["paused"] is True
    committed = pipeline.committed()
    pipeline.produce(3_000)
    run.await_consumed(pipeline.produced)
    killed = run.kill_worker(coordinator=True, with_signal=signal.SIGKILL)

    def another() -> bool:
        status = run.status() or {}
        workers = status.get("workers", ())
        leads = [one for one in workers if one["coordinator"] and one["state"] != "dead"]
        idle = (status.get("coordinator") or {}).get("state") == "idle"
        return idle and len(leads) == 1 and leads[0]["pid"] != killed

    await_that("another coordinator", another)
    status = json.loads(pipeline.command("status", "--output", "json").stdout)
    assert status["live"]["mode"] == "PAUSE"
    assert status["state"] in ("running", "idle")
    assert status["paused"]["why"] == "the <b>table</b> is moved"
    assert status["live"]["alarms"] == []
    seen = pipeline.command("status").stdout
    assert seen.startswith(f"PAUSED: {pipeline.id}") and "lockstep resume" in seen
    assert pipeline.committed() == committed

    told(pipeline, "commit")  # what is held, and it stays paused
    assert pipeline.committed() >= committed
    assert run.status()["control"]["paused"]["why"] == "the <b>table</b> is moved"  # type: ignore[index]

    told(pipeline, "resume", "--why", "done")
    await_that("everything", lambda: pipeline.committed() == pipeline.produced)
    orders = [one["content"] for one in events(pipeline, "CONTROL")]
    assert [(one["number"], one["action"], one["why"]) for one in orders] == [
        (1, "pause", "the <b>table</b> is moved"),
        (2, "commit", None),
        (3, "resume", "done"),
    ]
    assert all("@" in one["who"] for one in orders)
    assert run.stop() == 0
    pipeline.assert_exact(pipeline.produced)


def test_stop_commits_what_is_held_ends_the_run_and_waits_for_that(pipeline: Pipeline) -> None:
    pipeline.settings.update(LONG)
    run = pipeline.start()
    await_that("a run that answers", run.status)
    pipeline.produce(2_000)
    run.await_consumed(pipeline.produced)
    told(pipeline, "stop", "--drain", "--why", "for tonight")
    assert run.wait(120) == 0
    assert "for tonight" in run.text()
    pipeline.assert_exact(pipeline.produced)
    for command in ("pause", "resume", "commit", "stop"):
        nobody = pipeline.command(command)
        assert nobody.returncode == 1 and "no run of pipeline" in nobody.stderr, nobody.stderr

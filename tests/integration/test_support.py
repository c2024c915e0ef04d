"""`lockstep support` on a real run, and where the broker is away."""

from __future__ import annotations

import json
import stat
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.harness import Pipeline

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

SECRET = "hunter2-of-sasl"
FILES = {"configuration.json", "versions.json", "status.json", "status.txt", "offsets.json", "offsets.txt"}
FILES |= {"events.jsonl", "timeline.json", "MANIFEST.txt"}


def unpacked(path: Path) -> dict[str, str]:
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name).decode() for name in file.namelist()}


def test_the_archive_of_a_real_run_holds_what_was_promised_and_no_secret(pipeline: Pipeline) -> None:
    text = pipeline.config.read_text(encoding="utf-8")
    pipeline.config.write_text(f'{text}\n[source.kafka]\n"sasl.password" = "{SECRET}"\n', encoding="utf-8")
    pipeline.produce(2_000)
    run = pipeline.start()
    run.await_commits(1)
    pipeline.produce(2_000)
    run.await_rows(4_000)
    log = pipeline.folder / "mine.log"
    log.write_text(f"{run.text()}\nconnecting with {SECRET}\n", encoding="utf-8")

    path = pipeline.folder / "a.zip"
    arguments = ("-o", str(path), "--log", str(log))
    done = pipeline.command("support", *arguments)
    assert done.returncode == 0, done.stderr
    assert "Look through it before you send it." in done.stdout and "events.jsonl" in done.stdout
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    members = unpacked(path)
    assert set(members) == FILES | {"page.json", "logs/1-mine.log"}
    (left,) = (pipeline.folder / "state").glob("run-*.json")
    for name, content in members.items():
        assert SECRET not in content and json.loads(left.read_text())["token"] not in content, name

    status = json.loads(members["status.json"])
    assert status["live"]["run"] == status["run"] and status["last_commit"]["transaction"]
    assert [row["committed"] for row in json.loads(members["offsets.json"])] == [1_000] * 4
    events = [json.loads(line) for line in members["events.jsonl"].splitlines()]
    assert {"RUN_ANNOUNCE", "START_COMMIT", "WRITE_STATUS", "ACK_COMMIT"} <= {one["type"] for one in events}
    timeline = json.loads(members["timeline.json"])
    ours = [one["lockstep"] for one in timeline["completed"] if one["lockstep"]]
    assert ours[0]["offsets"] == {pipeline.topic: {str(number): 1_000 for number in range(4)}}
    assert ours[-1]["kind"] == "genesis"
    versions = json.loads(members["versions.json"])
    assert versions["libraries"]["lockstep"] and versions["librdkafka"] and "version" in versions["java"]
    configuration: dict[str, Any] = json.loads(members["configuration.json"])
    assert configuration["source"]["kafka"]["sasl.password"] == "***"
    assert json.loads(members["page.json"])["run"] == status["run"]

    again = pipeline.command("support", *arguments)
    assert again.returncode == 2 and "is there already" in again.stderr
    assert pipeline.command("support", *arguments, "--force", "--output", "json").returncode == 0
    assert run.stop() == 0


def test_a_broker_that_is_away_costs_half_a_minute_and_hides_nothing_else(pipeline: Pipeline) -> None:
    pipeline.produce(1_000)
    assert pipeline.run_to_end().process.returncode == 0
    text = pipeline.config.read_text(encoding="utf-8")
    away = text.replace(pipeline.broker.bootstrap_servers, "127.0.0.1:1")
    pipeline.config.write_text(away, encoding="utf-8")

    path = pipeline.folder / "a.zip"
    done = pipeline.command("support", "-o", str(path), "--output", "json", deadline_s=90)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    missing = {one["name"]: one["why"] for one in document["missing"]}
    assert "127.0.0.1:1" in missing["offsets.json, offsets.txt"] and "events.jsonl" in missing
    members = unpacked(path)
    assert set(members) == FILES - {"offsets.json", "offsets.txt", "events.jsonl"}
    newest = json.loads(members["timeline.json"])["completed"][0]["lockstep"]
    assert sum(newest["offsets"][pipeline.topic].values()) == 1_000
    assert json.loads(members["status.json"])["last_commit"]["transaction"] == newest["transaction"]
    assert all(name in members["MANIFEST.txt"] for name in missing)

"""`lockstep support`, where next to nothing can be had."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from lockstep import cli

PIPELINE = """
[pipeline]
id = "events"
[source]
bootstrap_servers = "127.0.0.1:1"
topics = ["events"]
[source.kafka]
"sasl.password" = "${env:LOCKSTEP_TEST_NOT_SET}"
"ssl.key.password" = "hunter2-literal"
[record]
schema = "event_id STRING"
[table]
path = "s3a://nowhere/events"
name = "events"
[storage]
credentials = "keys"
access_key = "${env:LOCKSTEP_TEST_NOT_SET}"
secret_key = "${env:LOCKSTEP_TEST_NOT_SET}"
"""


def test_secrets_that_cannot_be_had_cost_what_needs_them_and_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LOCKSTEP_STATE", str(tmp_path / "state"))
    (tmp_path / "p.toml").write_text(PIPELINE, encoding="utf-8")
    (tmp_path / "run.log").write_text("with hunter2-literal\n", encoding="utf-8")
    path = tmp_path / "a.zip"
    arguments = ["-c", str(tmp_path / "p.toml"), "-o", str(path), "--log", str(tmp_path / "run.log")]
    assert cli.run(["support", *arguments, "--output", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in document["members"]] == [
        "configuration.json",
        "versions.json",
        "logs/1-run.log",
    ]
    why = {one["name"]: one["why"] for one in document["missing"]}
    assert "LOCKSTEP_TEST_NOT_SET is not set" in why["status.json, status.txt"]
    assert "LOCKSTEP_TEST_NOT_SET is not set" in why["timeline.json"]
    assert "was not looked for" in why["secrets"]
    with zipfile.ZipFile(path) as file:
        assert all(b"hunter2" not in file.read(name) for name in file.namelist())
    assert cli.run(["support", *arguments]) == 2
    assert "is there already" in capsys.readouterr().err
    assert cli.run(["support", *arguments, *["--log", "x"] * 4]) == 2

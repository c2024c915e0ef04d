"""`lockstep wait`: its command line, and what it does without broker and table."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from lockstep import cli
from lockstep.commands import wait as commands
from lockstep.waiting import wait

PIPELINE = """
[pipeline]
id = "events"
[source]
bootstrap_servers = "127.0.0.1:1"
topics = ["events"]
[record]
schema = "event_id STRING"
[table]
path = "file://{folder}/table"
name = "events"
"""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOCKSTEP_STATE", str(tmp_path / "state"))
    path = tmp_path / "pipeline.toml"
    path.write_text(PIPELINE.format(folder=tmp_path), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "say what to wait for"),
        (["--latest", "--lag", "0"], "say what to wait for"),
        (["--latest", "--offset", "events:0=1"], "say what to wait for"),
        (["--offset", "events=1"], "write TOPIC:P=OFFSET"),
        (["--lag", "-1"], "-1"),
        (["--complete-through", "2026-11-20"], "names no zone"),
        (["--complete-through", "2026-11-20T00:00Z", "--latest"], "say what to wait for"),
        (["--latest", "--timeout", "10"], "has no unit"),
        (["--latest", "--timeout", "999h"], "longer than a week"),
    ],
)
def test_what_nobody_can_wait_for_is_refused(
    config: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["wait", "-c", str(config), *arguments]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    "goal",
    [
        ["--offset", "events:0=5"],
        ["--latest"],
        ["--lag", "3"],
        ["--complete-through", "2026-11-20T00:00Z"],
    ],
)
def test_without_table_and_broker_it_waits_and_then_says_what_is_missing(
    config: Path, goal: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = Clock()
    monkeypatch.setattr(wait, "time", clock)
    monkeypatch.setattr(wait, "ASK_S", 1.0)
    monkeypatch.setattr(wait, "HALTS_S", 1.0)
    monkeypatch.setattr(wait, "LAST_S", 60.0)
    monkeypatch.setattr(commands, "Wait", partial(wait.Wait, clock_s=clock.monotonic))
    code = cli.run(["wait", "-c", str(config), *goal, "--timeout", "10m", "--output", "json"])
    written = capsys.readouterr()
    assert code == 1, written.err
    assert "not reached within 10m" in written.err and "There is no Hudi table at" in written.err
    found = json.loads(written.out)
    assert found["reached"] is False and found["halted"] is None
    if goal[0] == "--offset":
        assert found["missing"] == [{"topic": "events", "partition": 0, "wanted": 5, "committed": None}]
    elif goal[0] == "--complete-through":
        assert found["complete_through_ms"] == 1_795_132_800_000 and found["watermark"] is None
        said = written.err.splitlines()[-1]
        assert "127.0.0.1:1" not in said and "watermark" not in said, "who needs no broker waits for none"
    else:
        assert "127.0.0.1:1" in written.err


class Clock:
    """Time that passes only in sleeps: one lasts until the end of the wait, however long a look takes."""

    def __init__(self) -> None:
        self._now_s = 0.0

    def monotonic(self) -> float:
        return self._now_s

    def sleep(self, _seconds: float) -> None:
        self._now_s += 600.0

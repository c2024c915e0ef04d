"""What an operator is told of a change whose job did not say what became of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from control_topic.messages import SourcePartition
from lockstep.config import load
from lockstep.errors import Failed
from lockstep.launch import short_job
from lockstep.offsets.carry_out import carry_out
from table.state import TableState

TOML = """
[pipeline]
id = "events"
[source]
bootstrap_servers = "127.0.0.1:9"
topics = ["events"]
[record]
schema = "id STRING"
[table]
path = "file:///nowhere/events"
name = "events"
key = ["id"]
"""
P0 = SourcePartition("events", 0)
STATE = TableState(
    pipeline="events", run="operator", epoch=2, transaction="planned", offsets={P0: 7}, kind="operator"
)
KILLED = "kill -9 $$"
UNKNOWN = "echo '12:00 ERROR   driver lockstep.run: whether the change was committed is not known'; exit 1"


@pytest.mark.parametrize("job", [KILLED, UNKNOWN])
def test_a_job_that_did_not_say_that_nothing_was_committed_is_not_said_to_have_committed_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, job: str
) -> None:
    """It may have been killed right behind the commit: an operator who believes it does the change twice."""
    config = tmp_path / "pipeline.toml"
    config.write_text(TOML)
    submit = tmp_path / "spark" / "bin" / "spark-submit"
    submit.parent.mkdir(parents=True)
    submit.write_text(f"#!/bin/sh\n{job}\n")
    submit.chmod(0o755)
    monkeypatch.setattr(short_job, "find_spark_home", lambda: tmp_path / "spark")
    with pytest.raises(Failed) as raised:
        carry_out(load(config), STATE, {P0: 4}, "", ())
    assert "was not committed" not in str(raised.value)
    assert "lockstep offsets" in str(raised.value)

"""What `lockstep run` itself logs, before and beside the driver that it starts."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import click
import pytest

from lockstep.commands.options import VERBOSITY
from lockstep.commands.run import _config, command

PIPELINE = """
[pipeline]
id = "events"
[source]
bootstrap_servers = "127.0.0.1:1"
topics = ["events"]
[record]
schema = "event_id STRING"
[table]
path = "file:///tmp/events"
name = "events"
[log]
format = "json"
"""


def test_where_lines_are_json_a_stray_of_the_launchers_is_one_too(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "p.toml"
    path.write_text(PIPELINE, encoding="utf-8")
    with click.Context(command).scope() as context:
        context.meta[VERBOSITY] = 0
        _config(path, {}, ())
    ended = threading.Thread(target=lambda: int("no"), name="plane")
    ended.start()
    ended.join()
    (line,) = [json.loads(one) for one in capfd.readouterr().err.splitlines()]
    assert line["message"].startswith("thread plane ended: ValueError")
    assert (line["worker"], line["pipeline"]) == ("launcher", "events")

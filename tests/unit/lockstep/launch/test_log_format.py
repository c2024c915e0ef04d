"""`log.format`, on its way from the configuration to the processes."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lockstep.config import from_json
from lockstep.config.load import from_mapping
from lockstep.launch import short_job
from lockstep.launch.submit import LOG_CONFIGURATIONS, Submission, compose

PIPELINE: dict[str, dict[str, Any]] = {
    "pipeline": {"id": "events"},
    "source": {"bootstrap_servers": "127.0.0.1:1", "topics": ["events"]},
    "record": {"schema": "id STRING"},
    "table": {"path": "file:///data/events", "name": "events"},
}


@pytest.mark.parametrize("form", ["text", "json"])
def test_the_jvm_logs_as_the_driver_does(form: str) -> None:
    config = from_mapping({**PIPELINE, "log": {"format": form}})
    command = compose(config, Submission(config_path=Path("p.toml")), spark_home=Path("/spark"))
    options = next(word for word in command if word.startswith("spark.driver.extraJavaOptions="))
    assert f"-Dlog4j2.configurationFile={LOG_CONFIGURATIONS[form].as_uri()}" in options


def test_both_of_its_configurations_say_the_same() -> None:
    """But for the layout."""

    def said(form: str) -> list[str]:
        lines = LOG_CONFIGURATIONS[form].read_text(encoding="utf-8").splitlines()
        return [line for line in lines if line and not re.match(r"#|appender.console.layout", line)]

    assert said("text") == said("json")


def test_a_short_jobs_words_are_read_by_its_command_and_are_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = []

    def run(_command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        shipped.append(from_json((tmp_path / "pipeline.json").read_text(encoding="utf-8")))
        return subprocess.CompletedProcess([], 1, stdout="12:00:00 ERROR driver lockstep.run: no luck\n")

    monkeypatch.setattr(short_job.subprocess, "run", run)
    config = from_mapping({**PIPELINE, "log": {"format": "json"}})
    assert short_job.run_short_job(config, tmp_path, [], java_options="") == (1, "no luck")
    assert shipped[0].log.format == "text" and config.log.format == "json"

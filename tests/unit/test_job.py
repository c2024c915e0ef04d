"""What is left of a job for whoever started it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lockstep.application import Application
from lockstep.job import _leave


def test_the_exit_code_is_left_also_where_a_cleaner_has_taken_the_folder(tmp_path: Path) -> None:
    path = tmp_path / "lockstep-run-x" / "exit-code"
    _leave(3, path)
    assert path.read_text() == "3\n"


def test_a_place_that_takes_nothing_is_said_and_changes_no_exit_code(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    _leave(5, tmp_path / "file" / "exit-code")
    assert "exit code 5 could not be left in" in caplog.text


def test_a_state_folder_that_takes_nothing_ends_no_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("LOCKSTEP_STATE", str(tmp_path / "file"))
    config = SimpleNamespace(pipeline=SimpleNamespace(id="events"))
    run: Any = SimpleNamespace(_config=config, run_id="r1", _token="secret")
    Application._leave_run_file(run, "127.0.0.1:1")
    assert "`lockstep status` will not show what this run does" in caplog.text
    assert "secret" not in caplog.text

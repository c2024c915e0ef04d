"""What is left of a job for whoever started it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lockstep.driver.application import Application
from lockstep.entry import job
from lockstep.entry.job import Catcher, _leave


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
    run: Any = SimpleNamespace(_config=config, run_id="r1", _token="secret", _path=None, _sets=())
    Application._leave_run_file(run, "127.0.0.1:1")
    assert "`lockstep status` will not show what this run does" in caplog.text
    assert "secret" not in caplog.text


class Signals:
    """A run, a clock that stands where it is put, and whether the run was left at once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 100.0
        self.stops: list[str] = []
        self.left = 0
        run: Any = SimpleNamespace(request_stop=self.stops.append)
        self.catcher = Catcher(run, clock=lambda: self.now_s)
        later = SimpleNamespace(start=self._leave)
        monkeypatch.setattr(job.threading, "Timer", lambda *_arguments: later)

    def _leave(self) -> None:
        self.left += 1


def test_a_signal_to_all_processes_of_a_run_at_once_is_one_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Signals(monkeypatch)
    for receiver in ("JVM", "driver", "JVM"):  # its own, the driver's own, and what `lockstep run` passes on
        run.catcher.caught("SIGTERM", receiver)
        run.now_s += 0.2
    assert run.stops and not run.left


def test_a_second_signal_leaves_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Signals(monkeypatch)
    for receiver in ("JVM", "driver"):
        run.catcher.caught("SIGINT", receiver)
    run.now_s += job.ONE_SIGNAL_S
    run.catcher.caught("SIGINT", "JVM")
    assert run.left == 1

"""What is left of a job for whoever started it."""

from __future__ import annotations

from pathlib import Path

import pytest

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

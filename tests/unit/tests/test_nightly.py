"""The steps of `make nightly`: all of them run, whatever fails, and a failure is the exit code."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests import nightly


def test_a_step_that_fails_is_named_with_its_last_lines_and_the_others_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = {
        "bad": (sys.executable, "-c", "print('the reason'); raise SystemExit(3)"),
        "good": (sys.executable, "-c", "print('fine')"),
    }
    monkeypatch.setattr(nightly, "FOLDER", tmp_path)
    monkeypatch.setattr(nightly, "steps", lambda: steps)
    monkeypatch.setattr(sys, "argv", ["nightly"])
    assert nightly.main() == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("bad") and "exit code 3" in lines[0]
    assert lines[1].strip() == "the reason"
    assert lines[2].startswith("good") and " ok " in lines[2]
    assert lines[3] == "1 passed, 1 failed"
    assert (tmp_path / "good.log").read_text() == "fine\n"

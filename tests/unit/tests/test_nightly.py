"""The steps of `make nightly`: all of them run, whatever fails, and a failure is the exit code."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import nightly
from tests.harness import await_that
from tests.suite.leftovers import MARK


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
    monkeypatch.setenv(MARK, os.environ.get(MARK, ""))
    assert nightly.main() == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("bad") and "exit code 3" in lines[0]
    assert lines[1].strip() == "the reason"
    assert lines[2].startswith("good") and " ok " in lines[2]
    assert lines[3] == "1 passed, 1 failed"
    assert (tmp_path / "good.log").read_text() == "fine\n"


STEPS = """
import sys
from pathlib import Path
from tests import nightly
nightly.FOLDER = Path(sys.argv.pop())
nightly.steps = lambda: {"long": ("bash", "-c", "sleep 600 & echo $!; wait")}
sys.exit(nightly.main())
"""


def test_steps_that_are_asked_to_end_leave_no_process_behind(tmp_path: Path) -> None:
    command = [sys.executable, "-c", STEPS, str(tmp_path)]
    log = tmp_path / "long.log"
    with subprocess.Popen(command, cwd=nightly.ROOT, stdout=subprocess.PIPE) as process:
        pid = await_that("process", lambda: log.exists() and log.read_text().strip())
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=120)
    assert (process.returncode, said) == (130, b"interrupted\n")
    assert not Path(f"/proc/{pid}/cmdline").exists() or not Path(f"/proc/{pid}/cmdline").read_bytes()

"""A soak says what it walked, also where it is ended early, and leaves no process behind."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests import evidence
from tests.simulation import soak
from tests.simulation.crew import Member, MemberLost

ROOT = Path(__file__).resolve().parents[2]
FIRST = 3_000_000


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the evidence of these small runs goes: not where that of real ones is."""
    monkeypatch.setattr(evidence, "folder", lambda: tmp_path)
    monkeypatch.setattr(soak, "CHUNK", 10)
    return tmp_path / "simulation.json"


def read(kept: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8"))
    return found


def test_a_soak_keeps_its_figures_and_how_to_get_them_again(kept: Path) -> None:
    options = ["--schedules", "30", "--first-seed", str(FIRST), "--jobs", "2", "--no-small-world"]
    assert soak.main(options) == 0
    found = read(kept)
    assert found["command"] == f"python -m tests.simulation.soak --schedules 30 --first-seed {FIRST}"
    figures = found["figures"]
    assert figures["schedules"] == 30
    assert figures["violations"] == 0
    assert 50 < figures["state_event_pairs"] <= figures["state_event_pairs_legal"]
    assert not found["passed"], "without the small world it is no full run"
    assert no_process_is_left()


def test_a_soak_goes_on_where_one_of_the_same_code_ended(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "code", lambda _of=(): "this")
    monkeypatch.setenv("RESUME", "1")
    whole = ["--schedules", "40", "--first-seed", str(FIRST), "--jobs", "1", "--no-small-world"]
    assert soak.main(["--schedules", "20", *whole[2:]]) == 0
    seconds = read(kept)["figures"]["seconds"]
    walked: list[int] = []
    chunks = soak._chunks
    monkeypatch.setattr(soak, "_chunks", lambda first, count: walked.append(first) or chunks(first, count))
    assert soak.main(whole) == 0
    assert walked == [FIRST + 20]
    assert read(kept)["figures"]["schedules"] == 40
    assert read(kept)["figures"]["seconds"] > seconds
    monkeypatch.setattr(evidence, "code", lambda _of=(): "other")
    assert soak.main(whole) == 0
    assert walked == [FIRST + 20, FIRST], "figures of other code are nothing to go on from"


def test_a_soak_that_is_interrupted_keeps_the_figures_so_far(
    kept: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    say = soak._say

    def interrupted_at_the_first_progress(text: str) -> None:
        say(text)
        if "a second" in text and "written to" not in text:
            raise KeyboardInterrupt

    monkeypatch.setattr(soak, "PROGRESS_EVERY_S", 0.0)
    monkeypatch.setattr(soak, "_say", interrupted_at_the_first_progress)
    assert soak.main(["--schedules", "1000000", "--jobs", "1", "--no-small-world"]) == 1
    assert "interrupted: the figures so far" in capsys.readouterr().out
    found = read(kept)
    assert found["passed"] is False
    assert found["figures"]["schedules"] == 10
    assert found["figures"]["schedules_asked"] == 1_000_000
    assert no_process_is_left()


def test_a_soak_knows_all_the_code_that_its_schedules_run() -> None:
    """In processes of their own: here other tests' modules are loaded as well."""
    walked = (
        "from tests import evidence; from tests.simulation import crew; "
        f"crew.schedules({FIRST}, 20); crew.points([0, 1]); "
        "print(*(f for f in evidence.loaded() if f != 'tests/simulation/crew.py'))"
    )
    known = "from tests.simulation import soak; print(*soak.walked_code())"
    ran, told = (
        set(
            subprocess.run(
                [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
            ).stdout.split()
        )
        for code in (walked, known)
    )
    assert {
        "coordinator/core.py",
        "participant/core.py",
        "table/memory/table.py",
        "tests/simulation/world.py",
    } <= ran
    assert ran <= told
    assert not {file for file in told if file.startswith(("lockstep/", "table/hudi/"))}, "no shell is walked"


def no_process_is_left() -> bool:
    return not any(is_member(child) for child in psutil.Process().children(recursive=True))


def is_member(process: psutil.Process) -> bool:
    """Whether a process belongs to a crew. A zombie, which another test has yet to wait for, does not."""
    try:
        return "tests.simulation.crew" in process.cmdline()
    except psutil.NoSuchProcess:  # a zombie, too
        return False


def test_one_seed_is_replayed_from_the_command_line() -> None:
    command = [sys.executable, "-m", "tests.simulation", "--seed", "3", "--only-faults", "none"]
    brief = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True)
    full = subprocess.run(
        [*command, "--full"], cwd=ROOT, capture_output=True, text=True, timeout=120, check=True
    )
    assert brief.stdout.endswith("all is well\n")
    assert "faults: none" in brief.stdout
    assert len(full.stdout.splitlines()) > len(brief.stdout.splitlines()) > 20


def test_a_process_that_died_is_named_with_its_task_and_is_closed_without_another_error() -> None:
    member = Member(60.0, None)
    member._process.kill()
    member._process.wait()
    with pytest.raises(MemberLost, match="ended with code -9"):
        member.do({"do": "schedules", "first": 0, "count": 1})
    member.close()

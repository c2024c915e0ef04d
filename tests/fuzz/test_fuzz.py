"""Fuzzing itself: always the same inputs here; a failure is found, made smaller and replayed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from tests.fuzz.__main__ import TARGETS, _read_case, _write_down
from tests.fuzz.shrink import outcome, shrink
from tests.fuzz.target import Target, Wrong, require

SIZE = 50
SEEDS = 8


@pytest.mark.parametrize("name", TARGETS)
def test_every_input_is_answered_as_promised(name: str) -> None:
    target = TARGETS[name]
    assert sum(target.check(target.make(Random(seed), SIZE)) for seed in range(SEEDS)) >= SIZE


@pytest.mark.parametrize("name", TARGETS)
def test_a_case_can_be_written_down_and_made_again(name: str, tmp_path: Path) -> None:
    case = TARGETS[name].make(Random(3), SIZE)
    assert TARGETS[name].make(Random(3), SIZE) == case
    path = tmp_path / "case"
    path.write_text(repr(case), encoding="utf-8", errors="surrogatepass")
    assert _read_case(path) == case


def check_letters(case: list[str]) -> int:
    """Stands for code under test: it is wrong about b, fails at c, dies at d."""
    for letter in "".join(case):
        require(letter != "b", f"a wrong answer to {letter}", case)
        if letter == "c":
            raise KeyError(letter)
        if letter == "d":
            os.kill(os.getpid(), signal.SIGKILL)
    return len(case)


LETTERS = Target(
    name="letters",
    promise="letters are answered",
    make=lambda random, size: [random.choice("aaaaaabcd") for _ in range(size)],
    check=check_letters,
    size=20,
    seeds=2,
)


@pytest.mark.parametrize(
    ("letter", "how"),
    [("b", "wrong: a wrong answer to"), ("c", "KeyError"), ("d", "the process died with signal 9")],
)
def test_wrong_answers_errors_and_crashes_are_told_apart_and_made_smaller(letter: str, how: str) -> None:
    case = ["aaa", f"aa{letter}aa", "aaaa"]
    assert outcome(LETTERS, case) == how
    assert shrink(case, lambda one: outcome(LETTERS, one) == how, time_s=60) == [letter]
    assert outcome(LETTERS, ["aaa"]) == ""


def test_a_wrong_answer_is_reported_with_its_input() -> None:
    with pytest.raises(Wrong, match="given: b'x'"):
        require(False, "no answer", b"x")


def test_a_failing_seed_leaves_a_small_case_and_the_command_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    _write_down(LETTERS, 1)
    said = capsys.readouterr().out
    path = Path(said.strip().rpartition("--case ")[2])
    assert len("".join(_read_case(path))) == 1
    assert "python -m tests.fuzz --target 'letters'" in said


def test_a_seed_is_replayed_by_the_command() -> None:
    command = [sys.executable, "-m", "tests.fuzz", "--target", "durations and sizes", "--seed", "3"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=True)
    assert done.stdout.splitlines() == ["seed 3", f"done {TARGETS['durations and sizes'].size}"]

"""Plays the tests of a seeded bug, in a Python of their own, and judges whether they have found it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.seeded.base import NAME, NOTES, Bug, Note, find
from tests.seeded.plugin import KEPT
from tests.suite.tiers import Tier

ROOT = Path(__file__).resolve().parents[2]
SITE = Path(__file__).with_name("site")
PLAY_MAX_S = 3_600.0
"""A backstop: tests end by themselves, or by pytest's own."""
ASSERTED = ("builtins.AssertionError", "builtins.Failed")
"""What an assertion, and pytest's own word that nothing was raised, fail by."""
TIMEOUT = "Timeout"
SAID_SHOWN = 200


class NotFound(AssertionError):
    """A seeded bug lived, or its tests failed by something else."""


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one test, or of one set of its parameters."""

    test: str
    when: str
    outcome: str
    kinds: Sequence[str]
    """What it failed by: the class and its bases, as `module.Class`."""
    said: str


@dataclass(frozen=True, slots=True)
class Played:
    """One run of tests. `notes`: of all its processes."""

    results: Sequence[Result]
    notes: frozenset[tuple[Note, str]]

    def of(self, test: str) -> list[Result]:
        """Of one test, all its parameters."""
        return [one for one in self.results if one.test == test or one.test.startswith(f"{test}[")]


@dataclass(frozen=True, slots=True)
class Found:
    """`said`: what the first of the tests failed by."""

    bug: Bug
    said: str
    took_s: float


def play(tests: Collection[str], bug: Bug | None = None, *, tiers: Collection[Tier] = ()) -> Played:
    """These tests, with the bug or as everything is. Raises `NotFound` where they could not be played.

    `tiers`: leave out the tests of other tiers.
    """
    with tempfile.TemporaryDirectory(prefix="lockstep-seeded-") as folder:
        kept, notes = Path(folder, "kept.json"), Path(folder, "notes")
        options = [*("-q", "-p", "tests.seeded.plugin"), *("-p", "no:cacheprovider")]
        options += ["-p", "tests.suite.plugin", *(word for tier in tiers for word in ("--tier", tier))]
        try:
            done = subprocess.run(
                [sys.executable, "-m", "pytest", *options, *tests],
                cwd=ROOT,
                env=_environment(bug, kept, notes),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=PLAY_MAX_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise NotFound(f"{_whose(bug)}tests did not end within {PLAY_MAX_S:.0f} s") from error
        noted = notes.read_text(encoding="utf-8").splitlines() if notes.exists() else []
        if done.returncode not in (0, 1) or not kept.exists():
            why = "\n".join([*noted, done.stdout[-2_000:]])
            raise NotFound(f"{_whose(bug)}tests could not be played:\n{why}")
        results = [Result(**one) for one in json.loads(kept.read_text(encoding="utf-8"))]
    lines = (line.partition(" ") for line in noted)
    return Played(results, frozenset((Note(what), text) for what, _, text in lines))


def _whose(bug: Bug | None) -> str:
    return "" if bug is None else f"{bug.name}: its "


def _environment(bug: Bug | None, kept: Path, notes: Path) -> dict[str, str]:
    known = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    paths = [str(SITE), str(ROOT)] if bug is not None else [str(ROOT)]
    known |= {
        "PYTHONPATH": os.pathsep.join([*paths, *filter(None, [os.environ.get("PYTHONPATH")])]),
        # What is imported as Python starts must not be early enough to be in the way of Spark's fork.
        "GRPC_ENABLE_FORK_SUPPORT": "0",
        KEPT: str(kept),
    }
    return known if bug is None else {**known, NAME: bug.name, NOTES: str(notes)}


def find_by(bug: Bug, *, tiers: Collection[Tier] = ()) -> Found:
    """Play its tests with the bug. Raises `NotFound` unless each of them finds it.

    `tiers`: the tests of other tiers do not count.
    """
    began = time.monotonic()
    said = judged(bug, play(bug.found_by, bug, tiers=tiers))
    return Found(bug, said, time.monotonic() - began)


def judged(bug: Bug, played: Played) -> str:
    """What the first of its tests failed by. Raises `NotFound` unless each of them has found it."""
    mistakes = sorted(text for what, text in played.notes if what is Note.MISTAKEN)
    if mistakes:
        raise NotFound(f"{bug.name}: a mistake of its own: {mistakes[0]}")
    used = {text for what, text in played.notes if what is Note.USED}
    unused = {place for place in bug.wrong if callable(find(place).right)} - used
    if unused:
        raise NotFound(f"{bug.name}: {', '.join(sorted(unused))} was not used")
    said = [_failed_by(bug, test, played) for test in bug.found_by]
    return said[0]


def _failed_by(bug: Bug, test: str, played: Played) -> str:
    """What the test failed by; raises `NotFound` where that is not the bug."""
    failed = [one for one in played.of(test) if one.outcome == "failed"]
    if not failed:
        raise NotFound(f"{bug.name} lived: {test} {_seen(played.of(test))}")
    for one in failed:
        whose = f"{bug.name}: {one.test}"
        if one.when == "setup":
            raise NotFound(f"{whose} did not come to its own test: {one.said}")
        if one.when == "call" and not _is_about_it(bug, one):
            raise NotFound(f"{whose} failed by {one.kinds[0] if one.kinds else 'nothing'}: {one.said}")
    called = [one for one in failed if one.when == "call"]
    if not called:
        raise NotFound(f"{bug.name}: {test} failed in what it tidies up only: {failed[0].said}")
    return called[0].said[:SAID_SHOWN]


def _seen(results: Sequence[Result]) -> str:
    return ", ".join(sorted({one.outcome for one in results})) or "is not there"


def _is_about_it(bug: Bug, result: Result) -> bool:
    if result.said.startswith(TIMEOUT):
        return False
    expected = {**dict.fromkeys(ASSERTED, ""), **bug.raises}
    return any(kind in expected and expected[kind] in result.said for kind in result.kinds)


def must_pass(bugs: Collection[Bug]) -> None:
    """All their tests, as everything is. Raises `NotFound` where one does not pass."""
    tests = list(dict.fromkeys(test for bug in bugs for test in bug.found_by))
    played = play(tests)
    for test in tests:
        outcomes = {one.outcome for one in played.of(test)}
        if "failed" in outcomes or "passed" not in outcomes:
            why: Any = next((one.said for one in played.of(test) if one.outcome != "passed"), "")
            raise NotFound(f"without any bug {test} {_seen(played.of(test))}: {why}")

"""Consistency of the tiers: every smoke test is there, and `make test` runs a test for every seeded bug."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.seeded import BUGS
from tests.suite.selection import ROOT, recorded_bugs
from tests.suite.tiers import SMOKE, seeded_errors, smoke_errors


def test_every_smoke_subject_has_its_number_of_tests() -> None:
    assert smoke_errors(smoke_subjects()) == []


def test_make_test_runs_the_tests_that_catch_each_seeded_bug() -> None:
    assert seeded_errors({name: bug.found_by for name, bug in BUGS.items()}, recorded_bugs()) == []


def test_every_test_file_is_in_a_folder_that_make_collects() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (line,) = (line for line in makefile.splitlines() if line.startswith("TESTS :="))
    collected = [ROOT / word for word in line.rstrip(")").split() if word.startswith("tests/")]
    stray = [
        str(file.relative_to(ROOT))
        for file in files_of_tests()
        if not any(folder in file.parents for folder in collected)
    ]
    assert stray == []


def smoke_subjects() -> Iterator[str]:
    """The arguments of all `pytest.mark.smoke` in the tests."""
    for file in files_of_tests():
        text = file.read_text(encoding="utf-8")
        if f"mark.{SMOKE}" in text:
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Call) and ast.unparse(node.func) == f"pytest.mark.{SMOKE}":
                    yield from (str(ast.literal_eval(argument)) for argument in node.args)


def files_of_tests() -> Iterator[Path]:
    return (ROOT / "tests").rglob("test_*.py")

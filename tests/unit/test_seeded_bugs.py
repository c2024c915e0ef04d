"""Consistency of the seeded bugs: what each replaces is there, and so are the tests that catch it.

Of the bugs of the cores (tests/simulation/mutants): each patches methods that exist, and has a recorded seed.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.seeded import BUGS
from tests.seeded.base import find
from tests.seeded.holes import Hole
from tests.seeded.play import ROOT
from tests.simulation.mutants import MUTANTS
from tests.simulation.mutants.search import recorded
from tests.suite.exclusions import exclusions
from tests.suite.tiers import without_parameters


@cache
def named_in(file: str) -> frozenset[str]:
    """The tests of a file, by their names."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize("name", BUGS)
def test_a_bug_says_what_is_wrong_and_replaces_what_is_there_and_its_tests_are_there(name: str) -> None:
    bug = BUGS[name]
    assert re.fullmatch(r"[A-Z].*[.]", bug.says), "no sentence"
    assert re.fullmatch(r"[a-z0-9_]+", bug.name)
    assert bug.wrong and bug.found_by
    for place, wrong in bug.wrong.items():
        right = find(place).right
        assert wrong(right) is not right
    for test in bug.found_by:
        file, _, test_name = without_parameters(test).partition("::")
        assert test_name in named_in(file), f"{test} is not there"
        source = (ROOT / file).read_text(encoding="utf-8")
        assert not exclusions(source, test_name), f"{test} catches {name}, and make test does not run it"


def test_every_hole_is_opened_by_some_bug_and_no_two_bugs_have_a_name() -> None:
    assert {bug.hole for bug in BUGS.values()} == set(Hole)
    modules = Path(ROOT, "tests/seeded").glob("*.py")
    written = [name for file in modules for name in re.findall(r"    Bug\(\n +\"(\w+)\"", file.read_text())]
    assert sorted(written) == sorted(BUGS), "a name that is given twice hides a bug"


def test_every_bug_of_the_cores_has_a_recorded_seed() -> None:
    assert recorded().keys() == MUTANTS.keys(), "`RECORD=1 make mutants` records what is missing"


@pytest.mark.parametrize("name", MUTANTS)
def test_a_bug_of_the_cores_replaces_methods_that_are_there(name: str) -> None:
    assert all(MUTANTS[name].patched().values()), "one of its patches patches nothing"

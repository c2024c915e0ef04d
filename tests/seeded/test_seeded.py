"""The seeded bugs of the shells: each has its place and its tests, and a few are played by day.

The tests that find them pass without them, as this suite plays them anyhow. `make mutants` plays all.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from tests.seeded import BUGS
from tests.seeded.base import Bug, Missing, Note, find, of, put_in
from tests.seeded.holes import Hole
from tests.seeded.play import ROOT, NotFound, Played, Result, find_by, judged

BY_DAY = (
    "reader_goes_by_completion",
    "a_lock_is_held_without_a_bound",
    "rows_in_files_are_believed",
    "what_nobody_has_marked_is_read",
    "damage_is_read_for_ever",
    "kafka_clients_say_it_each_time",
)
"""Those whose tests take moments, of one module each."""


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
        file, _, test_name = test.partition("::")
        assert test_name in named_in(file), f"{test} is not there"


def test_every_hole_is_opened_by_some_bug_and_no_two_bugs_have_a_name() -> None:
    assert {bug.hole for bug in BUGS.values()} == set(Hole)
    modules = (Path(__file__).parent).glob("*.py")
    written = [name for file in modules for name in re.findall(r"    Bug\(\n +\"(\w+)\"", file.read_text())]
    assert sorted(written) == sorted(BUGS), "a name that is given twice hides a bug"


@pytest.mark.parametrize("name", BY_DAY)
def test_a_bug_that_is_put_in_is_found_by_each_test_that_it_names(name: str) -> None:
    assert find_by(BUGS[name]).said


# --- what does not count as found --------------------------------------------------------------------

PLACE = "table.chain:follows"
FILE = "tests/unit/table/test_chain.py"
BUG = Bug("a_bug", "All is wrong.", Hole.CLOCK, {PLACE: lambda _right: lambda *_: True}, of(FILE, "test_a"))
USED = (Note.USED, PLACE)
ASSERTED = ("builtins.AssertionError", "builtins.Exception")
RED = Result(f"{FILE}::test_a[1]", "call", "failed", ASSERTED, "assert 1 == 2")
GREEN = replace(RED, test=f"{FILE}::test_a[2]", outcome="passed", kinds=(), said="")


def played(*results: Result, notes: Iterable[tuple[Note, str]] = (USED,)) -> Played:
    return Played(results, frozenset(notes))


def test_it_is_found_where_what_it_names_fails_by_what_it_asserts_be_it_with_some_parameters_only() -> None:
    assert judged(BUG, played(GREEN, RED)) == "assert 1 == 2"
    other = replace(RED, kinds=("builtins.KeyError", "builtins.LookupError"), said="'x'")
    assert judged(replace(BUG, raises={"builtins.LookupError": "x"}), played(other)) == "'x'"
    with pytest.raises(NotFound, match=r"failed by builtins\.KeyError: 'x'"):
        judged(replace(BUG, raises={"builtins.LookupError": "another"}), played(other))


@pytest.mark.parametrize(
    ("results", "why"),
    [
        ([GREEN], "a_bug lived: .*test_a passed"),
        ([], "test_a is not there"),
        ([replace(RED, when="setup")], "did not come to its own test"),
        ([replace(RED, when="teardown"), GREEN], "in what it tidies up only"),
        ([replace(RED, kinds=("builtins.ImportError",), said="no module")], "failed by builtins.ImportError"),
        ([RED, replace(RED, kinds=("builtins.TypeError",))], "failed by builtins.TypeError"),
        ([replace(RED, kinds=("table.errors.Unavailable", "table.errors.TableError"))], "errors.Unavailable"),
        ([replace(RED, kinds=("builtins.Failed",), said="Timeout (>300.0s) from pytest-timeout.")], "Failed"),
        ([replace(RED, test=f"{FILE}::test_another")], "test_a is not there"),
    ],
    ids=[
        "nobody sees",
        "no such test",
        "setup",
        "teardown",
        "an import",
        "a mistake",
        "an outage",
        "a wait",
        "another",
    ],
)
def test_it_is_not_found_by_anything_else(results: list[Result], why: str) -> None:
    with pytest.raises(NotFound, match=why):
        judged(BUG, played(*results))


def test_it_is_not_found_where_a_piece_was_not_used_or_is_mistaken_itself() -> None:
    with pytest.raises(NotFound, match=r"table.chain:follows was not used"):
        judged(BUG, played(RED, notes=()))
    with pytest.raises(NotFound, match="a mistake of its own: NameError"):
        judged(BUG, played(RED, notes=(USED, (Note.MISTAKEN, "NameError"))))


def test_all_of_the_tests_that_it_names_must_find_it() -> None:
    both = replace(BUG, found_by=of(FILE, "test_a", "test_b"))
    with pytest.raises(NotFound, match="test_b passed"):
        judged(both, played(RED, replace(GREEN, test=f"{FILE}::test_b")))


@pytest.mark.parametrize("place", ["table.chain:nobody", "table.nothing:x", "table.chain:follows.x"])
def test_what_is_not_there_is_not_replaced(place: str) -> None:
    with pytest.raises(Missing, match=place):
        put_in(replace(BUG, wrong={place: lambda _right: None}))

"""The seeded bugs of the shells: a few are put in, and what counts as caught is tested.

`make test` runs the tests that catch them, without the bugs. `make mutants` puts in all of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from tests.seeded import BUGS
from tests.seeded.base import Bug, Missing, Note, of, put_in
from tests.seeded.holes import Hole
from tests.seeded.play import NotFound, Played, Result, find_by, judged

BY_DAY = (
    "reader_goes_by_completion",
    "a_lock_is_held_without_a_bound",
    "rows_in_files_are_believed",
    "what_nobody_has_marked_is_read",
    "damage_is_read_for_ever",
    "kafka_clients_say_it_each_time",
)
"""Those whose tests take moments, of one module each."""


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

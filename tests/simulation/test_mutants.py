"""The checkers are tested: every bug that is put in is found, by the checker that is about it, alone."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable

import pytest

from coordinator.core import Coordinator
from tests.simulation.checkers import CHECKERS
from tests.simulation.checkers.base import Checker
from tests.simulation.mutants import MUTANTS, NAMED, search
from tests.simulation.mutants.base import Mutant
from tests.simulation.mutants.coordinators import AckBeforeCommit
from tests.simulation.mutants.search import Found, NotFound, find, find_again, recorded
from tests.simulation.world import World

pytestmark = pytest.mark.timeout(900)  # a backstop only

INVARIANTS = {*(f"S{number}" for number in range(1, 14)), "L1", "L2", "L3"}


@pytest.fixture(scope="module")
def found() -> list[Found]:
    """What was found so far."""
    return []


@pytest.mark.parametrize("name", MUTANTS)
def test_a_bug_that_is_put_in_is_found_by_the_checker_that_is_about_it(
    name: str, found: list[Found], record_property: Callable[[str, object], None]
) -> None:
    one = find_again(MUTANTS[name])
    World(one.seed).run()  # the cores as they are pass the same schedule, whichever checker looks on
    record_property("found_after_schedules", one.after_schedules)
    record_property("found_by", one.checker)
    found.append(one)


def test_every_seeded_bug_has_a_recorded_seed() -> None:
    assert recorded().keys() == MUTANTS.keys(), "`RECORD=1 make mutants` records what is missing"


@pytest.mark.parametrize("known", [{}, {"AckBeforeCommit": 1}])
def test_a_bug_that_its_recorded_seed_does_not_find_is_not_searched_for(
    known: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "recorded", lambda: known)
    with pytest.raises(NotFound, match="`RECORD=1 make mutants`"):
        find_again(Mutant(Quiet, {"rounds": AckBeforeCommit}))


def test_no_checker_is_dead(found: list[Found], capsys: pytest.CaptureFixture[str]) -> None:
    if len(found) < len(MUTANTS):
        pytest.skip("not every bug was looked for")
    with capsys.disabled():
        sys.stdout.write(f"\n\n  {'bug':<34} schedules  found by\n")
        for one in found:
            sys.stdout.write(f"  {one.mutant:<34} {one.after_schedules:>9}  {one.said[:90]}\n")
    assert {one.checker for one in found} == {checker.name for checker in CHECKERS}


def test_every_checker_is_about_some_bug_and_looks_on_in_every_schedule() -> None:
    assert {mutant.checker for mutant in MUTANTS.values()} == set(CHECKERS)


def test_every_invariant_has_a_checker_in_a_file_of_its_own() -> None:
    names = [checker.name for checker in CHECKERS]
    assert len(set(names)) == len(names) == len({checker.__module__ for checker in CHECKERS})
    assert set(names) >= INVARIANTS


def test_there_are_enough_bugs_and_all_those_that_this_field_is_known_for() -> None:
    assert len(MUTANTS) >= 25
    assert set(NAMED.values()) <= MUTANTS.keys()


@pytest.mark.parametrize("name", MUTANTS)
def test_a_seeded_bug_says_what_it_is_and_stands_in_for_methods_of_production(name: str) -> None:
    mutant = MUTANTS[name]
    assert re.match(r"[A-Z`].*[.]", mutant.bug), "no sentence"
    assert all(mutant.patched().values()), "one of its patches patches nothing"


# --- what does not count as found ---------------------------------------------------------------


class Quiet(Checker):
    name = "quiet"


class Fires(Checker):
    name = "fires"

    def at_end(self) -> None:
        self.require(False, "whatever happened")


class Mistaken(AckBeforeCommit):
    """A patch with a mistake of its own."""

    def maybe_begin(self, event: object) -> None:
        raise AttributeError("a mistake of its own")


class Uncalled(Coordinator):
    """A patch that no schedule gets to."""

    def __repr__(self) -> str:
        return "nobody asks"


def test_a_bug_that_nobody_sees_has_lived() -> None:
    with pytest.raises(NotFound, match="lived through 5 schedules"):
        find(Mutant(Quiet, {"rounds": AckBeforeCommit}), 5)


def test_a_patch_that_fails_by_itself_is_not_found() -> None:
    with pytest.raises(NotFound, match="a mistake of its own"):
        find(Mutant(Fires, {"rounds": Mistaken}), 5)


def test_a_patch_that_was_not_called_is_not_found() -> None:
    with pytest.raises(NotFound, match="nothing that is patched was called"):
        find(Mutant(Fires, {"coordinator": Uncalled}), 5)


def test_production_itself_is_no_mutant() -> None:
    with pytest.raises(NotFound, match="nothing that is patched was called"):
        find(Mutant(Fires, {"coordinator": Coordinator}), 5)

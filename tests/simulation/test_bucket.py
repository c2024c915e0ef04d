"""A table on an object store that loses answers and carries out late: what is promised is kept, and bugs that
are put in are found.
"""

from __future__ import annotations

import json
import re
from functools import cache
from itertools import product
from pathlib import Path

import pytest

from tests.simulation.bucket.__main__ import schedule_of
from tests.simulation.bucket.errors import Violation
from tests.simulation.bucket.explore import (
    SHAPES,
    Schedule,
    all_points,
    kind_of,
    quiet,
    report,
    shrink,
)
from tests.simulation.bucket.mutants import HARMLESS, MUTANTS, Mutant, NotFound, find
from tests.simulation.bucket.rules import RULES
from tests.simulation.bucket.server import CHANGES, Act
from tests.simulation.bucket.strikes import DRIVERS_STEPS, KINDS, WORKERS_STEPS, Kind, Strike
from tests.simulation.bucket.world import World

SCHEDULES = 250
POINTS = 200
PAIRS = 200
HARMLESS_SCHEDULES = 60
REACHING = 60
RECORDING = "python -m tests.simulation.bucket --schedules 20000 --first-seed 1000000 --pairs 6000"
EVIDENCE = Path(__file__).resolve().parents[2] / "docs" / "evidence" / "bucket.json"


def must_pass(schedule: Schedule, name: str) -> None:
    failure = schedule.fails()
    if failure:
        pytest.fail(
            f"{name} fails:\n{report(shrink(schedule))}\nReplay it: python -m tests.simulation.bucket {name}"
        )


def test_random_schedules_keep_what_is_promised() -> None:
    for seed in range(SCHEDULES):
        must_pass(Schedule.of(seed), f"--seed {seed}")


def test_no_single_fault_breaks_it() -> None:
    """Some of all, spread evenly; `python -m tests.simulation.bucket` walks every one."""
    for number in range(0, len(all_points()), len(all_points()) // POINTS):
        must_pass(all_points()[number], f"--point {number}")


def test_no_pair_of_faults_breaks_it() -> None:
    for number in range(PAIRS):
        must_pass(schedule_of("pair", number), f"--pair {number}")


def believed(schedule: Schedule) -> str:
    """What is violated where completions count whatever was said of them, as before there were verdicts."""
    return kind_of(schedule.fails(MUTANTS["CompletionBelieved"].rules))


def test_nothing_follows_from_a_completion_that_lands_while_its_own_driver_rolls_it_back_or_soon_after() -> (
    None
):
    lost = 0
    for ms in range(200, 3_000, 200):
        schedule = Schedule(SHAPES[0], (Strike("d1", "put completed", 1, Kind.LATE, ms),))
        assert schedule.fails() == "", report(schedule)
        lost += believed(schedule) == "every record once"
    assert lost > 5


def test_nothing_follows_from_a_completion_whose_rollback_is_half_done_with_nobody_at_it() -> None:
    half = Strike("d2", "delete inflight", 1, Kind.DIES)
    lost = 0
    for ms, at in product((75_000, 90_000, 130_000), (1, 2, 3)):
        slept = Strike("d1", "put completed", at, Kind.SLEEPS, ms, 1_000)
        schedule = Schedule(SHAPES[0], (slept, half))
        assert schedule.fails() == "", report(schedule)
        lost += believed(schedule) == "every record once"
    assert lost


# --- the world itself ---------------------------------------------------------------------------


def test_the_same_schedule_goes_the_same_way() -> None:
    for seed in range(20):
        assert Schedule.of(seed).lines() == Schedule.of(seed).lines()


SELDOM = frozenset({"delete plan", "delete rollback", "delete completed"})
"""Where a completion has landed at one certain moment only."""
NOTES = {"list .hoodie/.lockstep/begun", "list .hoodie/.lockstep/taken_away"}
UNNAMED = frozenset({*NOTES, "read rollback", "read rolled back"})
"""At which nothing strikes."""


def test_every_kind_of_fault_strikes_and_every_step_is_reached() -> None:
    kinds: set[Kind] = set()
    steps: set[str] = set()
    with quiet():
        for seed in range(REACHING):
            schedule = Schedule.of(seed)
            world = World(schedule.shape, schedule.strikes)
            world.counts_all = True
            world.run()
            kinds |= {one.kind for one in world.struck}
            steps |= {step for process in world.processes.values() for step in process.steps_made}
    named = {*DRIVERS_STEPS, *WORKERS_STEPS}
    assert kinds == set(KINDS)
    assert named - SELDOM <= steps <= named | UNNAMED


def test_a_failing_schedule_is_made_small_and_told_for_a_person() -> None:
    mutant = MUTANTS["CompletionBelieved"]
    after, schedule = find(mutant)
    small = shrink(schedule, mutant.rules)
    assert kind_of(small.fails(mutant.rules)) == kind_of(schedule.fails(mutant.rules))
    assert len(small.strikes) <= len(schedule.strikes)
    told = report(small, mutant.rules)
    assert "put completed" in told and "acknowledges" in told and len(told.splitlines()) < 110
    assert after <= 400


def test_what_changes_nothing_is_no_change() -> None:
    assert set(Act) - CHANGES == {Act.READ, Act.LOOK, Act.NAMES, Act.WALK, Act.UPLOADS}


# --- seeded bugs --------------------------------------------------------------------------------


@cache
def recorded() -> dict[str, int]:
    """After how many schedules the last full search found each; empty where none was."""
    try:
        kept = json.loads(EVIDENCE.read_text(encoding="utf-8"))["figures"]["mutants"]
    except OSError:
        return {}
    return {one["name"]: one["found_after_schedules"] for one in kept}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_bug_that_is_put_in_is_found(name: str) -> None:
    """At the schedule where the last record found it: a search for the rarest takes a thousand."""
    mutant, after = MUTANTS[name], recorded().get(name)
    again = f"{name} is not found where it was. Record it again: RECORD=1 {RECORDING}"
    assert after is not None, again
    schedule = Schedule.of(after - 1, mutant.focus)
    assert kind_of(schedule.fails(mutant.rules)) in mutant.violates, again
    assert not schedule.fails(), "it fails without the bug, too"


@pytest.mark.parametrize("name", MUTANTS)
def test_a_seeded_bug_says_what_it_is(name: str) -> None:
    assert re.match(r"[A-Z].*[.]", MUTANTS[name].bug)


@pytest.mark.parametrize("bug", HARMLESS, ids=lambda bug: str(bug.__name__))
def test_a_bug_that_another_rule_makes_up_for_violates_nothing(bug: object) -> None:
    mutant = Mutant({HARMLESS[bug]: bug}, ())
    for seed in range(HARMLESS_SCHEDULES):
        assert Schedule.of(seed).fails(mutant.rules) == ""


def test_a_bug_that_does_nothing_is_not_found() -> None:
    with pytest.raises(NotFound, match="lived through 3 schedules"):
        find(Mutant({"fence": RULES.fence}, ("every record once",)), 3)


def test_a_violation_is_a_failed_assertion() -> None:
    assert issubclass(Violation, AssertionError)

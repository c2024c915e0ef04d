"""Seeded worlds: no invariant breaks in any schedule, and every bug that is put in is found."""

from __future__ import annotations

import os
import sys

import pytest

from tests.simulation.mutants import MUTANTS
from tests.simulation.world import ScheduleFailed, World, replay

SEEDS = int(os.environ.get("LOCKSTEP_SIMULATION_SEEDS", "2000"))
CHUNK = 100
LINES_SHOWN = 200
MUTANT_SCHEDULES_MAX = 1_500


@pytest.mark.parametrize("first", range(0, SEEDS, CHUNK))
def test_no_invariant_breaks_in_any_schedule(first: int) -> None:
    for seed in range(first, min(first + CHUNK, SEEDS)):
        try:
            World(seed).run()
        except ScheduleFailed as error:
            lines, _again = replay(seed)
            shown = "\n".join(lines[:1] + lines[-LINES_SHOWN:])
            pytest.fail(
                f"{error}\n\n{shown}\n\nThe whole transcript: python -m tests.simulation --seed {seed}",
                pytrace=False,
            )


@pytest.mark.parametrize("seed", [3, 17, 105, 1998, 2677])
def test_the_same_seed_gives_the_same_transcript(seed: int) -> None:
    first, _error = replay(seed)
    second, _error = replay(seed)
    assert len(first) > 30
    assert first == second


@pytest.mark.parametrize("name", MUTANTS)
def test_a_bug_that_is_put_in_is_found(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    for seed in range(MUTANT_SCHEDULES_MAX):
        try:
            World(seed, cores=MUTANTS[name]).run()
        except ScheduleFailed as found:
            World(seed).run()  # the cores as they are pass the same schedule
            with capsys.disabled():
                sys.stdout.write(f"\n  {name}: found by schedule {seed + 1}: {found}")
            return
    pytest.fail(f"{name} lived through {MUTANT_SCHEDULES_MAX} schedules")

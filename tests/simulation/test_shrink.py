"""A failing seed is made small enough to read, deterministically, and its command replays it."""

from __future__ import annotations

import argparse
import re
from functools import cache

import pytest

from tests.simulation.cores import Cores
from tests.simulation.mutants.coordinators import AckBeforeCommit, LeaveIgnored, UnknownTakenAsCommitted
from tests.simulation.mutants.participants import ParticipantObeysReplays
from tests.simulation.overrides import NO_OVERRIDES, Overrides, add_options, from_options
from tests.simulation.shrink import Shrunk, kind_of, shrink
from tests.simulation.transcript import Transcript
from tests.simulation.world import ScheduleFailed, World

LINES_MAX = 80
SEEDS_MAX = 500

BUGS = {
    "ack before commit": Cores(rounds=AckBeforeCommit),
    "unknown taken as committed": Cores(rounds=UnknownTakenAsCommitted),
    "leave ignored": Cores(rounds=LeaveIgnored),
    "replay obeyed": Cores(hearing_of_participant=ParticipantObeysReplays),
}


def failure(seed: int, cores: Cores | None, overrides: Overrides = NO_OVERRIDES) -> str:
    """What the seed fails with, empty where it does not."""
    try:
        World(seed, cores=cores, overrides=overrides).run()
    except ScheduleFailed as failed:
        return str(failed)
    return ""


@cache
def failing(bug: str) -> tuple[int, str]:
    """The first seed that fails with this bug, and what with."""
    found = ((seed, failure(seed, BUGS[bug])) for seed in range(SEEDS_MAX))
    return next((seed, error) for seed, error in found if error)


@cache
def shrunk(bug: str) -> Shrunk:
    seed, _error = failing(bug)
    small = shrink(seed, cores=BUGS[bug])
    assert small is not None
    return small


@pytest.mark.parametrize("bug", BUGS)
def test_a_failing_seed_becomes_a_transcript_that_a_person_can_read(bug: str) -> None:
    _seed, error = failing(bug)
    small = shrunk(bug)
    assert kind_of(small.failure.error) == kind_of(error)
    assert small.failure.error in small.report()
    assert len(small.report().splitlines()) < LINES_MAX
    assert len(small.failure.faults) <= 3
    times = [float(line[:9]) for line in small.lines if line[:9].strip()]
    assert times == sorted(times)
    assert times[-1] == small.failure.at_ms / 1000


@pytest.mark.parametrize("bug", BUGS)
def test_the_command_of_a_small_schedule_replays_it(bug: str) -> None:
    small = shrunk(bug)
    command = small.command.split()
    assert command[:5] == ["python", "-m", "tests.simulation", "--seed", str(small.seed)]
    parser = argparse.ArgumentParser()
    add_options(parser)
    overrides = from_options(parser.parse_args(command[5:]))
    assert overrides == small.failure.overrides
    assert failure(small.seed, BUGS[bug], overrides) == small.failure.error


def test_the_same_seed_is_made_small_in_the_same_way() -> None:
    small = shrunk("replay obeyed")
    assert shrink(small.seed, cores=BUGS["replay obeyed"]) == small


def test_a_seed_that_passes_is_not_made_small() -> None:
    assert shrink(0) is None


def test_making_small_ends_when_its_budget_is_spent() -> None:
    seed, _error = failing("replay obeyed")
    small = shrink(seed, cores=BUGS["replay obeyed"], events_max=1)
    assert small is not None
    assert small.schedules == 1
    assert small.failure.overrides == NO_OVERRIDES


def test_a_fault_that_is_not_allowed_does_not_strike_and_the_others_stay() -> None:
    worlds = (ran(seed) for seed in range(SEEDS_MAX))
    world = next(world for world in worlds if {"message_lost:2", "reply_lost:1"} <= {*world.chance.occurred})
    allowed = ran(world.seed, Overrides(only=frozenset({"message_lost:2", "reply_lost"})))
    occurred = allowed.chance.occurred
    assert [fault for fault in occurred if fault.startswith("message_lost:")] == ["message_lost:2"]
    assert {fault.partition(":")[0] for fault in occurred} == {"message_lost", "reply_lost"}


def ran(seed: int, overrides: Overrides = NO_OVERRIDES) -> World:
    world = World(seed, overrides=overrides)
    world.run()
    return world


def test_a_kind_of_fault_that_does_not_exist_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    add_options(parser)
    with pytest.raises(SystemExit):
        parser.parse_args(["--only-faults", "message_lost:3,gremlins"])
    assert "no such kind of fault: gremlins" in capsys.readouterr().err


def test_a_transcript_says_nothing_twice_and_keeps_its_end() -> None:
    transcript = Transcript(record=True)
    for number in range(500):
        transcript.note(number, "table", "completed", f"number {number}")
        transcript.note(number, "group", "offset", "noise")
    told = transcript.telling(50)
    assert len(told) == 50
    assert told[-1].endswith("number 499")
    assert not any("noise" in line for line in told)
    assert [line for line in told if re.search(r"451 lines are left out", line)]

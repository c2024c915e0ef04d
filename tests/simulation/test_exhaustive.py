"""The small world: every fault at every point, and nothing else than every fault at every point."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from coordinator.core import Coordinator
from coordinator.rounds import Rounds
from participant.core import Participant
from tests.simulation.cores import Cores
from tests.simulation.crew import Crew
from tests.simulation.exhaustive import (
    FAULT_PHASE_MS,
    INTERRUPTIONS,
    LINGERING,
    OPPORTUNITIES,
    TRANSACTIONS,
    Point,
    all_points,
    explain,
    small_world,
    undisturbed,
    walk,
)
from tests.simulation.hazards import SIDES
from tests.simulation.mutants.coordinators import AckBeforeCommit, LeaveIgnored, UnknownTakenAsCommitted
from tests.simulation.mutants.participants import OldClaimObeyed

CHUNK = 100
SHOWN_MAX = 3

pytestmark = pytest.mark.timeout(900)  # a backstop only: every task of the crew has a bound of its own


def actions_of_the_undisturbed_schedule() -> Counter[tuple[str, str]]:
    """(core, action) -> how often it is performed while faults may strike."""
    performed: Counter[tuple[str, str]] = Counter()

    def count(core: str, actions: list[Any]) -> list[Any]:
        if world.scheduler.now_ms < FAULT_PHASE_MS:
            performed.update((core, type(action).__name__) for action in actions)
        return actions

    class CountedCoordinator(Coordinator):
        def handle(self, event: Any) -> list[Any]:
            return count("coordinator", super().handle(event))

    class CountedParticipant(Participant):
        def handle(self, event: Any) -> list[Any]:
            return count("participant", super().handle(event))

    world = small_world(None, cores=Cores(coordinator=CountedCoordinator, participant=CountedParticipant))
    world.run()
    return performed


def test_the_undisturbed_schedule_has_two_transactions_and_every_kind_of_opportunity() -> None:
    calm = undisturbed()
    assert calm.transactions == TRANSACTIONS == 2
    assert all(calm.opportunities.values()), calm.opportunities
    assert calm.events > 100


def test_there_is_one_point_before_and_one_after_every_action_of_both_cores() -> None:
    actions = actions_of_the_undisturbed_schedule()
    assert {core for core, _action in actions} == {"coordinator", "participant"}
    both_sides = len(SIDES) * sum(actions.values())
    assert undisturbed().opportunities["crash_at_action"] == both_sides
    assert undisturbed().opportunities["pause_at_action"] == both_sides


def test_the_points_are_as_many_as_the_undisturbed_schedule_has() -> None:
    calm, points = undisturbed(), all_points()
    counts = Counter(point.kind for point in points)
    assert counts.keys() == {*OPPORTUNITIES, *INTERRUPTIONS, LINGERING}
    assert all(counts[kind] == count for kind, count in calm.opportunities.items())
    assert all(counts[kind] == calm.events for kind in INTERRUPTIONS)
    assert len(set(points)) == len(points)


def test_every_invariant_holds_with_every_fault_at_every_point() -> None:
    points = all_points()
    walked, failed, spots = 0, [], set()
    with Crew() as crew:
        slices = (range(first, min(first + CHUNK, len(points))) for first in range(0, len(points), CHUNK))
        for task, found in crew.run({"do": "points", "numbers": list(numbers)} for numbers in slices):
            walked += len(task["numbers"])
            failed += found["failed"]
            spots |= {tuple(spot) for spot in found["spots"]}
    shown = "\n\n".join(explain(number, sentence) for number, sentence in failed[:SHOWN_MAX])
    assert not failed, f"{len(failed)} of {len(points)} points fail\n\n{shown}"
    assert walked == len(points)
    performed = actions_of_the_undisturbed_schedule()
    assert spots >= {(*action, side) for action in performed for side in SIDES}


def test_a_fault_that_does_not_strike_is_an_error() -> None:
    beyond = undisturbed().opportunities["message_lost"] + 1_000
    assert walk(Point("message_lost", beyond)).error == "the fault struck 0 times"


@pytest.mark.parametrize("bug", [AckBeforeCommit, UnknownTakenAsCommitted, LeaveIgnored])
def test_the_walk_finds_a_bug_that_is_put_into_the_coordinator(bug: type[Rounds]) -> None:
    assert found_with(Cores(rounds=bug))


def test_the_walk_finds_a_bug_that_is_put_into_the_participant() -> None:
    assert found_with(Cores(hearing_of_participant=OldClaimObeyed))


def found_with(cores: Cores) -> bool:
    """Whether some point of the small world fails with these cores: in any order, so that it is met soon."""
    points = all_points()
    return any(walk(point, cores=cores).error for point in Random(1).sample(points, len(points)))

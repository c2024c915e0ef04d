"""Worlds whose workers hand rows over to each other: all that always holds, holds there."""

from __future__ import annotations

import pytest

from participant import events as ev
from participant.transitions import State
from tests.simulation.checkers.s4_whole import CommitsAreWhole
from tests.simulation.exchange import SEEDS
from tests.simulation.mutants.base import Mutant
from tests.simulation.mutants.exchanges import CountsNotCompared, ExchangeNotCounted
from tests.simulation.mutants.search import NotFound, find
from tests.simulation.test_simulation import CHUNK, must_pass
from tests.simulation.walked import EXCHANGE_SCHEDULES
from tests.simulation.worker import Worker
from tests.simulation.world import World

pytestmark = pytest.mark.timeout(900)  # a backstop only

WALKED = 60
WHYS = {"cannot be reached", "broke off", "is gone"}
SCHEDULES_MAX = 500
"""A seeded bug is found within so many."""
LOST = Mutant(CommitsAreWhole, {"rounds": CountsNotCompared, "transactions": ExchangeNotCounted})


def test_no_invariant_breaks_in_any_schedule_in_which_rows_are_handed_over() -> None:
    tasks = [
        {"do": "schedules", "first": SEEDS[0] + first, "count": CHUNK}
        for first in range(0, EXCHANGE_SCHEDULES, CHUNK)
    ]
    assert must_pass(tasks) == EXCHANGE_SCHEDULES


def test_schedules_commit_rows_that_were_handed_over_and_give_up_those_that_did_not_arrive() -> None:
    exchanged, lost, alone = 0, 0, 0
    for seed in SEEDS[:40]:
        world = World(seed, record=True)
        world.run()
        said = "\n".join(world.transcript.lines())
        exchanged += "handed={" in said
        alone += "takers={" not in said
        lost += "rows over to" in said
    assert exchanged > 20 and lost and alone < 20


def test_workers_hear_while_they_write_that_rows_do_not_come_or_are_not_taken_any_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As from the real plane: at once, and not when END comes."""
    met: set[str] = set()
    feed = Worker._feed

    def noting(self: Worker, event: ev.Event) -> bool:
        work = self.core.rounds.work
        open_one = work.id if work is not None and self.core.state is State.WRITING else None
        if isinstance(event, ev.TakenAway) and event.transaction == open_one:
            met.update(why for why in WHYS if why in event.reason)
        return feed(self, event)

    monkeypatch.setattr(Worker, "_feed", noting)
    for seed in SEEDS[:WALKED]:
        World(seed).run()
    assert met == WHYS


def test_rows_that_did_not_arrive_are_found_by_the_rows_of_the_commit() -> None:
    found = find(LOST, SEEDS[0] + SCHEDULES_MAX, first=SEEDS[0])
    assert found.checker == CommitsAreWhole.name


@pytest.mark.parametrize("part", ["rounds", "transactions"])
def test_coordinator_and_table_count_each_by_themselves(part: str) -> None:
    """Either is enough: a bug in one of them loses no row."""
    alone = Mutant(CommitsAreWhole, {part: LOST.patches[part]})
    with pytest.raises(NotFound, match="lived through"):
        find(alone, SEEDS[0] + 60, first=SEEDS[0])


def test_in_all_other_schedules_nobody_hands_rows_over() -> None:
    assert World(1).network is None and World(SEEDS[-1] + 1).network is None

"""The faults reach what they must: every action of both cores, on both sides, and every kind of trouble."""

from __future__ import annotations

from dataclasses import fields

import pytest

from tests.simulation.faults import Faults
from tests.simulation.hazards import SPOTS, Spot
from tests.simulation.world import World

SCHEDULES_MAX = 100
"""For each spot. A seed aims at the spot that its remainder names; most are hit much sooner, one of the
rarest (a coordinator that stands still as it stops) in a tenth of them."""

WORLDS = 150


@pytest.mark.parametrize("spot", SPOTS, ids="-".join)
def test_a_process_dies_and_stands_still_at_every_action_of_both_cores(spot: Spot) -> None:
    crashed = paused = False
    for round_ in range(SCHEDULES_MAX):
        world = World(round_ * len(SPOTS) + SPOTS.index(spot))
        world.run()
        crashed, paused = crashed or spot in world.crashed, paused or spot in world.paused
        if crashed and paused:
            return
    pytest.fail(f"{spot}: crashed {crashed}, paused {paused} in {SCHEDULES_MAX} schedules")


def test_every_kind_of_fault_is_drawn_by_some_of_the_first_seeds() -> None:
    worlds = map(World, range(WORLDS))
    drawn = {f.name for world in worlds for f in fields(Faults) if getattr(world.faults, f.name)}
    assert drawn == {f.name for f in fields(Faults)}


def test_what_ends_a_pipelines_progress_happens_and_so_does_what_does_not() -> None:
    seen: set[str] = set()
    for seed in range(WORLDS):
        world = World(seed)
        world.run()
        states = list(world.storage.timeline.states("p"))
        happened = {
            "the source was replaced": world.log.replaced,
            "a run was refused": bool(world.ending.refusals()),
            "the pipeline started anew from the table": world.restarted,
            "offsets were lost to retention": any(state.lost for state in states),
            "records were rejected": any(state.rejects for state in states),
            "a commit had more rejects than it may name": any(
                state.reject_count > len(state.rejects) for state in states
            ),
            "a run halted over too large a share of rejects": any(
                "more than record.max_rejects" in d.outcome.reason and "%)" in d.outcome.reason
                for d in world.drivers
                if d.outcome is not None
            ),
            "a run halted over too many rejects": any(
                "record.max_rejects" in d.outcome.reason for d in world.drivers if d.outcome is not None
            ),
            "the dead-letter topic refused a record for good": any(
                "is refused by the dead-letter topic" in d.outcome.reason
                for d in world.drivers
                if d.outcome is not None
            ),
            "several topics were read": len(world.log.lives) > 1,
            "a halt named a poison record": any(world.log.bad.values()) and world.on_error == "fail",
            "a run started at the end of the log": world.starting_offsets == "latest",
            "messages travelled in parts": world.bus.parts > 0,
            "a source partition was idle, and left the watermark to the others": any(
                mark.idle for state in states if state.watermark for mark in state.watermark.marks.values()
            ),
            "a record was late": any(state.watermark.late for state in states if state.watermark),
        }
        seen |= {name for name, it_did in happened.items() if it_did}
        if len(seen) == len(happened):
            return
    assert seen == set(happened)

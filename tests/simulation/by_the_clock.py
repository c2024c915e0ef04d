"""Worlds whose transactions end by the wall clock as well: which do, and at which times."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from control_topic.controls import Setting, Tuning
from coordinator.schedule import alignment_of, schedule_of
from coordinator.times import ByTheClock, Every

if TYPE_CHECKING:
    from tests.simulation.world import World

ALIGN_MARGIN_MS = 200
SKEW_MS_MAX = ALIGN_MARGIN_MS - 20
"""Between a driver's wall clock and those of workers, where something is aligned."""
SHARE = 0.12
"""Of all. The draws are of their own: every other schedule is what it was before there were any."""


def draw_times(world: World) -> None:
    """The interval ends transactions seldom there."""
    own = Random(f"times {world.seed}")
    world.schedule, world.align, world.drivers_ahead_ms = None, None, 0
    if own.random() >= SHARE:
        return
    world.interval_ms = own.choice((2_500, 8_000))
    which = own.choice(("schedule", "align", "both"))
    if which != "align":
        world.schedule = Every(own.choice((2_000, 3_000, 5_000)))
    if which != "schedule":
        world.align = Every(own.choice((4_000, 6_000)), splits=True)
        world.drivers_ahead_ms = own.randint(-SKEW_MS_MAX, SKEW_MS_MAX)


def drawn_order(world: World, own: Random) -> dict[str, Setting]:
    """What an operator sets of it, now and then; nothing in worlds in which nothing is by the clock."""
    if world.schedule is None and world.align is None:
        return {}
    drawn: dict[str, Setting] = {}
    if own.random() < 0.5:
        drawn["schedule"] = own.choice(("", "every 2s", "every 3s", "every 5s"))
    if world.align is not None and own.random() < 0.4:  # else clocks differ by more than it allows
        drawn["align_ms"] = own.choice((0, 4_000, 6_000))
    return drawn


def tuned_times(configured: ByTheClock, tuning: Tuning) -> ByTheClock:
    """As a worker makes it of what operators have set."""
    return ByTheClock(
        schedule=configured.schedule if tuning.schedule is None else schedule_of(tuning.schedule),
        align=configured.align if tuning.align_ms is None else alignment_of(tuning.align_ms),
    )


def clocks_hold(world: World) -> bool:
    """Whether no wall clock jumps in this schedule, and those of drivers and workers differ by little."""
    faults = world.faults
    jumps = faults.wall_clock_jump_gap_ms, faults.driver_clock_jump_gap_ms, faults.driver_clock_wrong
    return not any(jumps)

"""Schedules by the thousand: drawn from seeds, or each fault at each step; and a failing one made small."""

from __future__ import annotations

import gc
import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any

from tests.simulation.bucket.errors import Violation
from tests.simulation.bucket.rules import RULES, Rules
from tests.simulation.bucket.strikes import (
    DRIVERS_STEPS,
    KINDS,
    LATE_MAX_MS,
    LEADS_MS,
    PAUSES,
    PLAIN,
    SLEEPS,
    Kind,
    Shape,
    Strike,
    shape_of,
    strikes_of,
)
from tests.simulation.bucket.world import World

LATES_MS = (400, 8_000, LATE_MAX_MS)
"""Lands in the midst of what comes next, after it, as late as it may."""
SYSTEMATIC_PAUSES_MS = (75_000, 130_000)
"""Longer than a lease and its margin, and than Hudi believes in a heartbeat."""
IN_THE_MIDST = (
    *("put inflight", "put decision", "put metadata", "look at inflight", "look at completed"),
    "put completed",
)
TROUBLES = (
    (Kind.LATE, LATES_MS[0], 0),
    (Kind.LATE, LATES_MS[1], 0),
    (Kind.DIES_SENT, LATES_MS[1], 0),
    (Kind.SLEEPS, SYSTEMATIC_PAUSES_MS[0], LEADS_MS[-1]),
    (Kind.SLEEPS_SENT, SYSTEMATIC_PAUSES_MS[1], LEADS_MS[-1]),
)
LINES_MAX = 90

SHAPES = (
    replace(PLAIN, records=4, patient=False),
    replace(PLAIN, records=4, patient=False, machines=(0, 1, 0, 1)),
    replace(PLAIN, records=4, patient=False, machines=(0, 1, 0, 1), successor_ms=20_000, in_parts=True),
)
"""Those of the small worlds that are walked completely."""


@dataclass(frozen=True, slots=True)
class Schedule:
    shape: Shape
    strikes: tuple[Strike, ...]

    @classmethod
    def of(cls, seed: int, focus: Sequence[str] = ()) -> Schedule:
        """`focus`: see `strikes_of`."""
        return cls(shape_of(seed), strikes_of(seed, focus))

    def fails(self, rules: Rules = RULES) -> str:
        """What it fails with, empty where it does not. A mistake of production's own code counts."""
        with quiet():
            world = World(self.shape, self.strikes, rules=rules)
            try:
                world.run()
            except Violation as violation:
                return str(violation)
        return ""

    def lines(self, rules: Rules = RULES) -> list[str]:
        with quiet():
            world = World(self.shape, self.strikes, rules=rules, record=True)
            try:
                world.run()
            except Violation as violation:
                world.note("world", f"fails: {violation}")
        return world.lines


@contextmanager
def quiet() -> Iterator[None]:
    """Without the log of what is tried again. Worlds are cyclic, and small."""
    before, collects = logging.root.manager.disable, gc.isenabled()
    logging.disable(logging.CRITICAL)
    gc.disable()
    try:
        yield
    finally:
        logging.disable(before)
        if collects:
            gc.enable()


def kind_of(failure: str) -> str:
    return failure.partition(":")[0]


# --- each fault at each step --------------------------------------------------------------------------


def points(shape: Shape) -> Iterator[Strike]:
    """Every fault at every step that the undisturbed schedule takes, with each of a few durations."""
    with quiet():
        world = World(shape)
        world.counts_all = True
        world.run()
    for name, process in world.processes.items():
        if name == "d1" or name[0] == "w":
            for step, times in process.steps_made.items():
                for at, kind in product(range(1, times + 1), KINDS):
                    yield from variants(name, step, at, kind)


def variants(who: str, step: str, at: int, kind: Kind) -> Iterator[Strike]:
    if kind in (Kind.LATE, Kind.DIES_SENT):
        yield from (Strike(who, step, at, kind, ms) for ms in LATES_MS)
    elif kind in SLEEPS:
        for ms, lead_ms in product(SYSTEMATIC_PAUSES_MS, LEADS_MS):
            yield Strike(who, step, at, kind, ms, lead_ms)
    elif kind in PAUSES:
        yield from (Strike(who, step, at, kind, ms) for ms in SYSTEMATIC_PAUSES_MS)
    else:
        yield Strike(who, step, at, kind)


def pairs(shape: Shape) -> Iterator[tuple[Strike, Strike]]:
    """Each trouble in the midst of a commit, and then each fault at each of the first steps of whoever goes
    on: the same driver, or the next one.
    """
    for step, (kind, ms, lead_ms) in product(IN_THE_MIDST, TROUBLES):
        first = Strike("d1", step, 1, kind, ms, lead_ms)
        for who, other, second in product(("d1", "d2"), DRIVERS_STEPS, KINDS):
            if (who, other) != (first.who, step):
                yield first, _usual(who, other, second)


def _usual(who: str, step: str, kind: Kind) -> Strike:
    ms = LATES_MS[1] if kind in (Kind.LATE, Kind.DIES_SENT) else 0
    return Strike(who, step, 1, kind, ms or (SYSTEMATIC_PAUSES_MS[1] if kind in PAUSES else 0))


@cache
def all_points() -> tuple[Schedule, ...]:
    return tuple(Schedule(shape, (one,)) for shape in SHAPES for one in points(shape))


@cache
def all_pairs() -> tuple[Schedule, ...]:
    return tuple(Schedule(shape, both) for shape in SHAPES for both in pairs(shape))


# --- made small ---------------------------------------------------------------------------------------


def shrink(schedule: Schedule, rules: Rules = RULES) -> Schedule:
    """Fewer strikes, a plainer world, shorter times: as long as the same is violated."""
    wanted = kind_of(schedule.fails(rules))
    smaller = True
    while smaller:
        smaller = False
        for one in _smaller(schedule):
            if kind_of(one.fails(rules)) == wanted:
                schedule, smaller = one, True
                break
    return schedule


def _smaller(schedule: Schedule) -> Iterator[Schedule]:
    shape, strikes = schedule.shape, schedule.strikes
    for gone in strikes:
        yield Schedule(shape, tuple(one for one in strikes if one is not gone))
    plain: Sequence[tuple[str, Any]] = (
        ("rival_at_ms", 0),
        ("slow_worker_ms", 0),
        ("in_parts", False),
        ("skews_ms", PLAIN.skews_ms),
        ("machines", PLAIN.machines),
        ("successor_ms", PLAIN.successor_ms),
        ("records", shape.records - 1),
    )
    for name, value in plain:
        if getattr(shape, name) != value and (value or name != "records"):
            yield Schedule(replace(shape, **{name: value}), strikes)
    for number, one in enumerate(strikes):
        for easier in (replace(one, lead_ms=0), replace(one, ms=one.ms // 1_000 * 1_000)):
            if easier != one and (easier.ms or not one.ms):
                yield Schedule(shape, (*strikes[:number], easier, *strikes[number + 1 :]))


_FILE = re.compile(r"10c857e9-0000-0000-0000-0*([1-9a-f][0-9a-f]*)-0_0-0-0_(\d+)\.parquet")
_INSTANT = re.compile(r"202(?:60101|51231)(\d{6})(\d{3})")
_DULL = re.compile(r" (?:list|read|walk|look at) (?!.*\*\*\*)")


def report(schedule: Schedule, rules: Rules = RULES, *, full: bool = False) -> str:
    """The schedule as a person reads it: names made short, looks left out."""
    failure = schedule.fails(rules)
    lines = schedule.lines(rules)
    if not full:
        lines = [line for line in lines if "***" in line or not _DULL.search(line)]
        lines = lines if len(lines) <= LINES_MAX else ["…", *lines[-LINES_MAX:]]
    told = "\n".join(lines).replace(".hoodie/", "")
    told = _INSTANT.sub(r"\1.\2", _FILE.sub(r"file \1 of \2", told))
    return "\n".join(
        [str(schedule.shape), *map(str, schedule.strikes), "", told, "", failure or "all is well"]
    )

"""A small world, walked completely: 2 workers, 2 source partitions, 2 transactions, 1 fault at every point.

Nothing is random: one fixed schedule, and then, one schedule each, every fault at every point where it can
strike. The points are counted in the undisturbed schedule, so that none is forgotten.
`python -m tests.simulation.exhaustive --point N` replays one.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from random import Random

from tests.simulation.chance import Chance, Likelihood
from tests.simulation.cores import Cores
from tests.simulation.faults import Faults
from tests.simulation.hazards import Spot
from tests.simulation.overrides import Overrides
from tests.simulation.shrink import LINES_MAX
from tests.simulation.world import ScheduleFailed, World

FAULT_PHASE_MS = 3_000
PRODUCE_AT_MS = (300, 1_900)
RECORDS = 20
TRANSACTIONS = len(PRODUCE_AT_MS)
SESSION_PAUSE_MS = 5_000
DRIVER_PAUSE_MS = 7_000
STORAGE_AWAY_MS = 2_000

OPPORTUNITIES = (
    *("crash_at_action", "pause_at_action"),
    *("message_lost", "message_repeated", "message_delayed", "reader_slow", "topic_lost_at_claim"),
    *("request_lost", "reply_lost", "call_late"),
    *("pause_in_call", "connection_breaks_in_call", "driver_dies_in_call"),
)
"""Kinds of faults that the world itself asks about, wherever one can strike."""

LINGERING = "driver_dies_in_call, its workers live on"


def _worker(slot: int, do: Callable[[World, int], None]) -> Callable[[World], None]:
    return lambda world: do(world, slot)


def _kill(world: World, slot: int) -> None:
    for worker in [w for w in world.workers if w.slot == slot and w.alive]:
        worker.kill("SIGKILL")


def _pause(world: World, slot: int) -> None:
    for worker in [w for w in world.workers if w.slot == slot and w.alive]:
        world.note(worker.name, "paused", f"{SESSION_PAUSE_MS} ms")
        worker.pause(SESSION_PAUSE_MS)


def _pause_driver(world: World) -> None:
    world.note(world.drivers[-1].name, "paused", f"{DRIVER_PAUSE_MS} ms")
    world.drivers[-1].pause(DRIVER_PAUSE_MS)


def _second_driver(world: World) -> None:
    world.start_driver()


def _rebalance(world: World) -> None:
    world.note("group", "rebalances", None)
    world.group.rebalance(shuffle=True)


def _lose_heartbeats(world: World) -> None:
    for worker in [w for w in world.workers if w.slot == 0 and w.alive]:
        world.note(worker.name, "cut off", f"from the group, {SESSION_PAUSE_MS} ms")
        world.group.cut_off(worker, SESSION_PAUSE_MS)


def _commit_foreign(world: World) -> None:
    world.storage.timeline.foreign_commit()


def _storage_away(world: World) -> None:
    world.note("table", "away", f"{STORAGE_AWAY_MS} ms")
    world.storage.timeline.available = False
    world.scheduler.at(STORAGE_AWAY_MS, None, _storage_back, world)


def _storage_back(world: World) -> None:
    world.storage.timeline.available = True


INTERRUPTIONS: dict[str, Callable[[World], None]] = {
    "worker 0 killed": _worker(0, _kill),
    "worker 1 killed": _worker(1, _kill),
    "worker 0 paused": _worker(0, _pause),
    "worker 1 paused": _worker(1, _pause),
    "driver killed": lambda world: world.drivers[-1].die(),
    "driver killed, its workers live on": lambda world: world.drivers[-1].die(),
    "driver paused": _pause_driver,
    "second driver": _second_driver,
    "rebalance": _rebalance,
    "heartbeats lost": _lose_heartbeats,
    "claim from nowhere": lambda world: world.claim_from_nowhere(),
    "stop asked": lambda world: world.drivers[-1].ledger.request_stop("SIGTERM"),
    "foreign commit": _commit_foreign,
    "storage away": _storage_away,
    "control topic recreated": lambda world: world.bus.recreate(),
    "control topic truncated": lambda world: world.bus.truncate(),
}
"""What may happen between any two events."""


@dataclass(frozen=True, slots=True)
class Point:
    """One fault in one place: the n-th opportunity of its kind, or after so many events."""

    kind: str
    number: int

    def describe(self) -> str:
        where = "after event" if self.kind in INTERRUPTIONS else "at opportunity"
        return f"{self.kind} {where} {self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Walked:
    """One schedule. `error`: empty where every invariant held and the lag went to zero."""

    error: str
    events: int
    spots: tuple[Spot, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Undisturbed:
    """The schedule without a fault: how many opportunities each kind has, and how many events it takes."""

    opportunities: dict[str, int]
    events: int
    transactions: int


class _Middle(Random):
    """Always the middle."""

    def random(self) -> float:
        return 0.5


class FixedChance(Chance):
    """No chance: what may vary is in the middle, and at most one fault strikes, where it was told to."""

    def __init__(self, point: Point | None) -> None:
        super().__init__(0)
        self.random = _Middle()
        self._draw = self.random.random
        self._point = point
        self._ids = 0
        self.asked: Counter[str] = Counter()
        self.struck = 0
        self.lingers = point is not None and point.kind.endswith("live on")
        self._kind = "" if point is None else point.kind.partition(",")[0]

    def of(self, probability: float) -> bool:
        if not isinstance(probability, Likelihood):
            return probability > 0.5
        kind = probability.kind
        self.asked[kind] += 1
        if kind == "zombie_lingers":
            return self.lingers
        if self._point is None or kind != self._kind or self.asked[kind] != self._point.number:
            return False
        self.struck += 1
        if self.on_fault is not None:
            self.on_fault(f"{kind}:{self._point.number}")
        return True

    def hex(self) -> str:
        self._ids += 1
        return f"{self._ids:04x}{0:012x}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Small(Overrides):
    """The small world, with at most one fault."""

    point: Point | None = None

    def apply(self, world: World) -> None:
        world.chance = chance = FixedChance(self.point)
        world.faults = Faults()
        for kind in (*OPPORTUNITIES, "zombie_lingers"):
            setattr(world.faults, kind, Likelihood.of_kind(kind, 1.0))
        world.slots = world.partitions = 2
        world.topics = 1
        world.interval_ms, world.write_timeout_ms = 400, 1_500
        world.row_ms, world.write_limit_ms = 0, 6_000
        world.repeat_ms, world.tick_ms = 400, 300
        world.memory_bytes, world.records_max, world.flush_ms = 100_000, 0, 20
        world.fault_phase_ms = FAULT_PHASE_MS
        world.until_first = world.restarts_at_end = False
        world.starting_offsets, world.on_data_loss, world.on_error = "earliest", "fail", "dead_letter"
        for at_ms in PRODUCE_AT_MS:
            world.scheduler.at(at_ms, None, self._produce, world)
        if world.transcript.recording:
            chance.on_fault = lambda name: world.note("fault", "strikes", name)
        if self.point is not None and self.point.kind in INTERRUPTIONS:
            world.scheduler.interrupt(self.point.number, lambda: self._interrupt(world, chance))

    def _produce(self, world: World) -> None:
        for partition in world.log.records:
            world.log.produce(partition, RECORDS)

    def _interrupt(self, world: World, chance: FixedChance) -> None:
        assert self.point is not None
        chance.struck += 1
        if world.transcript.recording:
            world.note("fault", "strikes", self.point.kind)
        INTERRUPTIONS[self.point.kind](world)


def small_world(point: Point | None, *, record: bool = False, cores: Cores | None = None) -> World:
    """A world that has not run yet."""
    return World(0, cores=cores, record=record, overrides=_Small(point=point))


def walk(point: Point, *, cores: Cores | None = None) -> Walked:
    """Run the small world with this fault. That the fault did not strike is an error too."""
    world = small_world(point, cores=cores)
    error = ""
    try:
        world.run()
    except ScheduleFailed as failed:
        error = str(failed)
    assert isinstance(world.chance, FixedChance)
    if not error and world.chance.struck != 1:
        error = f"the fault struck {world.chance.struck} times"
    spots = (*sorted(world.crashed), *sorted(world.paused))
    return Walked(error=error, events=world.scheduler.events, spots=spots)


@cache
def undisturbed() -> Undisturbed:
    """Raises `ScheduleFailed` where not even this schedule is right."""
    world = small_world(None)
    at_end: list[tuple[Counter[str], int, int]] = []

    def look() -> None:
        assert isinstance(world.chance, FixedChance)
        data = [i for i in world.storage.timeline.completed if i.files]
        at_end.append((Counter(world.chance.asked), world.scheduler.events, len(data)))

    world.scheduler.at(FAULT_PHASE_MS, None, look)
    world.run()
    asked, events, transactions = at_end[0]
    opportunities = {kind: asked[kind] for kind in OPPORTUNITIES}
    return Undisturbed(opportunities=opportunities, events=events, transactions=transactions)


@cache
def all_points() -> tuple[Point, ...]:
    """Every fault at every point, the same list in every process."""
    calm = undisturbed()
    points = [
        Point(kind, number) for kind, count in calm.opportunities.items() for number in range(1, count + 1)
    ]
    points += [Point(LINGERING, n) for n in range(1, calm.opportunities["driver_dies_in_call"] + 1)]
    points += [Point(kind, number) for kind in INTERRUPTIONS for number in range(1, calm.events + 1)]
    return tuple(points)


def explain(number: int, sentence: str) -> str:
    """What happened at a point, as a person reads it, and the command that shows it again."""
    point = all_points()[number]
    world = small_world(point, record=True)
    try:
        world.run()
    except ScheduleFailed as failed:
        world.note("world", "failed", str(failed))
    lines = "\n".join(world.transcript.telling(LINES_MAX))
    command = f"python -m tests.simulation.exhaustive --point {number}"
    return f"the small world fails with: {point.describe()}\n\n{lines}\n\n{sentence}\n\nReplay it: {command}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.exhaustive", description=__doc__)
    parser.add_argument("--point", type=int, help="replay this one; without it, count them")
    asked = parser.parse_args()
    points = all_points()
    if asked.point is None:
        for kind, count in Counter(point.kind for point in points).items():
            sys.stdout.write(f"{count:6}  {kind}\n")
        sys.stdout.write(f"{len(points):6}  points\n")
        return 0
    found = walk(points[asked.point])
    sys.stdout.write(f"{explain(asked.point, found.error or 'all is well')}\n")
    return 1 if found.error else 0


if __name__ == "__main__":
    sys.exit(main())

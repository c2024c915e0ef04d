"""A failing seed made small: fewer kinds of faults, a smaller world, a shorter fault phase, fewer faults.

Every step is kept only if the same checker still fails. A change shifts all that comes after it, so each step
may also draw the rest anew (`salt`): what counts is a small schedule with the same failure, not the same one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace

from tests.simulation.cores import Cores
from tests.simulation.faults import Faults
from tests.simulation.overrides import NO_OVERRIDES, Overrides
from tests.simulation.world import ScheduleFailed, World

EVENTS_MAX = 2_500_000
"""What shrinking may cost, in events: some twenty seconds. Counted, so that it ends alike everywhere."""

SALTS = 6
LAST_SALTS = 40
PHASES_MS = (500, 1_000, 1_500, 2_000, 3_000, 4_500, 7_000, 10_000)
LINES_MAX = 70


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """One schedule that fails. `faults`: those that struck, in order. `at_ms`: when it failed."""

    overrides: Overrides
    error: str
    faults: tuple[str, ...]
    at_ms: int
    events: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrunk:
    """The small schedule, and what a person needs of it."""

    seed: int
    failure: Failure
    lines: tuple[str, ...]
    schedules: int

    @property
    def command(self) -> str:
        return f"python -m tests.simulation --seed {self.seed} {self.failure.overrides.arguments()}".rstrip()

    def report(self) -> str:
        """The transcript, what failed, and the command that replays it."""
        head = f"seed {self.seed} fails; made small in {self.schedules} schedules:"
        foot = f"{self.failure.error}\n\nReplay it: {self.command}\nEvery line of it: {self.command} --full"
        return "\n".join([head, "", *self.lines, "", foot])


def shrink(seed: int, *, cores: Cores | None = None, events_max: int = EVENTS_MAX) -> Shrunk | None:
    """None where the seed does not fail."""
    found = Shrinker(seed, cores, events_max)
    failure = found.smallest()
    if failure is None:
        return None
    world = World(seed, cores=cores, record=True, overrides=failure.overrides)
    world.note("world", "fails", kind_of(_run(world)))
    lines = tuple(world.transcript.telling(LINES_MAX))
    return Shrunk(seed=seed, failure=failure, lines=lines, schedules=found.schedules)


def kind_of(error: str) -> str:
    """Which checker failed, or which exception: what must stay the same."""
    at = re.match(r"(.*?) at \d+\.\d+ s: ", error)
    return at.group(1) if at else error.partition(":")[0]


def _run(world: World) -> str:
    """What it fails with, empty where it does not."""
    try:
        world.run()
    except ScheduleFailed as failed:
        return str(failed)
    return ""


class Shrinker:
    """Tries smaller and smaller schedules of one seed until nothing helps or the budget is spent."""

    def __init__(self, seed: int, cores: Cores | None, events_max: int) -> None:
        self._seed = seed
        self._cores = cores
        self._events_left = events_max
        self._kind = ""
        self._best: Failure | None = None
        self.schedules = 0

    def smallest(self) -> Failure | None:
        self._try(NO_OVERRIDES)
        if self._best is None:
            return None
        self._kind = kind_of(self._best.error)
        before = None
        while before != self._best and self._events_left > 0:
            before = self._best
            self._drop_kinds()
            self._shrink_shape()
        self._draw_anew()
        self._drop_faults()
        return self._best

    # --- steps --------------------------------------------------------------------------------------

    def _drop_kinds(self) -> None:
        """Whole kinds of faults, many at a time, then one at a time."""
        kinds = self._kinds()
        size = max(1, len(kinds) // 2)
        while kinds:
            for group in _groups(kinds, size):
                kept = frozenset(kinds) - set(group)
                if self._try_salted(replace(self._now, only=kept)):
                    kinds = [kind for kind in kinds if kind in kept]
            if size == 1:
                break
            size = max(1, size // 2)

    def _shrink_shape(self) -> None:
        assert self._best is not None
        world = World(self._seed, cores=self._cores, overrides=self._now)
        for name, sizes in (
            ("partitions", range(1, world.partitions)),
            ("slots", range(1, world.slots)),
            ("fault_phase_ms", [ms for ms in PHASES_MS if ms < world.fault_phase_ms]),
        ):
            for size in sizes:
                if self._try_salted(self._now.resized(name, size)):
                    break

    def _draw_anew(self) -> None:
        """The same small world with other draws: the shortest way to the failure is kept."""
        assert self._best is not None
        for salt in range(1, LAST_SALTS):
            best = self._best
            failure = self._fails(replace(self._now, salt=salt))
            if failure is not None and (len(failure.faults), failure.at_ms) < (len(best.faults), best.at_ms):
                self._best = failure

    def _drop_faults(self) -> None:
        """Single faults, from the last to the first: what comes before stays as it is."""
        assert self._best is not None
        struck = list(dict.fromkeys(self._best.faults))
        kinds = {name.partition(":")[0] for name in struck}
        named = frozenset(kind for kind in self._kinds() if kind not in kinds).union(struck)
        size = max(1, len(struck) // 2)
        while self._try(replace(self._now, only=named)) and struck:
            for group in _groups(struck[::-1], size):
                if self._try(replace(self._now, only=named - set(group))):
                    named -= set(group)
            struck = [name for name in struck if name in named]
            if size == 1:
                break
            size = max(1, size // 2)

    # --- attempts -----------------------------------------------------------------------------------

    @property
    def _now(self) -> Overrides:
        return NO_OVERRIDES if self._best is None else self._best.overrides

    def _kinds(self) -> list[str]:
        """Kinds that the seed draws and that were not taken away yet."""
        drawn = World(self._seed, cores=self._cores, overrides=self._now).faults
        return [f.name for f in fields(Faults) if getattr(drawn, f.name)]

    def _try_salted(self, overrides: Overrides) -> bool:
        salts = dict.fromkeys((overrides.salt, *range(SALTS)))
        return any(self._try(replace(overrides, salt=salt)) for salt in salts)

    def _try(self, overrides: Overrides) -> bool:
        failure = self._fails(overrides)
        if failure is not None:
            self._best = failure
        return failure is not None

    def _fails(self, overrides: Overrides) -> Failure | None:
        if self._events_left <= 0:
            return None
        self.schedules += 1
        world = World(self._seed, cores=self._cores, overrides=overrides)
        error = _run(world)
        self._events_left -= world.scheduler.events
        if not error or (self._kind and kind_of(error) != self._kind):
            return None
        return Failure(
            overrides=overrides,
            error=error,
            faults=tuple(world.chance.occurred),
            at_ms=world.scheduler.now_ms,
            events=world.scheduler.events,
        )


def _groups(names: Sequence[str], size: int) -> Iterator[list[str]]:
    for first in range(0, len(names), size):
        yield list(names[first : first + size])

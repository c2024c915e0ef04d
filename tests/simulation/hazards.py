"""Actions are performed one by one, and a process may die or stand still before and after each of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from coordinator import events as coordinator_events
from participant import events as participant_events
from tests.simulation.scheduler import ProcessDied

if TYPE_CHECKING:
    from tests.simulation.worker import Worker

PAUSE_MAX_MS = 8_000
SIDES = ("before", "after")

Spot = tuple[str, str, str]
"""Where a process can be hit: core, action, side."""

_C, _P = coordinator_events, participant_events
COORDINATOR = (_C.Send, _C.Survey, _C.Register, _C.Recover, _C.Begin, _C.Commit, _C.Find, _C.Abort, _C.Stop)
PARTICIPANT = (
    *(_P.Send, _P.FetchOffsets, _P.Rewind, _P.Drop, _P.Open, _P.Write, _P.Flush, _P.Discard),
    *(_P.CommitGroup, _P.Pause, _P.Resume, _P.Poison, _P.Stop),
)
SPOTS: tuple[Spot, ...] = tuple(
    (core, action.__name__, side)
    for core, actions in (("coordinator", COORDINATOR), ("participant", PARTICIPANT))
    for action in actions
    for side in SIDES
)


class Performer:
    """Performs one core's actions in order, as the thread that the core runs on would.

    `perform` does one action. Where the process stands still in between, what is left waits for `run`,
    and nothing else of this core may happen before it. `waiting`: what is left.
    """

    def __init__(self, worker: Worker, core: str, perform: Callable[[Any], None]) -> None:
        self._worker = worker
        self._world = worker.world
        self._core = core
        self._perform = perform
        self.waiting: deque[Any] = deque()
        self._begun = False

    def run(self, actions: list[Any]) -> bool:
        """Perform what waits, then `actions`; False where the process stands still before all are done."""
        waiting = self.waiting
        faults = self._world.faults
        if not waiting and not (
            faults.crash_at_action or faults.crash_at_spot or faults.pause_at_action or faults.pause_at_spot
        ):
            for action in actions:
                self._perform(action)
            return True
        waiting.extend(actions)
        while waiting:
            action = waiting[0]
            if not self._begun:
                self._begun = True
                if self._strikes(action, "before"):
                    return False
            waiting.popleft()
            self._begun = False
            self._perform(action)
            if self._strikes(action, "after"):
                return False
        return True

    def _strikes(self, action: Any, side: str) -> bool:
        """Whether the process stands still here; where it dies, this does not return."""
        world, worker = self._world, self._worker
        faults, chance = world.faults, world.chance
        spot = (self._core, type(action).__name__, side)
        here = spot == world.spot
        crash, pause = faults.crash_at_action, faults.pause_at_action
        if (crash and chance.of(crash)) or (here and chance.of(faults.crash_at_spot)):
            world.crashed.add(spot)
            worker.kill(f"crash of the {self._core} {side} {spot[1]}")
            raise ProcessDied
        if (pause and chance.of(pause)) or (here and chance.of(faults.pause_at_spot)):
            world.paused.add(spot)
            for_ms = chance.upto(PAUSE_MAX_MS) + 1
            world.note(worker.name, "paused", f"{side} the {self._core}'s {spot[1]}, {for_ms} ms")
            worker.pause(for_ms)
            return True
        return False

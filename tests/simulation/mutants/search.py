"""How many schedules it takes until a seeded bug is found, and by whom."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.simulation.checkers.base import Violation
from tests.simulation.mutants.base import Mutant, Notes
from tests.simulation.world import ScheduleFailed

SCHEDULES_MAX = 10_000
EVIDENCE = Path(__file__).resolve().parents[3] / "docs" / "evidence" / "mutants.json"


class NotFound(AssertionError):
    """A seeded bug lived through all schedules, or something else than its checker stumbled over it."""


@dataclass(frozen=True, slots=True)
class Found:
    """`after_schedules`: in the fixed order of seeds. `ran_schedules`: of those, the ones not passed over."""

    mutant: str
    layer: str
    bug: str
    after_schedules: int
    ran_schedules: int
    checker: str
    said: str

    @property
    def seed(self) -> int:
        return self.after_schedules - 1


def find_again(mutant: Mutant) -> Found:
    """Find it at the seed where the last full search found it. Raises `NotFound` if it is not found there.

    A rare bug takes thousands of schedules, of which only the last one says something about it.
    """
    after = recorded().get(mutant.name)
    if after is None:
        raise NotFound(f"{mutant.name} has no recorded seed. `RECORD=1 make mutants` searches for it")
    try:
        return find(mutant, after, first=after - 1)
    except NotFound as error:
        raise NotFound(
            f"the recorded seed does not find it any more: {error}. `RECORD=1 make mutants` records it again"
        ) from error


@functools.cache
def recorded() -> dict[str, int]:
    """Mutant -> number of schedules after which the last full search found it; empty without evidence."""
    try:
        kept = json.loads(EVIDENCE.read_text(encoding="utf-8"))["figures"]["mutants"]
        return {str(one["name"]): int(one["found_after_schedules"]) for one in kept}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def find(
    mutant: Mutant,
    schedules_max: int = SCHEDULES_MAX,
    *,
    first: int = 0,
    after_each: Callable[[], object] = lambda: None,
) -> Found:
    """Search the seeds from `first` on; call `after_each` after each schedule. Raises `NotFound`.

    The failure must be the violation that the mutant's own checker raises, in a schedule that used every part
    that is patched; and no patched method may have failed by a mistake of its own.
    """
    ran = 0
    for seed in range(first, schedules_max):
        notes = Notes()
        world = mutant.world(seed, notes)
        if not mutant.may_show(world):
            del world
            after_each()
            continue
        ran += 1
        try:
            world.run()
        except ScheduleFailed as failed:
            _must_be_about_it(mutant, notes, seed, failed)
            if not all(methods & notes.called for methods in mutant.patched().values()):
                continue  # a part of the bug was enough; the whole of it is to be found
            return Found(
                mutant=mutant.name,
                layer=mutant.layer,
                bug=mutant.bug,
                after_schedules=seed + 1,
                ran_schedules=ran,
                checker=mutant.checker.name,
                said=str(failed),
            )
        if notes.mistakes:
            raise NotFound(f"{mutant.name}, seed {seed}: {notes.mistakes[0]}")
        del world
        after_each()
    lived = schedules_max - first
    raise NotFound(f"{mutant.name} lived through {lived} schedules ({ran} were run)")


def _must_be_about_it(mutant: Mutant, notes: Notes, seed: int, failed: ScheduleFailed) -> None:
    where = f"{mutant.name}, seed {seed}"
    if notes.mistakes:
        raise NotFound(f"{where}: {notes.mistakes[0]}") from failed
    if not isinstance(failed.__cause__, Violation):
        raise NotFound(f"{where}: not its checker but a crash: {failed}") from failed
    if not str(failed).startswith(f"{mutant.checker.name} at "):
        raise NotFound(f"{where}: not {mutant.checker.name} but {failed}") from failed
    if not notes.called:
        raise NotFound(f"{where}: nothing that is patched was called, and yet: {failed}") from failed

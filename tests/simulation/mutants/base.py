"""What a mutant is, and the worlds that it is let into."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.simulation.checkers import Checks
from tests.simulation.checkers.base import Checker
from tests.simulation.cores import Cores
from tests.simulation.world import World

OURS = "tests."
MISTAKES = (AttributeError, TypeError, NameError, LookupError, AssertionError, NotImplementedError)
"""What a mutant that is itself wrong would raise."""


@dataclass(slots=True)
class Notes:
    """What happened to the patched methods in one world.

    `called`: `Class.method`, where it stands in for one of production. `mistakes`: what they raised that no
    production code means to raise.
    """

    called: set[str] = field(default_factory=set)
    mistakes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One seeded bug: a few methods of one part or several, patched. The docstring says which bug.

    `checker`: the one that is about this bug, and that finds it without the others. `patches`: which of the
    parts in `Cores` are replaced, by name. `where`: faults that the bug shows with; of the schedules only
    those that draw one of them are run, to be quick, and the others are counted as passed.
    """

    checker: type[Checker]
    patches: dict[str, type[Any]]
    where: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return next(iter(self.patches.values())).__name__

    @property
    def layer(self) -> str:
        return " and ".join(self.patches)

    @property
    def bug(self) -> str:
        """The bug in one sentence."""
        written = next((patch.__doc__ for patch in self.patches.values() if patch.__doc__), "")
        return " ".join(written.split("\n\n")[0].split())

    def cores(self, notes: Notes) -> Cores:
        """Fresh parts for one world."""
        shared: dict[Any, Any] = {}
        return Cores(**{part: _watched(patch, notes, shared) for part, patch in self.patches.items()})

    def world(self, seed: int, notes: Notes, *, record: bool = False) -> World:
        """A world with this bug, in which only its own checker looks on."""
        world = World(seed, cores=self.cores(notes), record=record)
        world.checks = Checks(world, [self.checker()])
        return world

    def may_show(self, world: World) -> bool:
        """Whether the schedule draws what this bug shows with."""
        return not self.where or any(getattr(world.faults, name) for name in self.where)

    def patched(self) -> dict[str, set[str]]:
        """Part -> the methods of production that this mutant stands in for, as `Class.method`."""
        return {
            part: {f"{owner.__name__}.{method}" for owner, method in _overrides(patch)}
            for part, patch in self.patches.items()
        }


def _overrides(patch: type[Any]) -> list[tuple[type[Any], str]]:
    """The methods that the mutants' own classes define and production's bases know."""
    ours = [c for c in patch.__mro__ if c.__module__.startswith(OURS)]
    theirs = [c for c in patch.__mro__ if c not in ours and c is not object]
    return [
        (c, name)
        for c in ours
        for name, value in vars(c).items()
        if callable(value) and any(name in vars(base) for base in theirs)
    ]


def _watched(patch: type[Any], notes: Notes, shared: dict[Any, Any]) -> type[Any]:
    """The same class, its patched methods noted. `shared`: what the patches of one world tell each other."""
    outermost: dict[str, Any] = {"shared": shared}
    for owner, name in _overrides(patch):
        if name not in outermost:
            outermost[name] = _noted(f"{owner.__name__}.{name}", getattr(patch, name), notes)
    return type(patch.__name__, (patch,), outermost)


def _noted(label: str, method: Callable[..., Any], notes: Notes) -> Callable[..., Any]:
    @functools.wraps(method)
    def noting(*args: Any, **kwargs: Any) -> Any:
        notes.called.add(label)
        try:
            return method(*args, **kwargs)
        except MISTAKES as error:
            notes.mistakes.append(f"{label}: {error!r}")
            raise

    return noting

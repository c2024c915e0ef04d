"""What a replay changes about the world that its seed draws: how a failing seed is made small."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from tests.simulation.chance import named
from tests.simulation.faults import Faults

if TYPE_CHECKING:
    from tests.simulation.world import World

SHAPE = ("slots", "partitions", "fault_phase_ms")
"""What may be smaller than the seed draws it."""

KINDS = tuple(f.name for f in fields(Faults))


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides:
    """`World(seed, overrides=...)`. The default changes nothing.

    `only`: where given, the faults that may occur: whole kinds (`message_lost`) or single ones
    (`message_lost:3`, the third that the seed draws). `salt`: other draws for the same faults and shape.
    """

    only: frozenset[str] | None = None
    salt: int = 0
    slots: int | None = None
    partitions: int | None = None
    fault_phase_ms: int | None = None

    def apply(self, world: World) -> None:
        """Called by the world when its faults and its shape are drawn, and nothing else yet."""
        for name in SHAPE:
            value = getattr(self, name)
            if value is not None:
                setattr(world, name, value)
        if self.only is not None:
            for kind in set(KINDS) - {name.partition(":")[0] for name in self.only}:
                setattr(world.faults, kind, 0)
        named(world.faults)
        world.chance.limit(salt=self.salt, only=self.only)
        if world.transcript.recording:
            world.chance.on_fault = lambda name: world.note("fault", "strikes", name)

    def resized(self, name: str, size: int) -> Overrides:
        """With this of `SHAPE` at this size."""
        return replace(self, **{name: size})  # type: ignore[arg-type]

    def arguments(self) -> str:
        """As options of `python -m tests.simulation`."""
        options = []
        if self.only is not None:
            options.append(f"--only-faults {','.join(sorted(self.only)) or 'none'}")
        for name in ("salt", *SHAPE):
            value = getattr(self, name)
            if value:
                options.append(f"--{name.replace('_', '-')} {value}")
        return " ".join(options)


NO_OVERRIDES = Overrides()


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that `Overrides.arguments` writes."""
    parser.add_argument(
        "--only-faults",
        metavar="FAULTS",
        type=_faults,
        help="which of the seed's faults may occur: whole kinds, single ones as kind:number, or none",
    )
    parser.add_argument("--salt", type=int, default=0, help="other draws for the same faults and shape")
    for name in SHAPE:
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, help="instead of what the seed draws")


def from_options(asked: argparse.Namespace) -> Overrides:
    """The inverse of `Overrides.arguments`."""
    shape = {name: getattr(asked, name) for name in SHAPE}
    return Overrides(only=asked.only_faults, salt=asked.salt, **shape)


def _faults(text: str) -> frozenset[str]:
    names = frozenset() if text == "none" else frozenset(text.split(","))
    unknown = {name.partition(":")[0] for name in names} - set(KINDS)
    if unknown:
        raise argparse.ArgumentTypeError(f"no such kind of fault: {', '.join(sorted(unknown))}")
    return names

"""All randomness of a world, from one seed, and every fault's occurrence by name.

Faults have streams of their own, one a kind: whether a message is lost does not shift when a worker is
killed. So a kind, or a single occurrence, can be taken away and the rest stays much as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from random import Random
from typing import TypeVar

from tests.simulation.faults import Faults

GAP_MAX_MS = 10_000_000
"""Far beyond the end of every schedule."""


class Likelihood(float):
    """The probability of a fault, which knows the fault's name."""

    kind: str

    @classmethod
    def of_kind(cls, kind: str, value: float) -> Likelihood:
        named = cls(value)
        named.kind = kind
        return named


class MeanGap(int):
    """The mean gap between a fault's occurrences in ms, which knows the fault's name."""

    kind: str

    @classmethod
    def of_kind(cls, kind: str, value: int) -> MeanGap:
        named = cls(value)
        named.kind = kind
        return named


F = TypeVar("F", bound=Faults)


def named(faults: F) -> F:
    """The same faults, each value knowing its name, so that its occurrences are counted."""
    for f in fields(faults):
        value = getattr(faults, f.name)
        if value:
            kind = MeanGap if isinstance(value, int) else Likelihood
            setattr(faults, f.name, kind.of_kind(f.name, value))
    return faults


class Chance:
    """Drawn in one order, so that the same seed gives the same world.

    Faults occur by name and number (`message_lost:3`): `occurred` are those of this world so far, and
    `on_fault` is told of one when it strikes, where that is at once.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.occurred: list[str] = []
        self.on_fault: Callable[[str], None] | None = None
        self._only: frozenset[str] | None = None
        self._salt = 0
        self._streams: dict[str, Random] = {}
        self._counts: dict[str, int] = {}
        self._draw = self.random.random
        self._bits = self.random.getrandbits

    def limit(self, *, salt: int, only: frozenset[str] | None) -> None:
        """From here on draw otherwise (`salt`), and let only these kinds or faults occur (None: all)."""
        self._salt, self._only = salt, only
        if salt:
            self.random.seed(f"{self.seed}/{salt}")

    def of(self, probability: float) -> bool:
        if not probability:
            return False
        if type(probability) is not Likelihood:
            return self._draw() < probability
        kind = probability.kind
        stream = self._streams.get(kind) or self._stream(kind)
        if stream.random() >= probability or not self._allowed(kind):
            return False
        if self.on_fault is not None:
            self.on_fault(self.occurred[-1])
        return True

    def upto(self, most: int) -> int:
        """From 0 to `most`, both included."""
        return int(self._draw() * (most + 1))

    def between(self, least: int, most: int) -> int:
        return least + int(self._draw() * (most - least + 1))

    def gap(self, mean_ms: int) -> int:
        """A waiting time with this mean. An occurrence that is not allowed is waited past."""
        if type(mean_ms) is not MeanGap:
            return int(self.random.expovariate(1 / mean_ms)) + 1
        kind, gap_ms = mean_ms.kind, 0
        stream = self._streams.get(kind) or self._stream(kind)
        while gap_ms < GAP_MAX_MS:
            gap_ms += int(stream.expovariate(1 / mean_ms)) + 1
            if self._allowed(kind):
                break
        return gap_ms

    def hex(self) -> str:
        return self._bits(64).to_bytes(8, "big").hex()

    def _allowed(self, kind: str) -> bool:
        """Count this occurrence of a fault; False where it is not one of those allowed."""
        count = self._counts[kind] = self._counts.get(kind, 0) + 1
        name = f"{kind}:{count}"
        if self._only is not None and kind not in self._only and name not in self._only:
            return False
        self.occurred.append(name)
        return True

    def _stream(self, kind: str) -> Random:
        # Seeded by text: the same in every process, whatever its hash seed.
        stream = self._streams[kind] = Random(f"{self.seed}/{self._salt}/{kind}")
        return stream

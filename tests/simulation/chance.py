"""All randomness of a world, from one seed."""

from __future__ import annotations

from random import Random


class Chance:
    """Drawn in one order, so that the same seed gives the same world."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def of(self, probability: float) -> bool:
        return probability > 0 and self.random.random() < probability

    def upto(self, most: int) -> int:
        return int(self.random.random() * (most + 1))

    def between(self, least: int, most: int) -> int:
        return least + int(self.random.random() * (most - least + 1))

    def gap(self, mean_ms: int) -> int:
        """A waiting time with this mean."""
        return int(self.random.expovariate(1 / mean_ms)) + 1

    def hex(self) -> str:
        return f"{self.random.getrandbits(64):016x}"

"""Which worker writes the rows of a table partition. Pure.

By rendezvous hashing (Thaler and Ravishankar, "A Name-Based Mapping Scheme for Rendezvous", 1996): of all
writers those with the greatest hashes of their own name and the table partition's. Where a writer comes or
goes, only what it writes itself has another home.
"""

from __future__ import annotations

from collections.abc import Collection
from hashlib import blake2b

KNOWN_MAX = 100_000
"""Table partitions whose homes are remembered; then all are forgotten."""


class Homes:
    """As one of the writers sees it: its own index wherever it is a home itself, else always the same home.

    `writers`: incarnations, one of them `me`; `count`: how many homes a table partition has, at least 1.
    """

    def __init__(self, writers: Collection[str], me: str, count: int) -> None:
        self.writers = tuple(sorted(writers))
        self.me = self.writers.index(me)
        self._seeds = [blake2b(who.encode(), digest_size=8) for who in self.writers]
        self._count = min(count, len(self.writers))
        self._known: dict[str, int] = {}

    def __call__(self, folder: str) -> int:
        """Of the table partition the writer, by its place in `writers`."""
        home = self._known.get(folder)
        if home is None:
            if len(self._known) >= KNOWN_MAX:
                self._known.clear()
            home = self._known[folder] = self._home(folder.encode("utf-8", "surrogatepass"))
        return home

    def _home(self, folder: bytes) -> int:
        hashes = []
        for number, seed in enumerate(self._seeds):
            hashed = seed.copy()
            hashed.update(folder)
            hashes.append((hashed.digest(), number))
        homes = [number for _, number in sorted(hashes, reverse=True)[: self._count]]
        return self.me if self.me in homes else homes[self.me % len(homes)]

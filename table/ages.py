"""How old table partitions are by the newest value of a field in all of their files. Pure.

What a file says is a number: the newest moment that its rows hold, in milliseconds since 1970. A file is
never written again, so that it is asked once; and a table partition of which one file is known to be young is
not looked into before that one is past its time, whatever the others hold.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

NOTHING: Final = -math.inf
"""Of a file in whose rows the field is null, all of them. It makes nothing younger or older."""
UNKNOWN: Final = math.inf
"""Of a file that does not say: its table partition stays."""
FILES_KNOWN_MAX: Final = 100_000
"""What is known of more is forgotten, and asked again."""


class FileAges:
    """What is known. A table partition is told by its path, a file by its name. Not for several threads."""

    def __init__(self, retention_ms: int) -> None:
        self._retention_ms = retention_ms
        self._known: dict[str, dict[str, float]] = {}
        self._stays_until_ms: dict[str, float] = {}

    def open(self, paths: Collection[str], now_ms: float) -> list[str]:
        """Of all table partitions that there are those that are to be looked into, in order."""
        there = set(paths)
        self._known = {path: files for path, files in self._known.items() if path in there}
        self._stays_until_ms = {
            path: until_ms
            for path, until_ms in self._stays_until_ms.items()
            if path in there and until_ms > now_ms
        }
        return sorted(there - self._stays_until_ms.keys())

    def unread(self, path: str, files: Iterable[str], now_ms: float) -> Sequence[str]:
        """Of these files, which are all that it has, those that are to be asked; none where that would change
        nothing. Those of the newest instants first, whose rows are likely to be the youngest.
        """
        files = set(files)
        known = {name: ms for name, ms in self._known.get(path, {}).items() if name in files}
        self._known[path] = known
        if self._stays(path, now_ms):
            return ()
        return sorted(files - known.keys(), key=_instant, reverse=True)

    def learn(self, path: str, newest_ms: Mapping[str, float]) -> None:
        """What files of it say."""
        if sum(map(len, self._known.values())) + len(newest_ms) > FILES_KNOWN_MAX:
            self._known.clear()
        self._known.setdefault(path, {}).update(newest_ms)

    def is_past(self, path: str, files: Collection[str], now_ms: float) -> bool:
        """Whether these files, which are all that it has, are known, and the newest of all values in them is
        older than the retention. Never where there is no value.
        """
        known = self._known.get(path, {})
        if not files or not known.keys() >= set(files):
            return False
        newest_ms = max(known[name] for name in files)
        return newest_ms != NOTHING and newest_ms + self._retention_ms <= now_ms

    def _stays(self, path: str, now_ms: float) -> bool:
        newest_ms = max(self._known[path].values(), default=NOTHING)
        until_ms = newest_ms + self._retention_ms
        if until_ms <= now_ms:
            return False
        if until_ms < UNKNOWN:  # what does not say it may be written again, and say it
            self._stays_until_ms[path] = until_ms
            del self._known[path]
        return True


def _instant(name: str) -> tuple[str, str]:
    return name.rpartition(".")[0].rpartition("_")[2], name

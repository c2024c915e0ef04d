"""Long lists in short sentences. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import islice

SHOWN_MAX = 6


def some(items: Collection[object], *, shown_max: int = SHOWN_MAX) -> str:
    """The first few, and how many more there are: a line of a log does not grow with what it is about."""
    shown: Iterable[str] = map(str, islice(items, shown_max))
    more = len(items) - shown_max
    return ", ".join(shown) + (f" and {more:,} more" if more > 0 else "")

"""Generated parts of a document that is written by hand: each stands between two comments that name it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping


def fill(document: str, parts: Mapping[str, Callable[[], str]], name_of_it: str) -> str:
    """Put each part between its two comments. Raises `ValueError` where one has no place."""
    for name, part in parts.items():
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        around = re.split(f"{re.escape(begin)}.*?{re.escape(end)}", document, flags=re.DOTALL)
        if len(around) != 2:
            raise ValueError(f"{name_of_it} has no place for its {name}: {begin} … {end}")
        document = f"{around[0]}{begin}\n{part()}\n{end}{around[1]}"
    return document

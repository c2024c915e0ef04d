"""Long lists in short sentences, and foreign text for terminals and logs. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from itertools import islice

SHOWN_MAX = 6
_BREAKS = re.compile("[\\t\\n\\v\\f\\r\\x85\\u2028\\u2029]+")
_CONTROLS = re.compile(
    "[\\x00-\\x09\\x0b-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ufff9-\\ufffb\\ufeff]"
)
"""What moves a cursor, sets a title or a colour, hides text or turns its order around; a newline is none."""


def some(items: Collection[object], *, shown_max: int = SHOWN_MAX) -> str:
    """The first few, and how many more there are: a line of a log does not grow with what it is about."""
    shown: Iterable[str] = map(str, islice(items, shown_max))
    more = len(items) - shown_max
    return ", ".join(shown) + (f" and {more:,} more" if more > 0 else "")


def plain(text: str) -> str:
    """Text in which a terminal finds nothing to obey: each control character is spelled out. Lines stay."""
    return _CONTROLS.sub(_spelled_out, text)


def one_line(text: str) -> str:
    """As `plain`, in one line: what somebody else wrote cannot look like a line of ours."""
    return plain(_BREAKS.sub(" ", text))


def short_line(text: str, length_max: int) -> str:
    """As `one_line`, of at most so many characters. Cut before that, for to spell out megabytes keeps every
    other thread waiting, and after it, for what is spelled out is longer.
    """
    return one_line(text[:length_max])[:length_max]


def _spelled_out(found: re.Match[str]) -> str:
    code = ord(found.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def json_escaped(document: str) -> str:
    """A JSON document with the same characters as JSON escapes; they stand in its strings only."""
    return _CONTROLS.sub(lambda found: f"\\u{ord(found.group()):04x}", document)


def lasting(for_ms: int) -> str:
    """Two units at most, rounded up: a person is to wait for it."""
    seconds = -(-for_ms // 1_000)
    units = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
    parts = []
    for size, name in units:
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(f"{count} {name}")
    return " ".join(parts[:2])

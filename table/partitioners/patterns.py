"""Patterns of dates and times, a part of `java.time.format.DateTimeFormatter`'s. Pure.

Letters of one kind, so many of them: `yyyy` (or `uuuu`), `MM`, `dd`, `HH`, `mm`, `ss`; `M`, `d`, `H`, `m` and
`s` without the leading zero. Text between single quotes stands for itself, and so does what is no letter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

PATTERN_CHARS_MAX = 100
PLACES: Mapping[str, tuple[str, int]] = {
    "yyyy": ("year", 4),
    "uuuu": ("year", 4),
    "MM": ("month", 2),
    "M": ("month", 1),
    "dd": ("day", 2),
    "d": ("day", 1),
    "HH": ("hour", 2),
    "H": ("hour", 1),
    "mm": ("minute", 2),
    "m": ("minute", 1),
    "ss": ("second", 2),
    "s": ("second", 1),
}
"""Letters -> (which part of a time, digits at least)."""
STRPTIME: Mapping[str, str] = {
    "year": "%Y",
    "month": "%m",
    "day": "%d",
    "hour": "%H",
    "minute": "%M",
    "second": "%S",
}
_READ: Mapping[str, str] = {
    "year": "[0-9]",
    "month": "0[1-9]|1[0-2]",
    "day": "0[1-9]|[12][0-9]|3[01]",
    "hour": "[01][0-9]|2[0-3]",
    "minute": "[0-5][0-9]",
    "second": "[0-5][0-9]",
}
"""Part of a time -> the digits that it may have."""
_PIECE = re.compile(r"(?P<letters>([A-Za-z])\2*)|'(?P<quoted>[^']*)'|(?P<other>[^A-Za-z'])")
_RESERVED = frozenset("#{}[]")
"""Java means something by them."""


class PatternError(ValueError):
    """A phrase that says what is wanted instead."""


@dataclass(frozen=True, slots=True)
class Pattern:
    text: str
    pieces: tuple[tuple[str, int], ...]
    """(a part of a time, digits), or (a text, 0)."""

    @property
    def parts(self) -> tuple[str, ...]:
        """Of a time, in order."""
        return tuple(name for name, digits in self.pieces if digits)

    @property
    def is_read(self) -> bool:
        """Whether a day can be read by it: nothing is there twice."""
        parts = self.parts
        return {"year", "month", "day"} <= set(parts) and len(set(parts)) == len(parts)

    @property
    def strptime(self) -> str:
        """The same in C's letters."""
        return "".join(STRPTIME[name] if digits else name.replace("%", "%%") for name, digits in self.pieces)

    @property
    def read(self) -> str:
        """A regular expression that a text matches which is so spelled. The day is called `day`."""
        return f"^{''.join(_read(name, digits) for name, digits in self.pieces)}$"

    def spelled(self, parts: Mapping[str, int]) -> str:
        return "".join(f"{parts[name]:0{digits}d}" if digits else name for name, digits in self.pieces)


def _read(name: str, digits: int) -> str:
    if not digits:
        return re.escape(name)
    one = f"{_READ[name]}{{{digits}}}" if name == "year" else _READ[name]
    if digits == 1:  # without the leading zero, or with it
        one = f"{one}|[{'1' if name in ('month', 'day') else '0'}-9]"
    return f"(?P<day>{one})" if name == "day" else f"(?:{one})"


def pattern(text: str) -> Pattern:
    """Raises `PatternError`."""
    if not text or len(text) > PATTERN_CHARS_MAX:
        raise PatternError(f"a pattern of 1 to {PATTERN_CHARS_MAX} characters")
    pieces: list[tuple[str, int]] = []
    at = 0
    while at < len(text):
        found = _PIECE.match(text, at)
        if found is None:
            raise PatternError(f"a second single quote behind the one at character {at + 1} of the pattern")
        letters, other = found["letters"], found["other"]
        if found["quoted"] is not None and text[found.end() : found.end() + 1] == "'":
            raise PatternError("text without a single quote in it, between single quotes")
        if letters is not None:
            if letters not in PLACES:
                raise PatternError(f"one of {', '.join(PLACES)} in a pattern, not {letters}")
            pieces.append(PLACES[letters])
        elif other is not None and other in _RESERVED:
            raise PatternError(f"single quotes around {other} in a pattern")
        else:
            pieces.append((other if other is not None else found["quoted"] or "'", 0))
        at = found.end()
    if not any(digits for _, digits in pieces):
        raise PatternError("a pattern with a part of a time, such as yyyy-MM-dd")
    return Pattern(text, tuple(pieces))

"""What is wrong with a configuration: every problem, each with its setting and where that was given."""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lockstep.errors import ConfigError

PROBLEMS_SHOWN_MAX = 50
VALUE_CHARACTERS_MAX = 200

_shortened = reprlib.Repr()
_shortened.maxstring = _shortened.maxother = _shortened.maxlong = VALUE_CHARACTERS_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something that is wrong in a configuration, or does not go together."""

    settings: tuple[str, ...]
    """Those that are concerned, first the one to change: `transaction.interval`."""

    sentence: str
    where: str = ""
    """What the operator has to edit: `pipeline.toml, [table]`, `environment LOCKSTEP_…`, `--set …`."""

    def __str__(self) -> str:
        place = f" ({self.where})" if self.where else ""
        return f"{self.settings[0]}: {self.sentence}{place}"


class InvalidConfiguration(ConfigError):
    """The configuration has these problems, all that could be found at once."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        count = "a problem" if len(problems) == 1 else f"{len(problems)} problems"
        lines = [f"  {problem}" for problem in problems[:PROBLEMS_SHOWN_MAX]]
        if len(problems) > PROBLEMS_SHOWN_MAX:
            lines.append(f"  and {len(problems) - PROBLEMS_SHOWN_MAX} more")
        super().__init__("\n".join([f"the configuration has {count}:", *lines]))


def shown(value: object) -> str:
    """A value as Python spells it, for a sentence: never much of it, whatever it is."""
    if isinstance(value, int) and value.bit_length() > 64:
        return "a number of more than 64 bits"
    try:
        return _shortened.repr(value)
    except ValueError:  # such a number, inside a list
        return "a value that holds a number of more than 64 bits"


def no_field(name: str, known: Sequence[str]) -> str:
    """What is wrong with a name that is none of these, the fields of `record.schema` among them."""
    return f"{name!r} is not a field of record.schema{nearest(name, known)}"


def nearest(name: str, known: Iterable[str]) -> str:
    """`; did you mean …?` for the nearest of the known names, or nothing where none is near.

    A mapping gives the names to compare with and, for each, the one to show.
    """
    found = difflib.get_close_matches(name.lower(), list(known), n=1, cutoff=0.6)
    if not found:
        return ""
    return f"; did you mean {known[found[0]] if isinstance(known, Mapping) else found[0]}?"

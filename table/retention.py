"""How long table partitions live: which of them are past their time, by the value that each stands for. Pure.

A value is a time as a pattern has it: `yyyy-MM-dd`, `yyyyMMddHH`, `yyyy/MM/dd`. It stands for all of its
year, month, day, hour or minute, in UTC, and its table partition is past its time once the end of that is
older than the retention. What is no such value (null, a name, a date that there is not) never is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final
from urllib.parse import unquote
from zoneinfo import ZoneInfo

from table.partitioners.expressions import Partitioned, made_terms

DATE_PATTERN: Final = "yyyy-MM-dd"
"""Of a DATE, and what texts are read by where nothing else is said."""
PATTERN_CHARS_MAX: Final = 40

_FIELDS: Final[Mapping[str, str]] = {
    "yyyy": "(?P<year>[0-9]{4})",
    "MM": "(?P<month>[0-9]{2})",
    "dd": "(?P<day>[0-9]{2})",
    "HH": "(?P<hour>[0-9]{2})",
    "mm": "(?P<minute>[0-9]{2})",
}
_ORDER: Final = ("year", "month", "day", "hour", "minute")
_PARTS = re.compile("yyyy|MM|dd|HH|mm|'[^']*'|[^A-Za-z']|(?P<unknown>.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Pattern:
    """How values spell times. Raises `ValueError` with a sentence."""

    text: str
    zone: tzinfo = UTC
    minutes: int = 1
    """What a value with a minute stands for."""
    _read: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_read", re.compile(_regex(self.text)))

    def end_ms(self, value: str) -> int | None:
        """When what it stands for is over, in milliseconds since 1970; None where it is no such time."""
        found = self._read.fullmatch(value)
        if found is None:
            return None
        given = [int(found[name]) for name in _ORDER if name in found.re.groupindex]
        try:
            year, month, day, hour, minute = given + [1, 1, 1, 0, 0][len(given) :]
            moment = datetime(year, month, day, hour, minute, tzinfo=self.zone)
            return int(self._next(moment, len(given)).timestamp()) * 1_000
        except (ValueError, OverflowError):
            return None

    def _next(self, moment: datetime, fields: int) -> datetime:
        """The first moment, by the clock of the zone, after what begins here."""
        if fields == 1:
            return moment.replace(year=moment.year + 1)
        if fields == 2:
            return (moment + timedelta(days=31)).replace(day=1)
        return moment + (timedelta(days=1), timedelta(hours=1), timedelta(minutes=self.minutes))[fields - 3]


def _regex(text: str) -> str:
    if len(text) > PATTERN_CHARS_MAX:
        raise ValueError(f"a pattern has at most {PATTERN_CHARS_MAX} characters")
    made, names = "", []
    for part in _PARTS.finditer(text):
        if part["unknown"]:
            raise ValueError(
                f"{part[0]!r} is not of a pattern: yyyy, MM, dd, HH and mm are, signs between them, and "
                "'text' in quotes"
            )
        if part[0] in _FIELDS:
            names.append(re.findall("<(.*?)>", _FIELDS[part[0]])[0])
        made += _FIELDS.get(part[0]) or re.escape(part[0].strip("'") if part[0] != "''" else "")
    if tuple(sorted(names, key=_ORDER.index)) != _ORDER[: len(names)] or not names:
        raise ValueError(
            f"{text!r} does not say a time: yyyy is in it, and MM where dd is, dd where HH is, HH where mm is"
        )
    return made


@dataclass(frozen=True, slots=True)
class Told:
    """Which of a table's partition fields says the time."""

    fields: tuple[str, ...]
    at: int
    pattern: Pattern

    def value(self, path: str) -> str:
        """What the path of a table partition says of it, hive's style or not; empty where it says nothing."""
        folders, deeper = path.split("/"), self.pattern.text.count("/")
        if len(folders) == len(self.fields):
            deeper = 0  # what is encoded is no folder
        elif len(folders) != len(self.fields) + deeper:
            return ""
        said = "/".join(folders[self.at : self.at + deeper + 1])
        return unquote(said.removeprefix(f"{self.fields[self.at]}="))


def told_by(table: Partitioned, pattern: str) -> Told:
    """Raises `ValueError` with a sentence where none says it, or several could."""
    made = {term.column: term for term in made_terms(table)}
    fields = tuple(table.partition_fields)
    timed = [at for at, name in enumerate(fields) if name in made and made[name].is_time]
    if len(timed) == 1:
        term = made[fields[timed[0]]]
        assert term.pattern is not None
        zone = ZoneInfo(term.zone) if term.zone else UTC
        return Told(fields, timed[0], Pattern(term.pattern.text, zone, term.number or 1))
    if not timed and len(fields) == 1 and not made:
        return Told(fields, 0, Pattern(pattern or DATE_PATTERN))
    raise ValueError(
        "needs table.partition_by to say one time: one function of a time, such as day(ts), or a DATE or "
        "STRING field alone"
    )


def expired(values: Iterable[str], pattern: Pattern, *, now_ms: int, retention_ms: int) -> list[str]:
    """Those that are past their time, the oldest first."""
    ends = {value: end for value in values if (end := pattern.end_ms(value)) is not None}
    return sorted(
        (value for value, end in ends.items() if end + retention_ms <= now_ms),
        key=lambda value: (ends[value], value),
    )

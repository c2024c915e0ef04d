"""How long table partitions live: which of them are past their time, by the value that each stands for. Pure.

A value is a time as a pattern of `table.partitioners.patterns` has it: `yyyy-MM-dd`, `yyyyMMddHH`,
`yyyy/M/d`. It stands for all of its year, month, day, hour, minute or second, and its table partition is past
its time once the end of that is older than the retention. What is no such value (null, a name, a date that
there is not) never is. If the clock of its zone shows a value twice, as where summer time ends, the value
stands for both, and is over after the second.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final
from urllib.parse import unquote
from zoneinfo import ZoneInfo

from table.partitioners.expressions import Partitioned, made_terms
from table.partitioners.patterns import Pattern, PatternError, pattern

DATE_PATTERN: Final = "yyyy-MM-dd"
"""Of a DATE, and what texts are read by where nothing else is said."""

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND: Final = timedelta(milliseconds=1)
_ORDER: Final = ("year", "month", "day", "hour", "minute", "second")


@dataclass(frozen=True, slots=True)
class Ages:
    """How values spell times. Raises `ValueError` with a sentence for a pattern that says none."""

    pattern: Pattern
    zone: tzinfo = UTC
    minutes: int = 1
    """What a value stands for whose smallest part is a minute."""
    _read: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        names = sorted(set(self.pattern.parts), key=_ORDER.index)
        if tuple(names) != _ORDER[: len(names)]:
            raise ValueError(
                f"{self.pattern.text!r} does not say a time: yyyy is in it, and MM where dd is, dd where "
                "HH is, HH where mm is, mm where ss is"
            )
        object.__setattr__(self, "_read", re.compile(_regex(self.pattern)))

    def end_ms(self, value: str) -> int | None:
        """Return when the time that a value stands for is over, never before; None where it is no such time.

        Milliseconds since 1970.
        """
        found = self._read.fullmatch(value)
        if found is None:
            return None
        said = list(zip(self.pattern.parts, map(int, found.groups()), strict=True))
        parts = dict(said)
        if any(parts[name] != number for name, number in said):
            return None  # one that is there twice, and differs
        try:
            moment = datetime(
                parts["year"],
                parts.get("month", 1),
                parts.get("day", 1),
                parts.get("hour", 0),
                parts.get("minute", 0),
                parts.get("second", 0),
            )
            return self._latest_ms(self._next(moment, len(parts)) - datetime.resolution)
        except (ValueError, OverflowError):
            return None

    def _latest_ms(self, last: datetime) -> int:
        """Return the end of this moment of the zone's clock, of the later one where the clock shows it twice.

        A moment that the clock skips is taken by the offset that makes it later.
        """
        latest = max(last.replace(tzinfo=self.zone, fold=fold) - EPOCH for fold in (0, 1))
        return -(-(latest + datetime.resolution) // MILLISECOND)

    def _next(self, moment: datetime, parts: int) -> datetime:
        """The first moment, by the clock of the zone, after what begins here."""
        if parts == 1:
            return moment.replace(year=moment.year + 1)
        if parts == 2:
            return (moment + timedelta(days=31)).replace(day=1)
        long = (
            timedelta(days=1),
            timedelta(hours=1),
            timedelta(minutes=self.minutes),
            timedelta(seconds=1),
        )
        return moment + long[parts - 3]


def ages_of(text: str) -> Ages:
    """Of a pattern as it is written, in UTC. Raises `ValueError` with a sentence."""
    try:
        return Ages(pattern(text))
    except PatternError as error:
        raise ValueError(f"{text[:40]!r} is not understood: write {error}") from None


def _regex(of: Pattern) -> str:
    """Every part is a group.

    Raises `ValueError` where it cannot be told which digits are whose: a table partition that is read wrongly
    would be taken out too soon.
    """
    made = ""
    for at, (name, digits) in enumerate(of.pieces):
        beside = [*of.pieces[max(0, at - 1) : at], *of.pieces[at + 1 : at + 2]]
        if digits == 1 and any(many or text[-1:].isdigit() or text[:1].isdigit() for text, many in beside):
            raise ValueError(
                f"{of.text!r} does not say where its {name} begins and ends: write two letters, as in MM"
            )
        made += re.escape(name) if not digits else f"([0-9]{{{digits}}})" if digits > 1 else "([0-9]{1,2})"
    return made


@dataclass(frozen=True, slots=True)
class Told:
    """Which of a table's partition fields says the time."""

    fields: tuple[str, ...]
    at: int
    ages: Ages

    def value(self, path: str) -> str:
        """What the path of a table partition says of it, hive's style or not; empty where it says nothing."""
        folders, deeper = path.split("/"), self.ages.pattern.text.count("/")
        if len(folders) == len(self.fields):
            deeper = 0  # what is encoded is no folder
        elif len(folders) != len(self.fields) + deeper:
            return ""
        said = "/".join(folders[self.at : self.at + deeper + 1])
        return unquote(said.removeprefix(f"{self.fields[self.at]}="))


def told_by(table: Partitioned, spelled: str) -> Told:
    """`spelled`: how a field spells it that is no function's, a pattern; empty: as a DATE is.

    Raises `ValueError` with a sentence where none says it, or several could.
    """
    made = {term.column: term for term in made_terms(table)}
    fields = tuple(table.partition_fields)
    timed = [at for at, name in enumerate(fields) if name in made and made[name].is_time]
    if len(timed) == 1:
        term = made[fields[timed[0]]]
        assert term.pattern is not None
        zone = ZoneInfo(term.zone) if term.zone else UTC
        return Told(fields, timed[0], Ages(term.pattern, zone, term.number or 1))
    if not timed and len(fields) == 1 and not made:
        return Told(fields, 0, ages_of(spelled or DATE_PATTERN))
    raise ValueError(
        "needs table.partition_by to say one time: one function of a time, such as day(ts), or a DATE or "
        "STRING field alone"
    )


def expired(values: Iterable[str], ages: Ages, *, now_ms: int, retention_ms: int) -> list[str]:
    """Those that are past their time, the oldest first."""
    ends = {value: end for value in values if (end := ages.end_ms(value)) is not None}
    return sorted(
        (value for value, end in ends.items() if end + retention_ms <= now_ms),
        key=lambda value: (ends[value], value),
    )

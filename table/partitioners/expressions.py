"""What `table.partition_by` says, parsed: `region`, `day(ts)`, `minutes(15, epoch_ms(ts)) as slot`. Pure.

    term   := value [ "as" name ]
    value  := field | function "(" argument { "," argument } ")"

An argument is a number, a text in double quotes, or where the time, or the value, comes from: a field, a
field that is read as a time (`epoch_ms(ts)`), `_kafka_timestamp` or `now()`. `FUNCTIONS` and `READINGS` are
all there are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from table.partitioners.patterns import Pattern, PatternError, pattern

TERM_CHARS_MAX = 300
NUMBER_MAX = 1_000_000
KAFKA_TIMESTAMP = "_kafka_timestamp"
NOW = "now"
MINUTES = (1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30)
"""Those that divide an hour."""
TIME_PATTERNS: Mapping[str, str] = {
    "year": "yyyy",
    "month": "yyyy-MM",
    "day": "yyyy-MM-dd",
    "hour": "yyyy-MM-dd-HH",
    "minutes": "yyyy-MM-dd-HH-mm",
}
"""How functions of time spell it."""
BUCKET, TRUNCATE, FORMAT = "bucket", "truncate", "format"
FUNCTIONS: Mapping[str, str] = {
    "year": "year(ts)",
    "month": "month(ts)",
    "day": 'day(ts, "Europe/Berlin")',
    "hour": "hour(ts)",
    "minutes": "minutes(15, ts)",
    FORMAT: 'format(ts, "yyyy-MM", "Europe/Berlin")',
    BUCKET: "bucket(16, user_id)",
    TRUNCATE: "truncate(4, name)",
}
"""Name -> how it is written."""
READINGS: Mapping[str, int] = {"epoch_s": 1_000_000, "epoch_ms": 1_000, "epoch_us": 1}
"""A whole number since 1970 -> microseconds in one."""
PARSE = "parse"
_TOKEN = re.compile(
    r'\s*(?:(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<number>[0-9]{1,9})|"(?P<text>[^"]*)"|(?P<mark>[(),]))'
)


class TermError(ValueError):
    """What is not understood, and where."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a value comes from: a field, `_kafka_timestamp`, or nothing: the transaction's own time."""

    field: str = ""
    reading: str = ""
    """In `READINGS`, or `PARSE`; empty: the field is a time by its type, or no time is wanted."""
    pattern: Pattern | None = None
    """With `PARSE`."""

    @property
    def is_now(self) -> bool:
        return not self.field

    @property
    def is_kafkas(self) -> bool:
        return self.field == KAFKA_TIMESTAMP

    @property
    def is_of_records(self) -> bool:
        """Whether a field of the value says it."""
        return not self.is_now and not self.is_kafkas


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One of a table's partition fields."""

    column: str
    """The table's, which holds the value."""
    function: str = ""
    """In `FUNCTIONS`; empty: `column` is a field of records itself."""
    source: Source
    number: int = 0
    """Of `minutes`, `bucket`, `truncate`."""
    pattern: Pattern | None = None
    """Of functions of time."""
    zone: str = ""
    """Of functions of time; empty where none is named: UTC."""

    @property
    def is_made(self) -> bool:
        """Whether the table has a column for it that records have not."""
        return bool(self.function)

    @property
    def is_time(self) -> bool:
        return self.pattern is not None


@lru_cache(256)
def parse(text: str) -> Term:
    """Raises `TermError`."""
    if len(text) > TERM_CHARS_MAX:
        raise TermError(f"a term of {len(text)} characters; at most {TERM_CHARS_MAX} are read")
    return _Parser(text).term()


def parsed(texts: Sequence[str]) -> tuple[Term, ...]:
    """Raises `TermError`, also where two would be the same column."""
    terms = tuple(map(parse, texts))
    seen: dict[str, str] = {}
    for term, text in zip(terms, texts, strict=True):
        other = seen.get(term.column.lower(), "")
        if other:
            raise TermError(f"{other} and {text} are both the column {term.column}: name one, {text} as NAME")
        seen[term.column.lower()] = text
    return terms


def fields_of(texts: Sequence[str]) -> tuple[str, ...]:
    """The table's partition fields, the outer one first."""
    return tuple(term.column for term in parsed(texts))


def sources_of(texts: Sequence[str]) -> tuple[str, ...]:
    """The fields of records that they come from, each once."""
    return tuple(dict.fromkeys(one.source.field for one in parsed(texts) if one.source.is_of_records))


def spelled(term: Term) -> str:
    """The term, as it is spelled where nobody has a choice: what is the same to rows is the same text."""
    source = term.source.field or f"{NOW}()"
    if term.source.reading:
        shape = f', "{term.source.pattern.text}"' if term.source.pattern is not None else ""
        source = f"{term.source.reading}({source}{shape})"
    if not term.is_made:
        return source
    pattern = f'"{term.pattern.text}"' if term.pattern is not None and term.function == FORMAT else ""
    zone = f'"{term.zone}"' if term.zone not in ("", "UTC") else ""
    number = str(term.number) if term.number else ""
    arguments = ", ".join(filter(None, (number, source, pattern, zone)))
    return f"{term.function}({arguments}) as {term.column}"


class Partitioned(Protocol):
    """What a table is told of its partitions: see `table.port.TableSpec`."""

    @property
    def partition_fields(self) -> tuple[str, ...]: ...
    @property
    def partition_terms(self) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True)
class TablePartitions:
    """See `Partitioned`."""

    partition_fields: tuple[str, ...]
    partition_terms: tuple[str, ...]

    @classmethod
    def of(cls, texts: Sequence[str]) -> TablePartitions:
        """As `table.partition_by` has them."""
        return cls(fields_of(texts), tuple(one for one in texts if parse(one).is_made))


def made_terms(of: Partitioned) -> tuple[Term, ...]:
    """Those whose columns records have not."""
    return parsed(of.partition_terms)


def made_columns(of: Partitioned) -> tuple[str, ...]:
    """Their columns."""
    return tuple(term.column for term in made_terms(of))


def record_fields(of: Partitioned) -> tuple[str, ...]:
    """The fields of records that say the table partition, each once."""
    made = {term.column: term for term in made_terms(of)}
    sources = [made[name].source if name in made else Source(field=name) for name in of.partition_fields]
    return tuple(dict.fromkeys(source.field for source in sources if source.is_of_records))


class _Parser:
    """Of one text, from its beginning to its end."""

    def __init__(self, text: str) -> None:
        self._text, self._at, self._began = text, 0, 0

    def term(self) -> Term:
        name = self._name("a field, or a function such as day(ts)")
        made = self._call(name) if self._peek("(") else Term(column=name, source=Source(field=name))
        if not made.is_made and name == KAFKA_TIMESTAMP:
            raise self._wrong("a function of it, such as day(_kafka_timestamp)", at=self._began)
        if self._rest():
            if not made.is_made or self._name('"as"').lower() != "as":
                raise self._wrong('nothing more, or "as NAME" behind a function', at=self._began)
            made = _named(made, self._name("a column's name behind as"))
            if self._rest():
                raise self._wrong("nothing more behind the column's name")
        return made

    def _call(self, function: str) -> Term:
        began = self._began
        if function not in FUNCTIONS:
            raise self._wrong(f"a function that there is: {', '.join(FUNCTIONS)}", at=began)
        self._mark("(")
        number = self._number_and_comma(function) if function in ("minutes", BUCKET, TRUNCATE) else 0
        is_time = function not in (BUCKET, TRUNCATE)
        source = self._source() if is_time else Source(field=self._name("a field"))
        if not is_time and source.is_kafkas:
            raise self._wrong("a field of records", at=self._began)
        shape, zone = TIME_PATTERNS.get(function, ""), ""
        if function == FORMAT:
            self._mark(",")
            shape = self._quoted("a pattern in double quotes")
        made = self._pattern(shape) if is_time else None
        if is_time and self._peek(","):
            self._mark(",")
            zone = self._zone()
        self._mark(")")
        name = f"{_short(source)}_{function}"
        return Term(column=name, function=function, source=source, number=number, pattern=made, zone=zone)

    def _source(self) -> Source:
        name = self._name("where the time comes from: a field, _kafka_timestamp, or now()")
        if not self._peek("("):
            return Source(field=name)
        began = self._began
        self._mark("(")
        if name == NOW:
            self._mark(")")
            return Source()
        if name not in READINGS and name != PARSE:
            known = ", ".join([NOW, *READINGS, PARSE])
            raise self._wrong(f"a field, or one of {known}", at=began)
        field, made = self._name("a field"), None
        if name == PARSE:
            self._mark(",")
            made = self._pattern(self._quoted("a pattern in double quotes"))
            if not made.is_read:
                raise self._wrong("a pattern with yyyy, MM and dd, each once", at=self._began)
        self._mark(")")
        return Source(field=field, reading=name, pattern=made)

    def _number_and_comma(self, function: str) -> int:
        text = self._next("number", "a whole number")
        number = int(text)
        if function == "minutes" and number not in MINUTES:
            raise self._wrong(f"one of {', '.join(map(str, MINUTES))}, which divide an hour", at=self._began)
        if not 1 <= number <= NUMBER_MAX:
            raise self._wrong(f"a number from 1 to {NUMBER_MAX}", at=self._began)
        self._mark(",")
        return number

    def _zone(self) -> str:
        zone = self._quoted("a time zone in double quotes")
        try:
            ZoneInfo(zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise self._wrong('a time zone such as "Europe/Berlin"', at=self._began) from None
        return zone

    def _pattern(self, text: str) -> Pattern:
        try:
            return pattern(text)
        except PatternError as error:
            raise self._wrong(str(error), at=self._began) from None

    # --- tokens -------------------------------------------------------------------------------------

    def _rest(self) -> bool:
        return bool(self._text[self._at :].strip())

    def _peek(self, mark: str) -> bool:
        return self._text[self._at :].lstrip().startswith(mark)

    def _name(self, wanted: str) -> str:
        return self._next("name", wanted)

    def _quoted(self, wanted: str) -> str:
        return self._next("text", wanted)

    def _mark(self, mark: str) -> None:
        before = self._at
        if self._next("mark", f'"{mark}"') != mark:
            self._at = before
            raise self._wrong(f'"{mark}"')

    def _next(self, kind: str, wanted: str) -> str:
        found = _TOKEN.match(self._text, self._at)
        if found is None or found[kind] is None:
            raise self._wrong(wanted)
        self._began, self._at = found.start(kind), found.end()
        return found[kind]

    def _wrong(self, wanted: str, *, at: int | None = None) -> TermError:
        rest = self._text[self._at :]
        place = len(self._text) - len(rest.lstrip()) if at is None else at
        return TermError(f"{self._text!r}, character {place + 1}: wanted is {wanted}")


def _named(term: Term, column: str) -> Term:
    return Term(
        column=column,
        function=term.function,
        source=term.source,
        number=term.number,
        pattern=term.pattern,
        zone=term.zone,
    )


def _short(source: Source) -> str:
    """How a column is called that is made of it."""
    return NOW if source.is_now else "kafka" if source.is_kafkas else source.field

"""Where a column of a table comes from, as `record.columns` spells it. Pure.

| spelled | is |
|---|---|
| `value.address.city` | a field of the value, at whatever depth; what is not spelled is `value.<its name>` |
| `value` | the value as it was sent |
| `key.id`, `key` | likewise, of the Kafka key, which `record.key_format` says how to read |
| `header.trace-id` | the last header of this name |
| `headers` | all of them |
| `topic`, `partition`, `offset`, `timestamp` | the record's |

The names are those of the columns of Spark's Kafka source. What is none of letters, digits, `_` and `-`
stands in backticks, as in Spark: ``value.`odd.name` ``; a backtick in it twice. Of a header all that follows
counts.

Behind it may stand what it is there, where that is not the column's type: `value.n as STRING`. The column's
own type is then made of it, without a loss.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

VALUE, KEY, HEADER, HEADERS = "value", "key", "header", "headers"
TOPIC, PARTITION, OFFSET, TIMESTAMP = "topic", "partition", "offset", "timestamp"
REST = "rest"
"""Not spelled: what `record.rest` asks for."""
REST_FIELD = ""
"""The last column of what a decoder is asked for, where it is to put what no other column names. No path has
such a name."""
WHOLE = (VALUE, KEY, HEADERS, TOPIC, PARTITION, OFFSET, TIMESTAMP)
UNITS = {"SECONDS": 1_000_000, "MILLIS": 1_000, "MICROS": 1}
"""What a number that stands for a time counts since 1970 -> microseconds in one of it."""
SPELLED_MAX = 2_000
"""Characters."""
DEPTH_MAX = 60
"""Levels of a path: decoders read 64."""
HINT = (
    'write "value.field", "key.field", "value", "key", "header.name", "headers", "topic", "partition", '
    '"offset" or "timestamp"'
)

CONNECT, CONNECT_PAYLOAD = "connect", "payload"
"""The envelope of that name, Kafka Connect's, and its field that holds the row."""
CONNECT_FIELDS = frozenset({"schema", CONNECT_PAYLOAD})
HALF_PAIR = re.compile("[\ud800-\udfff]")
_AS = re.compile(r"\s+as\s+(.+)", re.IGNORECASE | re.DOTALL)
_PART = re.compile(r"\.(?:([A-Za-z0-9_-]+)|`((?:[^`]|``)+)`)")
_HEADER = re.compile(r"\.(?:`((?:[^`]|``)+)`|([^\s`]+))")


@dataclass(frozen=True, slots=True)
class Source:
    """One of them."""

    kind: str
    """One of the names above."""
    path: tuple[str, ...] = ()
    """Of a value or key, field in field; of a header, its name. Empty for all of it."""
    reads: str = ""
    """What it is there: a type in Spark DDL, or one of `UNITS`; empty for the column's own type."""

    def __str__(self) -> str:
        return ".".join((self.kind, *map(spelled, self.path)))

    @property
    def from_fields(self) -> bool:
        """Whether a decoder reads it."""
        return self.kind in (VALUE, KEY) and bool(self.path)


def spelled(name: str) -> str:
    """A name of a path, as `parse` reads it."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else "`{}`".format(name.replace("`", "``"))


def source_of(name: str, sources: Mapping[str, str]) -> Source:
    """Return the source of a column: the value's field of its name, or what `sources` names.

    Raises `ValueError` as `parse` does.
    """
    return parse(sources[name]) if name in sources else Source(VALUE, (name,))


def parse(text: str) -> Source:
    """What is spelled so. Raises `ValueError` with a sentence."""
    if len(text) > SPELLED_MAX:
        raise ValueError(f"longer than {SPELLED_MAX} characters")
    whole = text.strip()
    kind = next((one for one in (HEADERS, HEADER, *WHOLE) if _begins(whole, one)), "")
    if not kind:
        raise ValueError(f"{text!r} is nothing that a record has: {HINT}")
    path, rest = _path(kind, whole[len(kind) :])
    reads = _AS.fullmatch(rest)
    if rest.strip() and reads is None:
        raise ValueError(f"{text!r} is not understood from {rest.strip()!r} on: {HINT}")
    if kind == HEADER and not path:
        raise ValueError(f"{text!r} names no header: write header.name, or headers for all")
    if any("\0" in name or HALF_PAIR.search(name) for name in path):  # Arrow would have it otherwise
        raise ValueError(f"{text!r} names a field with a NUL or half a surrogate pair in it: none is read")
    if len(path) > DEPTH_MAX:
        raise ValueError(f"a path of {len(path)} levels; {DEPTH_MAX} are the most")
    return Source(kind, path, reads[1].strip() if reads else "")


def taken(columns: Iterable[tuple[str, str]], rest: str = "") -> frozenset[str]:
    """Names of fields that make no column of their own, given `record.columns` and `record.rest`: a column of
    that name comes from elsewhere, or a column of another name is that field.
    """
    found = {rest} if rest else set()
    for name, spelled in columns:
        source = parse(spelled)
        found.add(name)
        if source.kind == VALUE and len(source.path) == 1:
            found.update(source.path)
    return frozenset(found)


def _begins(text: str, kind: str) -> bool:
    return text.startswith(kind) and not re.match(r"[A-Za-z0-9_-]", text[len(kind) :])


def _path(kind: str, text: str) -> tuple[tuple[str, ...], str]:
    """The names that follow, and what is behind them."""
    if kind == HEADER:
        match = _HEADER.match(text)
        if match is None:
            return (), text
        return (match[1].replace("``", "`") if match[1] else match[2],), text[match.end() :]
    names: list[str] = []
    while kind in (VALUE, KEY) and (match := _PART.match(text)):
        names.append(match[1] or match[2].replace("``", "`"))
        text = text[match.end() :]
    return tuple(names), text

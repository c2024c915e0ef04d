"""What a message may hold, and how much of it is kept. Pure: standard library only.

Anybody may write to the topic, and readers keep what they hear, in the driver among others. So of every text
and of every list there is a bound. What a person reads is cut, by who writes it and again by who reads it;
what cannot be is neither written nor read.
"""

from __future__ import annotations

import re

from control_topic.errors import Malformed

RAW_BYTES_MAX = 1024 * 1024
"""A record larger than this is refused before it is parsed. Kafka's own default limit is the same."""

TOPIC_CHARS_MAX = 249
"""Kafka's own limit."""

NAME_CHARS_MAX = 200
"""Of a pipeline, a run, a sender, an incarnation, a transaction's id, an instant: readers keep them, and put
them into sentences."""

WORD_CHARS_MAX = 200
"""Of a word of `control_topic.causes` or `controls`: one that is not known is shown, and counted as other."""

REASON_CHARS_MAX = 8_000
"""Of why a participant leaves, a transaction is aborted, a run halts: as many as a sentence of the table
service has."""

REJECT_CHARS_MAX = 1_000
"""Of why a record did not become a row: a participant keeps no more."""

COLUMNS_CHARS_MAX = 1024 * 1024
"""Of the columns of a WRITE_STATUS: as many as a schema of records has."""

ADDRESS_CHARS_MAX = 300
"""Of where a run answers: a host's name has 253 characters at most."""

SOURCE_PARTITIONS_MAX = 100_000
"""Of one list, of all its topics together."""

FILES_MAX = 100_000
"""Of one WRITE_STATUS."""

WRITERS_MAX = 10_000
"""Of the workers that one WRITE_STATUS names."""

LISTS_BYTES_MAX = 16 * 1024 * 1024
"""Of what a body holds beside files, as it travels: so many source partitions, of twenty thousand topics with
the longest names. Numbers grow eightfold when they are read, small entries more."""

ENTRIES_MAX = 4 * SOURCE_PARTITIONS_MAX
"""Of a body, of all kinds together: looked at before they are read."""

_TOPIC = re.compile(rf"[A-Za-z0-9._-]{{1,{TOPIC_CHARS_MAX}}}")
_SHOWN_MAX = 60


def topic_name(name: str) -> str:
    """The name. Raises `Malformed` for one that Kafka does not allow."""
    if _TOPIC.fullmatch(name) is None or name in (".", ".."):
        raise Malformed(f"{name[:_SHOWN_MAX]!r}, of {len(name)} characters, is not a topic's name")
    return name


def short_enough(*names: str) -> None:
    """Raises `Malformed` for a name or an id that is too long."""
    if (longest := max(map(len, names), default=0)) > NAME_CHARS_MAX:
        raise Malformed(f"a name or an id of {longest} characters, {NAME_CHARS_MAX} are allowed")


def few_enough(count: int, count_max: int, what: str) -> None:
    """Raises `Malformed` for a list that is too long: before anything is made of it."""
    if count > count_max:
        raise Malformed(f"{count} {what}, at most {count_max} are read")


def readable(text: str) -> str:
    """Text for people, made fit for UTF-8: a lone surrogate (an odd file name) becomes a question mark."""
    return text.encode("utf-8", "replace").decode("utf-8")


def cut(text: str, chars_max: int) -> str:
    """As `readable`, of at most so many characters."""
    return readable(text[:chars_max])

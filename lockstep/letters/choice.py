"""Which dead letters are meant: by record, reason and time, each once, and none that was sent back. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from lockstep.config.units import parse_duration_ms
from lockstep.errors import ConfigError, Failed
from lockstep.letters.letter import Letter, NoLetter, Read
from lockstep.letters.marks import SentBack

KNOWN_MAX = 2_000_000
"""So many letters are told apart at most: some 200 bytes of memory each."""
UNREADABLE_NAMED_MAX = 3

_RECORDS = re.compile(
    r"(?P<topic>[A-Za-z0-9._-]{1,249})(?::(?P<number>\d{1,9})(?:=(?P<first>\d{1,18})(?P<to>-(?P<last>\d{1,18})?)?)?)?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """Records of a source topic: all, those of a source partition, or the offsets `[first, last]` of it."""

    topic: str
    number: int | None = None
    first: int = 0
    last: int | None = None

    def __contains__(self, letter: Letter) -> bool:
        topic, number = letter.partition
        there = topic == self.topic and self.number in (None, number)
        return there and letter.offset >= self.first and (self.last is None or letter.offset <= self.last)


def parse_records(text: str) -> Records:
    """`TOPIC`, `TOPIC:P`, `TOPIC:P=OFFSET`, `TOPIC:P=FIRST-LAST`, `TOPIC:P=FIRST-`. Raises `ConfigError`."""
    found = _RECORDS.fullmatch(text)
    if found is None:
        raise ConfigError(
            f"--record {text!r} is not TOPIC, TOPIC:P, TOPIC:P=OFFSET or TOPIC:P=FIRST-LAST: write "
            "events:3=100-200"
        )
    number, first, to, last = found["number"], found["first"], found["to"], found["last"]
    if first is None:
        return Records(topic=found["topic"], number=None if number is None else int(number))
    end = int(first) if to is None else int(last) if last is not None else None
    if end is not None and end < int(first):
        raise ConfigError(f"--record {text!r} ends before it begins")
    return Records(topic=found["topic"], number=int(number), first=int(first), last=end)


def parse_since(text: str, now_ms: int) -> int:
    """Parse `2h`, so long ago, or a time such as `2026-12-31T15:00`, this machine's where it names no zone.

    Milliseconds since 1970. Of a local time that the clock shows twice, or skips, the earlier meaning, so
    that no letter is left out. Raises `ConfigError`.
    """
    try:
        return now_ms - parse_duration_ms(text)
    except ValueError:
        pass
    try:
        at = datetime.fromisoformat(text)
        return int(min(at.replace(fold=fold).timestamp() for fold in (0, 1)) * 1_000)
    except (ValueError, OverflowError, OSError) as error:
        raise ConfigError(
            f"--since {text!r} is neither a duration such as 2h nor a time such as 2026-12-31T15:00"
        ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What is asked for. Empty: all."""

    topics: Collection[str]
    """The pipeline's source topics: other pipelines may share a dead-letter topic."""
    records: tuple[Records, ...] = ()
    reason: str = ""
    """A part of it, in any case of letters."""
    since_ms: int | None = None
    """When it was set aside, at the earliest."""

    def means(self, letter: Letter) -> bool:
        return (
            letter.partition.topic in self.topics
            and (not self.records or any(letter in some for some in self.records))
            and self.reason.lower() in letter.reason.lower()
            and (self.since_ms is None or letter.place.time_ms >= self.since_ms)
        )


@dataclass(slots=True, kw_only=True)
class Counts:
    """What became of all that was read."""

    read: int = 0
    others: int = 0
    """Of topics that are not the pipeline's."""
    again: int = 0
    """Set aside once more, as what was aborted is."""
    sent_back: int = 0
    """Before, and not shown."""
    unreadable: int = 0
    unreadable_named: list[NoLetter] = field(default_factory=list)
    """The first few."""


class Chooser:
    """Takes all letters of some topics, in their order, and gives those that are meant.

    `sent_back`: by identity, those that were; they are passed over unless `with_sent_back`. `forgets`: with
    too many to be told apart it begins anew, so that one may come twice; else that is an error.
    """

    def __init__(
        self,
        choice: Choice,
        sent_back: Mapping[bytes, SentBack],
        *,
        with_sent_back: bool = False,
        forgets: bool = False,
        known_max: int = KNOWN_MAX,
    ) -> None:
        self.counts = Counts()
        self._choice, self._sent_back = choice, sent_back
        self._with_sent_back, self._forgets, self._known_max = with_sent_back, forgets, known_max
        self._known: set[bytes] = set()

    def take(self, arrived: Iterable[Read]) -> list[Letter]:
        """Those of them that are meant and were not given before. Raises `Failed`."""
        return [one for one in arrived if self._counted(one)]  # type: ignore[misc]

    def _counted(self, one: Read) -> bool:
        counts = self.counts
        counts.read += 1
        if isinstance(one, NoLetter):
            counts.unreadable += 1
            if len(counts.unreadable_named) < UNREADABLE_NAMED_MAX:
                counts.unreadable_named.append(one)
            return False
        if not self._choice.means(one):
            counts.others += one.partition.topic not in self._choice.topics
            return False
        identity = one.identity
        if identity in self._known:
            counts.again += 1
            return False
        if len(self._known) >= self._known_max:
            if not self._forgets:
                raise Failed(
                    f"More than {self._known_max:,} dead letters are meant, and so many cannot be told "
                    "apart in memory: "
                    "choose fewer with --record, --since or --reason."
                )
            self._known.clear()
        self._known.add(identity)
        if identity in self._sent_back and not self._with_sent_back:
            counts.sent_back += 1
            return False
        return True

"""What the control topic tells of: messages as they were heard, transactions, workers, news. Pure.

Times are the broker's, in milliseconds of the Unix epoch, and 0 where a thing has not happened.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple, TypeAlias

from control_topic.messages import Message, Range, Reject, SourcePartition, WriteProgress
from control_topic.spelling import some

REASON_LENGTH_MAX = 400
"""Characters. What somebody wrote may be of any length; what is remembered is not."""
SOURCE_PARTITIONS_MAX = 100_000
"""Of a run, of a transaction: those beyond are not remembered, for they may be made up."""
NAME_LENGTH_MAX = 200
TEXT_LENGTH_MAX = 4 * REASON_LENGTH_MAX
"""Of a text in which names are put: it grows shorter where they are shorter than incarnations."""
REJECTS_NAMED_MAX = 20
REASONS_COUNTED_MAX = 20
END_REQUESTS_MAX = 64
LINES_MAX = 500
"""Messages of one transaction."""
DETAILS_MAX = 3 * SOURCE_PARTITIONS_MAX
"""Ranges, writers and so on of all transactions of a run: the oldest are forgotten first. Fifty transactions
of nearly three thousand source partitions have as many."""
WORKERS_MAX = 4_096
"""Of a transaction: those beyond are made up."""
WRITERS_MAX = 8
"""Of an older transaction: those who answered last."""
LATE_MS = 1_000
"""Who answers so much later than everybody else is late."""
LATE_NAMED_MAX = 3
AHEAD_MS = 60_000
"""So far the broker's clock may be ahead of the observer's."""
INCARNATION_LEAST = 12
"""Characters; ours have 32. A shorter one, which somebody made up, would be found within words."""
_WORDS = re.compile(r"[^\s()\[\]{},;:'\"]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """A readable message of one pipeline."""

    offset: int
    time_ms: int
    message: Message
    marked: bool = True
    """It carries a mark of some run, which nobody has checked here."""


def dated(heard: Heard, now_ms: int) -> Heard:
    """Who writes may choose the time. What is of times to come is of now; `now_ms` 0: nobody knows it."""
    if now_ms and heard.time_ms > now_ms + AHEAD_MS:
        return replace(heard, time_ms=now_ms)
    return heard


class Line(NamedTuple):
    """A message of a transaction, as people read it."""

    offset: int
    time_ms: int
    type: str
    sender: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrote:
    """What one worker wrote in a transaction."""

    name: str
    incarnation: str
    answered_ms: int
    records: int
    files: int
    size_bytes: int
    ranges: tuple[Range, ...] = ()
    """Empty in older transactions, of which only sums are kept."""


class Asked(NamedTuple):
    """Somebody asked for the end of a transaction."""

    name: str
    reason: str
    time_ms: int


@dataclass(slots=True)
class RejectsSeen:
    """Rejects of one transaction or of many: all are counted, the newest named."""

    count: int = 0
    by_reason: dict[str, int] = field(default_factory=dict)
    """At most `REASONS_COUNTED_MAX` of them; those beyond are only in `count`."""

    sample: list[tuple[Reject, int]] = field(default_factory=list)
    """The newest, oldest first, each with when it was told of."""

    def add(self, rejects: tuple[Reject, ...], count: int, time_ms: int) -> None:
        """Of one WRITE_STATUS: those by name, and how many there were."""
        self.count += count
        for one in rejects:
            self._counted(one.reason[:REASON_LENGTH_MAX], 1)
        newest = rejects[-REJECTS_NAMED_MAX:]
        self._sampled([(replace(one, reason=one.reason[:REASON_LENGTH_MAX]), time_ms) for one in newest])

    def join(self, other: RejectsSeen) -> None:
        """Those of a transaction that is committed."""
        self.count += other.count
        for reason, count in other.by_reason.items():
            self._counted(reason, count)
        self._sampled(other.sample)

    def _counted(self, reason: str, count: int) -> None:
        if reason in self.by_reason or len(self.by_reason) < REASONS_COUNTED_MAX:
            self.by_reason[reason] = self.by_reason.get(reason, 0) + count

    def _sampled(self, more: list[tuple[Reject, int]]) -> None:
        self.sample = [*self.sample, *more][-REJECTS_NAMED_MAX:]


def named(text: str, names: Mapping[str, str]) -> str:
    """The protocol knows incarnations; people know workers. `names`: incarnation -> worker.

    Cut before and after each name, for names may be made up so that a text grows with every one. The text's
    words are looked for among the names, not thousands of names in the text.
    """
    text = text[:TEXT_LENGTH_MAX]
    for incarnation in dict.fromkeys(one.rstrip(".") for one in _WORDS.findall(text)):
        if len(incarnation) >= INCARNATION_LEAST and (known := names.get(incarnation)) is not None:
            name = known[:NAME_LENGTH_MAX]
            text = text.replace(f"{name} ({incarnation})", name).replace(incarnation, name)[:TEXT_LENGTH_MAX]
    return text


class Phase(Enum):
    WRITING = "writing"
    ENDING = "ending"
    COMMITTED = "committed"
    ABORTED = "aborted"


@dataclass(slots=True, kw_only=True)
class Transaction:
    """One transaction, from its START to what became of it."""

    id: str
    instant: str
    epoch: int
    writers: frozenset[str]
    """The incarnations that write in it."""

    started_ms: int
    run: str = ""
    workers: int = 0
    """So many write in it."""

    end_ms: int = 0
    """END was first said."""

    end_reason: str = ""
    """Of `control_topic.causes.END_REASONS`; empty where nobody said it."""

    written_ms: int = 0
    """The last of them answered; 0 while one has not."""

    ended_ms: int = 0
    """It was committed or aborted, or is known to have been."""

    phase: Phase = Phase.WRITING
    announced: bool = False
    """An ACK or ABORT told its end; else the next START did."""

    orphaned: bool = False
    """A newer coordinator or run has come, and what becomes of it is not known yet."""

    reason: str = ""
    """Why it was aborted, or how its commit was found."""

    cause: str = ""
    """Of an aborted one, of `control_topic.causes.ABORT_CAUSES`; empty where nobody said it."""

    took_ms: Mapping[str, int] = field(default_factory=dict)
    """Parts of its commit, of `control_topic.causes.COMMIT_PARTS`, as far as they were told."""

    answered: dict[str, int] = field(default_factory=dict)
    """Incarnation -> when its first WRITE_STATUS was heard."""

    progress: dict[str, WriteProgress] = field(default_factory=dict)
    """Incarnation -> how far it said that it is with its files."""

    progress_ms: int = 0
    """Somebody last said so."""

    records: int = 0
    """Offsets that held a record, of those who have answered."""

    late_records: int = 0
    """Behind the table's watermark; `absurd_times`: too far ahead for it."""

    absurd_times: int = 0
    files: int = 0
    size_bytes: int = 0
    next: dict[SourcePartition, int] = field(default_factory=dict)
    """Where those who have answered came to."""

    wrote: dict[str, Wrote] = field(default_factory=dict)
    """By incarnation, of those who have answered."""

    late: str = ""
    """Who kept the others waiting, or did not answer after all; empty where nobody did."""

    late_by_ms: int = 0
    """Longer than everybody else; 0 for who did not answer."""

    asked: list[Asked] = field(default_factory=list)
    """Who asked for its end, in order, `END_REQUESTS_MAX` at most."""

    rejects: RejectsSeen = field(default_factory=RejectsSeen)
    details: int = 0
    """So many things are remembered of it that `reduce` forgets, beside its messages."""

    lines: list[Line] = field(default_factory=list)
    """Its messages, `LINES_MAX` at most, where they are kept."""

    @property
    def is_open(self) -> bool:
        return self.phase in (Phase.WRITING, Phase.ENDING)

    def note_late(self, names: Mapping[str, str]) -> None:
        """It has ended: who kept everybody waiting, by a second and more, or has not answered at all."""
        times = sorted(self.answered.items(), key=lambda item: item[1])
        if self.end_ms and (silent := self.writers - self.answered.keys()):
            self.late = some(sorted(names.get(one, one) for one in silent), shown_max=LATE_NAMED_MAX)
        elif len(times) > 1 and times[-1][1] - times[-2][1] >= LATE_MS:
            self.late, self.late_by_ms = names.get(times[-1][0], times[-1][0]), times[-1][1] - times[-2][1]

    def reduce(self, *, lines_max: int) -> None:
        """Forget the details: ranges, and messages beyond the last few. Sums stay."""
        if self.is_open:
            return
        last = sorted(self.wrote.values(), key=lambda one: one.answered_ms)[-WRITERS_MAX:]
        self.wrote = {
            one.incarnation: Wrote(
                name=one.name,
                incarnation=one.incarnation,
                answered_ms=one.answered_ms,
                records=one.records,
                files=one.files,
                size_bytes=one.size_bytes,
            )
            for one in last
        }
        self.writers = frozenset(self.wrote)
        self.answered = {one.incarnation: one.answered_ms for one in last}
        self.next, self.progress, self.rejects = {}, {}, RejectsSeen(count=self.rejects.count)
        self.asked, self.details = self.asked[-1:], 0
        self.lines = self.lines[-lines_max:] if lines_max else []


@dataclass(slots=True, kw_only=True)
class WorkerSeen:
    """A worker, as its last JOIN and LEAVE tell."""

    name: str
    incarnation: str
    left: bool = False
    """It gave up all that it had, and has failed in nothing."""


@dataclass(frozen=True, slots=True)
class RunIsUp:
    run: str


@dataclass(frozen=True, slots=True)
class Claimed:
    coordinator: str
    epoch: int


@dataclass(frozen=True, slots=True)
class Joined:
    worker: str
    fresh: bool
    """A new incarnation; else it only owns other source partitions than before."""

    partitions: tuple[SourcePartition, ...]


@dataclass(frozen=True, slots=True)
class Left:
    """A worker ended because it failed."""

    worker: str
    reason: str


@dataclass(frozen=True, slots=True)
class Committed:
    transaction: Transaction


@dataclass(frozen=True, slots=True)
class Aborted:
    transaction: Transaction


@dataclass(frozen=True, slots=True)
class RunHalted:
    reason: str


News: TypeAlias = RunIsUp | Claimed | Joined | Left | Committed | Aborted | RunHalted
"""What somebody who looks on would want to be told. Repeats are no news."""

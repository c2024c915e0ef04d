"""Proof that a committed transaction rejected the record of a dead letter. Pure.

A worker writes letters before the commit of their transaction. If that transaction aborts, its letters remain
in the topic, and the next transaction reads the same records again: with another schema they become rows. A
letter alone therefore proves nothing. The table's commits do:

* a range of a commit covers the record's offset, and
* the commit lists the offset as a reject, or
* the commit lists only some of its rejects (`REJECTS_LISTED_MAX`), and the dead-letter topics hold letters
  that its run wrote of exactly as many records in its ranges as it counts. A worker of that run writes a
  letter of each reject before the commit, and one run decodes a record alike each time, so that an equal
  count means the same records. Letters of all runs would prove nothing: some may be deleted, and as many
  aborted.

An operator may move offsets back, so that several commits cover one offset. A record that any of them did not
reject is a row.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from control_topic.messages import Offsets, Range, SourcePartition
from lockstep.errors import Failed
from lockstep.letters.letter import Letter
from table.chain import continues
from table.state import TableState

GENESIS = "genesis"
CLOCK_DIFFERENCE_MS = 7_200_000
"""Assumed maximum between the clocks of a worker and of the table, summer time included."""
SPANS_MAX = 2_000_000
LISTED_MAX = 20_000_000
COUNTED_MAX = 2_000_000
"""Limits of memory: spans, listed rejects and counted letters."""


class Standing(StrEnum):
    """State of a letter's record in the table."""

    REJECTED = "rejected"
    ROW = "committed_as_row"
    OPEN = "not_committed"
    UNCOVERED = "not_covered"
    UNDECIDED = "undecided"


@dataclass(slots=True, kw_only=True)
class _Rejects:
    """Rejects of one commit."""

    count: int
    listed: dict[SourcePartition, array[int]]
    """Offsets, ascending."""
    listed_count: int
    run: str = ""
    letters: set[bytes] = field(default_factory=set)
    """Identities of the run's letters of records that the commit covers; empty where it lists all rejects."""

    @property
    def is_complete(self) -> bool:
        return self.listed_count >= self.count

    def standing(self, letter: Letter) -> Standing:
        offsets = self.listed.get(letter.partition)
        if offsets is not None:
            at = bisect_left(offsets, letter.offset)
            if at < len(offsets) and offsets[at] == letter.offset:
                return Standing.REJECTED
        if self.is_complete:
            return Standing.ROW
        if len(self.letters) != self.count:
            return Standing.UNDECIDED
        return Standing.REJECTED if letter.identity in self.letters else Standing.ROW


@dataclass(frozen=True, slots=True)
class _Span:
    """Committed offsets `[start, next)` of one source partition."""

    start: int
    next: int
    topic_id: str
    rejects: _Rejects | None
    """None: all its records are rows."""


class _Spans:
    """Spans of one source partition, in lists of spans that do not overlap, each in descending order.

    Commits come newest first. A commit before an operator moved offsets back begins the next list.
    """

    def __init__(self) -> None:
        self._lists: list[list[_Span]] = [[]]

    def add(self, span: _Span) -> int:
        """Add a span and return by how many the number of spans grew."""
        spans = self._lists[-1]
        last = spans[-1] if spans else None
        if last is not None and span.next > last.start:
            self._lists.append([span])
            return 1
        if (
            last is not None
            and last.rejects is span.rejects is None
            and (last.start, last.topic_id) == (span.next, span.topic_id)
        ):
            spans[-1] = _Span(span.start, last.next, last.topic_id, None)
            return 0
        spans.append(span)
        return 1

    def covering(self, offset: int) -> Iterator[_Span]:
        for spans in self._lists:
            at = bisect_left(spans, -offset, key=lambda span: -span.start)
            if at < len(spans) and offset < spans[at].next:
                yield spans[at]


class CommittedRejects:
    """Rejects of all commits of one pipeline, for records of `topics`.

    First `add` every commit, the newest first; then, if `lists_only_some`, `count` every letter of the
    dead-letter topics; then ask for `standing`. Raises `Failed` where a commit is missing, or for more than
    memory is meant for.
    """

    def __init__(self, topics: Collection[str]) -> None:
        self._topics = frozenset(topics)
        self._spans: dict[SourcePartition, _Spans] = {}
        self._topic_ids: dict[str, list[tuple[str, int]]] = {}
        """Topic -> topic ids, the newest first, each with the time of its first commit."""
        self._committed: Offsets = {}
        self._earliest: TableState | None = None
        self._span_count = self._listed_count = self._counted = 0
        self.lists_only_some = False

    @property
    def begins_with(self) -> str:
        """Instant of the earliest commit if it is not the pipeline's first one; else empty."""
        earliest = self._earliest
        return "" if earliest is None or earliest.kind == GENESIS else earliest.instant

    def add(self, state: TableState, completed_ms: int) -> None:
        """Add the commit before those that were added; `completed_ms`: milliseconds since 1970."""
        if self._earliest is None:
            self._committed = state.offsets
        elif not continues(state, self._earliest):
            raise Failed(
                f"The timeline lacks commits between instants {state.instant} and {self._earliest.instant}: "
                "their records may be rows. Nothing was sent. Try again; if it stays so, lockstep verify "
                "names what is missing."
            )
        self._earliest = state
        for topic, topic_id in state.topics.items():
            ids = self._topic_ids.setdefault(topic, [])
            if ids and ids[-1][0] == topic_id:
                ids.pop()
            ids.append((topic_id, completed_ms))
        ranges = [item for item in state.ranges if item.partition.topic in self._topics]
        if ranges:
            self._take(state, ranges)

    def _take(self, state: TableState, ranges: list[Range]) -> None:
        rejects = _rejects(state)
        for item in ranges:
            if item.start < item.next:
                span = _Span(item.start, item.next, state.topics.get(item.partition.topic, ""), rejects)
                self._span_count += self._spans.setdefault(item.partition, _Spans()).add(span)
        if rejects is not None:
            self._listed_count += rejects.listed_count
            self.lists_only_some |= not rejects.is_complete
        if self._span_count > SPANS_MAX or self._listed_count > LISTED_MAX:
            raise Failed(
                f"The table's commits hold more than {SPANS_MAX:,} ranges with rejects, or {LISTED_MAX:,} "
                "listed rejects: they do not fit into memory, and no letter can be proved to be a reject."
            )

    def count(self, letter: Letter) -> None:
        """Count a letter of the dead-letter topics, whether it is to be sent or not."""
        for span in self._covering(letter):
            rejects = span.rejects
            if rejects is None or rejects.is_complete or not letter.run or letter.run != rejects.run:
                continue
            if letter.identity in rejects.letters:
                continue
            self._counted += 1
            if self._counted > COUNTED_MAX:
                raise Failed(
                    f"More than {COUNTED_MAX:,} dead letters belong to commits that do not list all their "
                    "rejects: they do not fit into memory, and none of them can be proved to be a reject."
                )
            rejects.letters.add(letter.identity)

    def standing(self, letter: Letter) -> Standing:
        found = {
            Standing.ROW if span.rejects is None else span.rejects.standing(letter)
            for span in self._covering(letter)
        }
        for worst in (Standing.ROW, Standing.UNDECIDED, Standing.REJECTED):
            if worst in found:
                return worst
        is_open = letter.offset >= self._committed.get(letter.partition, 0)
        return Standing.OPEN if is_open else Standing.UNCOVERED

    def _covering(self, letter: Letter) -> Iterator[_Span]:
        spans = self._spans.get(letter.partition)
        if spans is None:
            return
        ids = self._ids_at(letter.partition.topic, letter.place.time_ms)
        for span in spans.covering(letter.offset):
            if not ids or span.topic_id in ids:
                yield span

    def _ids_at(self, topic: str, time_ms: int) -> set[str]:
        """Return the topic ids that a letter of this time may have; a recreated topic repeats offsets."""
        found: set[str] = set()
        ended_ms: int | None = None
        ids = self._topic_ids.get(topic, [])
        for place, (topic_id, began_ms) in enumerate(ids):
            begun = place == len(ids) - 1 or time_ms >= began_ms - CLOCK_DIFFERENCE_MS
            if begun and (ended_ms is None or time_ms <= ended_ms + CLOCK_DIFFERENCE_MS):
                found.add(topic_id)
            ended_ms = began_ms
        return found


def _rejects(state: TableState) -> _Rejects | None:
    """Return the rejects of a commit; None where it has none."""
    count = max(state.reject_count, len(state.rejects))
    if not count:
        return None
    by_partition: dict[SourcePartition, list[int]] = {}
    for one in state.rejects:
        by_partition.setdefault(one.partition, []).append(one.offset)
    listed = {partition: array("q", sorted(offsets)) for partition, offsets in by_partition.items()}
    return _Rejects(count=count, listed=listed, listed_count=len(state.rejects), run=state.run)

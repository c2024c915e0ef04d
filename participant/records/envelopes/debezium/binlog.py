"""Positions in a binlog of MySQL or MariaDB that begin again at zero within one file. Pure.

The header of a binlog event has 32 bits for its position. A file becomes larger only by a transaction that
begins in it, since the server rotates its log between transactions. Beyond 4 GiB the positions that a
connector reports begin again, and a later change would count as older than an earlier one.

A change lies next to the furthest one that was read of its file: less than 2 GiB before it or behind it. What
is sent once more has old times: a change that is earlier than the furthest one begins no range, and one that
is earlier than the begin of the last range is not in it. Positions are known by Kafka offset: a source
partition that is read again gets the same numbers. A worker that starts behind the begin of a range knows of
it if it is among the records that it reads back.

Source: "Binary Log Event Header" in MySQL's internals manual, `max_binlog_cache_size` in its reference
manual.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from control_topic.messages import SourcePartition

POS_BITS = 33
"""Width of the position in a number, below the bits of the file."""
POS_MAX = (1 << POS_BITS) - 1
RANGE = 1 << 32
HALF = RANGE // 2
TURNS_MAX = 32
FILES_MAX = 8
"""Remembered for each connector of a source partition."""
CONNECTORS_MAX = 1_000
BEYOND = (
    "field source.pos began again at zero twice in one binlog file: it holds a transaction beyond 8 GiB. "
    "Set max_binlog_cache_size=4294967296 in the server, and take a snapshot of the table"
)

Numbers = npt.NDArray[np.int64]
Key = tuple[str, str]


class _File(NamedTuple):
    """How far a binlog file was read: the furthest position, when that change was made, and when the last
    range began. Times are milliseconds since 1970."""

    end: int
    end_ms: int
    begun_ms: int = 0

    def ranges_of(self, position: int, time_ms: int) -> int:
        """Return the ranges before a position: those by which it is next to the end.

        What was made before the end begins no range, and what was made before the last range is not in it.
        """
        reached = self.end // RANGE
        ranges = max(0, (self.end - position + HALF) // RANGE)
        if ranges > reached and time_ms < self.end_ms:
            ranges = reached
        return ranges - 1 if ranges == reached > 0 and time_ms < self.begun_ms else ranges

    def with_change(self, position: int, time_ms: int) -> _File:
        """Return the same behind a change at this position, whose ranges are in it."""
        if position <= self.end:
            return self
        begins = position // RANGE > self.end // RANGE
        return _File(position, time_ms, time_ms if begins else self.begun_ms)


@dataclass(slots=True)
class _Read:
    """How far one connector's log was read.

    `turns`: at which offsets the number of ranges changed, ascending, and to what. `files`: the last ones, by
    their numbers.
    """

    offset: int
    turns: list[tuple[int, int]] = field(default_factory=list)
    files: dict[int, _File] = field(default_factory=dict)

    def ranges_at(self, offset: int) -> int:
        """Return how many whole ranges lie before the positions at an offset that was read."""
        at = bisect_right(self.turns, offset, key=lambda turn: turn[0])
        return self.turns[at - 1][1] if at else 0

    def ranges_of(self, number: int, time_ms: int) -> int:
        """Return the ranges of the next number, and remember it."""
        which, position = number >> POS_BITS, number & POS_MAX
        file = self.files.pop(which, None) or _File(position, time_ms)
        ranges = file.ranges_of(position, time_ms)
        self.files[which] = file.with_change(position + ranges * RANGE, time_ms)
        while len(self.files) > FILES_MAX:
            del self.files[next(iter(self.files))]
        return ranges

    @property
    def furthest(self) -> int | None:
        """The number of the last file's end; None where a file has more than one range."""
        if any(file.end >= RANGE for file in self.files.values()):
            return None
        which, file = next(reversed(self.files.items()))
        return which << POS_BITS | file.end


class BinlogRanges:
    """Counts the ranges of 4 GiB before each position. Not for several threads."""

    def __init__(self) -> None:
        self._read: dict[tuple[SourcePartition, Key], _Read] = {}

    def expand(
        self, partition: SourcePartition, key: Key, offsets: Numbers, numbers: Numbers, times_ms: Numbers
    ) -> Numbers:
        """Return the numbers of changes of one connector, with the ranges before them added.

        All are in topic order. `numbers`: file and position. A result above `POS_MAX` in its lower bits would
        be one of another file: it is -1.
        """
        if not len(offsets):
            return numbers
        read = self._read.pop((partition, key), None)
        if read is None:
            read = _Read(int(offsets[0]) - 1)
        self._read[partition, key] = read  # the newest is last
        while len(self._read) > CONNECTORS_MAX:
            del self._read[next(iter(self._read))]
        known = int(np.searchsorted(offsets, read.offset, side="right"))
        ranges = np.zeros(len(offsets), dtype=np.int64)
        if read.turns:
            ranges[:known] = [read.ranges_at(offset) for offset in offsets[:known].tolist()]
        if known < len(offsets):
            ranges[known:] = _new(read, offsets[known:], numbers[known:], times_ms[known:])
        if not ranges.any():
            return numbers
        positions = (numbers & POS_MAX) + ranges * RANGE
        expanded: Numbers = np.where(positions > POS_MAX, -1, numbers + ranges * RANGE)
        return expanded


def _new(read: _Read, offsets: Numbers, numbers: Numbers, times_ms: Numbers) -> Numbers:
    """Return the ranges of what was not read before, and remember them."""
    ranges = np.zeros(len(offsets), dtype=np.int64)
    current = read.ranges_at(read.offset)
    read.offset = int(offsets[-1])
    furthest = read.furthest if read.files else int(numbers[0])
    if furthest is not None and _grow(furthest, numbers):
        at = int(numbers.argmax())
        read.ranges_of(int(numbers[at]), int(times_ms[at]))
        return ranges
    for at, (number, time_ms) in enumerate(zip(numbers.tolist(), times_ms.tolist(), strict=True)):
        ranges[at] = read.ranges_of(number, time_ms)
        if ranges[at] != current:
            current = int(ranges[at])
            read.turns.append((int(offsets[at]), current))
    del read.turns[:-TURNS_MAX]
    return ranges


def _grow(furthest: int, numbers: Numbers) -> bool:
    """Whether no number lies far before those that precede it."""
    before = np.maximum.accumulate(np.concatenate([[furthest], numbers[:-1]]))
    return bool((before - numbers <= HALF).all())

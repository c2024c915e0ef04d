"""Positions in a binlog of MySQL or MariaDB that begin again at zero within one file. Pure.

The header of a binlog event has 32 bits for its position. A file becomes larger only by a transaction that
begins in it, since the server rotates its log between transactions. Beyond 4 GiB the positions that a
connector reports begin again, and a later change would count as older than an earlier one.

A position that falls by more than half of this range, in the same file, has begun again. If it rises by so
much and the change is no later, the connector sends once more what lies before that point. So neighbours on
the topic must lie less than 2 GiB apart in a file. Positions are known by Kafka offset: a source partition
that is read again gets the same numbers. A worker that starts behind that point knows of it if it is among
the records that it reads back.

Source: "Binary Log Event Header" in MySQL's internals manual, `max_binlog_cache_size` in its reference
manual.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from control_topic.messages import SourcePartition

POS_BITS = 33
"""Of a number: those of the position, below those of the file."""
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


@dataclass(slots=True)
class _Read:
    """How far one connector's log was read.

    `turns`: at which offsets the number of ranges changed, ascending, and to what. `ends`: of files with more
    than one range, how far each was read.
    """

    offset: int
    number: int
    time_ms: int
    turns: list[tuple[int, int]] = field(default_factory=list)
    ends: dict[int, int] = field(default_factory=dict)

    def ranges_at(self, offset: int) -> int:
        """Return how many whole ranges lie before the positions at an offset that was read."""
        at = bisect_right(self.turns, offset, key=lambda turn: turn[0])
        return self.turns[at - 1][1] if at else 0

    def move(self, before: int, ranges: int, to: int) -> int:
        """Return the ranges of the number `to`, which is of another file than `before`.

        What a connector sends once more of an earlier file is from the end of what was read there.
        """
        if ranges:
            file, end = before >> POS_BITS, (before & POS_MAX) + ranges * RANGE
            self.ends[file] = max(end, self.ends.pop(file, 0))
            while len(self.ends) > FILES_MAX:
                del self.ends[next(iter(self.ends))]
        return max(0, self.ends.get(to >> POS_BITS, 0) - (to & POS_MAX)) // RANGE


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
            read = _Read(int(offsets[0]) - 1, int(numbers[0]), int(times_ms[0]))
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
    before = np.concatenate([[read.number], numbers[:-1]])
    is_old = times_ms <= np.concatenate([[read.time_ms], times_ms[:-1]])
    moved = numbers - before
    is_same = numbers >> POS_BITS == before >> POS_BITS
    turns = ~is_same | (moved < -HALF) | ((moved > HALF) & is_old)
    current = read.ranges_at(read.offset)
    ranges = np.full(len(offsets), current, dtype=np.int64)
    for at in np.flatnonzero(turns).tolist():
        if is_same[at]:
            following = current + 1 if moved[at] < 0 else max(0, current - 1)
        else:
            following = read.move(int(before[at]), current, int(numbers[at]))
        if following != current:
            current = following
            ranges[at:] = current
            read.turns.append((int(offsets[at]), current))
    del read.turns[:-TURNS_MAX]
    read.offset, read.number, read.time_ms = int(offsets[-1]), int(numbers[-1]), int(times_ms[-1])
    return ranges

"""How often each offset was met: one byte per offset, in pages that are made where something was met."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Int64s: TypeAlias = npt.NDArray[np.int64]
Intervals: TypeAlias = npt.NDArray[np.int64]
"""Shape (n, 2): sorted `[start, next)` that do not overlap."""

PAGE_BITS = 18
PAGE_OFFSETS = 1 << PAGE_BITS
COUNT_MAX = 255
"""Met more often than this is as bad as met this often."""


class OffsetCounts:
    """Counts of one source partition's offsets."""

    def __init__(self) -> None:
        self._pages: dict[int, npt.NDArray[np.uint8]] = {}

    def add(self, offsets: Int64s) -> None:
        """Count each of `offsets` (none negative) once more."""
        values, times = np.unique(offsets, return_counts=True)
        pages = values >> PAGE_BITS
        cuts = [0, *(np.flatnonzero(np.diff(pages)) + 1).tolist(), len(values)]
        for begin, end in pairwise(cuts):
            if begin == end:
                continue  # nothing was given
            page = self._pages.setdefault(int(pages[begin]), np.zeros(PAGE_OFFSETS, np.uint8))
            places = values[begin:end] & (PAGE_OFFSETS - 1)
            sums = page[places].astype(np.int64) + times[begin:end]
            page[places] = np.minimum(sums, COUNT_MAX).astype(np.uint8)

    def of(self, offsets: Iterable[int]) -> list[int]:
        """How often each of a few offsets was met."""
        counts = []
        for offset in offsets:
            page = self._pages.get(offset >> PAGE_BITS)
            counts.append(int(page[offset & (PAGE_OFFSETS - 1)]) if page is not None else 0)
        return counts

    def met(self, start: int, end: int) -> int:
        """How many different offsets of `[start, end)` were met."""
        return sum(int(np.count_nonzero(counts)) for _, counts in self._slices(start, end))

    def missing(self, intervals: Sequence[tuple[int, int]]) -> Intervals:
        """The offsets of these (sorted) intervals that were never met."""
        found: list[Intervals] = []
        for start, end in intervals:
            at = start
            for begin, counts in self._slices(start, end):
                if begin > at:
                    found.append(np.array([[at, begin]], np.int64))
                found.append(_runs_of_zeros(counts) + begin)
                at = begin + len(counts)
            if at < end:
                found.append(np.array([[at, end]], np.int64))
        return coalesced(np.concatenate(found)) if found else np.empty((0, 2), np.int64)

    def repeated(self) -> Iterator[tuple[Int64s, Int64s]]:
        """Offsets that were met more than once, ascending, with how often beyond that; in pieces."""
        for number in sorted(self._pages):
            page = self._pages[number]
            places = np.flatnonzero(page > 1)
            if len(places):
                yield places.astype(np.int64) + (number << PAGE_BITS), page[places].astype(np.int64) - 1

    def _slices(self, start: int, end: int) -> Iterator[tuple[int, npt.NDArray[np.uint8]]]:
        """(first offset, counts) of every page's part of `[start, end)`."""
        first, last = start >> PAGE_BITS, (end - 1) >> PAGE_BITS
        numbers: Iterable[int] = range(first, last + 1)
        if last - first + 1 > len(self._pages):
            numbers = sorted(n for n in self._pages if first <= n <= last)
        for number in numbers:
            page = self._pages.get(number)
            if page is not None and start < end:
                begin = max(start, number << PAGE_BITS)
                until = min(end, (number + 1) << PAGE_BITS)
                low = begin & (PAGE_OFFSETS - 1)
                yield begin, page[low : low + until - begin]


def _runs_of_zeros(counts: npt.NDArray[np.uint8]) -> Intervals:
    edges = np.diff(np.concatenate(([0], (counts == 0).astype(np.int8), [0])))
    return np.stack((np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)), axis=1).astype(np.int64)


def coalesced(intervals: Intervals) -> Intervals:
    """Sorted intervals with those that touch made one."""
    if len(intervals) < 2:
        return intervals
    breaks = np.flatnonzero(intervals[1:, 0] > intervals[:-1, 1])
    starts = intervals[np.concatenate(([0], breaks + 1)), 0]
    ends = intervals[np.concatenate((breaks, [len(intervals) - 1])), 1]
    return np.stack((starts, ends), axis=1)


def without(intervals: Intervals, offsets: Iterable[int]) -> Intervals:
    """The intervals less these single offsets."""
    holes = np.array(sorted(set(offsets)), np.int64)
    if not len(holes) or not len(intervals):
        return intervals
    # An offset lies in the last interval that starts at or before it, or in none.
    owners = np.searchsorted(intervals[:, 0], holes, side="right") - 1
    inside = (owners >= 0) & (holes < intervals[owners, 1])
    holes = holes[inside]
    starts = np.sort(np.concatenate((intervals[:, 0], holes + 1)))
    ends = np.sort(np.concatenate((intervals[:, 1], holes)))
    kept = starts < ends
    return np.stack((starts[kept], ends[kept]), axis=1)


def size(intervals: Intervals) -> int:
    """Offsets in all of them together."""
    return int((intervals[:, 1] - intervals[:, 0]).sum())


def first_of(intervals: Intervals, limit: int) -> list[int]:
    """The first `limit` offsets."""
    examples: list[int] = []
    for start, end in intervals[:limit].tolist():
        examples.extend(range(start, min(end, start + limit - len(examples))))
        if len(examples) >= limit:
            break
    return examples


def minus(intervals: Intervals, taken: Iterable[tuple[int, int]]) -> Intervals:
    """The intervals less these few others."""
    left = intervals
    for start, end in taken:
        below, above = left.copy(), left.copy()
        below[:, 1] = np.minimum(below[:, 1], start)
        above[:, 0] = np.maximum(above[:, 0], end)
        both = np.concatenate((below[below[:, 0] < below[:, 1]], above[above[:, 0] < above[:, 1]]))
        left = both[np.argsort(both[:, 0], kind="stable")]
    return left


def pairs(intervals: Intervals) -> list[tuple[int, int]]:
    """As Python's own numbers."""
    return [(int(start), int(end)) for start, end in intervals.tolist()]

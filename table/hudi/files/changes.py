"""Which of several changes to a key must be written, so that a reader ends where all of them would end. Pure.

Hudi's readers go through a file group's log in order and keep one entry a key. What a change does to it is a
matter of the table's merge mode (`BufferedRecordMergerFactory` of Hudi 1.2.0):

* COMMIT_TIME_ORDERING: the later change wins.
* EVENT_TIME_ORDERING: a row or an ordered delete replaces an entry whose ordering value is not larger. A
  delete without an ordering value, which is what a tombstone is, replaces every entry; it gives way to any
  row, and to no ordered delete.

What was in the log before is not known here, and it may be such a delete. So of a key's changes those are
kept that make the same of every entry that may have been there: one in most cases, never more than three.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

ROW, DELETE, TOMBSTONE = 0, 1, 2
"""Kinds of changes: a row, a delete with an ordering value, a delete without one."""

Places = npt.NDArray[np.int64]


class Change(NamedTuple):
    """One change of a key. `rank` orders the ordering values; a tombstone's says nothing."""

    place: int
    kind: int
    rank: int


def last_of_each(codes: npt.NDArray[np.int32], keys: int) -> Places:
    """COMMIT_TIME_ORDERING: the place of each key's last change, rising.

    `codes`: the key of each change, from 0 to `keys` - 1, in the order of the changes.
    """
    last = np.full(keys, -1, dtype=np.int64)
    last[codes] = np.arange(len(codes))  # of a key that is there several times the last one stays
    return np.sort(last[last >= 0])


def newest_of_each(codes: npt.NDArray[np.int32], keys: int, ranks: Places) -> Places:
    """EVENT_TIME_ORDERING, of rows alone: the place of each key's last row of the largest rank, rising."""
    return np.sort(_newest_of_each(np.arange(len(codes)), codes, keys, ranks))


def layers(
    codes: npt.NDArray[np.int32],
    keys: int,
    kinds: npt.NDArray[np.int8],
    ranks: npt.NDArray[np.int64],
) -> list[Places]:
    """EVENT_TIME_ORDERING: the places of the changes to write, in layers to be written one after another.

    In a layer each key is there once at most, so that within one the order says nothing. Places rise in it.
    """
    counts = np.bincount(codes, minlength=keys)
    deleted = np.zeros(keys, dtype=np.bool_)
    deleted[codes[kinds != ROW]] = True
    several = deleted & (counts > 1)
    plain = ~several[codes]
    found = [[_newest_of_each(np.flatnonzero(plain), codes, keys, ranks)]]
    if several.any():
        found += _layers_of_several(np.flatnonzero(~plain), codes, kinds, ranks)
    depth = max(map(len, found))
    by_depth = [[steps[i] for steps in found if i < len(steps)] for i in range(depth)]
    return [np.sort(np.concatenate(parts)) for parts in by_depth if sum(map(len, parts))]


def _newest_of_each(places: Places, codes: npt.NDArray[np.int32], keys: int, ranks: Places) -> Places:
    """Of each key's changes at these places, rows or a single one, the last one of the largest rank."""
    of_place = codes[places]
    found = np.full(keys, -1, dtype=np.int64)
    found[of_place] = places
    earlier = ranks[places] > ranks[found[of_place]]
    if earlier.any():  # mostly the last one has the largest rank: only where it has not, they are sorted
        unsure = np.zeros(keys, dtype=np.bool_)
        unsure[of_place[earlier]] = True
        some = places[unsure[of_place]]
        order = some[np.lexsort((ranks[some], codes[some]))]  # stable: of equal ones the last is last
        found[codes[order]] = order
    return found[found >= 0]


def _layers_of_several(
    places: Places, codes: npt.NDArray[np.int32], kinds: npt.NDArray[np.int8], ranks: npt.NDArray[np.int64]
) -> list[list[Places]]:
    by_key: dict[int, list[Change]] = {}
    columns = (places, kinds[places], ranks[places], codes[places])
    for place, kind, rank, code in zip(*(column.tolist() for column in columns), strict=True):
        by_key.setdefault(code, []).append(Change(place, kind, rank))
    steps: list[list[int]] = []
    for changes in by_key.values():
        for depth, change in enumerate(shortest(changes)):
            if depth == len(steps):
                steps.append([])
            steps[depth].append(change.place)
    return [[np.array(step, dtype=np.int64) for step in steps]]


def shortest(changes: Sequence[Change]) -> list[Change]:
    """EVENT_TIME_ORDERING: changes of one key that do the same as all of them, whatever was there before."""
    tombstones = [i for i, change in enumerate(changes) if change.kind == TOMBSTONE]
    if tombstones:  # nothing of before is left, and ordered deletes behind it do nothing
        last = tombstones[-1]
        return [changes[last], *_from_first_row(changes[last + 1 :])]
    newest = _newest(changes)
    kept = _from_first_row(changes)
    # A delete ahead of all rows counts unless it meets a tombstone's delete; the rows count where it does.
    return kept if kept and kept[-1] == newest else [newest, *kept]


def _from_first_row(changes: Sequence[Change]) -> list[Change]:
    """What is left of rows and ordered deletes where a tombstone's delete was met: nothing before a row."""
    first = next((i for i, change in enumerate(changes) if change.kind == ROW), None)
    if first is None:
        return []
    newest = _newest(changes[first:])
    return [newest] if newest.kind == ROW else [changes[first], newest]


def _newest(changes: Sequence[Change]) -> Change:
    return max(changes, key=lambda change: (change.rank, change.place))

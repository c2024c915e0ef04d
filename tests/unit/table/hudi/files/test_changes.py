"""Fewer changes with the same effect: held against Hudi's rules, for every entry that may be there."""

from __future__ import annotations

from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from table.hudi.files.changes import (
    DELETE,
    ROW,
    TOMBSTONE,
    Change,
    last_of_each,
    layers,
    newest_of_each,
    shortest,
)

RANKS = (1, 2, 3)


class Entry(NamedTuple):
    """What a reader holds of a key."""

    kind: int
    rank: int
    place: int


BEFORE = (
    None,
    Entry(TOMBSTONE, 0, -1),
    *(Entry(kind, rank, -1) for kind in (ROW, DELETE) for rank in (0, *RANKS, 4)),
)


def merged(entry: Entry | None, change: Change) -> Entry:
    """Hudi 1.2.0's `EventTimeRecordMerger.deltaMerge`, for rows and for what stands in a delete block."""
    new = Entry(change.kind, change.rank, change.place)
    if entry is None or change.kind == TOMBSTONE:
        return new
    if entry.kind == TOMBSTONE:
        return new if change.kind == ROW else entry
    return new if change.rank >= entry.rank else entry


def after(entry: Entry | None, changes: list[Change]) -> Entry | None:
    for change in changes:
        entry = merged(entry, change)
    return entry


ONE_CHANGE = [*product((ROW, DELETE), RANKS), (TOMBSTONE, 0)]


def same(before: Entry | None, all_of_them: Entry | None, kept: Entry | None) -> bool:
    """A tombstone's entry is the same whichever tombstone made it, and so are deletes of one rank."""
    if all_of_them is None or kept is None or all_of_them.kind == ROW:
        return all_of_them == kept
    return all_of_them[:2] == kept[:2]


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_the_shorter_sequence_makes_the_same_of_whatever_was_there(length: int) -> None:
    for sequence in product(ONE_CHANGE, repeat=length):
        changes = [Change(place, *one) for place, one in enumerate(sequence)]
        kept = shortest(changes)
        assert 1 <= len(kept) <= 3 and len(kept) <= length, sequence
        for before in BEFORE:
            assert same(before, after(before, changes), after(before, kept)), (sequence, before, kept)


histories = st.lists(st.tuples(st.integers(0, 5), st.sampled_from(ONE_CHANGE)), min_size=1, max_size=60)


@given(histories)
def test_layers_of_many_keys_do_to_each_what_its_changes_do(
    history: list[tuple[int, tuple[int, int]]],
) -> None:
    codes = np.array([code for code, _ in history], dtype=np.int32)
    kinds = np.array([kind for _, (kind, _) in history], dtype=np.int8)
    ranks = np.array([rank for _, (_, rank) in history], dtype=np.int64)
    found = layers(codes, 6, kinds, ranks)
    for layer in found:
        assert len(set(codes[layer].tolist())) == len(layer)
        assert layer.tolist() == sorted(layer.tolist())
    for key in range(6):
        changes = [Change(i, kind, rank) for i, (code, (kind, rank)) in enumerate(history) if code == key]
        kept = [
            Change(place, int(kinds[place]), int(ranks[place]))
            for layer in found
            for place in layer.tolist()
            if codes[place] == key
        ]
        for before in BEFORE:
            assert same(before, after(before, changes), after(before, kept))


@given(st.lists(st.integers(0, 5), min_size=1, max_size=60))
def test_by_commit_time_the_last_change_of_each_key_is_left(sequence: list[int]) -> None:
    codes = np.array(sequence, dtype=np.int32)
    expected = sorted({code: place for place, code in enumerate(sequence)}.values())
    assert last_of_each(codes, 6).tolist() == expected


def test_rows_alone_are_one_layer_with_the_newest_of_each_key() -> None:
    codes = np.array([0, 1, 0, 1, 2], dtype=np.int32)
    ranks = np.array([5, 1, 4, 1, 9], dtype=np.int64)
    kept = layers(codes, 3, np.zeros(5, dtype=np.int8), ranks)
    assert [layer.tolist() for layer in kept] == [[0, 3, 4]]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 4)), max_size=40))
def test_of_rows_alone_the_last_of_the_largest_rank_is_left_of_each_key(rows: list[tuple[int, int]]) -> None:
    codes = np.array([code for code, _ in rows], dtype=np.int32)
    ranks = np.array([rank for _, rank in rows], dtype=np.int64)
    newest = {
        code: max((rank, place) for place, (of, rank) in enumerate(rows) if of == code) for code in codes
    }
    assert newest_of_each(codes, 6, ranks).tolist() == sorted(place for _, place in newest.values())

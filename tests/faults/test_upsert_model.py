"""The model that judges upserts under faults can be computed from the topic alone, and it can say no."""

from __future__ import annotations

import json
import random
from collections import defaultdict

import pytest

from tests.faults.load import rounds
from tests.faults.sql_writer import PINNED_TS, changed_rows
from tests.faults.upsert_model import FIRST_TS, Difference, always_there, change, difference
from tests.merge_model import Change, Key, Model

LENGTH = 60_000
ORDER = rounds([1, 1, 1, 1])


def changes() -> list[tuple[int, Change]]:
    """(source partition, change) of the load, in its order."""
    found = []
    for number in range(LENGTH):
        partition = ORDER[number % len(ORDER)]
        key, value = change(number, partition)
        body = json.loads(value if value is not None else key)
        found.append(
            (
                partition,
                Change(
                    key=(body["region"], body["id"]),
                    amount=body.get("amount", 0),
                    ts=body.get("ts", 0),
                    deleted=body.get("deleted", False),
                    tombstone=value is None,
                ),
            )
        )
    return found


def test_all_records_of_a_key_are_in_one_source_partition() -> None:
    places: dict[str, set[tuple[int, str]]] = defaultdict(set)
    for partition, one in changes():
        places[one.key[1]].add((partition, one.key[0]))
    assert all(len(found) == 1 for found in places.values())
    assert len(places) == 1_600


def test_the_load_has_late_versions_and_deletes_of_both_kinds_and_rows_that_come_back() -> None:
    newest: dict[Key, int] = {}
    gone: set[Key] = set()
    late = back = 0
    kinds: dict[str, int] = defaultdict(int)
    for _, one in changes():
        kinds["tombstone" if one.tombstone else "deleted" if one.deleted else "row"] += 1
        if one.deletes:
            gone.add(one.key)
        else:
            late += one.ts < newest.get(one.key, 0)
            newest[one.key] = max(newest.get(one.key, 0), one.ts)
            back += one.key in gone
            gone.discard(one.key)
    assert min(kinds["tombstone"], kinds["deleted"], late, back) > LENGTH // 100


@pytest.mark.parametrize("seed", range(5))
def test_the_rows_are_the_same_whenever_compactions_happen(seed: int) -> None:
    chance, never, sometimes = random.Random(seed), Model(by_event_time=True), Model(by_event_time=True)
    for _, one in changes()[: LENGTH // 3]:
        never.apply(one)
        sometimes.apply(one)
        if chance.random() < 0.002:
            sometimes.compact()
    assert never.rows() == sometimes.rows()


def test_rows_that_others_change_are_never_deleted_and_theirs_are_the_newest() -> None:
    mine = {one.key for _, one in changes() if not one.deletes}
    deleted = {one.key for _, one in changes() if one.deletes}
    assert set(always_there()) <= mine - deleted
    assert max(one.ts for _, one in changes()) < FIRST_TS + 10 * LENGTH < PINNED_TS
    done = {"update_round": 3, "update_tried_round": 3, "update_landed_round": 3}
    done |= {
        "merge_round": 3,
        "merge_tried_round": 5,
        "merge_landed_round": 4,
    }  # refused, landed all the same
    assert set(changed_rows(done).values()) == {(-3, PINNED_TS + 3), (-4, PINNED_TS + 4)}
    for wrong in ({"update_landed_round": 2}, {"merge_landed_round": -1}):
        with pytest.raises(AssertionError):
            changed_rows(done | wrong)


def test_every_way_of_being_wrong_is_found() -> None:
    rows: dict[Key, tuple[int, int]] = {("a", "k-1"): (1, 1), ("a", "k-2"): (2, 2)}
    assert difference(rows.items(), rows).none
    assert _of([(("a", "k-1"), (1, 1))], rows).missing == 1
    assert _of([*rows.items(), (("b", "k-3"), (3, 3))], rows).unexpected == 1
    assert _of([*rows.items(), (("a", "k-1"), (1, 1))], rows).doubled == 1
    wrong = _of([(("a", "k-1"), (1, 1)), (("a", "k-2"), (9, 9))], rows)
    assert wrong.different == 1 and "('a', 'k-2'): (9, 9) where (2, 2) is due" in wrong.examples[0]


def _of(held: list[tuple[Key, tuple[int, int]]], expected: dict[Key, tuple[int, int]]) -> Difference:
    found = difference(held, expected)
    assert not found.none
    return found

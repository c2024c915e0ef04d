"""Rejects as columns: in the batch's order, each with its own offset and reason, and counted in memory."""

from __future__ import annotations

import numpy as np

from control_topic.messages import Reject, SourcePartition
from participant.records.headers import pack, unpack
from participant.records.raw import RawBatch, Values
from participant.records.rejects import NONE, REASON_LENGTH_MAX, HeldRejects, Reasons, RejectedRecord, Rejects

PLACE = SourcePartition("events", 2)
OFFSETS = np.array([10, 11, 15, 16, 20], dtype=np.int64)


def batch() -> RawBatch:
    return RawBatch(
        partition=PLACE,
        offsets=OFFSETS,
        timestamps_ms=OFFSETS * 1_000,
        values=Values.of([b"a", None, b"ccc", b"", b"e"]),
        record_keys=Values.of([None, b"k1", b"", b"k3", b"k4"]),
        headers=Values.of([pack([("h", bytes([n]))] if n % 2 else []) for n in range(5)]),
    )


def test_reasons_that_came_one_by_one_and_many_at_once_are_rejects_in_the_batchs_order() -> None:
    reasons = Reasons()
    reasons.add(4, "late")
    reasons.add_all(np.array([0, 3]), "early")
    reasons.add(1, "late")
    rejects = reasons.rejects(OFFSETS)
    assert len(reasons) == len(rejects) == 4
    assert rejects == (
        RejectedRecord(offset=10, reason="early", index=0),
        RejectedRecord(offset=11, reason="late", index=1),
        RejectedRecord(offset=16, reason="early", index=3),
        RejectedRecord(offset=20, reason="late", index=4),
    )
    assert rejects[1:3] == tuple(rejects)[1:3]
    assert rejects.by_place() == {0: "early", 1: "late", 3: "early", 4: "late"}
    assert Reasons().rejects(OFFSETS) == Rejects.of({}, OFFSETS) == () == NONE


def test_rejects_of_several_stages_are_joined_in_order_with_their_own_reasons() -> None:
    decoder = Rejects.of({3: "no JSON", 0: "no object"}, OFFSETS)
    deriver = Rejects.of({2: "no key", 4: "no JSON"}, OFFSETS)
    joined = Rejects.joined([decoder, NONE, deriver])
    assert [(r.index, r.offset, r.reason) for r in joined] == [
        (0, 10, "no object"),
        (2, 15, "no key"),
        (3, 16, "no JSON"),
        (4, 20, "no JSON"),
    ]
    assert Rejects.joined([NONE]) is NONE
    assert Rejects.joined([decoder]) is decoder


def test_rejects_of_a_part_of_the_batch_are_found_in_the_whole_one() -> None:
    places = np.array([1, 3, 4])
    part = Rejects.of({0: "x", 2: "y"}, OFFSETS[places]).at(places)
    assert [(r.index, r.offset) for r in part] == [(1, 11), (4, 20)]


def test_a_reason_is_cut_where_a_schema_makes_it_too_long() -> None:
    assert len(Rejects.of({0: "x" * 5_000}, OFFSETS)[0].reason) == REASON_LENGTH_MAX


def test_what_is_held_of_a_reject_is_all_that_its_record_had() -> None:
    held = HeldRejects.of(batch(), Rejects.of({1: "null", 2: "bad", 4: "bad"}, OFFSETS))
    assert len(held) == 3
    assert list(held.values) == [None, b"ccc", b"e"]
    assert held.keys is not None and list(held.keys) == [b"k1", b"", b"k4"]
    assert held.headers is not None
    assert [unpack(one or b"") for one in held.headers] == [[("h", b"\x01")], [], []]
    assert held.timestamps_ms.tolist() == [11_000, 15_000, 20_000]
    assert held.named(2) == (
        Reject(partition=PLACE, offset=11, reason="null"),
        Reject(partition=PLACE, offset=15, reason="bad"),
    )
    assert held.size_bytes >= 3 * 8 * 5


def test_a_batch_that_is_cut_keeps_keys_and_headers_with_their_records() -> None:
    head, taken = batch().head(2), batch().take(np.array([1, 3]))
    for found, keys in ((head, [None, b"k1"]), (taken, [b"k1", b"k3"])):
        assert found.record_keys is not None and list(found.record_keys) == keys
        assert found.headers is not None and len(found.headers) == 2

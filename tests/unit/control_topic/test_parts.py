"""Splitting bodies and joining them again."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from control_topic.errors import Malformed
from control_topic.parts import PARTS_MAX, Joiner, Part, split


def parts_of(body: bytes, *, size: int = 4, incarnation: str = "i1", run: str = "r1") -> list[Part]:
    return split(pipeline="p", run=run, incarnation=incarnation, body=body, payload_bytes_max=size)


@given(body=st.binary(max_size=300), size=st.integers(1, 400), order=st.randoms(use_true_random=False))
def test_a_body_comes_back_whole_in_whatever_order_its_parts_arrive(body, size, order) -> None:
    parts = parts_of(body, size=size)
    assert b"".join(p.payload for p in parts) == body
    assert all(len(p.payload) <= size for p in parts)
    order.shuffle(parts)
    joiner = Joiner()
    answers = [joiner.add(part) for part in parts]
    assert answers == [None] * (len(parts) - 1) + [body]
    assert (joiner.pending, joiner.pending_bytes) == (0, 0)


def test_a_repeated_part_changes_nothing() -> None:
    first, second, third = parts_of(b"0123456789")
    joiner = Joiner()
    assert [joiner.add(p) for p in (first, first, second, first, third)] == [None] * 4 + [b"0123456789"]
    assert joiner.contradicted == 0


def test_a_lost_part_is_made_good_by_the_next_send_of_the_same_body() -> None:
    first, second, third = parts_of(b"0123456789")
    joiner = Joiner()
    assert [joiner.add(p) for p in (first, third, first, second)] == [None, None, None, b"0123456789"]


def test_parts_of_two_incarnations_never_join() -> None:
    joiner = Joiner()
    assert joiner.add(parts_of(b"01234567", incarnation="i1")[0]) is None
    assert joiner.add(parts_of(b"01234567", incarnation="i2")[1]) is None
    assert joiner.add(parts_of(b"01234567", run="r2")[1]) is None
    assert joiner.pending == 3


def test_parts_of_two_bodies_never_join() -> None:
    joiner = Joiner()
    assert joiner.add(parts_of(b"tx1-data")[0]) is None
    assert joiner.add(parts_of(b"tx2-data")[1]) is None
    assert joiner.pending == 2


def test_parts_that_were_cut_differently_never_join() -> None:
    joiner = Joiner()
    assert joiner.add(parts_of(b"01234567", size=4)[0]) is None
    assert joiner.add(parts_of(b"01234567", size=3)[1]) is None
    assert joiner.pending == 2


def test_a_part_that_contradicts_is_dropped_and_counted() -> None:
    first, second, third = parts_of(b"0123456789")
    joiner = Joiner()
    assert joiner.add(first) is None
    with pytest.raises(Malformed, match="contradicts"):
        joiner.add(replace(first, payload=b"xxxx"))
    assert joiner.add(second) is None
    assert joiner.add(third) == b"0123456789"
    assert joiner.contradicted == 1


def test_a_body_that_is_not_what_its_digest_says_is_dropped_and_counted() -> None:
    first, second = parts_of(b"01234567")
    joiner = Joiner()
    joiner.add(replace(first, payload=b"xxxx"))
    with pytest.raises(Malformed, match="digest"):
        joiner.add(second)
    assert (joiner.damaged, joiner.pending) == (1, 0)
    assert [joiner.add(first), joiner.add(second)] == [None, b"01234567"]


def test_the_oldest_unfinished_body_gives_way_to_the_newest() -> None:
    joiner = Joiner(assemblies_max=2)
    bodies = [b"aaaaaaaa", b"bbbbbbbb", b"cccccccc"]
    for body in bodies:
        joiner.add(parts_of(body)[0])
    assert (joiner.pending, joiner.evicted) == (2, 1)
    assert joiner.add(parts_of(bodies[2])[1]) == bodies[2]
    assert joiner.add(parts_of(bodies[1])[1]) == bodies[1]
    assert joiner.add(parts_of(bodies[0])[1]) is None


def test_unfinished_bodies_never_hold_more_bytes_than_allowed() -> None:
    joiner = Joiner(pending_bytes_max=10)
    for body in (b"aaaaaaaa", b"bbbbbbbb", b"cccccccc"):
        joiner.add(parts_of(body)[0])
        assert joiner.pending_bytes <= 10
    assert joiner.evicted == 1


def test_a_body_larger_than_all_that_may_be_kept_is_refused_and_forgotten() -> None:
    joiner = Joiner(pending_bytes_max=10)
    *kept, last = parts_of(b"0123456789ab")[:3]
    for part in kept:
        joiner.add(part)
    with pytest.raises(Malformed, match="larger than"):
        joiner.add(last)
    assert (joiner.pending, joiner.pending_bytes, joiner.evicted) == (0, 0, 1)


@pytest.mark.parametrize(
    "change",
    [
        {"part": 2},
        {"part": -1},
        {"parts": 0},
        {"parts": PARTS_MAX + 1},
        {"digest": b"short"},
        {"digest": b""},
    ],
)
def test_a_part_that_cannot_be_is_refused(change: dict) -> None:
    with pytest.raises(Malformed):
        replace(parts_of(b"01234567")[0], **change)


def test_a_body_that_takes_too_many_parts_is_refused() -> None:
    with pytest.raises(Malformed, match="parts"):
        parts_of(b"x" * (PARTS_MAX + 1), size=1)


def test_an_empty_body_is_one_part() -> None:
    (part,) = parts_of(b"")
    assert part.digest == hashlib.sha256(b"").digest()
    assert Joiner().add(part) == b""

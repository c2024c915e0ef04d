"""Which of a pipeline's commits is the newest, and which can follow it."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from control_topic.messages import Offsets, Range, SourcePartition
from table.chain import continues, does_not_follow, earliest_after, follows, newest_of
from table.state import TableState

P0, P1 = SourcePartition("events", 0), SourcePartition("events", 1)


def state(epoch: int, offsets: Offsets, instant: str = "1") -> TableState:
    return TableState(
        pipeline="p", run="r", epoch=epoch, transaction=f"t{instant}", offsets=offsets, instant=instant
    )


GENESIS = state(1, {P0: 0}, "900")
CHAIN = (
    GENESIS,
    state(1, {P0: 7}, "800"),
    state(2, {P0: 9}, "100"),
    state(2, {P0: 9, P1: 0}, "700"),  # a source partition that is new
    state(2, {P0: 9, P1: 4}, "200"),
    state(3, {P0: 2, P1: 4}, "300"),  # an operator moved back
    state(4, {P0: 3, P1: 4}, "250"),
)


def test_each_commit_of_a_chain_follows_all_before_it_and_none_after_it() -> None:
    for earlier, later in itertools.combinations(CHAIN, 2):
        assert follows(earlier, later)
        assert not follows(later, earlier)
    assert follows(None, GENESIS)


def test_the_newest_is_the_last_of_the_chain_whatever_the_order_and_the_times() -> None:
    for count in range(1, len(CHAIN) + 1):
        for start in range(count):
            turned = [*CHAIN[start:count], *CHAIN[:start]]
            assert newest_of(turned) is CHAIN[count - 1]
            assert newest_of(reversed(turned)) is CHAIN[count - 1]
    assert newest_of([]) is None


def test_of_two_commits_at_one_place_the_one_that_was_requested_last_is_the_newest() -> None:
    first, second = state(1, {P0: 7}, "1"), state(1, {P0: 7}, "2")
    assert newest_of([first, second]) is newest_of([second, first]) is second
    assert follows(first, second)


@pytest.mark.parametrize("offsets", [{P0: 6}, {}])
def test_a_commit_that_leads_back_without_a_newer_epoch_is_told_where_the_table_stands(
    offsets: Offsets,
) -> None:
    after = state(1, offsets, "2")
    assert not follows(CHAIN[1], after)
    assert does_not_follow(CHAIN[1], after) == (
        "transaction t2 of epoch 1 does not go on from where instant 800 of epoch 1 stands"
    )


def test_what_follows_was_requested_later_and_in_local_time_perhaps_an_hour_earlier_by_the_clock() -> None:
    assert earliest_after("20261025025000123", in_local_time=False) == "20261025025000123"
    assert earliest_after("20261025025000123", in_local_time=True) <= "20261025020000000"
    assert earliest_after("20270101005000123", in_local_time=True) == "20261231225000123"


@pytest.mark.parametrize("instant", ["99999999999999999", "00010101000000000", "", "x"])
def test_what_is_no_date_is_followed_by_anything(instant: str) -> None:
    assert earliest_after(instant, in_local_time=True) == ""


def test_years_have_four_digits() -> None:
    assert earliest_after("00020101000000000", in_local_time=True) == "00011231220000000"


FROM_3 = Range(partition=P0, start=3, next=5, records=2)


@pytest.mark.parametrize(
    ("before", "later", "is_next"),
    [
        ({P0: 3, P1: 7}, replace(state(1, {P0: 5, P1: 7}), ranges=(FROM_3,)), True),
        ({P0: 2, P1: 7}, replace(state(1, {P0: 5, P1: 7}), ranges=(FROM_3,)), False),
        ({P0: 3, P1: 6}, replace(state(1, {P0: 5, P1: 7}), ranges=(FROM_3,)), False),
        ({P0: 3}, replace(state(1, {P0: 3, P1: 7}), kind="admission"), True),
        ({P0: 2}, replace(state(1, {P0: 3, P1: 7}), kind="admission"), False),
        ({P0: 3}, replace(state(1, {P0: 9}), kind="operator"), True),
    ],
)
def test_a_commit_continues_where_the_one_before_it_ended_unless_an_operator_moved_offsets(
    before: Offsets, later: TableState, is_next: bool
) -> None:
    assert continues(state(1, before), later) is is_next

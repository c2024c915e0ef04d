"""What a blow hit is read off what was seen: these are the rules of that reading."""

from __future__ import annotations

import pytest

from tests.faults.load import event, rounds
from tests.faults.steps import Sighting, Step
from tests.harness import event as harness_event

WHOLE = Sighting(
    transaction="t",
    instant="i",
    writers=frozenset({"a", "b"}),
    start_ms=1_000,
    end_ms=2_000,
    statuses={"a": 2_050, "b": 2_100},
    lock_ms=2_150,
    landed_ms=2_600,
    ack_ms=2_650,
    group_ms=2_700,
)


@pytest.mark.parametrize(
    ("moment_ms", "step"),
    [
        (999, None),
        (1_000, Step.START_SENT),
        (1_101, Step.MID_WRITE),
        (2_000, Step.END_SENT),
        (2_050, Step.SOME_STATUS),
        (2_100, Step.ALL_STATUS),
        (2_150, Step.COMMIT_BEGUN),
        (2_600, Step.COMMIT_LANDED),
        (2_650, Step.ACK_SENT),
        (2_700, Step.GROUP_COMMITTED),
    ],
)
def test_a_moment_belongs_to_the_last_step_that_was_seen_before_it(moment_ms: int, step: Step | None) -> None:
    assert WHOLE.step_at(moment_ms) is step


def test_an_aborted_transaction_is_at_no_step_any_more() -> None:
    aborted = Sighting(transaction="t", instant="i", writers=frozenset({"a"}), start_ms=1_000, abort_ms=1_500)
    assert aborted.step_at(1_499) is Step.MID_WRITE
    assert aborted.step_at(1_500) is None


def test_the_load_and_the_harness_speak_of_the_same_events() -> None:
    assert [event(number) for number in range(2_000)] == [harness_event(number) for number in range(2_000)]


def test_a_round_of_the_load_spreads_what_a_heavy_source_partition_gets() -> None:
    assert rounds([3, 1]) == [0, 0, 1, 0]
    assert sorted(rounds([6, 2, 1, 1])) == [0] * 6 + [1] * 2 + [2, 3]

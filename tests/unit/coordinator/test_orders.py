"""What the coordinator does of what operators order, as conversations."""

from __future__ import annotations

from typing import Any

import pytest

from control_topic.controls import Controls, Tuning
from control_topic.messages import (
    AckCommit,
    CoordinatorClaim,
    EndCommit,
    ParticipantJoin,
    ParticipantLeave,
    ParticipantReady,
    StartCommit,
)
from coordinator import events as c
from coordinator.transitions import State
from tests.unit.conversation import INTERVAL_MS, P0, P1, WRITE_TIMEOUT_MS, CoordinatorTalk, of, sent, status

BOTH = {"a": (P0,), "b": (P1,)}
OK = c.Result.OK
RUN, PAUSE, DRAIN = c.RunMode.RUN, c.RunMode.PAUSE, c.RunMode.DRAIN


def order(talk: CoordinatorTalk, mode: c.RunMode = RUN, **controls: Any) -> list[Any]:
    directed = c.Directed(
        now_ms=talk.now_ms, nonce=talk.nonce(), mode=mode, controls=Controls(**{"number": 1, **controls})
    )
    return talk._note(talk.feed(directed))


def settled(talk: CoordinatorTalk) -> int:
    return talk.core.snapshot().settled


# --- settings -----------------------------------------------------------------------------------


def tuned(talk: CoordinatorTalk, interval_ms: int, write_timeout_ms: int = 30_000) -> None:
    order(talk, tuning=Tuning(interval_ms=interval_ms, write_timeout_ms=write_timeout_ms))


def committed(talk: CoordinatorTalk) -> None:
    talk.hear(status("t1", (P0, 0, 5)))
    talk.answer(OK)


def test_settings_count_from_the_next_transaction_on() -> None:
    talk = CoordinatorTalk().started()
    tuned(talk, 20_000)
    assert settled(talk) == 1
    assert sent(talk.tick(INTERVAL_MS), EndCommit)
    committed(talk)
    assert talk.core.settings.interval_ms == INTERVAL_MS
    talk.hear(ParticipantReady())
    talk.answer(OK, instant="i2", committed={P0: 5})
    assert talk.core.settings.interval_ms == 20_000
    assert not sent(talk.tick(19_999), EndCommit)
    assert sent(talk.tick(1), EndCommit)
    assert not of(talk.tick(29_999), c.Abort)
    assert of(talk.tick(1), c.Abort)


def test_a_shorter_interval_is_counted_from_the_end_of_the_last_transaction_as_well() -> None:
    talk = CoordinatorTalk(interval_ms=60_000).started()
    tuned(talk, 2_000)
    talk.tick(60_000)
    committed(talk)
    talk.tick(1_500)
    talk.hear(ParticipantReady())
    talk.answer(OK, instant="i2", committed={P0: 5})
    assert not sent(talk.tick(499), EndCommit)
    assert sent(talk.tick(1), EndCommit)


def test_a_write_timeout_beyond_the_write_limit_takes_that_with_it() -> None:
    talk = CoordinatorTalk(write_limit_ms=6_000).idle()
    tuned(talk, 1_000, 50_000)
    talk.started()
    assert talk.core.settings.write_limit_ms == 50_000


def test_what_was_slow_is_judged_by_the_write_timeout_in_force() -> None:
    talk = CoordinatorTalk(records_min=1).idle()
    tuned(talk, 1_000, 50_000)
    talk.started().tick(1_000)
    talk.tick(WRITE_TIMEOUT_MS + 1)
    committed(talk)
    talk.hear(ParticipantReady())
    (start,) = sent(talk.answer(OK, instant="i2", committed={P0: 5}), StartCommit)
    assert start.records_max == 0


def test_an_older_word_of_the_driver_changes_nothing() -> None:
    talk = CoordinatorTalk().idle()
    order(talk, number=3, tuning=Tuning(interval_ms=3_000, write_timeout_ms=9_000))
    order(talk, number=2, tuning=Tuning(interval_ms=2_000, write_timeout_ms=9_000))
    talk.started()
    assert talk.core.settings.interval_ms == 3_000


# --- commit -------------------------------------------------------------------------------------


def test_a_commit_ends_what_is_open_and_is_done_when_that_is_durable() -> None:
    talk = CoordinatorTalk().started()
    assert sent(order(talk, commit=1), EndCommit) == [EndCommit(transaction="t1", reason="requested")]
    talk.hear(status("t1", (P0, 0, 5)))
    assert settled(talk) == 0
    assert sent(talk.answer(OK), AckCommit)
    assert settled(talk) == 1


def test_a_commit_is_not_done_by_what_had_ended_before_it() -> None:
    talk = CoordinatorTalk().ended()
    assert order(talk, commit=1) == []
    talk.hear(status("t1", (P0, 0, 5)))
    assert not of(talk.answer(OK), c.Begin), "it may have been heard of too early by everybody"
    assert settled(talk) == 0
    (begin,) = of(talk.tick(1_000), c.Begin)
    actions = talk.answer(OK, instant="i2", committed={P0: 5})
    assert sent(actions, StartCommit) and sent(actions, EndCommit)[0].reason == "requested"
    talk.hear(status(begin.transaction, (P0, 5, 7)))
    talk.answer(OK)
    assert settled(talk) == 1


def test_a_commit_in_an_idle_pipeline_begins_one_whoever_is_ready_and_nothing_in_it_is_an_answer() -> None:
    talk = CoordinatorTalk().idle()
    talk.hear(ParticipantJoin(partitions=(P0,)))
    assert of(order(talk, commit=1), c.Begin)
    assert sent(talk.answer(OK, instant="i1", committed={P0: 0}), EndCommit)
    talk.hear(status("t1", (P0, 0, 0)))
    assert settled(talk) == 0
    talk.answer(OK)
    assert settled(talk) == 1
    assert talk.core.state is State.IDLE
    assert talk.tick(60_000) == []


def test_a_commit_that_failed_is_tried_again_after_a_while() -> None:
    talk = CoordinatorTalk().started()
    order(talk, commit=1)
    talk.tick(WRITE_TIMEOUT_MS)
    talk.answer(OK)
    assert (settled(talk), talk.core.state) == (0, State.IDLE)
    assert not of(talk.tick(999), c.Begin)
    assert of(talk.tick(1), c.Begin)


def test_a_commit_is_not_done_while_somebody_else_owns_a_source_partition_by_now() -> None:
    talk = CoordinatorTalk().started(BOTH)
    order(talk, commit=1)
    talk.hear(status("t1", (P0, 0, 5)), "a")
    talk.hear(status("t1", (P1, 0, 5)), "b")
    talk.hear(ParticipantJoin(partitions=(P1,)), "b2")
    talk.answer(OK)
    assert settled(talk) == 0


def test_a_commit_is_not_done_where_a_source_partition_was_left_out() -> None:
    talk = CoordinatorTalk().started(BOTH)
    order(talk, commit=1)
    talk.hear(ParticipantLeave(partitions=(P1,)), "b")
    talk.hear(status("t1", (P0, 0, 5)), "a")
    talk.answer(OK)
    assert settled(talk) == 0


def next_one(talk: CoordinatorTalk, transaction: str, start: int, end: int) -> list[Any]:
    """A transaction for the order's sake, with these records, and its commit or its abort."""
    talk.answer(OK, instant="i", committed={P0: start})
    talk.hear(status(transaction, (P0, start, end)))
    return talk.answer(OK)


@pytest.mark.parametrize("refused", [True, False])
def test_a_commit_is_not_done_before_what_was_reported_in_a_transaction_that_failed_is_committed(
    refused: bool,
) -> None:
    """Its writers go back and read it again: they hold nothing of it for a moment."""
    talk = CoordinatorTalk().started(BOTH if not refused else {"a": (P0,)})
    order(talk, commit=1)
    talk.hear(status("t1", (P0, 0, 100)), "a")
    if refused:
        talk.answer(c.Result.REFUSED, reason="the table says no")
        talk.answer(OK)
        talk.answer(OK, committed={P0: 0}, partitions=frozenset({P0}))
    else:
        talk.core.rounds.partitions = frozenset({P0})
        talk.hear(ParticipantLeave(partitions=(P1,), transaction="t1"), "b")
        talk.answer(OK)
    (begin,) = of(talk.tick(1_000), c.Begin)
    next_one(talk, begin.transaction, 0, 0)
    assert settled(talk) == 0
    (begin,) = of(talk.tick(1_000), c.Begin)
    next_one(talk, begin.transaction, 0, 60)
    assert settled(talk) == 0
    (begin,) = of(talk.tick(1_000), c.Begin)
    next_one(talk, begin.transaction, 60, 100)
    assert settled(talk) == 1


def test_what_was_given_back_before_the_order_came_is_to_be_committed_as_well() -> None:
    talk = CoordinatorTalk().started(BOTH)
    talk.tick(INTERVAL_MS)
    talk.hear(status("t1", (P0, 0, 100)), "a")
    talk.core.rounds.partitions = frozenset({P0})
    talk.hear(ParticipantLeave(partitions=(P1,), transaction="t1"), "b")
    talk.answer(OK)
    assert not of(order(talk, commit=1), c.Begin), "who was in it has a while to read on"
    (begin,) = of(talk.tick(1_000), c.Begin)
    next_one(talk, begin.transaction, 0, 0)
    assert settled(talk) == 0


def test_a_commit_that_failed_is_tried_again_after_a_while_in_a_transaction_that_began_meanwhile() -> None:
    talk = CoordinatorTalk(interval_ms=60_000).started()
    order(talk, commit=1)
    talk.tick(WRITE_TIMEOUT_MS)
    talk.answer(OK)
    assert of(talk.hear(ParticipantReady()), c.Begin)
    assert not sent(talk.answer(OK, instant="i2", committed={P0: 0}), EndCommit)
    assert not sent(talk.tick(999), EndCommit)
    assert sent(talk.tick(1), EndCommit)[0].reason == "requested"


def test_who_takes_over_with_an_order_that_stands_gives_workers_a_while_to_read_again() -> None:
    talk = CoordinatorTalk().surveying()
    order(talk, commit=1)
    talk.answer(OK)
    talk.hear(CoordinatorClaim(), sender="me")
    talk.answer(OK)
    talk.hear(ParticipantJoin(partitions=(P0,)))
    assert not of(talk.answer(OK, committed={P0: 0}, partitions=frozenset({P0})), c.Begin)
    assert not of(talk.tick(999), c.Begin)
    assert of(talk.tick(1), c.Begin)


def test_a_commit_is_not_done_before_the_table_has_what_a_writer_had_read_before_it_went_back() -> None:
    """It had reported that to a predecessor, of which this coordinator knows nothing."""
    talk = CoordinatorTalk().started()
    order(talk, commit=1)
    talk.hear(status("t1", (P0, 0, 0), behind={P0: 5}))
    talk.answer(OK)
    assert settled(talk) == 0
    (begin,) = of(talk.tick(1_000), c.Begin)
    talk.answer(OK, instant="i2", committed={P0: 0})
    talk.hear(status(begin.transaction, (P0, 0, 4), behind={P0: 5}))
    talk.answer(OK)
    assert settled(talk) == 0
    (begin,) = of(talk.tick(1_000), c.Begin)
    next_one(talk, begin.transaction, 4, 5)
    assert settled(talk) == 1


def test_what_a_writer_had_read_is_to_be_committed_whoever_reads_it_now() -> None:
    talk = CoordinatorTalk().started()
    order(talk, commit=1)
    talk.hear(status("t1", (P0, 0, 0), behind={P0: 5}))
    talk.answer(OK)
    talk.hear(ParticipantJoin(partitions=(P0,)), "b")
    (begin,) = of(talk.tick(1_000), c.Begin)
    talk.answer(OK, instant="i2", committed={P0: 0})
    talk.hear(status(begin.transaction, (P0, 0, 0)), "b")
    talk.answer(OK)
    assert settled(talk) == 0


@pytest.mark.parametrize(("records", "done"), [(9, 1), (10, 0)])
def test_a_commit_is_done_under_a_limit_only_where_nobody_had_to_leave_something_out(
    records: int, done: int
) -> None:
    talk = CoordinatorTalk()
    talk.core.rounds.pace.records_max = 20
    talk.started(BOTH)
    order(talk, commit=1)
    talk.hear(status("t1", (P0, 0, records)), "a")
    talk.hear(status("t1", (P1, 0, 1)), "b")
    talk.answer(OK)
    assert settled(talk) == done


def test_of_several_commits_each_is_done_with_the_transaction_that_was_ended_after_it() -> None:
    talk = CoordinatorTalk().started()
    order(talk, number=2, commit=2)
    order(talk, number=5, commit=4)
    assert settled(talk) == 0
    talk.hear(status("t1", (P0, 0, 5)))
    talk.answer(OK)
    assert settled(talk) == 2
    talk.tick(1_000)
    talk.answer(OK, instant="i2", committed={P0: 5})
    talk.hear(status("t2", (P0, 5, 5)))
    talk.answer(OK)
    assert settled(talk) == 5


def test_a_commit_that_is_durable_is_done_though_others_were_ordered_while_it_was_committed() -> None:
    """Where somebody orders one every few seconds there is always a newer one: nobody got an answer."""
    talk = CoordinatorTalk().started()
    order(talk, number=1, commit=1)
    done = []
    for newest in range(2, 6):
        order(talk, number=newest, commit=newest)
        transaction, start = f"t{newest - 1}", 5 * (newest - 2)
        talk.hear(status(transaction, (P0, start, start + 5)))
        talk.answer(OK)
        done.append(settled(talk))
        talk.tick(1_000)
        talk.answer(OK, instant=f"i{newest}", committed={P0: start + 5})
    assert done == [1, 2, 3, 4]


def test_a_pause_is_reached_with_a_commit_that_was_ordered_after_it_though_another_is_open() -> None:
    talk = CoordinatorTalk().started()
    order(talk, PAUSE, number=1, pause=1)
    order(talk, PAUSE, number=2, pause=1, commit=2)
    talk.hear(status("t1", (P0, 0, 5)))
    talk.answer(OK)
    talk.tick(1_000)
    talk.answer(OK, instant="i2", committed={P0: 5})
    order(talk, PAUSE, number=3, pause=1, commit=3)
    talk.hear(status("t2", (P0, 5, 7)))
    talk.answer(OK)
    assert settled(talk) == 2


def test_a_commit_that_nobody_waits_for_any_more_is_forgotten() -> None:
    talk = CoordinatorTalk().idle()
    order(talk, commit=1)
    assert settled(talk) == 0, "nobody owns anything"
    order(talk, commit=0)
    talk.hear(ParticipantJoin(partitions=(P0,)))
    assert talk.tick(60_000) == []
    assert settled(talk) == 1


def test_an_older_word_of_the_driver_does_not_end_a_pause_either() -> None:
    talk = CoordinatorTalk().idle()
    talk.hear(ParticipantJoin(partitions=(P0,)))
    order(talk, PAUSE, number=2, pause=2)
    assert order(talk, RUN, number=1) == []
    talk.hear(ParticipantReady())
    assert talk.tick(60_000) == []
    assert talk.core.machine.mode is PAUSE


# --- pause --------------------------------------------------------------------------------------


def test_a_pause_ends_what_is_open_and_nothing_begins_until_it_is_resumed() -> None:
    talk = CoordinatorTalk().started()
    assert sent(order(talk, PAUSE, pause=1), EndCommit) == [EndCommit(transaction="t1", reason="requested")]
    assert settled(talk) == 0
    talk.hear(status("t1", (P0, 0, 5)))
    assert sent(talk.answer(OK), AckCommit)
    assert settled(talk) == 1
    assert talk.hear(ParticipantReady()) == []
    assert talk.tick(3_600_000) == []
    assert of(order(talk, RUN, number=2), c.Begin)
    assert settled(talk) == 2


def test_a_pause_that_comes_while_a_transaction_begins_ends_it_as_it_starts() -> None:
    talk = CoordinatorTalk().beginning()
    assert order(talk, PAUSE, pause=1) == []
    actions = talk.answer(OK, instant="i1", committed={P0: 0})
    assert sent(actions, StartCommit) and sent(actions, EndCommit)


def test_a_paused_run_commits_where_it_is_told_to_and_stays_paused() -> None:
    talk = CoordinatorTalk().idle()
    talk.hear(ParticipantJoin(partitions=(P0,)))
    order(talk, PAUSE, pause=1)
    talk.hear(ParticipantReady())
    assert of(order(talk, PAUSE, number=2, pause=1, commit=2), c.Begin)
    talk.answer(OK, instant="i1", committed={P0: 0})
    talk.hear(status("t1", (P0, 0, 5)))
    talk.answer(OK)
    assert settled(talk) == 2
    talk.hear(ParticipantReady())
    assert talk.tick(60_000) == []


def test_a_commit_that_was_ordered_before_the_pause_begins_nothing_while_it_lasts() -> None:
    """Its driver would be an older one: another gives it up."""
    talk = CoordinatorTalk().idle()
    talk.hear(ParticipantJoin(partitions=(P0,)))
    assert order(talk, PAUSE, number=2, commit=1, pause=2) == []
    talk.hear(ParticipantReady())
    assert talk.tick(60_000) == []
    assert of(order(talk, PAUSE, number=3, commit=3, pause=2), c.Begin)


def test_a_paused_run_drains_what_is_held_where_it_is_stopped() -> None:
    talk = CoordinatorTalk().idle()
    talk.hear(ParticipantJoin(partitions=(P0,)))
    order(talk, PAUSE, pause=1)
    talk.hear(ParticipantReady())
    assert of(order(talk, DRAIN, number=2, pause=1), c.Begin)
    assert sent(talk.answer(OK, instant="i1", committed={P0: 0}), EndCommit)[0].reason == "drain"
    talk.hear(status("t1", (P0, 0, 5)))
    talk.answer(OK)
    assert talk.core.state is State.DRAINED


def test_a_new_coordinator_is_told_of_the_pause_before_it_begins_anything() -> None:
    talk = CoordinatorTalk().surveying()
    order(talk, PAUSE, pause=1)
    talk.answer(OK)
    talk.hear(CoordinatorClaim(), sender="me")
    talk.answer(OK)
    talk.hear(ParticipantJoin(partitions=(P0,)))
    talk.hear(ParticipantReady())
    assert settled(talk) == 0
    assert talk.answer(OK, committed={P0: 0}, partitions=frozenset({P0})) == []
    assert settled(talk) == 1


def test_a_begin_that_the_service_refuses_because_the_run_is_paused_leaves_nothing_open() -> None:
    """This coordinator has not heard of the pause yet."""
    talk = CoordinatorTalk().beginning()
    assert of(talk.answer(c.Result.REFUSED, reason="the run is paused", wait_ms=1_000), c.Recover)
    order(talk, PAUSE, pause=1)
    assert talk.answer(OK, committed={P0: 0}, partitions=frozenset({P0})) == []
    assert settled(talk) == 1
    assert talk.tick(60_000) == []

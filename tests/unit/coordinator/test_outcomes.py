"""How the coordinator ends a transaction and a run: the sentences of the design as conversations."""

from __future__ import annotations

from typing import Any

import pytest

from control_topic.messages import (
    AbortCommit,
    AckCommit,
    EndCommit,
    Halt,
    ParticipantJoin,
    ParticipantLeave,
    ParticipantReady,
    StartCommit,
)
from coordinator import events as c
from coordinator.transitions import IllegalEvent, State
from tests.unit.conversation import (
    INTERVAL_MS,
    P0,
    P1,
    P2,
    WRITE_TIMEOUT_MS,
    CoordinatorTalk,
    of,
    sent,
    status,
)

BOTH = {"a": (P0,), "b": (P1,)}
OK, UNKNOWN = c.Result.OK, c.Result.UNKNOWN


# --- abort --------------------------------------------------------------------------------------


def test_a_write_timeout_aborts_and_is_the_pipelines_fault() -> None:
    talk = CoordinatorTalk().ended(BOTH)
    talk.hear(status("t1", (P0, 0, 5)), "a")
    assert not of(talk.tick(WRITE_TIMEOUT_MS - 1), c.Abort)
    (abort,) = talk.tick(1)
    assert (abort.transaction, abort.instant, abort.fault) == ("t1", "i1", c.Fault.PIPELINE)
    assert "b" in abort.reason
    assert "5.0 s" in abort.reason


@pytest.mark.parametrize("state", ["started", "ended"])
def test_leave_with_open_data_aborts_at_once(state: str) -> None:
    talk = CoordinatorTalk()
    getattr(talk, state)(BOTH)
    (abort,) = talk.hear(ParticipantLeave(partitions=(P1,), transaction="t1"), "b")
    assert isinstance(abort, c.Abort)
    assert abort.fault is c.Fault.NONE


def test_leave_without_open_data_only_takes_the_partition_out_of_the_expected_set() -> None:
    talk = CoordinatorTalk().ended(BOTH)
    talk.hear(status("t1", (P0, 0, 5)), "a")
    (commit,) = talk.hear(ParticipantLeave(partitions=(P1,)), "b")
    assert isinstance(commit, c.Commit)
    assert [r.partition for s in commit.statuses for r in s.ranges] == [P0]


def test_leave_after_its_write_status_changes_nothing() -> None:
    talk = CoordinatorTalk().ended(BOTH)
    talk.hear(status("t1", (P0, 0, 5)), "a")
    assert talk.hear(ParticipantLeave(partitions=(P0,)), "a") == []
    (commit,) = talk.hear(status("t1", (P1, 0, 2)), "b")
    assert len(commit.statuses) == 2


@pytest.mark.parametrize("state", ["started", "ended"])
def test_join_of_a_new_incarnation_for_an_expected_partition_aborts_at_once(state: str) -> None:
    talk = CoordinatorTalk()
    getattr(talk, state)(BOTH)
    (abort,) = talk.hear(ParticipantJoin(partitions=(P1,)), "b2")
    assert isinstance(abort, c.Abort)
    assert talk.core.owners == {P0: "a", P1: "b2"}


def test_join_of_a_new_incarnation_after_the_write_status_does_not_abort() -> None:
    talk = CoordinatorTalk().ended(BOTH)
    talk.hear(status("t1", (P1, 0, 2)), "b")
    assert not of(talk.hear(ParticipantJoin(partitions=(P1,)), "b2"), c.Abort)
    assert of(talk.hear(status("t1", (P0, 0, 5)), "a"), c.Commit)


def test_a_worker_that_dies_owing_its_write_status_aborts_at_once() -> None:
    talk = CoordinatorTalk().ended(BOTH)
    talk.hear(status("t1", (P0, 0, 5)), "a")
    assert talk.died("a") == []
    (abort,) = talk.died("b")
    assert abort.fault is c.Fault.PIPELINE


def test_who_is_dead_is_not_heard_except_for_its_write_status() -> None:
    talk = CoordinatorTalk().idle()
    talk.died("a")
    talk.hear(ParticipantJoin(partitions=(P0,)))
    assert talk.core.owners == {}


def test_an_aborted_transaction_is_announced_after_its_rollback() -> None:
    talk = CoordinatorTalk().aborting()
    assert talk.tick(10) == []
    (said,) = sent(talk.answer(OK), AbortCommit)
    assert said.transaction == "t1"


def test_an_abort_that_finds_the_transaction_complete_is_a_commit() -> None:
    talk = CoordinatorTalk().resolving()
    talk.answer(c.Result.ABSENT)
    actions = talk.answer(c.Result.COMMITTED)
    assert sent(actions, AckCommit)
    assert not sent(actions, AbortCommit)


def test_an_abort_is_asked_for_until_it_is_done() -> None:
    talk = CoordinatorTalk(retry_ms=500).aborting()
    for result in (UNKNOWN, c.Result.UNAVAILABLE, c.Result.REFUSED):
        assert talk.answer(result) == []
        assert of(talk.tick(500), c.Abort)


def test_a_transaction_that_would_change_nothing_is_not_committed() -> None:
    talk = CoordinatorTalk().ended()
    (abort,) = talk.hear(status("t1", (P0, 0, 0)))
    assert (type(abort), abort.fault) == (c.Abort, c.Fault.NONE)


def test_a_range_without_rows_is_worth_a_commit() -> None:
    talk = CoordinatorTalk().ended()
    assert of(talk.hear(status("t1", (P0, 0, 3))), c.Commit)


def test_the_next_transaction_waits_as_long_as_the_service_says() -> None:
    talk = CoordinatorTalk().aborting()
    talk.answer(OK, wait_ms=3_000)
    talk.hear(ParticipantJoin(partitions=(P0,)))
    assert talk.hear(ParticipantReady()) == []
    assert talk.tick(2_999) == []
    assert of(talk.tick(1), c.Begin)


# --- commit -------------------------------------------------------------------------------------


def test_ack_comes_only_after_the_commit_and_names_the_whole_map() -> None:
    talk = CoordinatorTalk().ended({"a": (P0,)}, committed={P0: 2, P1: 9})
    assert not sent(talk.hear(status("t1", (P0, 2, 5))), AckCommit)
    (ack,) = sent(talk.answer(OK), AckCommit)
    assert ack == AckCommit(transaction="t1", instant="i1", committed={P0: 5, P1: 9})


def test_after_the_commit_call_nothing_aborts() -> None:
    for state in ("committing", "resolving"):
        talk = CoordinatorTalk()
        getattr(talk, state)()
        actions: list[Any] = [
            *talk.hear(ParticipantLeave(partitions=(P0,), transaction="t1")),
            *talk.hear(ParticipantJoin(partitions=(P0,)), "a2"),
            *talk.died("a"),
            *talk.tick(10 * WRITE_TIMEOUT_MS),
        ]
        assert actions == []
        assert talk.core.state.value == state


@pytest.mark.parametrize("landed", [True, False])
def test_an_unknown_outcome_is_looked_up_and_decided_by_what_is_found(landed: bool) -> None:
    talk = CoordinatorTalk().committing()
    (find,) = talk.answer(UNKNOWN)
    assert isinstance(find, c.Find)
    assert find.ranges == status("t1", (P0, 0, 5)).ranges
    if landed:
        assert sent(talk.answer(c.Result.COMMITTED), AckCommit)
    else:
        (abort,) = talk.answer(c.Result.ABSENT)
        assert (type(abort), abort.fault) == (c.Abort, c.Fault.ENVIRONMENT)


def test_a_lookup_that_fails_is_repeated() -> None:
    talk = CoordinatorTalk(retry_ms=500).resolving()
    for result in (UNKNOWN, c.Result.UNAVAILABLE):
        assert talk.answer(result) == []
        assert of(talk.tick(500), c.Find)


def test_a_commit_that_the_environment_prevented_is_tried_again() -> None:
    talk = CoordinatorTalk(retry_ms=500).committing()
    assert talk.answer(c.Result.UNAVAILABLE) == []
    assert of(talk.tick(500), c.Commit)


def test_a_refused_commit_is_rolled_back_and_the_table_read_anew() -> None:
    talk = CoordinatorTalk().committing()
    (abort,) = talk.answer(c.Result.REFUSED, reason="offsets moved on")
    assert "offsets moved on" in abort.reason
    actions = talk.answer(OK)
    assert sent(actions, AbortCommit)
    assert of(actions, c.Recover)


@pytest.mark.parametrize("asked_again", [False, True])
def test_a_call_is_answered_once(asked_again: bool) -> None:
    talk = CoordinatorTalk(retry_ms=500).committing()
    first = talk.core.pending
    assert first is not None
    talk.answer(c.Result.UNAVAILABLE)
    if asked_again:
        talk.tick(500)
    with pytest.raises(IllegalEvent, match="awaits another"):
        talk.feed(c.Completed(now_ms=talk.now_ms, call=first.call, result=OK))


def test_a_lost_ack_is_brought_again_by_join() -> None:
    talk = CoordinatorTalk().committing()
    talk.answer(OK)
    (ack,) = sent(talk.hear(ParticipantJoin(partitions=(P0,))), AckCommit)
    assert ack.transaction == "t1"


def test_a_lost_abort_is_brought_again_by_join() -> None:
    talk = CoordinatorTalk().ended(BOTH)
    talk.hear(status("t1", (P0, 0, 5)), "a")
    talk.hear(ParticipantLeave(partitions=(P1,), transaction="t1"), "b")
    talk.answer(OK)
    (abort,) = sent(talk.hear(ParticipantJoin(partitions=(P0,)), "a"), AbortCommit)
    assert abort.transaction == "t1"


def test_each_writer_is_told_what_became_of_its_own_transaction() -> None:
    talk = CoordinatorTalk().ended(BOTH)
    talk.hear(status("t1", (P0, 0, 5)), "a")
    talk.hear(status("t1", (P1, 0, 5)), "b")
    talk.answer(OK)
    talk.hear(ParticipantLeave(partitions=(P1,)), "b")
    talk.hear(ParticipantJoin(partitions=(P2,)), "b")
    talk.hear(ParticipantLeave(partitions=(P2,)), "b")
    talk.answer(OK, committed={P0: 5, P1: 5, P2: 0}, partitions=frozenset({P0, P1, P2}))
    talk.hear(ParticipantReady(), "a")
    talk.tick(1_000)
    talk.answer(OK, instant="i2", committed={P0: 5, P1: 5, P2: 0})
    talk.tick(INTERVAL_MS)
    talk.hear(status("t2", (P0, 5, 6)), "a")
    talk.answer(OK)
    assert sent(talk.hear(ParticipantJoin(partitions=(P0,)), "a"), AckCommit)[0].transaction == "t2"


def test_who_says_ready_has_no_transaction_open_and_is_not_told_again() -> None:
    talk = CoordinatorTalk().committing()
    talk.answer(OK, wait_ms=0)
    talk.hear(ParticipantReady())
    talk.answer(c.Result.REFUSED)
    assert not sent(talk.hear(ParticipantJoin(partitions=(P0,))), AckCommit)


# --- the run ------------------------------------------------------------------------------------


def test_a_drain_ends_the_open_transaction_and_runs_one_more_for_nobody_else() -> None:
    talk = CoordinatorTalk().started()
    assert sent(talk.direct(c.RunMode.DRAIN), EndCommit)
    talk.hear(status("t1", (P0, 0, 5)))
    assert sent(talk.answer(OK), AckCommit)
    assert talk.core.state is State.DRAINED
    assert talk.hear(ParticipantReady()) == []


def test_a_drain_runs_one_last_transaction_for_who_still_holds_records() -> None:
    talk = CoordinatorTalk().idle()
    talk.hear(ParticipantJoin(partitions=(P0,)))
    talk.direct(c.RunMode.DRAIN)
    assert of(talk.hear(ParticipantReady()), c.Begin)
    actions = talk.answer(OK, instant="i1", committed={P0: 0})
    assert sent(actions, StartCommit)
    assert sent(actions, EndCommit)


def test_a_last_transaction_that_is_aborted_is_tried_once_more() -> None:
    talk = CoordinatorTalk(settle_ms=1_000).started()
    talk.direct(c.RunMode.DRAIN)
    talk.tick(WRITE_TIMEOUT_MS)
    talk.answer(OK)
    assert talk.core.state is not State.DRAINED
    assert of(talk.hear(ParticipantReady()), c.Begin)


def test_a_drain_with_nothing_to_write_ends_after_the_settling_time() -> None:
    talk = CoordinatorTalk(settle_ms=1_000).idle()
    talk.direct(c.RunMode.DRAIN)
    talk.tick(999)
    assert talk.core.state is State.IDLE
    talk.tick(1)
    assert talk.core.state is State.DRAINED


def test_a_halt_is_announced_and_final() -> None:
    talk = CoordinatorTalk().started()
    halt, stop = talk.direct(c.RunMode.HALT, "five failures")
    assert halt.body == Halt(reason="five failures")
    assert (stop.fenced, talk.core.state) == (False, State.HALTED)
    with pytest.raises(IllegalEvent):
        talk.tick(100_000)


def test_a_call_that_says_halted_halts() -> None:
    talk = CoordinatorTalk().recovering()
    assert sent(talk.answer(c.Result.HALTED, reason="topic recreated"), Halt)


def test_a_failure_too_many_is_told_after_its_abort() -> None:
    talk = CoordinatorTalk().aborting()
    assert sent(talk.answer(OK), AbortCommit)
    assert sent(talk.direct(c.RunMode.HALT, "five failures"), Halt)


def test_an_abort_that_ends_in_a_halt_before_anything_was_rolled_back_is_not_announced() -> None:
    """A commit that is late may still land: whoever believed ABORT would be told something untrue."""
    talk = CoordinatorTalk().aborting()
    actions = talk.answer(c.Result.HALTED, reason="the storage is away")
    assert not sent(actions, AbortCommit)
    assert sent(actions, Halt)
    assert talk.core.state is State.HALTED


def test_a_commit_that_nobody_could_look_for_because_the_run_halts_is_not_said_to_be_absent() -> None:
    talk = CoordinatorTalk().resolving()
    (abort,) = of(talk.answer(c.Result.HALTED, reason="too many rejects"), c.Abort)
    assert abort.reason == "what became of the commit is not known: too many rejects"


def test_another_runs_members_are_nobody_to_it() -> None:
    talk = CoordinatorTalk().idle()
    talk.hear(ParticipantJoin(partitions=(P0,)), run="run-2")
    assert talk.core.owners == {}
    assert talk.core.machine.ignored["another run"] == 1

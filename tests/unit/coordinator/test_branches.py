"""The coordinator's rarer turns: who has left, who was forgotten, what was said before."""

from __future__ import annotations

import pytest

from control_topic.messages import (
    AckCommit,
    CoordinatorClaim,
    EndCommit,
    Halt,
    ParticipantJoin,
    ParticipantLeave,
    ParticipantReady,
    StartCommit,
)
from coordinator import events as c
from coordinator.hearing import SENDERS_MAX
from coordinator.members import DEAD_MAX
from coordinator.transitions import State
from tests.unit.conversation import INTERVAL_MS, P0, P1, CoordinatorTalk, of, sent, status

OK = c.Result.OK
BOTH = {"a": (P0,), "b": (P1,)}


# --- claim --------------------------------------------------------------------------------------


def test_a_lower_claim_is_somebodys_past() -> None:
    talk = CoordinatorTalk()
    talk.feed(c.Launch(now_ms=0, topic_epoch=4))
    talk.answer(OK)
    assert talk.hear(CoordinatorClaim(), sender="other", epoch=3) == []
    assert talk.core.state is State.CLAIMING


@pytest.mark.parametrize("state", ["surveying", "registering", "recovering"])
def test_while_it_earns_its_epoch_a_call_that_says_halted_halts(state: str) -> None:
    talk = CoordinatorTalk()
    getattr(talk, state)()
    actions = talk.answer(c.Result.HALTED, reason="the table is of another cluster")
    assert [h.reason for h in sent(actions, Halt)] == ["the table is of another cluster"]
    assert not of(actions, c.Stop)[0].fenced
    assert talk.core.state is State.HALTED


@pytest.mark.parametrize("state", ["surveying", "registering", "recovering", "beginning", "aborting"])
def test_a_call_that_the_environment_prevented_is_asked_again_with_a_new_number(state: str) -> None:
    talk = CoordinatorTalk(retry_ms=500)
    getattr(talk, state)()
    before = talk.core.pending
    assert before is not None
    assert talk.answer(c.Result.UNAVAILABLE, wait_ms=900) == []
    assert talk.tick(899) == []
    (again,) = talk.tick(1)
    assert type(again) is type(before)
    assert again.call == before.call + 1
    assert talk.tick(10_000) == []


# --- who is there -------------------------------------------------------------------------------


def test_who_still_owns_another_source_partition_stays_ready_after_a_leave() -> None:
    talk = CoordinatorTalk().idle(P0, P1)
    talk.core.rounds.hold_until_ms = 10_000
    talk.hear(ParticipantJoin(partitions=(P0, P1)))
    talk.hear(ParticipantReady())
    talk.hear(ParticipantLeave(partitions=(P1,)))
    assert talk.core.owners == {P0: "a"}
    assert of(talk.tick(10_000), c.Begin)


def test_who_owns_nothing_any_more_is_not_ready_either() -> None:
    talk = CoordinatorTalk().idle(P0)
    talk.core.rounds.hold_until_ms = 10_000
    talk.hear(ParticipantJoin(partitions=(P0,)))
    talk.hear(ParticipantReady())
    talk.hear(ParticipantLeave(partitions=(P0,)))
    assert talk.core.owners == {}
    assert talk.tick(20_000) == []


def test_a_leave_of_what_somebody_else_owns_by_now_takes_nothing_away() -> None:
    talk = CoordinatorTalk().idle(P0)
    talk.hear(ParticipantJoin(partitions=(P0,)), "b")
    talk.hear(ParticipantLeave(partitions=(P0,)), "a")
    assert talk.core.owners == {P0: "b"}


def test_a_join_names_all_that_its_sender_owns_and_so_takes_back_the_rest() -> None:
    talk = CoordinatorTalk().idle(P0, P1)
    talk.hear(ParticipantJoin(partitions=(P0, P1)))
    talk.hear(ParticipantJoin(partitions=(P1,)))
    assert talk.core.owners == {P1: "a"}


def test_a_ready_of_somebody_who_owns_nothing_begins_nothing() -> None:
    talk = CoordinatorTalk(settle_ms=1_000).idle(P0)
    assert talk.hear(ParticipantReady()) == []
    assert talk.tick(60_000) == []
    assert talk.core.state is State.IDLE


def test_it_remembers_so_many_dead_and_forgets_the_oldest_first() -> None:
    talk = CoordinatorTalk().idle()
    for number in range(DEAD_MAX + 1):
        talk.died(f"w{number}")
    assert len(talk.core.dead) == DEAD_MAX
    assert "w0" not in talk.core.dead
    assert {"w1", f"w{DEAD_MAX}"} <= talk.core.dead.keys()


def test_it_remembers_so_many_senders_and_forgets_who_was_silent_longest() -> None:
    talk = CoordinatorTalk().idle(P0)
    for number in range(SENDERS_MAX):
        talk.hear(ParticipantReady(), f"w{number}")
    talk.hear(ParticipantReady(), "w0")
    talk.hear(ParticipantReady(), "newcomer")
    heard = talk.core.hearing.last_sequences
    assert len(heard) == SENDERS_MAX
    assert "w0" in heard and "newcomer" in heard and "w1" not in heard


# --- a transaction ------------------------------------------------------------------------------


def test_a_transaction_that_everybody_left_before_it_began_is_rolled_back_and_nobodys_fault() -> None:
    talk = CoordinatorTalk().beginning()
    talk.hear(ParticipantLeave(partitions=(P0,)))
    actions = talk.answer(OK, instant="i1", committed={P0: 0})
    assert sent(actions, StartCommit) == []
    (abort,) = of(actions, c.Abort)
    assert (abort.instant, abort.fault) == ("i1", c.Fault.NONE)


def test_an_open_transaction_that_everybody_leaves_without_open_data_is_rolled_back() -> None:
    talk = CoordinatorTalk().started()
    (abort,) = talk.hear(ParticipantLeave(partitions=(P0,)))
    assert (abort.reason, abort.fault) == ("everybody left", c.Fault.NONE)


def test_a_leave_without_open_data_while_it_is_being_written_waits_for_the_end() -> None:
    talk = CoordinatorTalk().started(BOTH)
    assert talk.hear(ParticipantLeave(partitions=(P1,)), "b") == []
    assert talk.core.state is State.STARTED
    talk.tick(INTERVAL_MS)
    (commit,) = talk.hear(status("t1", (P0, 0, 5)))
    assert isinstance(commit, c.Commit)


def test_a_ready_of_somebody_who_has_answered_is_for_the_next_transaction() -> None:
    talk = CoordinatorTalk().ended(BOTH)
    talk.hear(status("t1", (P0, 0, 5)))
    assert talk.hear(ParticipantReady(), "a") == []
    talk.hear(status("t1", (P1, 0, 5)), "b")
    actions = talk.answer(OK)
    assert sent(actions, AckCommit)
    assert of(actions, c.Begin)


def test_a_begin_that_says_halted_halts_and_opens_nothing() -> None:
    talk = CoordinatorTalk().beginning()
    actions = talk.answer(c.Result.HALTED, reason="enough")
    assert [h.reason for h in sent(actions, Halt)] == ["enough"]
    assert talk.core.transaction is None


def test_what_the_service_says_about_a_transaction_is_kept_until_a_refused_begin_may_be_tried_again() -> None:
    talk = CoordinatorTalk().beginning()
    talk.answer(c.Result.REFUSED, wait_ms=3_000)
    talk.answer(OK, committed={P0: 0}, partitions=frozenset({P0}))
    assert talk.tick(2_999) == []
    assert of(talk.tick(1), c.Begin)


# --- the run ends -------------------------------------------------------------------------------


def test_a_directive_that_is_given_again_changes_nothing() -> None:
    talk = CoordinatorTalk().started()
    assert sent(talk.direct(c.RunMode.DRAIN), EndCommit)
    assert talk.direct(c.RunMode.DRAIN) == []
    assert talk.core.state is State.ENDED


def test_a_stop_ends_it_at_once_and_leaves_the_transaction_to_whoever_recovers() -> None:
    talk = CoordinatorTalk().started()
    (stop,) = talk.direct(c.RunMode.STOP)
    assert (stop.reason, talk.core.state, talk.core.transaction) == ("the run stops", State.FENCED, None)


# --- what people see ----------------------------------------------------------------------------


def test_a_snapshot_says_who_has_answered_and_who_is_awaited() -> None:
    talk = CoordinatorTalk().ended(BOTH)
    talk.hear(status("t1", (P0, 0, 5)))
    shown = talk.core.snapshot()
    assert (shown.state, shown.epoch, shown.transaction, shown.instant) == ("ended", 1, "t1", "i1")
    assert (shown.answered, shown.missing) == (("a",), ("b",))


def test_a_snapshot_without_a_transaction_names_none() -> None:
    shown = CoordinatorTalk().idle().core.snapshot()
    assert (shown.state, shown.transaction, shown.instant, shown.started_at_ms) == ("idle", "", "", 0)
    assert (shown.answered, shown.missing) == ((), ())

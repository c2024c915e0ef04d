"""The coordinator's sentences of the design, each as a conversation with its core."""

from __future__ import annotations

from typing import Any

import pytest

from control_topic.messages import (
    CoordinatorClaim,
    EndCommit,
    EndRequest,
    ParticipantJoin,
    ParticipantLeave,
    ParticipantReady,
    SourcePartition,
    StartCommit,
    Witness,
)
from coordinator import events as c
from coordinator.transitions import State
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


# --- claim --------------------------------------------------------------------------------------


def test_it_claims_one_more_than_the_highest_epoch_of_table_service_and_topic() -> None:
    talk = CoordinatorTalk()
    talk.feed(c.Launch(now_ms=0, topic_epoch=4))
    talk.hear(ParticipantReady(), epoch=7)
    (claim,) = talk.answer(OK, epoch=6)
    assert (claim.body, claim.epoch) == (CoordinatorClaim(), 8)


def test_of_equal_claims_the_first_in_topic_order_wins() -> None:
    winner = CoordinatorTalk().claiming()
    (register,) = winner.hear(CoordinatorClaim(), sender="me")
    assert register == c.Register(call=2, epoch=1)
    assert winner.hear(CoordinatorClaim(), sender="other") == []
    assert winner.core.state is State.REGISTERING

    loser = CoordinatorTalk().claiming()
    (stop,) = loser.hear(CoordinatorClaim(), sender="other")
    assert stop.fenced
    assert loser.core.state is State.FENCED


def test_an_equal_claim_of_another_run_that_came_first_wins_as_well() -> None:
    talk = CoordinatorTalk().claiming()
    assert of(talk.hear(CoordinatorClaim(), sender="other", run="run-2"), c.Stop)


def test_a_claim_that_is_not_read_back_is_repeated_and_then_given_up() -> None:
    talk = CoordinatorTalk(claims_max=3).claiming()
    claims, seconds = 0, 0
    while talk.core.state is State.CLAIMING and seconds < 20:
        claims, seconds = claims + len(sent(talk.tick(1_000), CoordinatorClaim)), seconds + 1
    assert (claims, talk.core.state) == (2, State.FENCED)


@pytest.mark.parametrize("state", ["claiming", "registering", "idle", "started", "ended", "committing"])
def test_whoever_knows_a_higher_epoch_fences_it(state: str) -> None:
    talk = CoordinatorTalk()
    getattr(talk, state)()
    (stop,) = talk.hear(ParticipantReady(), epoch=2, run="another")
    assert (stop.fenced, talk.core.state) == (True, State.FENCED)


def test_another_pipelines_epochs_are_not_ours() -> None:
    talk = CoordinatorTalk().idle()
    assert talk.hear(ParticipantReady(), epoch=99, pipeline="q") == []
    assert talk.core.state is State.IDLE


def test_a_stale_answer_of_the_service_fences_it() -> None:
    talk = CoordinatorTalk().registering()
    (stop,) = talk.answer(c.Result.STALE, reason="epoch 2 is registered")
    assert stop.fenced


def test_it_registers_before_anything_else_and_recovers_before_any_transaction() -> None:
    talk = CoordinatorTalk().claiming()
    calls: list[Any] = [*talk.hear(CoordinatorClaim(), sender="me"), *talk.answer(OK)]
    talk.hear(ParticipantJoin(partitions=(P0,)))
    talk.hear(ParticipantReady())
    calls += talk.answer(OK, committed={P0: 0}, partitions=frozenset({P0}))
    assert [type(call) for call in calls] == [c.Register, c.Recover, c.Begin]


def test_recovery_is_asked_for_again_until_it_is_done() -> None:
    talk = CoordinatorTalk(retry_ms=500).recovering()
    assert talk.answer(c.Result.UNAVAILABLE, wait_ms=2_000) == []
    assert talk.tick(1_999) == []
    (again,) = talk.tick(1)
    assert isinstance(again, c.Recover)


# --- a transaction begins -----------------------------------------------------------------------


def test_an_idle_pipeline_holds_no_open_instant_and_the_first_ready_begins() -> None:
    talk = CoordinatorTalk().idle()
    talk.hear(ParticipantJoin(partitions=(P0,)))
    assert talk.tick(100 * INTERVAL_MS) == []
    (begin,) = talk.hear(ParticipantReady())
    assert begin == c.Begin(call=4, epoch=1, transaction="t1")


def test_a_ready_waits_for_owners_of_all_partitions_but_not_for_long() -> None:
    talk = CoordinatorTalk(settle_ms=1_000).idle(P0, P1)
    talk.hear(ParticipantJoin(partitions=(P0,)), "a")
    assert talk.hear(ParticipantReady(), "a") == []
    assert talk.tick(999) == []
    assert of(talk.tick(1), c.Begin)


def test_a_partition_given_up_long_enough_ago_is_not_waited_for_again() -> None:
    talk = CoordinatorTalk(settle_ms=1_000).idle(P0, P1)
    talk.hear(ParticipantJoin(partitions=(P0,)), "a")
    talk.hear(ParticipantJoin(partitions=(P1,)), "b")
    talk.hear(ParticipantLeave(partitions=(P1,)), "b")
    talk.tick(999)
    assert talk.hear(ParticipantReady(), "a") == []
    assert of(talk.tick(1), c.Begin)
    talk = CoordinatorTalk(settle_ms=1_000).idle(P0, P1)
    talk.hear(ParticipantJoin(partitions=(P0, P1)), "a")
    talk.hear(ParticipantJoin(partitions=(P0,)), "a")
    talk.tick(1_000)
    assert of(talk.hear(ParticipantReady(), "a"), c.Begin)


def test_a_partition_that_nobody_owns_is_not_expected() -> None:
    talk = CoordinatorTalk(settle_ms=0).idle(P0, P1, P2)
    talk.hear(ParticipantJoin(partitions=(P0, P1)), "a")
    talk.hear(ParticipantReady(), "a")
    (start,) = sent(talk.answer(OK, instant="i1", committed={P0: 3, P1: 4}), StartCommit)
    assert start.writers == {P0: "a", P1: "a"}
    assert start.committed == {P0: 3, P1: 4}
    talk.tick(INTERVAL_MS)
    assert of(talk.hear(status("t1", (P0, 3, 3), (P1, 4, 9)), "a"), c.Commit)


def test_start_names_the_records_that_a_writer_may_not_know_and_no_others() -> None:
    """Who has committed of a source partition knows what it read last."""
    known = {p: Witness(partition=p, offset=o - 1, fingerprint=o) for p, o in ((P0, 3), (P1, 4), (P2, 5))}
    talk = CoordinatorTalk(settle_ms=0).idle(P0, P1)

    def begun(*writers: str) -> StartCommit:
        for who, partition in zip(writers, (P0, P1), strict=True):
            talk.hear(ParticipantJoin(partitions=(partition,)), who)
        talk.hear(ParticipantReady(), writers[0])
        answer = talk.answer(OK, instant="i", committed={P0: 3, P1: 4}, witnesses=tuple(known.values()))
        (start,) = sent(answer, StartCommit)
        return start

    first = begun("a", "b")
    assert first.witnesses == {P0: known[P0], P1: known[P1]}
    talk.tick(INTERVAL_MS)
    talk.hear(status(first.transaction, (P0, 3, 3)), "a")
    talk.hear(status(first.transaction, (P1, 4, 9)), "b")
    talk.answer(OK)
    talk.hear(ParticipantLeave(partitions=(P1,)), "b")
    assert begun("a", "c").witnesses == {P1: known[P1]}


def test_start_says_from_when_on_records_are_late_and_the_same_each_time() -> None:
    talk = CoordinatorTalk(settle_ms=0).idle(P0)
    talk.hear(ParticipantJoin(partitions=(P0,)), "a")
    talk.hear(ParticipantReady(), "a")
    (start,) = sent(talk.answer(OK, instant="i", committed={P0: 3}, watermark_ms=-5), StartCommit)
    assert start.watermark_ms == -5
    assert sent(talk.hear(ParticipantJoin(partitions=(P0,)), "a"), StartCommit) == [start]


def test_a_begin_whose_outcome_is_unknown_is_asked_again_by_the_same_id() -> None:
    talk = CoordinatorTalk(retry_ms=500).beginning()
    assert talk.answer(UNKNOWN) == []
    (again,) = talk.tick(500)
    assert again.transaction == "t1"


def test_a_begin_that_was_perhaps_done_is_not_forgotten_for_an_unavailable_table() -> None:
    """Otherwise its instant would stay open."""
    talk = CoordinatorTalk(retry_ms=500).beginning()
    talk.answer(UNKNOWN)
    talk.tick(500)
    assert talk.answer(c.Result.UNAVAILABLE, wait_ms=700) == []
    (again,) = talk.tick(700)
    assert isinstance(again, c.Begin)
    assert again.transaction == "t1"


def test_a_refused_begin_leads_to_recovery() -> None:
    talk = CoordinatorTalk().beginning()
    (recover,) = talk.answer(c.Result.REFUSED)
    assert isinstance(recover, c.Recover)


def test_a_join_that_comes_while_it_begins_is_in_start() -> None:
    talk = CoordinatorTalk().beginning()
    talk.hear(ParticipantJoin(partitions=(P1,)), "b")
    (start,) = sent(talk.answer(OK, instant="i1", committed={P0: 0, P1: 4}), StartCommit)
    assert start.writers == {P0: "a", P1: "b"}


# --- while it is open ---------------------------------------------------------------------------


def test_what_was_there_before_the_run_waits_a_quarter_of_the_interval() -> None:
    talk = CoordinatorTalk().started()
    assert not sent(talk.tick(INTERVAL_MS // 4 - 1), EndCommit)
    assert sent(talk.tick(1), EndCommit) == [EndCommit(transaction="t1", reason="interval")]
    assert talk.core.state is State.ENDED


def after_one(owners: dict[str, tuple[SourcePartition, ...]]) -> CoordinatorTalk:
    """One transaction is committed, whose END was just sent."""
    talk = CoordinatorTalk().ended(owners)
    for who, owned in owners.items():
        talk.hear(status("t1", *((q, 0, 5) for q in owned)), who)
    talk.answer(OK)
    return talk


def begin_next(talk: CoordinatorTalk) -> None:
    talk.hear(ParticipantReady(), "a")
    talk.answer(OK, instant="i", committed=dict(talk.core.committed))


def test_the_interval_lies_between_the_ends_of_two_transactions() -> None:
    talk = after_one(BOTH)
    talk.tick(400)
    begin_next(talk)
    assert not sent(talk.tick(INTERVAL_MS - 401), EndCommit)
    assert sent(talk.tick(1), EndCommit) == [EndCommit(transaction="t2", reason="interval")]


def test_after_a_long_silence_a_transaction_still_lasts_a_quarter_of_the_interval() -> None:
    talk = after_one(BOTH)
    talk.tick(10 * INTERVAL_MS)
    begin_next(talk)
    assert not sent(talk.tick(INTERVAL_MS // 4 - 1), EndCommit)
    assert sent(talk.tick(1), EndCommit)


def test_what_an_abort_sent_back_is_due_when_it_was_due() -> None:
    talk = after_one(BOTH)
    begin_next(talk)
    talk.tick(500)
    talk.died("b")
    talk.answer(OK)
    talk.hear(ParticipantJoin(partitions=(P0, P1)), "a")
    begin_next(talk)
    assert not sent(talk.tick(499), EndCommit)
    assert sent(talk.tick(1), EndCommit) == [EndCommit(transaction="t3", reason="interval")]


def test_what_was_due_before_its_abort_is_given_time_to_be_read() -> None:
    talk = after_one(BOTH)
    begin_next(talk)
    talk.tick(900)
    talk.died("b")
    talk.tick(700)
    talk.answer(OK)
    talk.hear(ParticipantJoin(partitions=(P0, P1)), "a")
    begin_next(talk)
    assert not sent(talk.tick(INTERVAL_MS // 4 - 1), EndCommit)
    assert sent(talk.tick(1), EndCommit) == [EndCommit(transaction="t3", reason="interval")]


def test_a_transaction_that_came_to_nothing_makes_no_other_shorter() -> None:
    talk = after_one({"a": (P0,)})
    begin_next(talk)
    talk.tick(INTERVAL_MS)
    talk.hear(status("t2", (P0, 5, 5)))
    talk.answer(OK)
    begin_next(talk)
    assert not sent(talk.tick(INTERVAL_MS - 1), EndCommit)
    assert sent(talk.tick(1), EndCommit) == [EndCommit(transaction="t3", reason="interval")]


def test_an_end_request_ends_it_at_once() -> None:
    talk = CoordinatorTalk().started()
    assert sent(talk.hear(EndRequest(transaction="t1", reason="bytes")), EndCommit)


@pytest.mark.parametrize(("transaction", "sender"), [("t0", "a"), ("t1", "stranger")])
def test_an_end_request_of_another_transaction_or_of_a_stranger_is_ignored(
    transaction: str, sender: str
) -> None:
    talk = CoordinatorTalk().started()
    assert talk.hear(EndRequest(transaction=transaction, reason="bytes"), sender) == []
    assert talk.core.machine.ignored["END_REQUEST of another transaction"] == 1


def test_reached_end_ends_it_when_every_writer_is_there() -> None:
    talk = CoordinatorTalk().started(BOTH)
    assert talk.hear(EndRequest(transaction="t1", reason="reached_end"), "a") == []
    assert talk.hear(EndRequest(transaction="t1", reason="reached_end"), "a") == []
    assert sent(talk.hear(EndRequest(transaction="t1", reason="reached_end"), "b"), EndCommit)


def test_end_is_repeated_until_answered() -> None:
    talk = CoordinatorTalk(repeat_ms=1_000).ended()
    assert talk.tick(999) == []
    assert sent(talk.tick(1), EndCommit)
    assert sent(talk.tick(1_000), EndCommit)


@pytest.mark.parametrize("body", [ParticipantReady(), ParticipantJoin(partitions=(P0,))])
def test_a_start_that_was_lost_is_brought_again_by_ready_or_join(body: Any) -> None:
    talk = CoordinatorTalk().started()
    (again,) = sent(talk.hear(body), StartCommit)
    assert again.transaction == "t1"


def test_a_start_that_was_lost_is_brought_again_after_end_as_well() -> None:
    talk = CoordinatorTalk().ended()
    actions = talk.hear(ParticipantJoin(partitions=(P0,)))
    assert [type(action.body) for action in actions] == [StartCommit, EndCommit]


def test_who_has_answered_is_not_told_again() -> None:
    talk = CoordinatorTalk().ended(BOTH)
    talk.hear(status("t1", (P0, 0, 5)), "a")
    assert talk.hear(ParticipantJoin(partitions=(P0,)), "a") == []


def test_the_ranges_are_a_set_never_a_count() -> None:
    talk = CoordinatorTalk().ended(BOTH)
    assert talk.hear(status("t1", (P0, 0, 5)), "a") == []
    assert talk.hear(status("t1", (P0, 0, 5)), "a") == []
    assert talk.core.machine.ignored["WRITE_STATUS: a repeat"] == 1
    (commit,) = talk.hear(status("t1", (P1, 0, 2)), "b")
    assert isinstance(commit, c.Commit)
    assert {r.partition for s in commit.statuses for r in s.ranges} == {P0, P1}


def test_the_first_write_status_of_a_sender_counts() -> None:
    talk = CoordinatorTalk().ended(BOTH)
    talk.hear(status("t1", (P0, 0, 5)), "a")
    talk.hear(status("t1", (P0, 0, 6)), "a")
    (commit,) = talk.hear(status("t1", (P1, 0, 2)), "b")
    assert commit.statuses == (status("t1", (P0, 0, 5)), status("t1", (P1, 0, 2)))


@pytest.mark.parametrize(
    ("sender", "body", "why"),
    [
        ("b", status("t1", (P0, 0, 5), (P1, 0, 5)), "sender not listed"),
        ("a", status("t0", (P0, 0, 5), (P1, 0, 5)), "another transaction"),
        ("a", status("t1", (P0, 0, 5)), "other source partitions than listed"),
        ("a", status("t1", (P0, 0, 5), (P1, 0, 5), (P2, 0, 5)), "other source partitions than listed"),
        ("a", status("t1", (P0, 0, 5), (P0, 0, 5), (P1, 0, 5)), "other source partitions than listed"),
        ("a", status("t1", (P0, 0, 5), (P1, 1, 5)), "a range does not start at the committed offset"),
    ],
)
def test_a_write_status_is_taken_or_refused_whole(sender: str, body: Any, why: str) -> None:
    talk = CoordinatorTalk().ended({"a": (P0, P1)})
    assert talk.hear(body, sender) == []
    assert talk.core.machine.ignored[f"WRITE_STATUS: {why}"] == 1
    assert of(talk.hear(status("t1", (P0, 0, 5), (P1, 0, 5)), "a"), c.Commit)


def test_a_late_write_status_is_ignored_and_counted() -> None:
    talk = CoordinatorTalk().ended()
    talk.tick(WRITE_TIMEOUT_MS)
    talk.answer(OK)
    assert talk.core.state is State.IDLE
    assert talk.hear(status("t1", (P0, 0, 5))) == []
    assert talk.core.machine.ignored["WRITE_STATUS in IDLE"] == 1


# --- source partitions that are new to the table ------------------------------------------------


def test_a_partition_without_an_offset_is_given_one_before_any_start_lists_it() -> None:
    talk = CoordinatorTalk().idle(P0)
    (recover,) = talk.hear(ParticipantJoin(partitions=(P0, P1)), "a")
    assert isinstance(recover, c.Recover)
    talk.hear(ParticipantReady(), "a")
    (begin,) = talk.answer(OK, committed={P0: 0, P1: 600}, partitions=frozenset({P0, P1}))
    assert isinstance(begin, c.Begin)
    (start,) = sent(talk.answer(OK, instant="i1", committed={P0: 0, P1: 600}), StartCommit)
    assert (start.writers, start.committed) == ({P0: "a", P1: "a"}, {P0: 0, P1: 600})


def test_a_partition_that_appears_while_a_transaction_is_open_waits_for_the_next_one() -> None:
    talk = CoordinatorTalk().started({"a": (P0,)})
    talk.hear(ParticipantJoin(partitions=(P1,)), "b")
    talk.tick(INTERVAL_MS)
    talk.hear(status("t1", (P0, 0, 5)), "a")
    actions = talk.answer(OK)
    assert of(actions, c.Recover)
    assert talk.core.state is State.RECOVERING


def test_a_partition_that_the_broker_does_not_name_is_in_no_start_and_asked_for_again_later() -> None:
    talk = CoordinatorTalk(admit_ms=10_000).idle(P0)
    assert of(talk.hear(ParticipantJoin(partitions=(P0, P1)), "a"), c.Recover)
    talk.hear(ParticipantReady(), "a")
    (begin,) = talk.answer(OK, committed={P0: 7}, partitions=frozenset({P0}))
    assert isinstance(begin, c.Begin)
    (start,) = sent(talk.answer(OK, instant="i1", committed={P0: 7}), StartCommit)
    assert start.writers == {P0: "a"}
    talk.tick(INTERVAL_MS)
    talk.hear(status("t1", (P0, 7, 9)), "a")
    assert not of(talk.answer(OK), c.Recover)
    assert of(talk.tick(9_000), c.Recover)


def test_a_draining_coordinator_leaves_new_partitions_to_the_next_run() -> None:
    talk = CoordinatorTalk().idle(P0)
    talk.direct(c.RunMode.DRAIN)
    assert talk.hear(ParticipantJoin(partitions=(P0, P1)), "a") == []
    talk.tick(1_000)
    assert talk.core.state is State.DRAINED


def test_a_new_partition_that_nobody_owns_any_more_is_not_asked_for() -> None:
    talk = CoordinatorTalk().started({"a": (P0,)})
    talk.hear(ParticipantJoin(partitions=(P1,)), "b")
    talk.hear(ParticipantLeave(partitions=(P1,)), "b")
    talk.tick(INTERVAL_MS)
    talk.hear(status("t1", (P0, 0, 5)), "a")
    assert not of(talk.answer(OK), c.Recover)
    assert talk.core.state is State.IDLE


def test_what_a_sender_said_before_is_not_heard_again() -> None:
    """A topic that is read again must not give a source partition back to its former owner."""
    talk = CoordinatorTalk().started()
    talk.hear(ParticipantJoin(partitions=(P1,)), "b")
    first = talk.sequence
    talk.hear(ParticipantJoin(partitions=()), "b")
    assert talk.hear(ParticipantJoin(partitions=(P0,)), "b", sequence=first) == []
    assert talk.core.state is State.STARTED
    assert talk.core.owners == {P0: "a"}
    assert talk.core.machine.ignored["heard before"] == 1

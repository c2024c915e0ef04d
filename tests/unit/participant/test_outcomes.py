"""What becomes of what a participant wrote: the sentences of the design as conversations."""

from __future__ import annotations

from typing import Any

import pytest

from control_topic.messages import (
    AbortCommit,
    AckCommit,
    CoordinatorClaim,
    EndCommit,
    Halt,
    ParticipantJoin,
    ParticipantLeave,
    ParticipantReady,
    SourcePartition,
    WriteStatus,
)
from participant import events as p
from participant.transitions import State
from tests.unit.conversation import P0, P1, ParticipantTalk, of, sent


def rewinds(actions: list[Any]) -> list[tuple[SourcePartition, int]]:
    return [(a.partition, a.offset) for a in of(actions, p.Rewind)]


# --- ack and abort ------------------------------------------------------------------------------


def test_the_groups_offsets_move_only_after_ack() -> None:
    talk = ParticipantTalk().prepared()
    (commit,) = of(talk.ack("t1", {P0: 5, P1: 70}), p.CommitGroup)
    assert commit.offsets == {P0: 5}


def test_no_word_after_the_write_status_makes_it_say_join() -> None:
    talk = ParticipantTalk(commit_wait_ms=5_000).prepared()
    assert not sent(talk.tick(4_999), ParticipantJoin)
    assert sent(talk.tick(1), ParticipantJoin)


def test_after_ack_it_says_ready_at_once_where_it_holds_more() -> None:
    talk = ParticipantTalk().prepared()
    talk.buffered(P0, 9)
    assert sent(talk.ack("t1", {P0: 5}), ParticipantReady)


def test_an_ack_without_its_range_makes_it_rewind() -> None:
    """Its WRITE_STATUS was not taken and the transaction went on without it."""
    talk = ParticipantTalk().prepared()
    actions = talk.ack("t1", {P0: 0})
    assert rewinds(actions) == [(P0, 0)]
    assert of(actions, p.CommitGroup) == [p.CommitGroup(offsets={P0: 0})]


def test_abort_rewinds_what_was_reported() -> None:
    talk = ParticipantTalk().prepared()
    talk.buffered(P0, 9)
    actions = talk.hear(AbortCommit(transaction="t1", reason="x"))
    assert rewinds(actions) == [(P0, 0)]
    assert not of(actions, p.Discard)  # reported files are removed by whoever rolls back


@pytest.mark.parametrize("state", ["writing", "flushing"])
def test_abort_of_what_was_not_reported_removes_its_files(state: str) -> None:
    talk = ParticipantTalk()
    getattr(talk, state)()
    actions = talk.hear(AbortCommit(transaction="t1", reason="x"))
    assert of(actions, p.Discard) == [p.Discard(transaction="t1")]
    assert rewinds(actions) == [(P0, 0)]


def test_abort_or_ack_that_was_said_before_our_start_changes_nothing() -> None:
    talk = ParticipantTalk().prepared()
    assert talk.hear(AbortCommit(transaction="t0", reason="x"), sequence=0) == []
    late = AckCommit(transaction="t0", instant="i0", committed={P0: 5})
    assert talk.hear(late, sequence=0) == []
    assert talk.core.state is State.PREPARED


@pytest.mark.parametrize("committed", [5, 0])
def test_a_later_start_decides_about_the_earlier_transaction(committed: int) -> None:
    """Its ACK or ABORT may be lost: what the table holds says which it was."""
    talk = ParticipantTalk().prepared()
    talk.buffered(P0, 9)
    actions = talk.start("t2", P0, committed={P0: committed})
    if committed == 5:
        assert of(actions, p.CommitGroup) == [p.CommitGroup(offsets={P0: 5})]
        assert rewinds(actions) == []
        assert of(actions, p.Write)[0].upto == 9
    else:
        assert not of(actions, p.CommitGroup)
        assert rewinds(actions) == [(P0, 0)]


def test_a_start_of_another_transaction_ends_the_one_that_is_being_written() -> None:
    talk = ParticipantTalk().writing()
    actions = talk.start("t2", P0)
    assert of(actions, p.Discard) == [p.Discard(transaction="t1")]
    assert rewinds(actions) == [(P0, 0)]
    assert of(actions, p.Open)[0].transaction == "t2"


# --- revoked ------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["writing", "flushing"])
def test_revoked_before_its_write_status_the_open_data_is_dropped_and_it_leaves(state: str) -> None:
    talk = ParticipantTalk()
    getattr(talk, state)()
    actions = talk.revoked(P0)
    assert of(actions, p.Discard)
    assert of(actions, p.Drop) == [p.Drop(partition=P0)]
    assert sent(actions, ParticipantLeave) == [ParticipantLeave(partitions=(P0,), transaction="t1")]


def test_revoked_with_open_data_the_other_partitions_are_taken_again() -> None:
    talk = ParticipantTalk()
    talk.assigned(P0, P1)
    talk.buffered(P0, 5)
    talk.buffered(P1, 5)
    talk.start("t1", P0, P1)
    assert rewinds(talk.revoked(P0)) == [(P1, 0)]


def test_revoked_without_open_data_the_transaction_goes_on() -> None:
    talk = ParticipantTalk()
    talk.assigned(P0, P1)
    talk.buffered(P0, 5)
    talk.start("t1", P0, P1)
    actions = talk.revoked(P1)
    assert sent(actions, ParticipantLeave) == [ParticipantLeave(partitions=(P1,))]
    assert not of(actions, p.Discard)
    talk.end("t1")
    (status,) = sent(talk.flushed(), WriteStatus)
    assert [r.partition for r in status.ranges] == [P0]


def test_revoked_with_nothing_in_its_files_the_transaction_goes_on_whatever_is_decoded_beside_it() -> None:
    """Else a group that is dealt anew while files are ended aborts what nothing is missing of."""
    talk = ParticipantTalk()
    talk.assigned(P0, P1)
    talk.buffered(P0, 5)
    talk.start("t1", P0, P1)
    talk.end("t1")
    talk.buffered(P1, 7)
    actions = talk.revoked(P1)
    assert sent(actions, ParticipantLeave) == [ParticipantLeave(partitions=(P1,))]
    assert not of(actions, p.Discard)
    (status,) = sent(talk.flushed(), WriteStatus)
    assert [(r.partition, r.next) for r in status.ranges] == [(P0, 5)]


def test_revoked_after_its_write_status_the_files_belong_to_the_transaction() -> None:
    talk = ParticipantTalk().prepared()
    actions = talk.revoked(P0)
    assert not of(actions, p.Discard)
    assert sent(actions, ParticipantLeave) == [ParticipantLeave(partitions=(P0,))]
    assert sent(talk.end("t1"), WriteStatus)  # still answered
    assert talk.ack("t1", {P0: 5}) == []  # the group's offset is no longer ours to set


def test_a_partition_that_comes_back_is_not_the_one_that_was_reported() -> None:
    talk = ParticipantTalk().prepared()
    talk.revoked(P0)
    talk.assigned(P0, at=5)
    assert talk.core.owned[P0].start == 5


# --- epochs and runs ----------------------------------------------------------------------------


def test_coordinators_of_a_lower_epoch_are_ignored_and_counted() -> None:
    talk = ParticipantTalk().joining()
    talk.hear(CoordinatorClaim(), epoch=3)
    assert talk.start("t1", P0, epoch=2) == []
    assert talk.core.machine.ignored["START_COMMIT of a lower epoch"] == 1


def test_a_higher_epoch_ends_what_is_being_written() -> None:
    talk = ParticipantTalk().writing()
    actions = talk.hear(CoordinatorClaim(), epoch=2, sender="c2")
    assert of(actions, p.Discard)
    assert rewinds(actions) == [(P0, 0)]
    assert sent(actions, ParticipantJoin)


def test_under_a_higher_epoch_what_is_reported_waits_for_start_to_decide() -> None:
    for committed, wanted in ((5, []), (0, [(P0, 0)])):
        talk = ParticipantTalk().prepared()
        assert not of(talk.hear(CoordinatorClaim(), epoch=2, sender="c2"), p.Discard)
        actions = talk.start("t2", P0, committed={P0: committed}, epoch=2, sender="c2")
        assert rewinds(actions) == wanted


def test_an_epoch_is_learned_from_whoever_names_it() -> None:
    talk = ParticipantTalk().joining()
    talk.hear(ParticipantReady(), sender="b", epoch=6, run="another")
    assert talk.core.epoch == 6


def test_a_halt_of_its_run_stops_it_and_a_halt_of_another_run_does_not() -> None:
    talk = ParticipantTalk().writing()
    assert talk.hear(Halt(reason="x"), run="another") == []
    actions = talk.hear(Halt(reason="x"))
    assert of(actions, p.Discard)
    assert of(actions, p.Stop) == [p.Stop(reason="x", failed=False)]
    assert talk.core.state is State.STOPPED


def test_an_effect_that_failed_ends_this_worker_but_not_its_slot() -> None:
    talk = ParticipantTalk().writing()
    actions = talk.feed(p.EffectFailed(now_ms=0, reason="disk full"))
    assert sent(actions, ParticipantLeave) == [
        ParticipantLeave(partitions=(P0,), transaction="t1", reason="disk full")
    ]
    assert of(actions, p.Stop)[0].failed


def test_a_worker_that_leaves_after_its_write_status_leaves_its_files() -> None:
    talk = ParticipantTalk().prepared()
    actions = talk.feed(p.Leave(now_ms=0, reason="x"))
    assert not of(actions, p.Discard)
    assert sent(actions, ParticipantLeave) == [ParticipantLeave(partitions=(P0,))]


def test_end_before_anything_is_owned_says_nothing() -> None:
    assert ParticipantTalk().hear(EndCommit(transaction="t1")) == []

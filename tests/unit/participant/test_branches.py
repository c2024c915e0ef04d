"""The participant's rarer turns: what it gave up, what came too late, what nobody owns any more."""

from __future__ import annotations

import pytest

from control_topic.messages import (
    AbortCommit,
    CoordinatorClaim,
    EndCommit,
    ParticipantJoin,
    ParticipantLeave,
    ParticipantReady,
    WriteStatus,
)
from coordinator import events as c
from participant import events as p
from participant.transitions import IllegalEvent, State
from tests.unit.conversation import INTERVAL_MS, P0, P1, ParticipantTalk, of, sent


@pytest.mark.parametrize("state", State, ids=str)
def test_an_event_of_no_kind_that_the_table_knows_is_the_shells_bug(state: State) -> None:
    talk = ParticipantTalk()
    getattr(talk, state.value)()
    with pytest.raises(IllegalEvent, match="Launch in"):
        talk.feed(c.Launch(now_ms=0))  # type: ignore[arg-type]


# --- membership ---------------------------------------------------------------------------------


def test_a_partition_that_was_never_given_is_not_left() -> None:
    talk = ParticipantTalk()
    talk.joining()
    assert talk.revoked(P1) == []
    assert set(talk.core.owned) == {P0}


def test_a_worker_that_owns_nothing_leaves_without_a_word() -> None:
    talk = ParticipantTalk()
    (stop,) = talk.feed(p.Leave(now_ms=0, reason="the run is over"))
    assert isinstance(stop, p.Stop) and not stop.failed


def test_without_any_partition_left_it_waits_for_none() -> None:
    talk = ParticipantTalk().waiting()
    (leave,) = sent(talk.revoked(P0), ParticipantLeave)
    assert (leave.partitions, leave.transaction) == ((P0,), "")
    assert talk.core.state is State.JOINING
    assert talk.tick(60_000) == []


def test_a_claim_of_a_lower_epoch_is_not_answered() -> None:
    talk = ParticipantTalk().waiting()
    talk.hear(ParticipantJoin(partitions=(P1,)), "b", epoch=5)
    assert talk.hear(CoordinatorClaim(), "old", epoch=3) == []
    assert talk.core.state is State.WAITING


def test_another_run_is_heard_for_its_epoch_only() -> None:
    talk = ParticipantTalk().prepared()
    assert talk.hear(AbortCommit(transaction="t1", reason="x"), run="another") == []
    assert talk.core.state is State.PREPARED


# --- what is blocked ----------------------------------------------------------------------------


def test_a_block_at_an_older_position_or_of_a_partition_that_is_gone_is_void() -> None:
    talk = ParticipantTalk()
    talk.assigned(P0)
    stale = talk.core.owned[P0].generation
    talk.buffered(P0, 3, records=0)
    talk.start("t1", P0, committed={P0: 1})
    talk.hear(AbortCommit(transaction="t1", reason="x"))
    talk.buffered(P0, 3, records=0)
    assert talk.feed(p.Blocked(now_ms=0, partition=P0, generation=stale)) == []
    assert talk.feed(p.Blocked(now_ms=0, partition=P1, generation=stale)) == []
    now = talk.core.owned[P0].generation
    assert sent(talk.feed(p.Blocked(now_ms=0, partition=P0, generation=now)), ParticipantReady)


# --- a transaction ------------------------------------------------------------------------------


def test_while_it_flushes_the_end_of_its_transaction_is_known_and_anothers_is_answered_with_join() -> None:
    talk = ParticipantTalk().flushing()
    assert talk.end("t1") == []
    (join,) = talk.end("t9")
    assert join.body == ParticipantJoin(partitions=(P0,))
    assert talk.core.state is State.FLUSHING


def test_with_its_write_status_out_the_end_of_another_transaction_is_answered_with_join() -> None:
    talk = ParticipantTalk().prepared()
    (join,) = talk.end("t9")
    assert join.body == ParticipantJoin(partitions=(P0,))
    assert talk.core.state is State.PREPARED


def test_the_end_of_what_it_gave_up_is_answered_with_leave_and_join() -> None:
    talk = ParticipantTalk().writing()
    talk.hear(AbortCommit(transaction="t1", reason="x"))
    actions = talk.hear(EndCommit(transaction="t1"))
    (leave,) = sent(actions, ParticipantLeave)
    assert leave.transaction == "t1"
    assert sent(actions, ParticipantJoin)


def test_an_abort_does_not_take_again_what_held_nothing() -> None:
    talk = ParticipantTalk()
    talk.assigned(P0, P1)
    talk.buffered(P0, 5)
    talk.start("t1", P0, P1)
    talk.end("t1")
    talk.flushed()
    kept = talk.core.owned[P1].generation
    rewinds = of(talk.hear(AbortCommit(transaction="t1", reason="x")), p.Rewind)
    assert [(r.partition, r.offset) for r in rewinds] == [(P0, 0)]
    assert talk.core.owned[P1].generation == kept


def test_an_abort_does_not_take_again_what_somebody_else_owns_by_now() -> None:
    talk = ParticipantTalk().prepared()
    talk.revoked(P0)
    assert of(talk.hear(AbortCommit(transaction="t1", reason="x")), p.Rewind) == []


def test_files_of_a_partition_that_left_without_open_data_are_reported_for_the_others_only() -> None:
    talk = ParticipantTalk()
    talk.assigned(P0, P1)
    talk.buffered(P0, 5)
    talk.start("t1", P0, P1)
    talk.end("t1")
    talk.revoked(P1)
    (written,) = sent(talk.flushed(), WriteStatus)
    assert [r.partition for r in written.ranges] == [P0]


def test_offsets_that_come_late_place_only_what_is_not_placed_yet() -> None:
    talk = ParticipantTalk()
    talk.assigned(P0)
    talk.assigned(P1, at=None)
    fetched = talk.fetched({P0: 7, P1: 9})
    assert [(r.partition, r.offset) for r in of(fetched, p.Rewind)] == [(P1, 9)]
    assert talk.core.owned[P0].start == 0


def test_offsets_that_could_not_be_had_are_asked_for_again() -> None:
    talk = ParticipantTalk(repeat_ms=1_000)
    talk.assigned(P0, at=None)
    assert talk.fetched(None) == []
    assert of(talk.tick(499), p.FetchOffsets) == []
    assert of(talk.tick(1), p.FetchOffsets)


def test_progress_without_records_becomes_worth_a_transaction_when_it_is_old_and_not_before() -> None:
    talk = ParticipantTalk()
    talk.assigned(P0)
    talk.buffered(P0, 3, records=0)
    assert sent(talk.tick(INTERVAL_MS - 1), ParticipantReady) == []
    assert sent(talk.tick(1), ParticipantReady)

"""The participant's sentences of the design, each as a conversation with its core."""

from __future__ import annotations

from typing import Any

import pytest

from control_topic.messages import (
    AbortCommit,
    CoordinatorClaim,
    EndRequest,
    EventTimes,
    Lost,
    ParticipantJoin,
    ParticipantLeave,
    ParticipantReady,
    Range,
    SourcePartition,
    StartCommit,
    WriteStatus,
)
from participant import events as p
from participant.transitions import IllegalEvent, State
from tests.unit.conversation import INTERVAL_MS, P0, P1, ParticipantTalk, of, sent


def rewinds(actions: list[Any]) -> list[tuple[SourcePartition, int]]:
    return [(a.partition, a.offset) for a in of(actions, p.Rewind)]


# --- membership ---------------------------------------------------------------------------------


def test_it_says_what_it_owns_and_starts_where_the_table_stands() -> None:
    talk = ParticipantTalk()
    actions = talk.assigned(P0, P1, at=7)
    assert rewinds(actions) == [(P0, 7), (P1, 7)]
    assert sent(actions, ParticipantJoin) == [ParticipantJoin(partitions=(P0, P1))]


def test_without_the_tables_offsets_it_asks_for_them_and_consumes_nothing_until_they_come() -> None:
    talk = ParticipantTalk(repeat_ms=1_000)
    actions = talk.assigned(P0, at=None)
    assert of(actions, p.FetchOffsets)
    assert rewinds(actions) == []
    assert not of(talk.tick(10_000), p.FetchOffsets)
    talk.fetched(None)
    assert of(talk.tick(500), p.FetchOffsets)
    answered = talk.fetched({P0: 9})
    assert rewinds(answered) == [(P0, 9)]


def test_what_the_table_has_no_offset_of_is_asked_for_again_and_read_only_when_it_has_one() -> None:
    talk = ParticipantTalk(repeat_ms=1_000)
    talk.feed(p.Assigned(now_ms=talk.now_ms, offsets={P0: 5, P1: None}))
    assert rewinds(talk.fetched({P0: 5})) == []
    assert of(talk.tick(500), p.FetchOffsets)
    answered = talk.fetched({P0: 5, P1: 600})
    assert rewinds(answered) == [(P1, 600)]
    assert not of(talk.tick(10_000), p.FetchOffsets)


def test_join_is_repeated_with_back_off_until_a_start_lists_it() -> None:
    talk = ParticipantTalk(repeat_ms=1_000, repeat_max_ms=4_000)
    talk.assigned(P0)
    joins = [talk.now_ms for _ in range(30) if sent(talk.tick(500), ParticipantJoin)]
    assert joins == [1_000, 3_000, 7_000, 11_000, 15_000]
    talk.start("t1", P0)
    assert not sent(talk.tick(500), ParticipantJoin)


def test_a_join_that_is_due_is_not_put_off_by_transactions_that_come_faster() -> None:
    talk = ParticipantTalk(repeat_ms=1_000)
    talk.joining()
    talk.assigned(P1)
    joined = 0
    for number in range(1, 6):
        talk.start(f"t{number}", P0, committed={P0: 5 * number - 5})
        joined += len(sent(talk.tick(300), ParticipantJoin))
        talk.end(f"t{number}")
        talk.flushed()
        talk.ack(f"t{number}", {P0: 5 * number})
        joined += len(sent(talk.tick(300), ParticipantJoin))
        talk.buffered(P0, 5 * number + 5)
    assert joined >= 1


def test_a_claim_makes_it_say_again_what_it_owns_and_that_it_is_ready() -> None:
    talk = ParticipantTalk().joining()
    actions = talk.hear(CoordinatorClaim(), epoch=2)
    assert sent(actions, ParticipantJoin)
    assert sent(actions, ParticipantReady)
    assert all(action.epoch == 2 for action in of(actions, p.Send))


def test_claims_that_are_said_again_are_not_answered_again() -> None:
    """Whoever may write to the topic can repeat them as they are, thousands a second."""
    talk = ParticipantTalk().joining()
    for sequence, sender in ((7, "c"), (3, "c2")):  # both claimed this epoch; the table took one of them
        assert sent(talk.hear(CoordinatorClaim(), epoch=2, sequence=sequence, sender=sender), ParticipantJoin)
    for _ in range(3):
        for sequence, sender in ((7, "c"), (3, "c2")):
            assert talk.hear(CoordinatorClaim(), epoch=2, sequence=sequence, sender=sender) == []


def test_ready_is_said_when_it_holds_records_and_repeated_with_what_it_owns() -> None:
    talk = ParticipantTalk(repeat_ms=1_000)
    talk.assigned(P0)
    talk.start("t0", P0)
    talk.hear(AbortCommit(transaction="t0", reason="x"))
    talk.start("t0b")  # lists nobody of ours: all the same, no transaction is open
    assert sent(talk.buffered(P0, 5), ParticipantReady)
    assert not sent(talk.tick(999), ParticipantReady)
    again = talk.tick(1)
    assert sent(again, ParticipantReady)
    assert sent(again, ParticipantJoin)


def test_progress_without_records_is_worth_a_transaction_only_when_it_is_old() -> None:
    talk = ParticipantTalk()
    talk.assigned(P0)
    assert not sent(talk.buffered(P0, 3, records=0), ParticipantReady)
    assert not sent(talk.tick(INTERVAL_MS - 1), ParticipantReady)
    assert sent(talk.tick(1), ParticipantReady)


def test_progress_before_a_record_that_blocks_is_worth_a_transaction_at_once() -> None:
    talk = ParticipantTalk()
    talk.assigned(P0)
    talk.buffered(P0, 3, records=0)
    generation = talk.core.owned[P0].generation
    blocked = talk.feed(p.Blocked(now_ms=0, partition=P0, generation=generation))
    assert sent(blocked, ParticipantReady)


# --- start --------------------------------------------------------------------------------------


def test_it_writes_only_in_a_transaction_that_lists_its_incarnation() -> None:
    talk = ParticipantTalk().joining()
    assert not of(talk.start("t1", others={P0: "a-before-me"}), p.Open)
    assert talk.core.state is State.JOINING
    actions = talk.start("t2", P0)
    assert of(actions, p.Open) == [p.Open(transaction="t2", instant="i2")]
    assert of(actions, p.Write)[0].upto == 5


def test_its_files_are_opened_with_the_watermark_that_start_names() -> None:
    talk = ParticipantTalk().joining()
    body = StartCommit(transaction="t1", instant="i1", committed={P0: 0}, writers={P0: "a"}, watermark_ms=-7)
    assert of(talk.hear(body), p.Open) == [p.Open(transaction="t1", instant="i1", watermark_ms=-7)]


def test_it_reports_the_event_times_of_what_it_reports_and_of_nothing_that_was_taken_from_it() -> None:
    talk = ParticipantTalk()
    talk.assigned(P0, P1)
    talk.buffered(P0, 5)
    talk.start("t1", P0, P1)
    talk.feed(p.Revoked(now_ms=talk.now_ms, partitions=(P1,)))
    talk.end("t1")
    times = tuple(EventTimes(partition=q, greatest_ms=9) for q in (P0, P1))
    (said,) = sent(talk.flushed(event_times=times), WriteStatus)
    assert said.event_times == times[:1]


def test_start_that_names_what_it_holds_from_goes_on_without_a_rewind() -> None:
    talk = ParticipantTalk()
    talk.assigned(P0, at=40)
    talk.buffered(P0, 50)
    actions = talk.start("t1", P0, committed={P0: 40})
    assert rewinds(actions) == []
    assert of(actions, p.Write)[0].upto == 50


@pytest.mark.parametrize("committed", [0, 39, 41, 50, 60])
def test_start_that_names_another_offset_drops_the_buffer_and_takes_it_again(committed: int) -> None:
    talk = ParticipantTalk()
    talk.assigned(P0, at=40)
    talk.buffered(P0, 50)
    actions = talk.start("t1", P0, committed={P0: committed})
    assert rewinds(actions) == [(P0, committed)]
    assert not of(actions, p.Write)
    assert (talk.core.owned[P0].start, talk.core.owned[P0].next) == (committed, committed)


def test_no_offset_yet_is_a_value_like_another() -> None:
    talk = ParticipantTalk()
    talk.assigned(P0, at=0)
    talk.buffered(P0, 5)
    assert rewinds(talk.start("t1", P0, committed={})) == []


def test_chunks_of_an_older_position_are_void() -> None:
    talk = ParticipantTalk()
    talk.assigned(P0, at=40)
    old = talk.core.owned[P0].generation
    talk.start("t1", P0, committed={P0: 0})
    stale = p.Buffered(now_ms=0, partition=P0, generation=old, start=40, next=45, records=5, size_bytes=1)
    assert talk.feed(stale) == []
    assert talk.core.owned[P0].next == 0


def test_start_for_a_partition_that_is_not_its_own_is_answered_with_leave() -> None:
    talk = ParticipantTalk().joining()
    actions = talk.start("t1", P0, P1)
    assert sent(actions, ParticipantLeave) == [ParticipantLeave(partitions=(P1,))]
    assert talk.core.work is not None
    assert talk.core.work.partitions == {P0}


def test_the_same_start_again_changes_nothing() -> None:
    talk = ParticipantTalk().writing()
    assert talk.start("t1", P0) == []
    talk.end("t1")
    assert talk.start("t1", P0) == []
    assert talk.core.state is State.FLUSHING


def test_a_start_that_is_read_again_after_its_ack_is_not_obeyed() -> None:
    """Otherwise everybody would write in a transaction that is over, and nobody would ask for the next."""
    talk = ParticipantTalk().writing()
    sequence = talk.sequence
    talk.end("t1")
    talk.flushed()
    talk.ack("t1", {P0: 5})
    assert talk.start("t1", P0, sequence=sequence) == []
    assert talk.core.state is State.WAITING
    assert talk.core.machine.ignored["START_COMMIT again"] == 1


def test_a_start_of_what_it_gave_up_is_answered_with_leave_and_join() -> None:
    talk = ParticipantTalk().writing()
    talk.assigned(P1)
    talk.revoked(P0)
    actions = talk.start("t1", P0)
    assert sent(actions, ParticipantLeave) == [ParticipantLeave(partitions=(P1,), transaction="t1")]
    assert sent(actions, ParticipantJoin) == [ParticipantJoin(partitions=(P1,))]
    assert not of(actions, p.Open)


# --- while it writes ----------------------------------------------------------------------------


def test_chunks_go_to_the_files_as_they_come() -> None:
    talk = ParticipantTalk().writing()
    (write,) = of(talk.buffered(P0, 9), p.Write)
    assert (write.transaction, write.partition, write.upto) == ("t1", P0, 9)


def test_chunks_that_come_between_end_and_the_next_start_wait_in_memory() -> None:
    talk = ParticipantTalk().flushing()
    assert talk.buffered(P0, 9) == []
    (status,) = sent(talk.flushed(), WriteStatus)
    assert status.ranges == (Range(partition=P0, start=0, next=5, records=5),)
    actions = talk.start("t2", P0, committed={P0: 5})
    assert rewinds(actions) == []
    assert of(actions, p.Write)[0].upto == 9


@pytest.mark.parametrize(
    ("limits", "reason"), [({"records_max": 10}, "records"), ({"bytes_max": 100}, "bytes")]
)
def test_each_of_two_writers_asks_for_the_end_at_half_of_a_limit(limits: dict[str, int], reason: str) -> None:
    talk = ParticipantTalk(**limits)
    talk.assigned(P0)
    talk.start("t1", P0, others={P1: "b"})
    assert not sent(talk.buffered(P0, 4, size_bytes=49), EndRequest)
    assert sent(talk.buffered(P0, 5, size_bytes=1), EndRequest) == [
        EndRequest(transaction="t1", reason=reason)
    ]


def test_end_request_is_repeated_until_end_comes() -> None:
    talk = ParticipantTalk(records_max=5, repeat_ms=1_000).writing()
    assert not sent(talk.tick(999), EndRequest)
    assert sent(talk.tick(1), EndRequest)


def test_at_the_memory_cap_it_pauses_and_goes_on_at_half() -> None:
    talk = ParticipantTalk(memory_bytes_max=100)
    talk.assigned(P0)
    assert not of(talk.buffered(P0, 5, size_bytes=99), p.Pause)
    assert of(talk.buffered(P0, 6, size_bytes=1), p.Pause)
    assert of(talk.start("t1", P0), p.Resume)


def test_while_no_file_is_open_it_may_hold_what_files_would() -> None:
    talk = ParticipantTalk(memory_bytes_max=100, idle_bytes_max=125).flushing()
    assert of(talk.buffered(P0, 9, size_bytes=100), p.Pause)
    assert of(talk.flushed(), p.Resume), "there is room for 25 more"
    assert not of(talk.buffered(P0, 10, size_bytes=24), p.Pause)
    assert of(talk.buffered(P0, 11, size_bytes=1), p.Pause)
    talk.ack("t1", {P0: 5})
    assert of(talk.start("t2", P0, committed={P0: 5}), p.Resume), "what was held is in its files now"


def test_without_half_of_the_further_room_it_waits_for_the_next_transaction() -> None:
    talk = ParticipantTalk(memory_bytes_max=100, idle_bytes_max=200).flushing()
    assert of(talk.buffered(P0, 9, size_bytes=151), p.Pause)
    assert not of(talk.flushed(), p.Resume)
    talk.ack("t1", {P0: 5})
    assert of(talk.start("t2", P0, committed={P0: 5}), p.Resume)


def test_memory_held_by_a_partition_outside_the_transaction_asks_for_the_end() -> None:
    talk = ParticipantTalk(memory_bytes_max=100)
    talk.joining()
    talk.start("t1", P0)
    talk.assigned(P1)
    talk.buffered(P1, 6, size_bytes=100)
    assert sent(talk.tick(1), EndRequest) == [EndRequest(transaction="t1", reason="memory")]


def test_a_pause_ends_when_an_abort_drops_what_filled_the_memory() -> None:
    """Otherwise nothing would ever be consumed again."""
    talk = ParticipantTalk(memory_bytes_max=100).flushing()
    assert of(talk.buffered(P0, 9, size_bytes=100), p.Pause)
    talk.flushed()
    actions = talk.hear(AbortCommit(transaction="t1", reason="x"))
    assert rewinds(actions) == [(P0, 0)]
    assert of(actions, p.Resume)


def test_until_asks_for_the_end_when_all_its_partitions_are_there() -> None:
    talk = ParticipantTalk(until={P0: 5, P1: 2})
    talk.assigned(P0, P1)
    talk.start("t1", P0, P1)
    assert not sent(talk.buffered(P0, 5), EndRequest)
    assert sent(talk.buffered(P1, 2), EndRequest) == [EndRequest(transaction="t1", reason="reached_end")]


def test_until_makes_a_tail_without_records_worth_a_transaction_at_once() -> None:
    talk = ParticipantTalk(until={P0: 5})
    talk.assigned(P0)
    assert not sent(talk.buffered(P0, 4, records=0), ParticipantReady)
    assert sent(talk.buffered(P0, 5, records=0), ParticipantReady)


# --- end and write status -----------------------------------------------------------------------


def test_a_range_ends_where_the_log_says_so_with_or_without_rows() -> None:
    talk = ParticipantTalk()
    talk.assigned(P0, P1)
    talk.start("t1", P0, P1)
    talk.buffered(P0, 5, records=3)
    talk.buffered(P0, 9, records=0)
    talk.end("t1")
    (status,) = sent(talk.flushed(), WriteStatus)
    assert status.ranges == (
        Range(partition=P0, start=0, next=9, records=3),
        Range(partition=P1, start=0, next=0),
    )


def test_what_retention_took_is_reported_and_the_range_starts_at_the_committed_offset() -> None:
    talk = ParticipantTalk()
    talk.assigned(P0, at=10)
    lost = Lost(partition=P0, start=10, next=20)
    generation = talk.core.owned[P0].generation
    talk.feed(
        p.Buffered(
            now_ms=0,
            partition=P0,
            generation=generation,
            start=10,
            next=20,
            records=0,
            size_bytes=0,
            lost=(lost,),
        )
    )
    talk.buffered(P0, 25)
    talk.start("t1", P0, committed={P0: 10})
    talk.end("t1")
    (status,) = sent(talk.flushed(), WriteStatus)
    assert status.lost == (lost,)
    assert status.ranges == (Range(partition=P0, start=10, next=25, records=5),)


def test_end_of_another_transaction_is_answered_with_join() -> None:
    talk = ParticipantTalk().writing()
    assert sent(talk.end("t9"), ParticipantJoin)
    assert talk.core.state is State.WRITING


def test_an_end_that_is_repeated_brings_the_write_status_again() -> None:
    talk = ParticipantTalk().flushing()
    assert talk.end("t1") == []
    (status,) = sent(talk.flushed(), WriteStatus)
    assert sent(talk.end("t1"), WriteStatus) == [status]


def test_files_of_a_transaction_that_it_gave_up_are_not_reported() -> None:
    talk = ParticipantTalk().flushing()
    given_up = talk.asked
    talk.hear(AbortCommit(transaction="t1", reason="x"))
    talk.start("t2", P0)
    talk.end("t2")
    assert talk.feed(p.Flushed(now_ms=talk.now_ms, call=given_up)) == []
    assert talk.core.state is State.FLUSHING


def test_files_that_may_or_may_not_be_there_end_the_worker_and_are_not_reported() -> None:
    talk = ParticipantTalk().flushing()
    actions = talk.flushed(outcome=p.Outcome.UNKNOWN, reason="the disk is full")
    assert not sent(actions, WriteStatus)
    assert of(actions, p.Discard)
    assert of(actions, p.Stop) == [p.Stop(reason="the disk is full", failed=True)]


@pytest.mark.parametrize("call", [0, 2])
def test_a_call_is_answered_once_and_only_where_it_was_made(call: int) -> None:
    talk = ParticipantTalk().flushing()
    with pytest.raises(IllegalEvent, match=f"call {call}"):
        talk.feed(p.Flushed(now_ms=0, call=call))


def test_files_that_are_taken_away_end_the_transaction_and_not_the_worker() -> None:
    """Their rollback comes before the word of it: ABORT is said when it is done."""
    talk = ParticipantTalk().flushing()
    actions = talk.flushed(outcome=p.Outcome.FAILED, reason="taken away")
    assert not of(actions, p.Stop) and not of(actions, p.Poison)
    assert of(actions, p.Discard) == [p.Discard(transaction="t1")]
    (leave,) = sent(actions, ParticipantLeave)
    assert (leave.transaction, leave.reason) == ("t1", "taken away")
    assert sent(actions, ParticipantJoin)
    assert of(actions, p.Rewind), "what the files held is consumed again"
    assert talk.core.state is State.JOINING
    assert not of(talk.hear(AbortCommit(transaction="t1", reason="another worker died")), p.Stop)


def test_files_that_are_taken_away_before_end_end_the_transaction_at_once() -> None:
    talk = ParticipantTalk().writing()
    assert talk.feed(p.TakenAway(now_ms=0, transaction="t0", reason="of another")) == []
    actions = talk.feed(p.TakenAway(now_ms=0, transaction="t1", reason="taken away"))
    (leave,) = sent(actions, ParticipantLeave)
    assert (leave.transaction, leave.reason) == ("t1", "taken away")
    assert of(actions, p.Discard) == [p.Discard(transaction="t1")]
    assert of(actions, p.Rewind) and sent(actions, ParticipantJoin)
    assert talk.core.state is State.JOINING


def test_flushes_are_answered_in_the_order_they_were_asked_for() -> None:
    """Also those that were given up: one thread writes, and does so one after the other."""
    talk = ParticipantTalk().flushing()
    talk.hear(AbortCommit(transaction="t1", reason="x"))
    talk.buffered(P0, 5)
    talk.start("t2", P0)
    asked = of(talk.end("t2"), p.Flush)[0].call
    with pytest.raises(IllegalEvent, match=f"call {asked} in FLUSHING, before call 1"):
        talk.feed(p.Flushed(now_ms=0, call=asked))
    assert talk.feed(p.Flushed(now_ms=0, call=1)) == []
    assert sent(talk.feed(p.Flushed(now_ms=0, call=asked)), WriteStatus)


def test_an_end_that_does_not_come_makes_it_ask() -> None:
    """ABORT may be lost: who waits for END says JOIN, and is told again."""
    talk = ParticipantTalk(repeat_ms=1_000).writing()
    assert not sent(talk.tick(INTERVAL_MS + 1_000), ParticipantJoin)
    assert sent(talk.tick(1), ParticipantJoin)


def test_what_is_owned_is_not_assigned_again() -> None:
    """A rewind to elsewhere amid a transaction would count the same records twice."""
    talk = ParticipantTalk().writing()
    with pytest.raises(IllegalEvent, match="events:0: assigned, but not given up since the last time"):
        talk.assigned(P0)


# --- rows that others write -----------------------------------------------------------------------


def test_it_says_where_it_takes_rows_with_each_join() -> None:
    talk = ParticipantTalk(takes_at="here:7")
    joins = sent([*talk.assigned(P0), *talk.hear(CoordinatorClaim(), epoch=2)], ParticipantJoin)
    assert joins and all(join.takes_at == "here:7" for join in joins)


def test_its_files_are_opened_with_the_takers_that_start_names() -> None:
    takers = {"a": "here:7", "b": "there:8"}
    talk = ParticipantTalk().joining()
    body = StartCommit(transaction="t1", instant="i1", committed={P0: 0}, writers={P0: "a"}, takers=takers)
    assert of(talk.hear(body), p.Open) == [p.Open(transaction="t1", instant="i1", takers=takers)]


def test_it_reports_what_it_handed_over_and_took_and_says_the_same_again() -> None:
    talk = ParticipantTalk().flushing()
    (said,) = sent(talk.flushed(handed={"b": 3}, taken={"b": 4}), WriteStatus)
    assert (said.handed, said.taken) == ({"b": 3}, {"b": 4})
    assert sent(talk.end("t1"), WriteStatus) == [said]


def test_rows_that_did_not_arrive_make_it_give_the_transaction_up_and_go_on() -> None:
    talk = ParticipantTalk().flushing()
    actions = talk.flushed(outcome=p.Outcome.FAILED, reason="what b was handing over broke off")
    (leave,) = sent(actions, ParticipantLeave)
    assert (leave.transaction, leave.reason) == ("t1", "what b was handing over broke off")
    assert talk.core.state is State.JOINING and of(actions, p.Discard)

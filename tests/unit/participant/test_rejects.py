"""Records that are no rows: what they hold of memory, and where there are more of them than allowed."""

from __future__ import annotations

from control_topic.messages import (
    EndRequest,
    ParticipantJoin,
    ParticipantLeave,
    ParticipantReady,
    WriteStatus,
)
from participant import events as p
from participant.rejects_max import RejectsMax
from participant.transitions import State
from tests.unit.conversation import P0, P1, ParticipantTalk, of, sent


def test_rejects_count_against_memory_until_they_are_in_the_dead_letter_topic() -> None:
    talk = ParticipantTalk(memory_bytes_max=1_000)
    talk.assigned(P0)
    talk.start("t1", P0)
    assert not of(talk.buffered(P0, 5, size_bytes=999, rejects=5, reject_bytes=999), p.Pause)
    paused = talk.buffered(P0, 6, size_bytes=1, rejects=1, reject_bytes=1)
    assert of(paused, p.Pause)
    assert [body.reason for body in sent(talk.tick(100), EndRequest)] == ["memory"]
    assert not of(talk.end("t1"), p.Resume)
    assert of(talk.flushed(), p.Resume)


def test_rows_that_were_written_do_not_count_and_the_rejects_beside_them_do() -> None:
    talk = ParticipantTalk(memory_bytes_max=1_000)
    talk.assigned(P0)
    talk.start("t1", P0)
    for offset in range(10, 100, 10):
        assert not of(talk.buffered(P0, offset, size_bytes=500, rejects=1, reject_bytes=100), p.Pause)
    assert of(talk.buffered(P0, 100, size_bytes=500, rejects=1, reject_bytes=100), p.Pause)


def test_rejects_of_a_transaction_that_is_given_up_hold_no_memory_any_more() -> None:
    talk = ParticipantTalk(memory_bytes_max=1_000)
    talk.assigned(P0)
    talk.start("t1", P0)
    assert of(talk.buffered(P0, 5, size_bytes=1_000, rejects=5, reject_bytes=1_000), p.Pause)
    assert of(talk.start("t2", P0), p.Resume)


def test_a_write_status_counts_all_rejects_and_names_those_that_the_plane_named() -> None:
    talk = ParticipantTalk().flushing()
    actions = talk.flushed(reject_count=5_000)
    assert [body.reject_count for body in sent(actions, WriteStatus)] == [5_000]


def test_more_rejects_than_allowed_are_not_set_aside_and_the_run_is_told_where_they_are() -> None:
    talk = ParticipantTalk(rejects_max=RejectsMax(count=9))
    talk.assigned(P0, P1)
    talk.start("t1", P0, P1)
    assert not of(talk.buffered(P0, 5, rejects=5), p.Poison)
    assert not of(talk.buffered(P1, 4, rejects=4), p.Poison)
    actions = talk.buffered(P0, 7, rejects=1)
    (poison,) = of(actions, p.Poison)
    assert "10 of the 11 records" in poison.reason
    assert "more than record.max_rejects (9) allows" in poison.reason
    assert (
        f"{P0}: 6, the first at offset 0: not JSON; {P1}: 4, the first at offset 0: not JSON" in poison.reason
    )
    assert of(actions, p.Discard) == [p.Discard(transaction="t1")]
    assert not of(actions, p.Flush)
    assert [body.transaction for body in sent(actions, ParticipantLeave)] == ["t1"]
    assert sent(actions, ParticipantJoin)


def test_after_that_nothing_more_is_read_and_nobodys_drain_waits_for_it() -> None:
    talk = ParticipantTalk(rejects_max=RejectsMax(count=0))
    talk.assigned(P0)
    talk.start("t1", P0)
    actions = talk.buffered(P0, 5, rejects=1)
    assert of(actions, p.Drop) == [p.Drop(partition=P0)]
    assert of(actions, p.Pause)
    assert not of(actions, p.Rewind)
    for _ in range(50):
        told = talk.tick(1_000)
        assert not sent(told, ParticipantReady)
        assert not of(told, p.Resume)
    talk.start("t2", P0)
    assert of(talk.end("t2"), p.Flush)
    (status,) = sent(talk.flushed(), WriteStatus)
    assert [(r.start, r.next) for r in status.ranges] == [(0, 0)]


def test_a_share_is_judged_when_the_transaction_ends_and_before_any_reject_is_sent() -> None:
    talk = ParticipantTalk(rejects_max=RejectsMax(share=0.05))
    talk.assigned(P0)
    talk.start("t1", P0)
    assert not of(talk.buffered(P0, 100, rejects=100), p.Poison)
    assert not of(talk.buffered(P0, 1_999), p.Poison)
    actions = talk.end("t1")
    assert not of(actions, p.Flush)
    (poison,) = of(actions, p.Poison)
    assert "100 of the 1,999 records" in poison.reason
    assert "(5%)" in poison.reason


def test_a_share_that_is_kept_or_that_few_rejects_make_lets_the_transaction_pass() -> None:
    kept = ParticipantTalk(rejects_max=RejectsMax(share=0.05))
    kept.assigned(P0)
    kept.start("t1", P0)
    kept.buffered(P0, 2_000, rejects=100)
    assert of(kept.end("t1"), p.Flush)
    few = ParticipantTalk(rejects_max=RejectsMax(share=0.05))
    few.assigned(P0)
    few.start("t1", P0)
    few.buffered(P0, 99, rejects=99)
    assert of(few.end("t1"), p.Flush)


def test_more_source_partitions_than_a_sentence_holds_are_counted() -> None:
    places = [P0._replace(number=number) for number in range(5)]
    talk = ParticipantTalk(rejects_max=RejectsMax(count=4))
    talk.assigned(*places)
    talk.start("t1", *places)
    for place in places:
        actions = talk.buffered(place, 1, rejects=1)
    (poison,) = of(actions, p.Poison)
    assert "and of 2 more source partitions" in poison.reason


def test_a_reject_that_the_dead_letter_topic_refuses_halts_the_run_and_moves_no_offset() -> None:
    talk = ParticipantTalk().flushing()
    actions = talk.flushed(outcome=p.Outcome.FAILED, reason="too large", final=True)
    assert of(actions, p.Poison) == [p.Poison(reason="too large")]
    assert of(actions, p.Discard)
    assert not sent(actions, WriteStatus)
    assert talk.core.state is State.JOINING


def test_limits_are_spelled_as_the_configuration_spells_them() -> None:
    assert RejectsMax.of("") == RejectsMax()
    assert RejectsMax.of("1000") == RejectsMax(count=1_000)
    assert str(RejectsMax.of("1000")) == "1,000"
    assert RejectsMax.of("2.5%") == RejectsMax(share=0.025)
    assert str(RejectsMax.of("2.5%")) == "2.5%"

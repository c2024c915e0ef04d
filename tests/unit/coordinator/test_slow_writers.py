"""Writers that take long: how they say so, how long they are waited for, and what is smaller after it."""

from __future__ import annotations

from typing import Any

from control_topic.messages import EndCommit, EndRequest, StartCommit, WriteProgress
from coordinator import events as c
from coordinator.pace import Pace
from coordinator.transitions import State
from participant import events as p
from tests.unit.conversation import (
    P0,
    P1,
    P2,
    WRITE_TIMEOUT_MS,
    CoordinatorTalk,
    ParticipantTalk,
    of,
    sent,
    status,
)

BOTH = {"a": (P0,), "b": (P1,)}
LIMIT_MS = 4 * WRITE_TIMEOUT_MS
MANY = 100_000
RECORDS_MIN = 1_000


def progress(steps: int, *, transaction: str = "t1", records: int = 0) -> WriteProgress:
    return WriteProgress(
        transaction=transaction, records=records, files=steps, size_bytes=10 * steps, steps=steps
    )


def talk_ended(owners: Any = None) -> CoordinatorTalk:
    return CoordinatorTalk(write_limit_ms=LIMIT_MS).ended(owners or BOTH)


def test_a_writer_that_gets_on_is_waited_for_beyond_the_write_timeout() -> None:
    talk = talk_ended()
    for step in range(1, 4):
        assert not of(talk.tick(WRITE_TIMEOUT_MS - 1), c.Abort)
        talk.hear(progress(step), "a")
        talk.hear(progress(step), "b")
    talk.hear(status("t1", (P0, 0, 5)), "a")
    assert of(talk.hear(status("t1", (P1, 0, 5)), "b"), c.Commit)


def test_a_silent_writer_is_given_up_however_well_the_others_get_on() -> None:
    talk = talk_ended()
    talk.tick(WRITE_TIMEOUT_MS - 1)
    talk.hear(progress(1), "a")
    (abort,) = of(talk.tick(1), c.Abort)
    assert "from b (last said PARTICIPANT_JOIN 6.0 s before) within 5.0 s" in abort.reason
    assert abort.fault is c.Fault.PIPELINE


def test_a_writer_that_says_the_same_again_is_silent() -> None:
    talk = talk_ended({"a": (P0,)})
    talk.hear(progress(7), "a")
    talk.tick(WRITE_TIMEOUT_MS - 1)
    talk.hear(progress(7), "a")
    assert of(talk.tick(1), c.Abort)
    assert talk.core.machine.ignored["WRITE_PROGRESS: no step further"] == 1


def test_progress_counts_for_who_is_awaited_in_this_transaction_and_nobody_else() -> None:
    talk = talk_ended()
    talk.hear(progress(1, transaction="t0"), "a")
    talk.hear(progress(1), "stranger")
    talk.hear(status("t1", (P1, 0, 5)), "b")
    talk.hear(progress(1), "b")
    assert talk.core.machine.ignored["WRITE_PROGRESS: no step further"] == 3
    assert of(talk.tick(WRITE_TIMEOUT_MS), c.Abort)


def test_a_writer_that_gets_on_for_ever_is_given_up_at_the_write_limit() -> None:
    talk = talk_ended({"a": (P0,)})
    for step in range(1, 5):
        assert not of(talk.tick(WRITE_TIMEOUT_MS - 1), c.Abort)
        assert talk.core.state is State.ENDED
        talk.hear(progress(step), "a")
    (abort,) = of(talk.tick(4), c.Abort)
    assert abort.reason.startswith(
        "a (last said WRITE_PROGRESS 0.0 s before) still wrote files after 20.0 s (transaction.write_limit)"
    )
    assert abort.fault is c.Fault.PIPELINE


def test_end_is_repeated_to_who_may_not_have_heard_it_and_not_to_who_says_how_far_it_is() -> None:
    talk = talk_ended()
    assert sent(talk.tick(1_000), EndCommit)
    talk.hear(progress(1), "a")
    assert sent(talk.tick(1_000), EndCommit)  # b has said nothing yet
    talk.hear(progress(2), "a")
    talk.hear(progress(1), "b")
    for step in (3, 4):
        assert not sent(talk.tick(1_000), EndCommit)
        talk.hear(progress(step), "a")
    assert sent(talk.tick(1_000), EndCommit)  # b's WRITE_STATUS may be lost


# --- what follows is smaller ----------------------------------------------------------------------


def next_start(talk: CoordinatorTalk) -> StartCommit:
    """The START of the transaction after the one that was just decided."""
    talk.hear(c_ready(), "a")
    (start,) = sent(talk.answer(c.Result.OK, instant="i", committed=talk.core.committed), StartCommit)
    return start


def c_ready() -> Any:
    from control_topic.messages import ParticipantReady

    return ParticipantReady()


def commit(talk: CoordinatorTalk, *, took_ms: int, records: int) -> StartCommit:
    """The open transaction is ended, written for so long, and committed; the next one's START."""
    if talk.core.state is State.STARTED:
        talk.tick(2_000)
    transaction, at = talk.core.transaction, talk.core.committed.get(P0, 0)
    assert transaction is not None
    for step in range(1, took_ms // 1_000 + 1):
        talk.tick(1_000)
        talk.hear(progress(step, transaction=transaction.id), "a")
    talk.hear(status(transaction.id, (P0, at, at + records)), "a")
    talk.answer(c.Result.OK)
    return next_start(talk)


def test_after_a_round_longer_than_the_write_timeout_the_next_one_takes_half_of_its_records() -> None:
    talk = talk_ended({"a": (P0,)})
    assert commit(talk, took_ms=7_000, records=MANY).records_max == MANY // 2
    assert commit(talk, took_ms=6_000, records=MANY // 2).records_max == MANY // 4


def test_a_round_that_took_no_longer_limits_nothing() -> None:
    talk = talk_ended({"a": (P0,)})
    assert commit(talk, took_ms=WRITE_TIMEOUT_MS, records=MANY).records_max == 0


def test_the_limit_goes_away_slowly_once_rounds_are_quick_again() -> None:
    talk = talk_ended({"a": (P0,)})
    limits = [commit(talk, took_ms=7_000, records=MANY).records_max]
    assert commit(talk, took_ms=4_000, records=MANY // 2).records_max == limits[0]  # neither slow nor quick
    while limits[-1]:
        limits.append(commit(talk, took_ms=1_000, records=1_000).records_max)
    assert limits == [50_000, 56_250, 63_281, 71_191, 80_089, 90_100, 0]


def test_a_round_that_is_given_up_while_files_were_written_makes_the_next_one_smaller() -> None:
    talk = talk_ended()
    talk.hear(progress(1, records=MANY), "a")
    talk.hear(status("t1", (P1, 0, MANY)), "b")
    assert of(talk.tick(WRITE_TIMEOUT_MS), c.Abort)
    talk.answer(c.Result.OK)
    assert next_start(talk).records_max == MANY


def test_a_round_in_which_nobody_wrote_says_nothing_about_its_size() -> None:
    talk = talk_ended()
    assert of(talk.tick(WRITE_TIMEOUT_MS), c.Abort)
    talk.answer(c.Result.OK)
    assert next_start(talk).records_max == 0


def test_a_transaction_is_never_made_smaller_than_a_bound_and_an_empty_one_says_nothing() -> None:
    pace = Pace(1_000, RECORDS_MIN)
    pace.written(2_000, 0)
    assert pace.records_max == 0
    pace.written(2_000, RECORDS_MIN)
    assert pace.records_max == RECORDS_MIN
    pace.given_up(10)
    assert pace.records_max == RECORDS_MIN


# --- the participant ------------------------------------------------------------------------------


def wrote(talk: ParticipantTalk, steps: int, *, transaction: str = "t1") -> list[Any]:
    event = p.Wrote(
        now_ms=talk.now_ms, transaction=transaction, files=steps // 2, size_bytes=10 * steps, steps=steps
    )
    return sent(talk.feed(event), WriteProgress)


def test_a_worker_that_closes_files_says_so_at_most_once_in_a_while() -> None:
    talk = ParticipantTalk(progress_ms=1_000).flushing()
    assert wrote(talk, 1) == []
    talk.tick(999)
    assert wrote(talk, 2) == []
    talk.tick(1)
    assert wrote(talk, 4) == [WriteProgress(transaction="t1", records=5, files=2, size_bytes=40, steps=4)]
    assert wrote(talk, 5) == []


def test_a_word_about_another_transactions_files_is_not_passed_on() -> None:
    talk = ParticipantTalk(progress_ms=0).flushing()
    assert wrote(talk, 1, transaction="t0") == []
    assert wrote(talk, 1)


def limited(talk: ParticipantTalk, records_max: int, *mine: Any, others: Any = None) -> list[Any]:
    writers = {**dict.fromkeys(mine, "a"), **(others or {})}
    body = StartCommit(
        transaction="t1",
        instant="i1",
        committed=dict.fromkeys(writers, 0),
        writers=writers,
        records_max=records_max,
    )
    return talk.hear(body)


def test_a_limited_transaction_takes_its_share_and_asks_for_its_end() -> None:
    talk = ParticipantTalk(memory_bytes_max=1_000_000)
    talk.assigned(P0)
    for number in range(1, 11):
        talk.buffered(P0, 1_000 * number)
    actions = limited(talk, 8_000, P0, others={P1: "b"})
    assert [w.upto for w in of(actions, p.Write)] == [4_000]
    assert [r.reason for r in sent(actions, EndRequest)] == ["records"]
    assert not of(talk.buffered(P0, 11_000), p.Write)
    talk.hear(EndCommit(transaction="t1"))
    (said,) = sent(talk.flushed(), type(status("t1")))
    assert [(r.start, r.next, r.records) for r in said.ranges] == [(0, 4_000, 4_000)]
    assert talk.core.owned[P0].records == 7_000


def test_what_a_limited_transaction_left_goes_into_the_next_one() -> None:
    talk = ParticipantTalk(memory_bytes_max=1_000_000)
    talk.assigned(P0)
    for number in range(1, 4):
        talk.buffered(P0, 1_000 * number)
    limited(talk, 1_000, P0)
    talk.hear(EndCommit(transaction="t1"))
    talk.flushed()
    talk.ack("t1", {P0: 1_000})
    actions = talk.start("t2", P0, committed={P0: 1_000})
    assert [w.upto for w in of(actions, p.Write)] == [3_000]


def test_the_source_partition_that_holds_most_is_taken_first_and_none_takes_anothers_share() -> None:
    talk = ParticipantTalk(memory_bytes_max=1_000_000)
    talk.assigned(P0, P1, P2)
    for number in range(1, 7):
        talk.buffered(P1, 1_000 * number)
    talk.buffered(P0, 1_000)
    talk.buffered(P2, 50, records=0)
    actions = limited(talk, 4_000, P0, P1, P2)
    assert [(w.partition, w.upto) for w in of(actions, p.Write)] == [(P1, 2_000), (P0, 1_000), (P2, 50)]


def test_progress_without_records_is_taken_into_a_transaction_that_is_full() -> None:
    talk = ParticipantTalk(memory_bytes_max=1_000_000)
    talk.assigned(P0, P1)
    talk.buffered(P0, 1_000)
    limited(talk, 1_000, P0, P1)
    assert [w.upto for w in of(talk.buffered(P1, 70, records=0), p.Write)] == [70]


def test_small_runs_are_remembered_together() -> None:
    talk = ParticipantTalk(memory_bytes_max=1_000_000)
    talk.assigned(P0)
    for number in range(1, 2_001):
        talk.buffered(P0, number, size_bytes=1)
    assert len(talk.core.owned[P0].held) == 2
    talk.buffered(P0, 5_000, records=0, size_bytes=0)
    assert [h.next for h in talk.core.owned[P0].held] == [1_000, 5_000]

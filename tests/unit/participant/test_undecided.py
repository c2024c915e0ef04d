"""What was reported and never decided is asked for, and a block is told only when its time has come."""

from __future__ import annotations

from typing import Any

import pytest

from control_topic.messages import (
    AbortCommit,
    AckCommit,
    CoordinatorClaim,
    EndCommit,
    Offsets,
    ParticipantReady,
    WriteStatus,
)
from participant import events as p
from participant.rejects_max import RejectsMax
from participant.transitions import State
from tests.unit.conversation import P0, ParticipantTalk, of, sent

REASON = "events:0 at offset 5: not JSON"


def block(talk: ParticipantTalk) -> list[Any]:
    generation = talk.core.owned[P0].generation
    return talk.feed(p.Blocked(now_ms=talk.now_ms, partition=P0, generation=generation, reason=REASON))


def finish(talk: ParticipantTalk) -> list[Any]:
    """The second coordinator's transaction ends well."""
    talk.hear(EndCommit(transaction="t2"), epoch=2)
    talk.flushed()
    return talk.hear(AckCommit(transaction="t2", instant="i2", committed={P0: 5}), epoch=2)


def test_what_was_reported_to_a_coordinator_that_is_gone_is_worth_a_transaction() -> None:
    talk = ParticipantTalk().prepared()
    assert sent(talk.hear(CoordinatorClaim(), epoch=2), ParticipantReady)
    assert of(talk.start("t2", P0, committed={P0: 0}, epoch=2), p.Rewind)[0].offset == 0


def test_once_a_start_says_that_it_was_committed_nothing_is_left_to_ask() -> None:
    talk = ParticipantTalk().prepared()
    talk.hear(CoordinatorClaim(), epoch=2)
    assert not of(talk.start("t2", P0, committed={P0: 5}, epoch=2), p.Rewind)
    finish(talk)
    assert talk.core.state is State.WAITING
    assert not sent(talk.tick(10_000), ParticipantReady)


def test_a_block_is_told_when_everything_before_it_is_in_the_table_and_not_earlier() -> None:
    talk = ParticipantTalk().joining()
    told = block(talk)
    told += talk.start("t1", P0)
    told += talk.end("t1")
    told += talk.flushed()
    assert not of(told, p.Poison)
    assert of(talk.ack("t1", {P0: 5}), p.Poison) == [p.Poison(reason=REASON)]
    assert not of(talk.tick(10_000), p.Poison)


def test_a_block_at_the_very_next_record_is_told_at_once() -> None:
    talk = ParticipantTalk()
    talk.assigned(P0, at=5)
    assert of(block(talk), p.Poison)


def test_a_block_whose_ack_was_lost_is_told_when_the_next_start_says_that_it_was_committed() -> None:
    talk = ParticipantTalk().joining()
    block(talk)
    talk.start("t1", P0)
    talk.end("t1")
    talk.flushed()
    talk.hear(CoordinatorClaim(), epoch=2)
    assert of(talk.start("t2", P0, committed={P0: 5}, epoch=2), p.Poison)


def test_a_block_is_met_again_where_what_came_before_it_was_not_committed() -> None:
    talk = ParticipantTalk().joining()
    block(talk)
    talk.start("t1", P0)
    talk.end("t1")
    talk.flushed()
    talk.hear(CoordinatorClaim(), epoch=2)
    told = talk.start("t2", P0, committed={P0: 0}, epoch=2)
    told += talk.buffered(P0, 5)
    told += block(talk)
    assert not of(told, p.Poison)
    assert of(finish(talk), p.Poison)


@pytest.mark.parametrize("state", ["writing", "flushing", "prepared"])
def test_a_decision_about_a_later_transaction_tells_that_ours_is_over(state: str) -> None:
    """Its own decision and the next START were lost: without this nobody would say anything new, for ever."""
    talk: ParticipantTalk = getattr(ParticipantTalk(), state)()
    talk.hear(AbortCommit(transaction="t2", reason="no WRITE_STATUS from a"))
    assert talk.core.work is None
    if state != "prepared":
        talk.buffered(P0, 5)
    assert sent(talk.tick(10_000), ParticipantReady)
    assert talk.core.state is State.JOINING
    told = talk.start("t3", P0, committed={P0: 0})
    assert talk.core.state is State.WRITING
    assert [r.offset for r in of(told, p.Rewind)] == ([0] if state == "prepared" else [])


def test_what_was_committed_and_never_acknowledged_to_us_is_kept_when_a_later_decision_is_heard() -> None:
    talk = ParticipantTalk().prepared()
    talk.hear(AckCommit(transaction="t2", instant="i2", committed={P0: 5}))
    talk.tick(10_000)
    assert not of(talk.start("t3", P0, committed={P0: 5}), p.Rewind)


# --- up to where it had read, before it went back -------------------------------------------------


def behind(talk: ParticipantTalk, transaction: str, epoch: int = 1) -> Offsets:
    """What it says of that as it reports this transaction."""
    talk.hear(EndCommit(transaction=transaction), epoch=epoch)
    (status,) = sent(talk.flushed(), WriteStatus)
    return status.behind


def test_who_reads_again_what_it_had_reported_to_a_coordinator_that_is_gone_says_up_to_where_it_was() -> None:
    """It goes back at START, and END may come right after it: who ordered a commit was promised the rest."""
    talk = ParticipantTalk().prepared()
    talk.buffered(P0, 8)
    talk.hear(CoordinatorClaim(), epoch=2)
    talk.start("t2", P0, committed={P0: 0}, epoch=2)
    assert behind(talk, "t2", epoch=2) == {P0: 8}
    talk.hear(AckCommit(transaction="t2", instant="i2", committed={P0: 0}), epoch=2)
    talk.buffered(P0, 7)
    talk.start("t3", P0, committed={P0: 0}, epoch=2)
    assert behind(talk, "t3", epoch=2) == {P0: 8}
    talk.hear(AckCommit(transaction="t3", instant="i3", committed={P0: 7}), epoch=2)
    talk.buffered(P0, 8)
    talk.start("t4", P0, committed={P0: 7}, epoch=2)
    assert behind(talk, "t4", epoch=2) == {}


@pytest.mark.parametrize("state", ["writing", "flushing", "prepared"])
def test_who_gives_up_what_it_had_read_says_up_to_where_it_was(state: str) -> None:
    talk: ParticipantTalk = getattr(ParticipantTalk(), state)()
    talk.hear(AbortCommit(transaction="t1", reason="b died"))
    if state == "flushing":
        talk.flushed()
    talk.start("t2", P0)
    assert behind(talk, "t2") == {P0: 5}


def test_what_was_given_to_somebody_else_meanwhile_is_not_spoken_of() -> None:
    talk = ParticipantTalk().prepared()
    talk.hear(AbortCommit(transaction="t1", reason="b died"))
    talk.revoked(P0)
    talk.assigned(P0)
    talk.start("t2", P0)
    assert behind(talk, "t2") == {}


def test_who_has_read_all_of_it_again_has_nothing_to_add() -> None:
    talk = ParticipantTalk().prepared()
    talk.hear(AbortCommit(transaction="t1", reason="b died"))
    talk.buffered(P0, 5)
    talk.start("t2", P0)
    assert behind(talk, "t2") == {}


def test_who_reads_no_more_over_a_reject_says_up_to_where_it_was() -> None:
    talk = ParticipantTalk(rejects_max=RejectsMax(count=0)).joining()
    talk.buffered(P0, 6, rejects=1)
    told = talk.start("t1", P0)
    assert of(told, p.Poison)
    talk.start("t2", P0)
    assert behind(talk, "t2") == {P0: 6}

"""Why a transaction ended, of what class its abort is, what its commit took: what END, ABORT and ACK say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from control_topic import causes
from control_topic.messages import (
    AbortCommit,
    AckCommit,
    EndCommit,
    EndRequest,
    ParticipantJoin,
    ParticipantLeave,
    ParticipantReady,
    WriteProgress,
)
from coordinator import events as c
from coordinator.opening import FAULTS
from tests.unit.conversation import INTERVAL_MS, P0, P1, WRITE_TIMEOUT_MS, CoordinatorTalk, of, sent, status

BOTH = {"a": (P0,), "b": (P1,)}
OK = c.Result.OK


# --- END ----------------------------------------------------------------------------------------


def ended_by_drain(talk: CoordinatorTalk) -> list[Any]:
    return talk.started(BOTH).direct(c.RunMode.DRAIN)


def begun_to_drain(talk: CoordinatorTalk) -> list[Any]:
    talk.idle().hear(ParticipantJoin(partitions=(P0,)))
    talk.direct(c.RunMode.DRAIN)
    talk.hear(ParticipantReady())
    return talk.answer(OK, instant="i1", committed={P0: 0})


def over(talk: CoordinatorTalk) -> list[Any]:
    return talk.started(BOTH).tick(INTERVAL_MS)


@pytest.mark.parametrize(
    ("end", "reason"),
    [(over, causes.INTERVAL), (ended_by_drain, causes.DRAIN), (begun_to_drain, causes.DRAIN)],
)
def test_end_says_why(end: Callable[[CoordinatorTalk], list[Any]], reason: str) -> None:
    (said,) = sent(end(CoordinatorTalk()), EndCommit)
    assert said == EndCommit(transaction="t1", reason=reason)


@pytest.mark.parametrize("reason", [causes.RECORDS, causes.BYTES, causes.MEMORY])
def test_end_says_what_a_participant_asked_for_it_for(reason: str) -> None:
    talk = CoordinatorTalk().started(BOTH)
    (said,) = sent(talk.hear(EndRequest(transaction="t1", reason=reason), "b"), EndCommit)
    assert said.reason == reason


def test_end_says_reached_end_once_everybody_has_reached_it() -> None:
    talk = CoordinatorTalk().started(BOTH)
    assert talk.hear(EndRequest(transaction="t1", reason="reached_end"), "b") == []
    (said,) = sent(talk.hear(EndRequest(transaction="t1", reason="reached_end"), "a"), EndCommit)
    assert said.reason == causes.REACHED_END


@pytest.mark.parametrize("reason", ["", "a newer version's", "interval\x00", "x" * 10_000])
def test_what_nobody_here_knows_is_other(reason: str) -> None:
    talk = CoordinatorTalk().started(BOTH)
    (said,) = sent(talk.hear(EndRequest(transaction="t1", reason=reason), "b"), EndCommit)
    assert said.reason == causes.OTHER


def test_end_says_the_same_each_time() -> None:
    talk = CoordinatorTalk(repeat_ms=500).started(BOTH)
    talk.hear(EndRequest(transaction="t1", reason="memory"), "b")
    again = [
        *sent(talk.tick(500), EndCommit),
        *sent(talk.hear(ParticipantJoin(partitions=(P0,)), "a"), EndCommit),
    ]
    assert again == [EndCommit(transaction="t1", reason="memory")] * 2


# --- ABORT --------------------------------------------------------------------------------------


def nothing(talk: CoordinatorTalk) -> list[Any]:
    return talk.ended().hear(status("t1", (P0, 0, 0)))


def died(talk: CoordinatorTalk) -> list[Any]:
    return talk.ended(BOTH).died("b")


def left(talk: CoordinatorTalk) -> list[Any]:
    return talk.started(BOTH).hear(ParticipantLeave(partitions=(P1,), transaction="t1"), "b")


def everybody_left(talk: CoordinatorTalk) -> list[Any]:
    return talk.started().hear(ParticipantLeave(partitions=(P0,)))


def nobody_is_left(talk: CoordinatorTalk) -> list[Any]:
    talk.beginning().hear(ParticipantLeave(partitions=(P0,)))
    return talk.answer(OK, instant="i1", committed={P0: 0})


def taken_over(talk: CoordinatorTalk) -> list[Any]:
    return talk.started(BOTH).hear(ParticipantJoin(partitions=(P1,)), "b2")


def silent(talk: CoordinatorTalk) -> list[Any]:
    return talk.ended(BOTH).tick(WRITE_TIMEOUT_MS)


def too_long(talk: CoordinatorTalk) -> list[Any]:
    talk.ended()
    for step in range(1, 6):
        said = WriteProgress(transaction="t1", records=5, files=0, size_bytes=1, steps=step)
        assert talk.hear(said) == []
        if actions := of(talk.tick(WRITE_TIMEOUT_MS - 1), c.Abort):
            return actions
    raise AssertionError("it is waited for")


def refused(talk: CoordinatorTalk) -> list[Any]:
    return talk.committing().answer(c.Result.REFUSED, reason="offsets moved on")


def halted(talk: CoordinatorTalk) -> list[Any]:
    return talk.committing().answer(c.Result.HALTED, reason="too many rejects")


def absent(talk: CoordinatorTalk) -> list[Any]:
    return talk.resolving().answer(c.Result.ABSENT)


def not_looked_for(talk: CoordinatorTalk) -> list[Any]:
    return talk.resolving().answer(c.Result.HALTED)


@pytest.mark.parametrize(
    ("abort", "cause", "fault"),
    [
        (nothing, causes.NOTHING, c.Fault.NONE),
        (died, causes.WORKER_DIED, c.Fault.PIPELINE),
        (left, causes.WORKER_LEFT, c.Fault.NONE),
        (everybody_left, causes.WORKER_LEFT, c.Fault.NONE),
        (nobody_is_left, causes.WORKER_LEFT, c.Fault.NONE),
        (taken_over, causes.TAKEN_OVER, c.Fault.NONE),
        (silent, causes.SILENT, c.Fault.PIPELINE),
        (too_long, causes.TOO_LONG, c.Fault.PIPELINE),
        (refused, causes.REFUSED, c.Fault.PIPELINE),
        (halted, causes.REFUSED, c.Fault.PIPELINE),
        (absent, causes.NOT_LANDED, c.Fault.ENVIRONMENT),
        (not_looked_for, causes.NOT_LANDED, c.Fault.ENVIRONMENT),
    ],
)
def test_an_abort_says_its_cause_and_with_it_goes_whose_fault_it_is(
    abort: Callable[[CoordinatorTalk], list[Any]], cause: str, fault: c.Fault
) -> None:
    talk = CoordinatorTalk(write_limit_ms=3 * WRITE_TIMEOUT_MS)
    (asked,) = of(abort(talk), c.Abort)
    assert (asked.cause, asked.fault) == (cause, fault)
    (said,) = sent(talk.answer(OK), AbortCommit)
    assert said == AbortCommit(transaction="t1", reason=asked.reason, cause=cause)


def test_every_cause_that_is_said_is_some_fault() -> None:
    assert set(FAULTS) == set(causes.ABORT_CAUSES) - {causes.COORDINATOR_LOST}


# --- ACK ----------------------------------------------------------------------------------------


def test_ack_says_what_the_commit_took_and_says_it_again() -> None:
    talk = CoordinatorTalk().committing()
    took_ms = {"files": 1, "lock": 2, "check": 3, "write": 4}
    (ack,) = sent(talk.answer(OK, took_ms=took_ms), AckCommit)
    assert ack.took_ms == took_ms
    assert sent(talk.hear(ParticipantJoin(partitions=(P0,))), AckCommit) == [ack]


def test_a_commit_that_was_found_took_nobody_knows_how_long() -> None:
    """Whatever the answer says: it is about the look."""
    took_ms = {"write": 4}
    (found,) = sent(CoordinatorTalk().resolving().answer(c.Result.COMMITTED, took_ms=took_ms), AckCommit)
    (late,) = sent(CoordinatorTalk().aborting().answer(c.Result.COMMITTED, took_ms=took_ms), AckCommit)
    assert found.took_ms == late.took_ms == {}

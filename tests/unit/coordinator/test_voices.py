"""Reasons name workers and what became of them: the sentences that an operator reads in ABORT and HALT."""

from __future__ import annotations

from typing import Any

from control_topic.messages import (
    Message,
    ParticipantJoin,
    ParticipantLeave,
    ParticipantReady,
    WriteProgress,
)
from coordinator import events as c
from coordinator.voices import VOICES_MAX, Voices
from participant import events as p
from table.service.ledger import Ledger, LedgerLimits
from tests.unit.conversation import (
    P0,
    P1,
    WRITE_TIMEOUT_MS,
    CoordinatorTalk,
    ParticipantTalk,
    message,
    of,
    sent,
    status,
)

A, B = "aaaa" * 8, "bbbb" * 8


class Named(CoordinatorTalk):
    """Incarnations are random; the workers' names are in the envelopes."""

    def hear(self, body: Any, sender: str = "a", **envelope: Any) -> list[Any]:
        names = {"a": ("worker-0", A), "b": ("worker-1", B)}
        if sender not in names:
            return super().hear(body, sender, **envelope)
        name, incarnation = names[sender]
        self.sequence += 1
        said = Message(
            pipeline="p",
            run="run",
            epoch=1,
            sender=name,
            incarnation=incarnation,
            sequence=self.sequence,
            sent_at_ms=0,
            body=body,
        )
        event = c.Received(now_ms=self.now_ms, nonce=self.nonce(), message=said)
        return self._note(self.feed(event))


BOTH = {"a": (P0,), "b": (P1,)}


def aborted(actions: list[Any]) -> str:
    (abort,) = of(actions, c.Abort)
    reason: str = abort.reason
    assert A not in reason and B not in reason
    return reason


def test_a_write_timeout_names_the_worker_and_what_it_said_last() -> None:
    talk = Named().ended(BOTH)
    talk.hear(status("t1", (P0, 0, 5)), "a")
    talk.tick(1_500)
    talk.hear(WriteProgress(transaction="t1", records=1, files=1, size_bytes=1, steps=1), "b")
    assert aborted(talk.tick(WRITE_TIMEOUT_MS)) == (
        "no WRITE_STATUS from worker-1 (last said WRITE_PROGRESS 5.0 s before) within 6.5 s"
    )


def test_a_death_is_told_in_the_drivers_words_or_by_the_workers_name() -> None:
    for reason, said in (("worker-1: its process died", "worker-1: its process died"), ("", "worker-1 died")):
        talk = Named().ended(BOTH)
        event = c.WorkerDied(now_ms=talk.now_ms, nonce="n", incarnation=B, reason=reason)
        assert aborted(talk.feed(event)) == said


def test_a_worker_that_fails_says_why_it_leaves_and_the_abort_says_so_too() -> None:
    worker = ParticipantTalk().writing()
    (leave,) = sent(
        worker.feed(p.EffectFailed(now_ms=0, reason="no dead-letter topic events.dlq")), ParticipantLeave
    )
    assert leave.reason == "no dead-letter topic events.dlq"
    talk = Named().ended(BOTH)
    gone = ParticipantLeave(partitions=(P1,), transaction="t1", reason=leave.reason)
    assert aborted(talk.hear(gone, "b")) == (
        "worker-1 left events:1 with open data: no dead-letter topic events.dlq"
    )


def test_a_worker_that_is_told_to_end_gives_no_reason() -> None:
    (leave,) = sent(ParticipantTalk().writing().feed(p.Leave(now_ms=0, reason="x")), ParticipantLeave)
    assert leave.reason == ""


def test_a_new_worker_on_a_source_partition_is_told_by_name() -> None:
    talk = Named().ended({"a": (P0,)})
    talk.sequence += 1
    joined = message(ParticipantJoin(partitions=(P0,)), sender="worker-0", sequence=talk.sequence)
    event = c.Received(now_ms=talk.now_ms, nonce="n", message=joined)
    assert aborted(talk.feed(event)) == "events:0 was taken over by a new worker-0"


def test_a_worker_that_was_never_heard_is_shown_by_the_beginning_of_its_incarnation() -> None:
    voices = Voices()
    assert voices.last_words([A], 0) == "a worker (aaaaaaaa) (has never been heard)"


def test_voices_are_bounded_and_the_one_silent_for_longest_goes_first() -> None:
    voices = Voices()
    for number in range(VOICES_MAX + 1):
        voices.heard(message(ParticipantReady(), sender=f"w{number}"), number)
        voices.heard(message(ParticipantReady(), sender="kept"), number)
    assert voices.name("kept") == "kept"
    assert voices.name("w1").startswith("a worker")
    assert voices.name(f"w{VOICES_MAX}") == f"w{VOICES_MAX}"


# --- the driver's side ----------------------------------------------------------------------------


def test_a_halt_says_what_workers_died_of_since_the_last_commit() -> None:
    book = Ledger(run="r", now_ms=0, limits=LedgerLimits(max_consecutive_failures=2))
    book.died(1, incarnation="w", reason="worker-1: the topic events.dlq does not exist")
    book.committed("t0", {})
    for number in (1, 2):
        who = f"w{number}"
        book.began(f"t{number}")
        why = "no WRITE_STATUS from worker-1 within 20.0 s"
        book.aborted(number, transaction=f"t{number}", reason=why, fault=c.Fault.PIPELINE)
        if number == 1:
            book.died(number, incarnation=who, reason="worker-1: events.dlq could not be written. ")
    assert "last: no WRITE_STATUS from worker-1 within 20.0 s; deaths since the last commit: " in book.halted
    assert "worker-1: events.dlq could not be written. Nothing is lost" in book.halted
    assert "does not exist" not in book.halted
    assert book.standing(3).deaths == ("worker-1: events.dlq could not be written",)


def test_a_death_that_was_the_failure_itself_is_not_said_twice_and_many_are_counted() -> None:
    book = Ledger(run="r", now_ms=0, limits=LedgerLimits(max_consecutive_failures=3))
    for number in range(3):
        book.began(f"t{number}")
        book.died(number, incarnation=f"w{number}", reason="worker-1: its process died")
    assert book.halted.count("its process died") == 1
    assert book.standing(3).deaths == ("worker-1: its process died (3 times)",)


def test_every_worker_is_told_what_the_dead_died_of_for_as_long_as_it_is_told_of_them() -> None:
    book = Ledger(run="r", now_ms=0, limits=LedgerLimits(dead_kept=2, dead_kept_ms=1_000))
    for number in range(3):
        book.died(number, incarnation=f"w{number}", reason=f"worker-{number}: gone")
    assert book.directive(10, "").died_of == {"w1": "worker-1: gone", "w2": "worker-2: gone"}
    assert book.directive(5_000, "").died_of == {}

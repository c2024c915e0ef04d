"""What is remembered of a transaction: why it ended, who wrote what, who was late, what its commit took."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from control_topic.causes import COORDINATOR_LOST, OTHER, REFUSED
from control_topic.messages import (
    AbortCommit,
    AckCommit,
    EndCommit,
    EndRequest,
    ParticipantLeave,
    Range,
    Reject,
    SourcePartition,
    WriteProgress,
    WriteStatus,
)
from lockstep.watch.told import (
    LATE_MS,
    REASON_LENGTH_MAX,
    REASONS_COUNTED_MAX,
    REJECTS_NAMED_MAX,
    TEXT_LENGTH_MAX,
    Asked,
    Left,
    Phase,
    RejectsSeen,
    named,
)
from tests.heard_topic import P0, P1, T1, T2, W0, W1, Topic, announced


@pytest.fixture
def topic() -> Topic:
    return announced()


def test_why_a_transaction_was_ended_is_what_its_first_end_says(topic: Topic) -> None:
    topic.opened(T1, {P0: 0})
    topic.send(EndCommit(transaction=T1, reason="bytes"))
    topic.send(EndCommit(transaction=T1))
    topic.send(EndCommit(transaction=T1, reason="interval"))
    assert topic.known.transactions[0].end_reason == "bytes"


def test_a_word_that_nobody_knows_is_other(topic: Topic) -> None:
    topic.opened(T1, {P0: 0})
    topic.send(EndRequest(transaction=T1, reason="whim"), sender="worker-0", who=W0)
    topic.send(EndCommit(transaction=T1, reason="whim"))
    topic.send(AbortCommit(transaction=T1, reason="because", cause="whim"))
    [found] = topic.known.given_up
    assert (found.end_reason, found.cause, found.asked[0].reason) == (OTHER, OTHER, OTHER)


def test_an_abort_has_its_class_and_people_read_workers_instead_of_incarnations(topic: Topic) -> None:
    topic.opened(T1, {P0: 0})
    topic.reported(T1, P0, 0, 5)
    topic.send(AbortCommit(transaction=T1, reason=f"worker-0 ({W0}) and {W0} died", cause=REFUSED))
    [found] = topic.known.given_up
    assert (found.cause, found.reason) == (REFUSED, "worker-0 and worker-0 died")


def test_an_abort_that_the_next_start_shows_is_of_a_lost_coordinator(topic: Topic) -> None:
    topic.opened(T1, {P0: 0})
    topic.opened(T2, {P0: 0}, epoch=2)
    assert topic.known.given_up[0].cause == COORDINATOR_LOST


def test_what_the_commit_took_is_of_known_parts(topic: Topic) -> None:
    topic.opened(T1, {P0: 0})
    took_ms = {"lock": 7, "files": 3, "something": 9}
    topic.send(AckCommit(transaction=T1, instant="20260101", committed={P0: 1}, took_ms=took_ms))
    assert topic.known.commits[0].took_ms == {"files": 3, "lock": 7}


def test_each_worker_has_what_it_wrote_and_the_first_answer_counts(topic: Topic) -> None:
    topic.opened(T1, {P0: 0, P1: 0})
    topic.send(EndCommit(transaction=T1))
    topic.reported(T1, P1, 0, 7)
    for following in (5, 9):
        topic.reported(T1, P0, 0, following)
    [found] = topic.known.transactions
    wrote = [
        (one.name, one.records, one.files, one.size_bytes, one.answered_ms) for one in found.wrote.values()
    ]
    assert wrote == [("worker-1", 7, 1, 70, 4_000), ("worker-0", 5, 1, 50, 5_000)]
    assert [span.next for one in found.wrote.values() for span in one.ranges] == [7, 5]
    assert found.written_ms == 5_000


def test_who_answers_a_second_after_all_others_is_late_and_by_how_much_is_said(topic: Topic) -> None:
    topic.opened(T1, {P0: 0})
    topic.send(EndCommit(transaction=T1))
    topic.reported(T1, P0, 0, 5)
    topic.send(EndCommit(transaction=T1))  # a second passes
    topic.reported(T1, P1, 0, 5)
    topic.acknowledged(T1, {P0: 5, P1: 5})
    assert (topic.known.commits[0].late, topic.known.commits[0].late_by_ms) == ("worker-1", 2_000)
    assert LATE_MS == 1_000


def test_who_has_not_answered_an_aborted_transaction_is_named(topic: Topic) -> None:
    topic.opened(T1, {P0: 0})
    topic.send(EndCommit(transaction=T1))
    topic.reported(T1, P0, 0, 5)
    topic.send(AbortCommit(transaction=T1, reason="no answer"))
    [found] = topic.known.given_up
    assert (found.late, found.late_by_ms, found.written_ms) == (W1, 0, 0)


def test_nobody_is_late_in_a_transaction_that_was_never_ended(topic: Topic) -> None:
    topic.opened(T1, {P0: 0})
    topic.send(AbortCommit(transaction=T1, reason="a worker died"))
    assert topic.known.given_up[0].late == ""


def test_who_asks_for_the_end_is_remembered_once(topic: Topic) -> None:
    topic.opened(T1, {P0: 0})
    for _ in range(3):
        topic.send(EndRequest(transaction=T1, reason="memory"), sender="worker-0", who=W0)
    topic.send(EndRequest(transaction=T1, reason="records"), sender="worker-1", who=W1)
    asked = topic.known.transactions[0].asked
    assert asked == [Asked("worker-0", "memory", 3_000), Asked("worker-1", "records", 6_000)]


def test_details_go_and_sums_stay(topic: Topic) -> None:
    topic.opened(T1, {P0: 0})
    topic.send(EndCommit(transaction=T1))
    topic.reported(T1, P0, 0, 5)
    topic.reported(T1, P1, 0, 5)
    [found] = topic.known.transactions
    found.reduce(lines_max=1)
    assert found.wrote[W0].ranges, "an open one keeps them: its end is to be concluded from them"
    topic.acknowledged(T1, {P0: 5, P1: 5})
    found.reduce(lines_max=1)
    assert all(not one.ranges for one in found.wrote.values())
    assert (found.next, found.progress, found.records, found.workers) == ({}, {}, 10, 2)
    assert (found.phase, found.written_ms) == (Phase.COMMITTED, 5_000)


def test_only_so_many_transactions_are_kept_where_there_is_a_limit(topic: Topic) -> None:
    topic.known.book.transactions_max = 2
    for number in range(5):
        topic.opened(f"{number}" * 32, {P0: number})
    assert [one.id[0] for one in topic.known.transactions] == ["3", "4"]


def test_rejects_are_counted_by_reason_within_a_bound_and_the_newest_named() -> None:
    seen = RejectsSeen()
    for number in range(40):
        rejects = tuple(
            Reject(partition=P0, offset=10 * number + place, reason=f"{number} " + "x" * 10_000)
            for place in range(3)
        )
        seen.add(rejects, 5, number)
    assert seen.count == 200
    assert len(seen.by_reason) == REASONS_COUNTED_MAX and set(seen.by_reason.values()) == {3}
    assert all(len(reason) == REASON_LENGTH_MAX for reason in seen.by_reason)
    assert [one.offset for one, _ in seen.sample][-1] == 392 and len(seen.sample) == REJECTS_NAMED_MAX
    both = RejectsSeen()
    both.join(seen)
    both.join(seen)
    assert both.count == 400 and len(both.sample) == REJECTS_NAMED_MAX


def test_rejects_of_a_transaction_are_in_what_its_workers_report(topic: Topic) -> None:
    topic.opened(T1, {P0: 0})
    reject = Reject(partition=P0, offset=3, reason="no number")
    spans = (Range(partition=P0, start=0, next=5, records=5),)
    status = WriteStatus(transaction=T1, ranges=spans, rejects=(reject,), reject_count=4)
    for _ in range(2):
        topic.send(status, sender="worker-0", who=W0)
    rejects = topic.known.transactions[0].rejects
    assert (rejects.count, rejects.by_reason) == (4, {"no number": 1})


def test_a_worker_that_fails_says_why_and_one_that_leaves_in_peace_is_no_news(topic: Topic) -> None:
    topic.joined("worker-0", W0, P0)
    topic.send(ParticipantLeave(partitions=(P0,), reason="its disk is full"), sender="worker-0", who=W0)
    assert topic.news[-1] == Left("worker-0", "its disk is full")
    assert not topic.known.left_in_peace
    topic.joined("worker-0", W1, P0)
    assert topic.known.restarts == {"worker-0": 1}
    count = len(topic.news)
    topic.send(ParticipantLeave(partitions=(P0,)), sender="worker-0", who=W1)
    assert len(topic.news) == count and topic.known.left_in_peace


def test_names_that_are_made_up_do_not_let_a_text_grow() -> None:
    """Each is put in many times, and holds the next one as often."""
    ids = [f"{number:012d}" for number in range(20)]
    names = {one: following * 5_000 for one, following in pairwise(ids)}
    assert len(named(ids[0] * 10_000, names)) <= TEXT_LENGTH_MAX


def test_who_is_no_writer_of_a_transaction_adds_nothing_to_it(topic: Topic) -> None:
    topic.opened(T1, {P0: 0})
    spans = (Range(partition=P0, start=0, next=999, records=999),)
    for number in range(20):
        status = WriteStatus(transaction=T1, ranges=spans)
        topic.send(status, sender=f"x{number}", who=f"stranger-{number}")
        progress = WriteProgress(transaction=T1, records=1, files=1, size_bytes=1, steps=1)
        topic.send(progress, sender=f"x{number}", who=f"stranger-{number}")
    topic.reported(T1, P0, 0, 5)
    [found] = topic.known.transactions
    assert (found.records, found.next, found.progress, set(found.wrote)) == (5, {P0: 5}, {}, {W0})


def test_source_partitions_are_remembered_within_a_bound(topic: Topic) -> None:
    topic.known.book.places_max = 10
    places = [SourcePartition("events", number) for number in range(30)]
    topic.opened(T1, dict.fromkeys(places[10:], 1))
    for worker, who in (("worker-0", W0), ("worker-1", W1)):
        spans = tuple(Range(partition=one, start=0, next=3, records=1) for one in places[:6])
        topic.send(WriteStatus(transaction=T1, ranges=spans), sender=worker, who=who)
    [found] = topic.known.transactions
    assert [len(one.ranges) for one in found.wrote.values()] == [6, 4]
    assert found.records == 12, "all are counted"
    topic.acknowledged(T1, dict.fromkeys(places, 7))
    assert topic.known.committed == dict.fromkeys(places[10:20], 7)


class Unwalked(dict[str, str]):
    """Thousands of names may be made up."""

    def items(self) -> Any:
        raise AssertionError("all names were looked for")

    __iter__ = keys = values = items


def test_the_words_of_a_reason_are_looked_for_among_the_names_and_not_the_names_in_it() -> None:
    names = Unwalked({W0: "worker-0", W1: "worker-1"})
    assert named(f"worker-0 ({W0}) is silent, so are {W1}, ({W1}): {W1}.", names) == (
        "worker-0 is silent, so are worker-1, (worker-1): worker-1."
    )
    assert named(f"nobody, x{W0}", names) == f"nobody, x{W0}"

"""Where logs end is asked now and then, by nobody's waiting, and what is old says nothing."""

from __future__ import annotations

import operator
import threading
from collections.abc import Sequence
from functools import partial

from control_topic.messages import Offsets, SourcePartition
from table.service.log_ends import FRESH_MS, LOOK_EVERY_MS, AskedBeside, AskedNow, Due, Ends, LogEnds
from table.service.source_facts import SourceUnavailable
from tests.harness import await_that

P0, P1 = SourcePartition("events", 0), SourcePartition("events", 1)


def test_it_is_asked_seldom_and_at_once_for_whom_nobody_has_asked_about() -> None:
    due = Due()
    assert not due.is_due([], 0)
    assert due.is_due([P0], 5) and not due.is_due([P0], 5 + LOOK_EVERY_MS - 1)
    assert due.is_due([P0, P1], 6) and not due.is_due([P1], 7)
    assert due.is_due([P1], 6 + LOOK_EVERY_MS)


class Broker:
    """Answers, or does not."""

    def __init__(self) -> None:
        self.ends: Offsets | None = {P0: 7}

    def __call__(self, partitions: Sequence[SourcePartition]) -> Offsets:
        if self.ends is None:
            raise SourceUnavailable("it is away")
        return {p: self.ends[p] for p in partitions}


def becomes(ends: LogEnds, now_ms: int, expected: Offsets) -> None:
    """What is asked beside is known soon."""
    await_that("the answer", lambda: ends.latest([P0], now_ms).offsets == expected)


def test_what_was_answered_is_known_until_it_is_old_or_the_next_question_fails() -> None:
    for made in (AskedBeside, AskedNow):
        broker = Broker()
        ends = made(broker)
        assert ends.latest([P0], 0).offsets == {P0: 7}
        broker.ends = {P0: 9}
        assert ends.latest([P0], 1) == Ends({P0: 7}, 1)
        becomes(ends, LOOK_EVERY_MS, {P0: 9})
        broker.ends = None
        becomes(ends, 2 * LOOK_EVERY_MS, {})


def test_an_answer_that_never_came_leaves_the_last_one_until_that_is_too_old() -> None:
    broker = Broker()
    ends = AskedBeside(broker)
    assert ends.latest([P0], 0).offsets == {P0: 7}
    assert ends.latest([], FRESH_MS - 1).offsets == {P0: 7}
    assert ends.latest([], FRESH_MS).offsets == {}


def test_of_many_that_fall_silent_one_after_another_the_broker_is_asked_as_seldom_as_of_one() -> None:
    """They were asked about at once each, and each commit waited for it."""
    many = [SourcePartition("events", number) for number in range(1_000)]
    for made in (AskedBeside, AskedNow):
        asked: list[int] = []

        def ask(partitions: Sequence[SourcePartition], asked: list[int] = asked) -> Offsets:
            asked.append(len(partitions))
            return dict.fromkeys(partitions, 7)

        ends = made(ask)
        for second in range(100):
            silent = many[: 10 * second + 1]
            assert ends.latest(silent, 1_000 * second, of=many).offsets.keys() >= set(silent)
            await_that("its answer", partial(operator.eq, asked, [1_000] * (second // 10 + 1)))


def test_a_commit_waits_for_the_answer_only_where_it_knows_nothing_of_whom_it_asks_about() -> None:
    answers, go_on = threading.Semaphore(1), threading.Event()  # the second waits for nobody who waits for it

    def ask(partitions: Sequence[SourcePartition]) -> Offsets:
        if not answers.acquire(blocking=False):
            assert go_on.wait(30)
        return dict.fromkeys(partitions, 7)

    ends = AskedBeside(ask, wait_s=30)
    assert ends.latest([P0], 0, of=[P0, P1]).offsets == {P0: 7, P1: 7}
    assert ends.latest([P1], LOOK_EVERY_MS, of=[P0, P1]).offsets == {P0: 7, P1: 7}, (
        "nobody waits for the second answer"
    )
    go_on.set()


def test_a_leader_that_is_away_of_whom_nobody_waits_for_hides_no_other() -> None:
    def ask(partitions: Sequence[SourcePartition]) -> Offsets:
        if P1 in partitions:
            raise SourceUnavailable("it has no leader")
        return dict.fromkeys(partitions, 7)

    for made in (AskedBeside, AskedNow):
        ends = made(ask)
        assert ends.latest([P0], 0, of=[P0, P1]).offsets == {P0: 7}

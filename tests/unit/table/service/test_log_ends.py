"""Where logs end is asked now and then, by nobody's waiting, and what is old says nothing."""

from __future__ import annotations

from collections.abc import Sequence

from control_topic.messages import Offsets, SourcePartition
from table.service.log_ends import FRESH_MS, LOOK_EVERY_MS, AskedBeside, AskedNow, Due
from table.service.source_facts import SourceUnavailable

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


def test_what_was_answered_is_known_until_it_is_old_or_the_next_question_fails() -> None:
    for made in (AskedBeside, AskedNow):
        broker = Broker()
        ends = made(broker)
        assert ends.latest([P0], 0) == {P0: 7}
        broker.ends = {P0: 9}
        assert ends.latest([P0], 1) == {P0: 7}
        assert ends.latest([P0], LOOK_EVERY_MS) == {P0: 9}
        broker.ends = None
        assert ends.latest([P0], 2 * LOOK_EVERY_MS) == {}


def test_an_answer_that_never_came_leaves_the_last_one_until_that_is_too_old() -> None:
    broker = Broker()
    ends = AskedBeside(broker)
    assert ends.latest([P0], 0) == {P0: 7}
    assert ends.latest([], FRESH_MS - 1) == {P0: 7}
    assert ends.latest([], FRESH_MS) == {}

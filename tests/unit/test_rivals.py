"""Of several runs of one pipeline the one that started last goes on, and every older one gets to know."""

from __future__ import annotations

import itertools

import pytest

from control_topic.messages import CoordinatorClaim, Message, RunAnnounce
from table.rivals import Rivals


def said(run: str, body: RunAnnounce | CoordinatorClaim) -> Message:
    return Message(
        pipeline="p",
        run=run,
        epoch=0,
        sender="driver",
        incarnation=run,
        sequence=1,
        sent_at_ms=0,
        body=body,
    )


OLD = RunAnnounce(table_epoch=3, started_at_ms=1_000)
NEW = RunAnnounce(table_epoch=3, started_at_ms=2_000)
NEWEST = RunAnnounce(table_epoch=4, started_at_ms=500)
"""Started last, on a machine whose clock is behind: the table's epoch counts first."""


def started(run: str, announcement: RunAnnounce) -> Rivals:
    """A run that has read its own announcement."""
    rivals = Rivals(run, announcement)
    assert not rivals.hear(said(run, announcement))
    return rivals


def test_a_later_run_is_newer_and_is_not_answered() -> None:
    rivals = started("a", OLD)
    assert not rivals.hear(said("b", NEW))
    assert rivals.newer == "b"


def test_an_older_run_that_asks_is_answered_and_is_not_newer() -> None:
    rivals = started("b", NEW)
    assert rivals.hear(said("a", OLD))
    assert rivals.newer == ""


def test_what_was_said_before_this_run_began_is_of_runs_that_may_be_long_gone() -> None:
    rivals = Rivals("b", NEW)
    assert not rivals.hear(said("dead", NEWEST))
    assert not rivals.hear(said("a", OLD))
    assert rivals.newer == ""


def test_of_several_newer_runs_the_newest_is_named_in_whatever_order_they_speak() -> None:
    for order in itertools.permutations([("b", NEW), ("c", NEWEST)]):
        rivals = started("a", OLD)
        for run, announcement in order:
            rivals.hear(said(run, announcement))
        assert rivals.newer == "c"


@pytest.mark.parametrize("pair", [(OLD, NEW), (OLD, NEWEST), (NEW, NEWEST)])
def test_of_two_runs_exactly_one_is_superseded_even_if_the_topic_lost_the_first_announcements(
    pair: tuple[RunAnnounce, RunAnnounce],
) -> None:
    first, second = started("x", pair[0]), started("y", pair[1])
    for asking, run, own in ((first, "x", pair[0]), (second, "y", pair[1])):
        other = second if asking is first else first
        if other.hear(said(run, own)):
            answer = said("y" if run == "x" else "x", pair[1] if run == "x" else pair[0])
            asking.hear(answer)
    assert [first.newer, second.newer].count("") == 1


def test_other_messages_say_nothing_about_runs() -> None:
    rivals = started("a", OLD)
    assert not rivals.hear(said("b", CoordinatorClaim()))
    assert rivals.newer == ""

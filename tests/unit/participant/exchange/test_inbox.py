"""What others hand over, until it is written."""

from __future__ import annotations

from threading import Condition

from participant.exchange.inbox import Inbox


def test_an_end_that_comes_when_the_transaction_is_over_here_is_not_answered_as_taken() -> None:
    inbox = Inbox(1_000, Condition(), lambda: None)
    inbox.open("t1", ["b"])
    inbox.close()
    assert not inbox.ended("t1", "b")
    inbox.open("t2", ["b"])
    assert not inbox.ended("t1", "b")
    assert not inbox.has_all
    assert inbox.ended("t2", "b")
    assert inbox.has_all

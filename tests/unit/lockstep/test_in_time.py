"""What may never come back is asked beside."""

from __future__ import annotations

import threading

import pytest

from lockstep.in_time import InTime, TookTooLong


def test_an_answer_is_given_and_so_is_an_error() -> None:
    asking = InTime("the store")
    assert asking.ask(lambda: 7, timeout_s=30) == 7
    with pytest.raises(ValueError, match="no"):
        asking.ask(lambda: int("no"), timeout_s=30)
    assert asking.idle and asking.ask(lambda: 8, timeout_s=30) == 8


def test_an_error_that_is_a_timeout_of_its_own_is_the_answer() -> None:
    def late() -> int:
        raise TimeoutError("of the socket")

    with pytest.raises(TimeoutError, match="of the socket") as raised:
        InTime("the store").ask(late, timeout_s=30)
    assert not isinstance(raised.value, TookTooLong)


def test_who_does_not_answer_is_asked_once_however_often_one_asks() -> None:
    released, asked = threading.Event(), []

    def hanging() -> str:
        asked.append(1)
        released.wait(60)
        return "at last"

    asking = InTime("the store")
    for _ in range(3):
        with pytest.raises(TookTooLong, match="the store did not answer within 0 s"):
            asking.ask(hanging, timeout_s=0.01)
    assert not asking.idle
    released.set()
    assert asking.ask(hanging, timeout_s=30) == "at last"
    assert len(asked) == 1 and asking.idle

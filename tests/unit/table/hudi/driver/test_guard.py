"""The lock provider that looks before a table service completes: what it passes on, and what never."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from table.errors import ClockAhead, Refused
from table.hudi.driver.guard import Guard


class Provider:
    """As Hudi's file lock: `unlock` and `close` remove the file, whoever has made it."""

    def __init__(self, free: bool = True) -> None:
        self.free = free
        self.said: list[str] = []

    def tryLock(self, _time: int, _unit: object) -> bool:
        return self.free

    def unlock(self) -> None:
        self.said.append("unlock")

    def close(self) -> None:
        self.said.append("close")


class Dog:
    def __init__(self) -> None:
        self.said: list[str] = []

    @contextmanager
    def armed(self) -> Iterator[None]:
        self.said.append("armed")
        yield
        self.said.append("disarmed")


def guard(provider: Provider, dog: Dog, refusal: str = "") -> Guard:
    def look() -> None:
        if refusal:
            raise Refused(refusal)

    return Guard(provider, look, dog)  # type: ignore[arg-type]


def hudi_unlocks(one: Guard) -> None:
    """As Hudi's lock manager does, also where it was refused the lock."""
    one.unlock()
    one.close()


def test_an_objection_is_forgotten_when_a_later_look_has_none() -> None:
    answers = iter([Refused("not now"), None])

    def look() -> None:
        if (answer := next(answers)) is not None:
            raise answer

    one = Guard(Provider(), look, Dog())  # type: ignore[arg-type]
    with pytest.raises(Refused, match="not now"):
        one.tryLock(1, None)
    assert one.objection is not None
    assert one.tryLock(1, None)
    assert one.objection is None


def test_a_lock_that_is_held_is_given_back_once_and_watched_meanwhile() -> None:
    provider, dog = Provider(), Dog()
    one = guard(provider, dog)
    assert one.tryLock(1, None)
    assert (dog.said, one.asked) == (["armed"], 1)
    hudi_unlocks(one)
    assert provider.said == ["unlock", "close"]
    assert dog.said == ["armed", "disarmed"]


def test_a_lock_that_somebody_else_holds_is_not_taken_from_them() -> None:
    provider, dog = Provider(free=False), Dog()
    one = guard(provider, dog)
    assert not one.tryLock(1, None)
    assert not one.tryLock(1, None)
    hudi_unlocks(one)
    assert (provider.said, one.asked) == ([], 0)
    assert dog.said == ["armed", "disarmed"] * 2


def test_a_refusal_gives_the_lock_back_and_nothing_that_others_have_taken_since() -> None:
    provider, dog = Provider(), Dog()
    one = guard(provider, dog, "it was taken away")
    with pytest.raises(Refused, match="it was taken away"):
        one.tryLock(1, None)
    assert provider.said == ["unlock", "close"]
    hudi_unlocks(one)
    assert provider.said == ["unlock", "close"]
    assert str(one.objection) == "it was taken away"
    assert dog.said == ["armed", "disarmed"]


def test_a_lock_that_cannot_be_given_back_is_let_go_of_all_the_same() -> None:
    class Stuck(Provider):
        def unlock(self) -> None:
            super().unlock()
            raise RuntimeError("Failed to expire lock")

    provider, dog = Stuck(), Dog()
    one = guard(provider, dog)
    assert one.tryLock(1, None)
    with pytest.raises(RuntimeError, match="expire"):
        one.unlock()
    one.close()
    assert provider.said == ["unlock", "close"]


def test_a_lock_that_is_not_to_be_taken_is_not_asked_for() -> None:
    provider, dog = Provider(), Dog()

    def before() -> None:
        raise ClockAhead("the clock is 1 h ahead of the file system's")

    one = Guard(provider, lambda: None, dog, before)  # type: ignore[arg-type]
    with pytest.raises(ClockAhead):
        one.tryLock(1, None)
    hudi_unlocks(one)
    assert (provider.said, dog.said, one.asked) == ([], [], 0)
    assert isinstance(one.objection, ClockAhead)

"""Coroutines that run in a thread for others, who wait for them no longer than they said."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from table.store.hdfs.loop import GivenUp, Loop, again, within

LONG_S = 60.0
SHORT_S = 0.01


@pytest.fixture
def loop() -> Iterator[Loop]:
    made = Loop("test")
    yield made
    made.stop()


class Slow:
    """Ends when it is told to, or cancelled."""

    def __init__(self) -> None:
        self.may_end = asyncio.Event()
        self.cancelled = threading.Event()

    async def __call__(self) -> str:
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return "ended"


def test_whoever_waits_is_given_what_it_gives_and_raised_what_it_raises(loop: Loop) -> None:
    async def right() -> int:
        return 7

    async def wrong() -> int:
        raise TimeoutError("its own")

    assert loop.run(right, LONG_S) == 7
    with pytest.raises(TimeoutError, match="its own"):
        loop.run(wrong, LONG_S)


def test_a_panic_of_the_client_is_an_error_that_callers_know(loop: Loop) -> None:
    class PanicException(BaseException):
        """As PyO3 raises it."""

    async def panics() -> None:
        raise PanicException("there is no reactor running")

    with pytest.raises(ConnectionError, match="no reactor"):
        loop.run(panics, LONG_S)


def test_a_server_that_is_away_is_asked_again_and_one_that_says_no_is_not(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("table.store.hdfs.loop.PAUSES_S", (0.0, 0.0))
    asked: list[int] = []

    async def third() -> str:
        asked.append(1)
        if len(asked) < 3:
            raise OSError("Connection refused (os error 111)")
        return "there"

    async def refuses() -> str:
        asked.append(1)
        raise FileNotFoundError

    assert loop.run(lambda: again(third), LONG_S) == "there"
    asked.clear()
    with pytest.raises(FileNotFoundError):
        loop.run(lambda: again(refuses), LONG_S)
    assert len(asked) == 1


def test_what_is_given_up_has_ended_when_that_is_said(loop: Loop) -> None:
    slow = Slow()
    with pytest.raises(GivenUp):
        loop.run(slow, SHORT_S)
    assert slow.cancelled.is_set()


def test_one_that_is_given_up_keeps_no_other_waiting(loop: Loop) -> None:
    slow, other = Slow(), Slow()
    other.may_end.set()

    def wait() -> None:
        with pytest.raises(GivenUp):
            loop.run(slow, LONG_S)

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    assert loop.run(other, LONG_S) == "ended"
    loop.stop()
    waiting.join(LONG_S)
    assert slow.cancelled.is_set() and not waiting.is_alive()


def test_what_is_let_go_of_ends_later_and_in_the_loop(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("table.store.hdfs.loop.HELD_TURN_S", SHORT_S)
    ended = threading.Event()
    where: list[threading.Thread] = []

    class Client:
        def __del__(self) -> None:
            where.append(threading.current_thread())
            ended.set()

    async def ready() -> None:
        return None

    loop.run(ready, LONG_S)
    loop.let_go(Client())
    assert not ended.wait(SHORT_S)
    assert ended.wait(LONG_S) and where == [loop._thread]


def test_a_loop_that_was_stopped_runs_nothing(loop: Loop) -> None:
    slow = Slow()
    loop.stop()
    with pytest.raises(GivenUp):
        loop.run(slow, LONG_S)


def test_a_loop_that_is_stopped_waits_for_a_thread_that_is_still_waking_it(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread of hdfs-native, which wants Python's lock once more when the loop has done the rest."""
    loop.run(nothing, LONG_S)
    running = loop._loop
    assert running is not None
    writes, may_end = threading.Event(), threading.Event()
    write = running._write_to_self  # type: ignore[attr-defined]

    def write_slowly() -> None:
        write()
        if threading.current_thread() is waking:
            writes.set()
            may_end.wait(LONG_S)

    monkeypatch.setattr(running, "_write_to_self", write_slowly)
    waking = threading.Thread(target=running.call_soon_threadsafe, args=(lambda: None,), daemon=True)
    waking.start()
    assert writes.wait(LONG_S)
    stopping = threading.Thread(target=loop.stop, daemon=True)
    stopping.start()
    loop._thread.join(LONG_S)
    stopping.join(5 * SHORT_S)
    assert stopping.is_alive()
    may_end.set()
    stopping.join(LONG_S)
    waking.join(LONG_S)
    assert not stopping.is_alive() and not running.waking


async def nothing() -> None:
    return None


def test_one_gets_as_long_again_once_what_it_waits_for_has_answered() -> None:
    async def all_of_it() -> str:
        slow = Slow()

        async def answered() -> None:
            slow.may_end.set()

        return await within(SHORT_S, slow, after=answered)

    assert asyncio.run(all_of_it()) == "ended"


def test_where_there_is_no_answer_it_has_ended_and_that_is_said() -> None:
    async def all_of_it() -> Slow:
        slow = Slow()

        async def refused() -> None:
            raise ConnectionError("nobody there")

        with pytest.raises(ConnectionError, match="nobody there"):
            await within(SHORT_S, slow, after=refused)
        await asyncio.sleep(0)
        return slow

    assert asyncio.run(all_of_it()).cancelled.is_set()

"""A thread in which coroutines run for others, who wait for them: what is given up there has ended, and keeps
no thread, unlike a call.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import threading
import time
from collections.abc import Awaitable, Callable
from contextvars import Context
from typing import TypeVar, TypeVarTuple

STUCK_S = 5.0
"""So long after its bound one is waited for that does not end: then the loop itself stands still."""
STOP_S = 2.0
STOP_TURN_S = 0.005
HELD_TURNS, HELD_TURN_S = 10, 1.0
"""So many turns of the loop what is let go of is held for, each after so long."""
PAUSES_S = (0.2, 0.4, 0.8, 1.6, 3.2)
"""As long as the client's own, which it can make in threads of its own alone."""
ANSWERS = (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError)
"""Of a server that is there."""
T = TypeVar("T")
Given = TypeVarTuple("Given")


class GivenUp(Exception):
    """It did not end within its bound. What it asked for may have been done."""


class Panic(ConnectionError):
    """Of the client's own, which nothing else is to be asked of."""


class CountedLoop(asyncio.SelectorEventLoop):
    """An event loop that counts the threads which are waking it.

    Threads of hdfs-native do so when an answer comes. Each releases Python's lock as it writes to the loop's
    socket, and wants it back when the loop may have done the rest, and stopped, already.
    """

    waking = 0
    """Changed under Python's lock, with no call after it in which a thread may lose that."""

    def call_soon_threadsafe(
        self, callback: Callable[[*Given], object], *args: *Given, context: Context | None = None
    ) -> asyncio.Handle:
        self.waking += 1
        try:
            return super().call_soon_threadsafe(callback, *args, context=context)
        finally:
            self.waking -= 1


class Loop:
    """Its thread is made when it is first needed, where a process may still fork before. Safe to use from any
    thread.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: CountedLoop | None = None
        self._thread: threading.Thread
        self._stopped = False
        self._kept: list[object] = []

    def run(self, work: Callable[[], Awaitable[T]], bound_s: float) -> T:
        """What it gives. `work` is called in the loop. Raises `GivenUp`, and what it raises."""
        loop = self._running()
        waiting = asyncio.run_coroutine_threadsafe(within(bound_s, work), loop)
        try:
            return waiting.result(bound_s + STUCK_S)
        except concurrent.futures.CancelledError as error:
            raise GivenUp from error
        except concurrent.futures.TimeoutError as error:
            if waiting.done():  # its own
                raise
            waiting.cancel()
            raise GivenUp from error

    def let_go(self, what: object) -> None:
        """Nobody uses it any more, and it ends here, later: whoever ends a client waits for its threads, and
        has Python's lock, which one of them may still want, to say of a call that it has ended. May be called
        wherever garbage is collected.
        """
        if self._loop is None:
            return
        try:
            self._loop.call_soon_threadsafe(_hold, self._loop, what, HELD_TURNS)
        except RuntimeError:  # it is closed: the process ends
            self._kept.append(what)

    def stop(self) -> None:
        """Whatever runs is given up, and nothing will run any more. Where a process ends, before Python does:
        a thread that wants Python's lock then ends the process with a signal.
        """
        with self._lock:
            loop = None if self._stopped else self._loop
            self._stopped = True
        if loop is not None:
            asyncio.run_coroutine_threadsafe(_give_up_all(), loop)
            self._thread.join(STOP_S)
            ends_s = time.monotonic() + STOP_S
            while loop.waking and time.monotonic() < ends_s:
                time.sleep(STOP_TURN_S)

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._stopped:
                raise GivenUp
            if self._loop is None:
                self._loop = CountedLoop()
                self._thread = threading.Thread(
                    target=_turn, args=(self._loop,), name=self._name, daemon=True
                )
                self._thread.start()
                atexit.register(self.stop)
            return self._loop


def _turn(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_forever()
    loop.close()


async def within(
    bound_s: float, work: Callable[[], Awaitable[T]], *, after: Callable[[], Awaitable[object]] | None = None
) -> T:
    """What it gives. Raises `GivenUp`, once it has ended, and what it raises.

    `after`: what it waits for once the bound is reached, and then for as long again: an answer from whoever
    may stand still.
    """
    task = asyncio.ensure_future(_awaited(work))
    try:
        done, _ = await asyncio.wait({task}, timeout=bound_s)
        if not done and after is not None:
            await after()
            done, _ = await asyncio.wait({task}, timeout=bound_s)
        if done:
            return task.result()
    finally:
        task.cancel()
    await asyncio.wait({task})
    raise GivenUp


async def again(work: Callable[[], Awaitable[T]]) -> T:
    """What may be asked for as often as one likes, of a server that may be away for a while."""
    for pause_s in PAUSES_S:
        try:
            return await _awaited(work)
        except ANSWERS:
            raise
        except OSError:
            await asyncio.sleep(pause_s)
    return await _awaited(work)


async def _awaited(work: Callable[[], Awaitable[T]]) -> T:
    """The client's own coroutines are none of asyncio's: where one would sleep before it asks a server again
    that is away it panics, which no `except Exception` meets.
    """
    try:
        return await work()
    except (Exception, asyncio.CancelledError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        raise Panic(str(error)) from error


def _hold(loop: asyncio.AbstractEventLoop, what: object, turns: int) -> None:
    if turns:
        loop.call_later(HELD_TURN_S, _hold, loop, what, turns - 1)


async def _give_up_all() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others, timeout=STOP_S / 2)
    asyncio.get_running_loop().stop()

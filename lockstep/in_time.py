"""What may never come back is asked beside: whoever asks waits for a bounded time, and goes on without it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, TypeVar

from lockstep.errors import Failed

T = TypeVar("T")


class TookTooLong(Failed):
    """No answer in time. It may come yet, and nobody waits for it any more."""


class InTime:
    """Asks one thing at a time, on a thread of its own, which does not hold up the end of the process.

    `name`: what is asked. What has not answered when it is asked again is waited for, and not asked twice: a
    file server that hangs costs one thread, however often it is looked at.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._asked: Future[Any] | None = None

    @property
    def idle(self) -> bool:
        """Whether nothing is being asked."""
        return self._asked is None or self._asked.done()

    def ask(self, work: Callable[[], T], *, timeout_s: float) -> T:
        """What `work` gives, or raises. Raises `TookTooLong` after `timeout_s`."""
        answer: Future[T] = self._asked if self._asked is not None else self._begin(work)
        try:
            found = answer.result(max(0.0, timeout_s))
        except FutureTimeout as error:
            if not answer.done():
                raise TookTooLong(f"{self._name} did not answer within {timeout_s:.0f} s") from error
            self._asked = None
            raise
        except BaseException:
            self._asked = None
            raise
        self._asked = None
        return found

    def _begin(self, work: Callable[[], T]) -> Future[T]:
        answer: Future[T] = Future()

        def asking() -> None:
            try:
                answer.set_result(work())
            except Exception as error:  # noqa: BLE001 -- whatever it is, it is the answer
                answer.set_exception(error)

        self._asked = answer
        threading.Thread(target=asking, name=f"ask-{self._name}", daemon=True).start()
        return answer

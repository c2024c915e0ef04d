"""An answer that costs something, made once for all who ask within a second."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

KEPT_S = 1.0


class Shared:
    """Lives on the server's loop. `make`: called beside the loop, never twice at a time."""

    def __init__(self, make: Callable[[], bytes]) -> None:
        self._make = make
        self._task: asyncio.Task[bytes] | None = None
        self._began_s = 0.0

    async def get(self) -> bytes:
        """The newest, at most `KEPT_S` old; or the one that is being made."""
        if self._task is None or (self._task.done() and self._is_old(self._task)):
            self._began_s = time.monotonic()
            self._task = asyncio.create_task(asyncio.to_thread(self._make))
        return await asyncio.shield(self._task)  # a reader who leaves takes it from nobody

    def _is_old(self, task: asyncio.Task[bytes]) -> bool:
        failed = task.cancelled() or task.exception() is not None
        return failed or time.monotonic() - self._began_s >= KEPT_S

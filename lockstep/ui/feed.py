"""A pipeline's documents as they come, encoded once for all who listen, at most one a second."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from control_topic.clocks import wall_ms
from lockstep.ui.port import Watched

EVERY_S = 1.0
HEARTBEAT_S = 5.0
LISTENERS_MAX = 32
"""Streams of all pipelines together."""


def encoded(document: Any) -> bytes:
    """JSON, with everything escaped that is not ASCII."""
    return json.dumps(document, separators=(",", ":")).encode("ascii")


def now_line() -> bytes:
    """A comment: what this clock says, so that a browser whose clock is off can count."""
    return f": now {wall_ms()}\n".encode("ascii")


class Feed:
    """Lives on the server's loop. Nobody is asked anything while nobody listens."""

    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self._listeners = 0
        self._number: int | None = None
        self._data = b""
        self._came = asyncio.Event()
        self._pump: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[AsyncIterator[bytes]]:
        """What a stream of events is made of; it ends only where the pipeline cannot be asked any more."""
        self._listeners += 1
        if self._pump is None or self._pump.done():
            self._pump = asyncio.create_task(self._keep_up())
        try:
            yield self._frames()
        finally:
            self._listeners -= 1
            if not self._listeners:
                self._pump.cancel()
                self._pump = None

    async def _frames(self) -> AsyncIterator[bytes]:
        """A slow reader misses documents, and is never sent an old one."""
        sent: int | None = None
        yield b"retry: 1000\n" + now_line() + b"\n"
        while self._pump is not None and not self._pump.done():
            came = self._came
            if self._number is not None and self._number != sent:
                sent = self._number
                yield now_line() + b"event: page\ndata: " + self._data + b"\n\n"
                continue
            try:
                async with asyncio.timeout(HEARTBEAT_S):
                    await came.wait()
            except TimeoutError:
                yield now_line() + b"\n"

    async def _keep_up(self) -> None:
        while True:
            after = -1 if self._number is None else self._number
            number, data = await asyncio.to_thread(self._next, after)
            if number != self._number:
                self._number, self._data = number, data
                came, self._came = self._came, asyncio.Event()
                came.set()
            await asyncio.sleep(EVERY_S)

    def _next(self, after: int) -> tuple[int, bytes]:
        page = self._watched.wait(after, EVERY_S)
        return page.number, self._data if page.number == after else encoded(page.document)

"""Server-sent events to one reader, for as long as they are there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from starlette.types import Receive, Scope, Send

from lockstep.ui.feed import Feed


class EventStream:
    """An answer that goes on for as long as the reader listens, or until the page ends."""

    def __init__(self, feed: Feed, *, ending: asyncio.Event) -> None:
        self._feed = feed
        self._ending = ending

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"content-type", b"text/event-stream"), (b"x-accel-buffering", b"no")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        if scope["method"] == "HEAD":
            await send({"type": "http.response.body"})
            return
        async with self._feed.listening() as frames:
            first = {
                asyncio.create_task(_forward(frames, send)),
                asyncio.create_task(_gone(receive)),
                asyncio.create_task(self._ending.wait()),
            }
            try:
                done, _ = await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in first:
                    task.cancel()
                await asyncio.gather(*first, return_exceptions=True)
            for task in done:
                task.result()
        await send({"type": "http.response.body"})


async def _forward(frames: AsyncIterator[bytes], send: Send) -> None:
    async for frame in frames:
        await send({"type": "http.response.body", "body": frame, "more_body": True})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue

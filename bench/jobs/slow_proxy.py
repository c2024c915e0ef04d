"""A TCP proxy on loopback that lets bytes arrive later: half of a latency in each direction. By itself:

    python -I slow_proxy.py LISTEN_PORT TO_PORT LATENCY_MS

It knows nothing of what goes through, so signatures stay valid and requests may overlap. Bytes are held back,
not slowed down: what is on its way in a direction of a connection is bounded only so far that memory is.
A connection is made at once, without the round trip that it takes elsewhere. The loop's timers are late by up
to a millisecond in each direction, never early.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys

HOST = "127.0.0.1"
CHUNK_BYTES = 256 * 1024
CHUNKS_MAX = 256
"""On their way in one direction of a connection: 64 MB, more than 10 ms of what loopback gives."""

Later = tuple[float, bytes]
"""When it is to arrive, by the loop's clock; no bytes: the end."""


async def read(reader: asyncio.StreamReader, way: asyncio.Queue[Later], half_s: float) -> None:
    """Take what comes, until its end."""
    loop = asyncio.get_running_loop()
    data = b"begin"
    while data:
        data = b""
        with contextlib.suppress(ConnectionError):  # a connection that is broken has ended
            data = await reader.read(CHUNK_BYTES)
        await way.put((loop.time() + half_s, data))


async def write(writer: asyncio.StreamWriter, way: asyncio.Queue[Later]) -> None:
    """Hand on what is due, until its end."""
    loop = asyncio.get_running_loop()
    while True:
        due, data = await way.get()
        wait_s = due - loop.time()
        if wait_s > 0:
            await asyncio.sleep(wait_s)
        if not data:
            break
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


async def serve(
    near: asyncio.StreamReader, answers: asyncio.StreamWriter, to_port: int, half_s: float
) -> None:
    """One connection, until both of its directions have ended or one is broken."""
    try:
        far, requests = await asyncio.open_connection(HOST, to_port, limit=CHUNK_BYTES)
    except OSError:
        answers.close()
        return
    up: asyncio.Queue[Later] = asyncio.Queue(CHUNKS_MAX)
    down: asyncio.Queue[Later] = asyncio.Queue(CHUNKS_MAX)
    parts = [
        asyncio.ensure_future(one)
        for one in (
            read(near, up, half_s),
            write(requests, up),
            read(far, down, half_s),
            write(answers, down),
        )
    ]
    try:
        with contextlib.suppress(OSError):
            await asyncio.gather(*parts)
    finally:
        for part in parts:
            part.cancel()
        requests.close()
        answers.close()


async def main(port: int, to_port: int, half_s: float) -> None:
    async def one(near: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
        await serve(near, answers, to_port, half_s)

    server = await asyncio.start_server(one, HOST, port, limit=CHUNK_BYTES)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]) / 2_000))

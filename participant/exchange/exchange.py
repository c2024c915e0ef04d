"""A worker's end of the exchange: it listens for others, and makes the writers of such transactions."""

from __future__ import annotations

import contextlib
import logging
import socket
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import Condition
from typing import Any

import grpc

from participant.exchange.homes import Homes
from participant.exchange.inbox import Inbox
from participant.exchange.outbox import CLIENT_OPTIONS, Outbox
from participant.exchange.wire import END, METHOD, SENDER, SERVICE, TAKER, TRANSACTION, named
from participant.exchange.writer import ExchangingWriter
from table.port import FileWriter, Handing
from table.service.server import SERVER_OPTIONS, TokenCheck, bracketed

log = logging.getLogger("lockstep.exchange")

OPEN_S = 30.0
"""A stream waits so long for its taker to hear START."""
STREAMS_EACH = 2
"""Of another worker: of this transaction, and of the next, which it may have heard of sooner."""
STREAMS_SPARE = 8
FRAME_BYTES = 1024 * 1024
FRAMES = 4
"""So many frames fit into what is held for others, at least, and so many into what they sent."""


def frame_bytes(bytes_max: int, workers: int) -> int:
    """Of each other worker a thread of the server holds a frame beside what is counted: all of these are no
    more than what is.
    """
    return max(1, min(FRAME_BYTES, bytes_max // max(FRAMES, workers)))


def host_towards(address: str) -> str:
    """By which of its addresses this machine reaches host:port. Raises `OSError`. Nothing is sent."""
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    family, kind, protocol, _, place = socket.getaddrinfo(host, int(port), type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind, protocol) as asked:
        asked.connect(place)
        return str(asked.getsockname()[0])


class Exchange:
    """`writers_max`: how many workers there are. `homes`: how many of them write a table partition's rows.

    `bytes_max`: what is held for others and what they sent, together. `arrived`: called by any thread when
    others have handed over something, or cannot be reached. Raises `OSError` where it cannot listen.
    """

    def __init__(
        self,
        *,
        incarnation: str,
        token: str,
        host: str,
        writers_max: int,
        homes: int,
        bytes_max: int,
        arrived: Callable[[], None],
    ) -> None:
        self._me = incarnation
        self._token = token
        self._homes_count = homes
        self._homes: Homes | None = None
        self._bytes_max = bytes_max // 2
        self._frame_bytes = frame_bytes(self._bytes_max, writers_max)
        self._changed = Condition()
        self._arrived = arrived
        self._inbox = Inbox(self._bytes_max, self._changed, arrived)
        self._channels: dict[str, grpc.Channel] = {}
        streams_max = STREAMS_EACH * writers_max + STREAMS_SPARE
        self._server = grpc.server(
            ThreadPoolExecutor(streams_max, thread_name_prefix="exchange"),
            handlers=[
                grpc.method_handlers_generic_handler(
                    SERVICE, {METHOD: grpc.stream_unary_rpc_method_handler(self._take)}
                )
            ],
            interceptors=[TokenCheck(token)],
            options=SERVER_OPTIONS,
            maximum_concurrent_rpcs=streams_max,
        )
        try:
            port = self._server.add_insecure_port(f"{bracketed(host)}:0")
        except RuntimeError as error:
            raise OSError(f"no worker can hand rows over on {host}: {error}") from error
        self.address = f"{bracketed(host)}:{port}"
        """Where it takes rows, host:port."""
        self._server.start()

    def writer(
        self,
        inner: FileWriter,
        handing: Handing,
        transaction: str,
        takers: Mapping[str, str],
        waits: Callable[[], None],
    ) -> ExchangingWriter:
        """Of one transaction. `takers`: of all its writers, us among them."""
        others = {who: address for who, address in takers.items() if who != self._me}
        if self._homes is None or set(self._homes.writers) != takers.keys():
            self._homes = Homes(takers, self._me, self._homes_count)
            self._forget_channels(others)
        self._inbox.open(transaction, others)
        outbox = Outbox(
            transaction,
            self._me,
            others,
            token=self._token,
            bytes_max=self._bytes_max // 2,
            changed=self._changed,
            arrived=self._arrived,
            channel_to=self._channel_to,
        )
        return ExchangingWriter(
            inner,
            handing,
            self._homes,
            self._inbox,
            outbox,
            frame_bytes=self._frame_bytes,
            waiting_bytes_max=self._bytes_max // 2,
            changed=self._changed,
            waits=waits,
        )

    def close(self) -> None:
        """Take no more, and let go of what is under way."""
        self._inbox.close()
        self._server.stop(0)
        for channel in self._channels.values():
            channel.close()

    # --- inside -----------------------------------------------------------------------------------

    def _channel_to(self, address: str) -> grpc.Channel:
        if address not in self._channels:
            self._channels[address] = grpc.insecure_channel(address, options=CLIENT_OPTIONS)
        return self._channels[address]

    def _forget_channels(self, others: Mapping[str, str]) -> None:
        for address in self._channels.keys() - set(others.values()):
            self._channels.pop(address).close()

    def _take(self, frames: Iterator[bytes], context: grpc.ServicerContext) -> bytes:
        """A stream of another worker's, in a thread of the server's. An answer says that all was taken."""
        given: dict[str, Any] = dict(context.invocation_metadata())
        transaction, sender = named(given, TRANSACTION), named(given, SENDER)
        if named(given, TAKER) != self._me:
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, "the worker that was there is gone")
        if refusal := self._inbox.admit(transaction, sender, context.is_active, OPEN_S):
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, refusal)
        ended = False
        try:
            ended = self._take_frames(transaction, sender, frames, context)
        finally:
            if not ended:
                self._inbox.broke(transaction, sender)
        if not ended:
            context.abort(grpc.StatusCode.ABORTED, "the transaction was given up there")
        return b""

    def _take_frames(
        self, transaction: str, sender: str, frames: Iterator[bytes], context: grpc.ServicerContext
    ) -> bool:
        """Whether the sender said that this was all."""
        with contextlib.suppress(grpc.RpcError):
            for frame in frames:
                if frame == END:
                    return self._inbox.ended(transaction, sender)
                if not self._inbox.put(transaction, sender, frame, context.is_active):
                    return False
        return False

"""What is handed over to others: a stream for each of them, whose frames all together are bounded by bytes.

gRPC asks for the next frame of a stream when its flow control lets the one before go.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from threading import Condition

import grpc

from participant.errors import HandingBroken
from participant.exchange.wire import END, HAND, metadata
from table.service.channel import CHANNEL_OPTIONS

CLIENT_OPTIONS = (
    *CHANNEL_OPTIONS,
    ("grpc.enable_http_proxy", 0),  # other workers are inside the cluster, whatever the environment says
    ("grpc.max_reconnect_backoff_ms", 2_000),
)
LOOK_S = 0.5


def _as_it_is(frame: bytes) -> bytes:
    return frame


class Outbox:
    """Of one transaction, used by the plane's thread. `takers`: incarnation -> address.

    `changed`: notified with everything that happens here. `arrived`: called when a stream has broken.
    """

    def __init__(
        self,
        transaction: str,
        me: str,
        takers: Mapping[str, str],
        *,
        token: str,
        bytes_max: int,
        changed: Condition,
        arrived: Callable[[], None],
        channel_to: Callable[[str], grpc.Channel],
    ) -> None:
        self._bytes_max = bytes_max
        self._changed = changed
        self._arrived = arrived
        self._held_bytes = 0
        self._over = False
        self._broken = ""
        self._waiting = set(takers)
        self._frames: dict[str, deque[bytes]] = {who: deque() for who in takers}
        self._calls = []
        for who, address in takers.items():
            send = channel_to(address).stream_unary(HAND, _as_it_is, _as_it_is)
            call = send.future(
                self._frames_of(who), metadata=metadata(token, transaction, sender=me, taker=who)
            )
            self._calls.append(call)
            call.add_done_callback(partial(self._done, who))

    def offer(self, who: str, frame: bytes) -> bool:
        """False while there is no room. Raises `HandingBroken` where a stream is."""
        with self._changed:
            self.check()
            if self._held_bytes and self._held_bytes + len(frame) > self._bytes_max:
                return False
            self._put(who, frame)
            return True

    def finish(self) -> None:
        """That was all."""
        with self._changed:
            for who in self._frames:
                self._put(who, END)

    @property
    def is_taken(self) -> bool:
        """Whether everybody has all that was for them. Raises `HandingBroken` where a stream is broken."""
        with self._changed:
            self.check()
            return not self._waiting

    def close(self) -> None:
        """Let go of what is under way, if anything is."""
        with self._changed:
            self._over = True
            self._changed.notify_all()
        for call in self._calls:
            call.cancel()  # type: ignore[no-untyped-call]

    def check(self) -> None:
        """Raises `HandingBroken` where a stream is broken."""
        if self._broken:
            raise HandingBroken(self._broken)

    def _put(self, who: str, frame: bytes) -> None:
        self._frames[who].append(frame)
        self._held_bytes += len(frame)
        self._changed.notify_all()

    def _frames_of(self, who: str) -> Iterator[bytes]:
        """Asked by a thread of gRPC's. A frame is held until the next one is asked for."""
        frames = self._frames[who]
        while True:
            with self._changed:
                while not frames and not self._over:
                    self._changed.wait(LOOK_S)
                if self._over:
                    return
                frame = frames.popleft()
            yield frame
            with self._changed:
                self._held_bytes -= len(frame)
                self._changed.notify_all()
            if frame == END:
                return

    def _done(self, who: str, call: grpc.Future[bytes]) -> None:
        """In a thread of gRPC's."""
        with self._changed:
            self._waiting.discard(who)
            error = None if self._over or call.cancelled() else call.exception()
            breaks = error is not None and not self._broken
            if breaks:
                said = error.details() if isinstance(error, grpc.Call) else str(error)
                self._broken = f"rows could not be handed over to {who}: {said}"
            self._changed.notify_all()
        if breaks:
            self._arrived()

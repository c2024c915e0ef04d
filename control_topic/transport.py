"""What every transport of the control topic offers, and what they share. No Kafka in here.

A transport is a lossy bus with a total order: it may lose, repeat or delay, and says so only in counters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from control_topic.codec import Incomplete, MessageDecoder, Unreadable, encode, run_named
from control_topic.messages import Body, Message
from control_topic.trust import MAC_BYTES, Trust, mark

Start: TypeAlias = Literal["tail", "beginning", "end"] | int
"""Where a reader begins: the last `tail_messages`, the oldest, only what comes from now on, or an offset."""

TAIL_MESSAGES = 10_000
MESSAGES_PER_POLL_MAX = 500
BYTES_PER_POLL_MAX = 1024 * 1024
"""Of bodies: a source partition of three bytes takes a hundred once it is read, and all of a poll is held."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """One record of the topic."""

    offset: int
    time_ms: int
    """The record's timestamp, Unix epoch."""

    content: Message | Unreadable | Incomplete
    size_bytes: int
    """Of its value."""

    marked: bool = False
    """It carries a mark of some run, which only a reader of that run has checked."""


class Reader(Protocol):
    """Reads the whole topic, in order. Belongs to one thread."""

    @property
    def caught_up(self) -> bool:
        """Whether it has reached the end that the topic had when reading began."""

    @property
    def highest_epoch(self) -> int:
        """The highest epoch in any message read of the pipeline that it was given, else of any."""

    def poll(self, timeout_s: float) -> list[Received]:
        """What has arrived, at most 500, waiting up to `timeout_s` for the first. Never raises."""

    def close(self) -> None: ...


class Writer(Protocol):
    """Writes one sender's messages. Belongs to one thread."""

    def send(self, body: Body, *, epoch: int) -> None:
        """Hand a message over without waiting; lost where the bus does not take it.

        Raises `control_topic.errors.Malformed` for a message that no reader would accept.
        """

    def flush(self, timeout_s: float) -> bool:
        """Whether everything handed over has left, or was given up, within `timeout_s`."""

    def close(self) -> None: ...


class Receiver:
    """Turns records into `Received`, and keeps what is known across them.

    With `trust`, whatever is not the run's own word is counted and goes no further: it is not joined with
    others' parts, and its epoch is not learned. `untrusted`: how many; `forged`: those of them that were
    written in the run's own name; `last_forged`: the last one's offset.
    """

    def __init__(self, *, pipeline: str, surface_parts: bool, trust: Trust | None = None) -> None:
        self._decoder = MessageDecoder()
        self._pipeline = pipeline
        self._surface_parts = surface_parts
        self._trust = trust
        self.highest_epoch = 0
        self.unreadable = 0
        self.untrusted = 0
        self.forged = 0
        self.last_forged = -1

    @property
    def bodies_bytes(self) -> int:
        """Of all bodies that were read, each whole."""
        return self._decoder.bodies_bytes

    def receive(
        self, *, offset: int, time_ms: int, raw: bytes | None, mac: bytes | None = None
    ) -> Received | None:
        """None for what is not trusted, and for a part of a message that is not complete yet.

        Incomplete ones are given where parts are surfaced.
        """
        if self._trust is not None and not self._trust.authentic(raw, mac):
            self._distrust(offset, forged=run_named(raw) == self._trust.run)
            return None
        content = self._decoder.feed(raw)
        if isinstance(content, Incomplete) and not self._surface_parts:
            return None
        if isinstance(content, Unreadable):
            self.unreadable += 1
        if isinstance(content, Message):
            if self._trust is not None and self._trust.objection(content):
                self._distrust(offset, forged=False)
                return None
            if self._pipeline in ("", content.pipeline):
                self.highest_epoch = max(self.highest_epoch, content.epoch)
        marked = mac is not None and len(mac) == MAC_BYTES
        return Received(
            offset=offset, time_ms=time_ms, content=content, size_bytes=len(raw or b""), marked=marked
        )

    def _distrust(self, offset: int, *, forged: bool) -> None:
        self.untrusted += 1
        if forged:
            self.forged += 1
            self.last_forged = offset


class Envelopes:
    """Puts bodies of one sender into envelopes: its names, the next sequence number, the time, the mark."""

    def __init__(
        self,
        *,
        pipeline: str,
        run: str,
        sender: str,
        incarnation: str,
        clock_ms: Callable[[], int],
        key: bytes,
    ) -> None:
        self._pipeline = pipeline
        self._run = run
        self._sender = sender
        self._incarnation = incarnation
        self._clock_ms = clock_ms
        self._key = key
        self._sequence = 0

    def seal(self, body: Body, *, epoch: int) -> list[tuple[bytes, bytes]]:
        """The records' values, in order, each with its mark. Raises `control_topic.errors.Malformed`."""
        message = Message(
            pipeline=self._pipeline,
            run=self._run,
            epoch=epoch,
            sender=self._sender,
            incarnation=self._incarnation,
            sequence=self._sequence,
            sent_at_ms=self._clock_ms(),
            body=body,
        )
        self._sequence += 1
        return [(raw, mark(self._key, raw)) for raw in encode(message)]


def start_offset(start: Start, *, tail_messages: int, low: int, high: int) -> int:
    """The first offset to read of a log that holds `[low, high)`."""
    match start:
        case "beginning":
            return low
        case "end":
            return high
        case "tail":
            return max(low, high - tail_messages)
        case _:
            return min(max(start, low), high)

"""The control topic in memory, for tests and the simulator: one log in total order, any number of readers.

Messages pass through the codec, so that what is read is what Kafka would have carried.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from control_topic.messages import Body
from control_topic.transport import (
    MESSAGES_PER_POLL_MAX,
    TAIL_MESSAGES,
    Envelopes,
    Received,
    Receiver,
    Start,
    start_offset,
)
from control_topic.trust import Trust


class MemoryTopic:
    """The log. Safe to use from several threads. `clock_ms` gives the records' timestamps."""

    def __init__(self, *, clock_ms: Callable[[], int]) -> None:
        self._clock_ms = clock_ms
        self._changed = threading.Condition()
        self._records: list[tuple[int, bytes | None, bytes | None]] = []
        self._low = 0

    def append(self, raw: bytes | None, mac: bytes | None = None) -> int:
        """Add a record with this value and this mark, whatever they are; its offset."""
        with self._changed:
            self._records.append((self._clock_ms(), raw, mac))
            self._changed.notify_all()
            return self._low + len(self._records) - 1

    def truncate(self, before: int) -> None:
        """Remove the records below offset `before`, as retention does."""
        with self._changed:
            removed = max(0, min(before - self._low, len(self._records)))
            del self._records[:removed]
            self._low += removed

    def recreate(self) -> None:
        """Delete all and begin again at offset 0, as deleting and creating a topic does."""
        with self._changed:
            self._records.clear()
            self._low = 0

    def bounds(self) -> tuple[int, int]:
        """The log holds the offsets `[low, high)`."""
        with self._changed:
            return self._low, self._low + len(self._records)

    def fetch(
        self, position: int, *, records_max: int, timeout_s: float
    ) -> list[tuple[int, int, bytes | None, bytes | None]] | None:
        """(offset, time, value, mark) from `position`, waiting for the first; None: it is out of range."""
        deadline = time.monotonic() + timeout_s
        with self._changed:
            while True:
                index = position - self._low
                if not 0 <= index <= len(self._records):
                    return None
                found = self._records[index : index + records_max]
                remaining = deadline - time.monotonic()
                if found or remaining <= 0 or not self._changed.wait(remaining):
                    return [(position + n, *record) for n, record in enumerate(found)]


class MemoryReader:
    """A `control_topic.transport.Reader` of a `MemoryTopic`."""

    def __init__(
        self,
        topic: MemoryTopic,
        *,
        start: Start = "tail",
        tail_messages: int = TAIL_MESSAGES,
        pipeline: str = "",
        surface_parts: bool = False,
        trust: Trust | None = None,
    ) -> None:
        self._topic = topic
        self._tail_messages = tail_messages
        self._receiver = Receiver(pipeline=pipeline, surface_parts=surface_parts, trust=trust)
        low, self._end_at_start = topic.bounds()
        self._position = start_offset(start, tail_messages=tail_messages, low=low, high=self._end_at_start)
        self.recoveries = 0

    @property
    def caught_up(self) -> bool:
        return self._position >= self._end_at_start

    @property
    def highest_epoch(self) -> int:
        return self._receiver.highest_epoch

    def poll(self, timeout_s: float) -> list[Received]:
        records = self._topic.fetch(self._position, records_max=MESSAGES_PER_POLL_MAX, timeout_s=timeout_s)
        if records is None:
            self.recoveries += 1
            low, high = self._topic.bounds()
            self._end_at_start = min(self._end_at_start, high)
            self._position = start_offset("tail", tail_messages=self._tail_messages, low=low, high=high)
            return []
        self._position += len(records)
        taken = (self._receiver.receive(offset=o, time_ms=t, raw=raw, mac=mac) for o, t, raw, mac in records)
        return [received for received in taken if received is not None]

    def close(self) -> None:
        """Nothing to give back."""


class MemoryWriter:
    """A `control_topic.transport.Writer` to a `MemoryTopic`."""

    def __init__(
        self,
        topic: MemoryTopic,
        *,
        pipeline: str,
        run: str,
        sender: str,
        incarnation: str,
        clock_ms: Callable[[], int],
        key: bytes,
    ) -> None:
        self._topic = topic
        self._envelopes = Envelopes(
            pipeline=pipeline, run=run, sender=sender, incarnation=incarnation, clock_ms=clock_ms, key=key
        )

    def send(self, body: Body, *, epoch: int) -> None:
        for raw, mac in self._envelopes.seal(body, epoch=epoch):
            self._topic.append(raw, mac)

    def flush(self, timeout_s: float) -> bool:
        return True

    def close(self) -> None:
        """Nothing to give back."""

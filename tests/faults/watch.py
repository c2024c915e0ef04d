"""Watching one pipeline's transactions from outside, closely enough to hit a step of one.

Three threads: one reads the control topic as any reader may (assigned, nothing committed), one looks at the
table about every millisecond (in S3 every 20) while a commit is due, one asks for the group's offsets after
an ACK.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType

from confluent_kafka import Consumer, KafkaException, TopicPartition

from control_topic.kafka import ControlReader
from control_topic.messages import AbortCommit, AckCommit, EndCommit, Message, StartCommit, WriteStatus
from control_topic.transport import Received
from tests.faults.commits import COMPLETED, wall_ms
from tests.faults.steps import Sighting
from tests.place import TIMELINE, Place

POLL_S = 0.02
GROUP_S = 0.003
IDLE_S = 0.005


class Watch:
    """`changed(sighting)` is called on a watching thread at once whenever more of a transaction is seen.

    It must not block for long and must not raise; what it raises is in `failure`, and watching ends.
    """

    def __init__(
        self, *, bootstrap_servers: str, pipeline: str, place: Place, changed: Callable[[Sighting], None]
    ) -> None:
        self._kafka = {"bootstrap.servers": bootstrap_servers, "reconnect.backoff.max.ms": 500}
        self._pipeline = pipeline
        self._place = place
        self._changed = changed
        self._lock = threading.Lock()
        self._newest: Sighting | None = None
        self._said: list[tuple[int, str]] = []
        self._ending = threading.Event()
        self._ready = threading.Event()
        self.failure: BaseException | None = None
        self._threads = [
            threading.Thread(target=self._guarded, args=(work,), name=name, daemon=True)
            for name, work in (("topic", self._topic), ("table", self._table), ("group", self._group))
        ]

    def __enter__(self) -> Watch:
        for thread in self._threads:
            thread.start()
        assert self._ready.wait(30), "the control topic could not be read"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.set()
        for thread in self._threads:
            thread.join(10)

    def last_words(self, moment_ms: int) -> str:
        """What was last seen before the moment."""
        with self._lock:
            before = [one for one in self._said if one[0] <= moment_ms]
        return f"{before[-1][1]} {moment_ms - before[-1][0]} ms before" if before else "nothing"

    # --- what is seen -----------------------------------------------------------------------------

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - handed to whoever waits for the hit
            self.failure = error
            self._ending.set()

    def _see(self, at_ms: int, what: str, change: Callable[[Sighting], None] | None = None) -> None:
        with self._lock:
            self._said.append((at_ms, what))
            del self._said[:-200]
            sighting = self._newest
            if change is not None and sighting is not None:
                change(sighting)
        if change is not None and sighting is not None:
            self._changed(sighting)

    def _topic(self) -> None:
        reader = ControlReader(self._kafka, f"{self._pipeline}-control", start="end", pipeline=self._pipeline)
        try:
            while not self._ending.is_set():
                for received in reader.poll(POLL_S):
                    if isinstance(received.content, Message):
                        self._hear(received, received.content)
                if reader.caught_up:
                    self._ready.set()
        finally:
            reader.close()

    def _hear(self, received: Received, message: Message) -> None:
        at_ms, body = received.time_ms, message.body
        what = f"{message.type_name} of {message.sender}"
        if isinstance(body, StartCommit):
            self._hear_start(at_ms, what, body)
        elif self._newest is None or self._newest.transaction != message.transaction:
            self._see(at_ms, what)
        elif isinstance(body, EndCommit):
            self._see(at_ms, what, lambda seen: setattr(seen, "end_ms", seen.end_ms or at_ms))
        elif isinstance(body, WriteStatus):
            self._see(at_ms, what, lambda seen: seen.statuses.setdefault(message.incarnation, at_ms))
        elif isinstance(body, AckCommit):
            self._see(at_ms, what, lambda seen: _acked(seen, at_ms, body))
        elif isinstance(body, AbortCommit):
            self._see(at_ms, what, lambda seen: setattr(seen, "abort_ms", seen.abort_ms or at_ms))
        else:
            self._see(at_ms, what)

    def _hear_start(self, at_ms: int, what: str, body: StartCommit) -> None:
        if self._newest is not None and self._newest.transaction == body.transaction:
            self._see(at_ms, what + " again")
            return
        with self._lock:
            self._newest = Sighting(
                transaction=body.transaction,
                instant=body.instant,
                writers=frozenset(body.writers.values()),
                start_ms=at_ms,
            )
        self._see(at_ms, what, lambda seen: None)

    # --- the table -----------------------------------------------------------------------

    def _table(self) -> None:
        while not self._ending.is_set():
            seen = self._newest
            if seen is None or not seen.all_in or seen.landed_ms or seen.abort_ms:
                time.sleep(IDLE_S)
                continue
            if not seen.lock_ms and self._place.is_locked():
                self._see_of(seen, wall_ms(), "the table lock taken", "lock_ms")
            landed_ms = _landed(self._place, seen.instant)
            if landed_ms:
                self._see_of(seen, landed_ms, "the completed instant", "landed_ms")
            time.sleep(self._place.look_s)

    def _see_of(self, seen: Sighting, at_ms: int, what: str, name: str) -> None:
        self._see(at_ms, what, lambda newest: setattr(newest, name, at_ms) if newest is seen else None)

    # --- the group --------------------------------------------------------------------------------

    def _group(self) -> None:
        consumer = Consumer({**self._kafka, "group.id": self._pipeline, "log_level": 0})
        try:
            while not self._ending.is_set():
                seen = self._newest
                if seen is None or not seen.ack_ms or seen.group_ms:
                    time.sleep(IDLE_S)
                    continue
                if _is_committed(consumer, seen):
                    self._see_of(seen, wall_ms(), "the group's offsets", "group_ms")
                time.sleep(GROUP_S)
        finally:
            consumer.close()


def _acked(seen: Sighting, at_ms: int, body: AckCommit) -> None:
    seen.ack_ms, seen.acked = seen.ack_ms or at_ms, body.committed


def _landed(place: Place, instant: str) -> int:
    """When the completed file of this instant was written, 0 while it is not there."""
    for name in place.names(TIMELINE):
        if name.startswith(instant) and COMPLETED.fullmatch(name):
            return place.appeared_ms(name) or wall_ms()
    return 0


def _is_committed(consumer: Consumer, seen: Sighting) -> bool:
    """Whether the group has reached everything that the ACK named. No membership is needed to ask."""
    places = [TopicPartition(partition.topic, partition.number) for partition in seen.acked]
    try:
        answered = consumer.committed(places, timeout=1)
    except KafkaException:
        return False  # the broker is away
    reached = {(one.topic, one.partition): one.offset for one in answered}
    return all(reached[p.topic, p.number] >= offset for p, offset in seen.acked.items())

"""The demo's events, and the thread that produces them at an even pace while the job runs."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from lockstep.errors import Failed

log = logging.getLogger("lockstep.demo.producer")

SCHEMA = (
    "event_id STRING NOT NULL, user_id BIGINT, country STRING, action STRING, "
    "amount DOUBLE, ts TIMESTAMP, day STRING, page STRING"
)
"""Spark DDL of an event."""

KEY = ("event_id",)
PARTITION_BY = "day"
DAYS = 3
"""Table partitions that the events fall into."""

COUNTRIES = ("AR", "BR", "CN", "DE", "ES", "FR", "GB", "IN", "IT", "JP", "KE", "MX", "NG", "PL", "US", "VN")
ACTIONS = ("view", "view", "view", "search", "cart", "buy", "return")
_DAY_0 = datetime(2026, 1, 1, tzinfo=UTC)
_SECONDS = 86_400

STEP_S = 0.02
STEP_EVENTS_MAX = 10_000
FIRST_PART = 50
"""One event in so many is produced before the first commit."""
FLUSH_S = 60.0
QUEUE_MESSAGES_MAX = 200_000


def event(number: int) -> bytes:
    """Event `number` as JSON, about 160 bytes. The same number gives the same event, in any run."""
    mixed = (number * 2_654_435_761) & 0xFFFF_FFFF  # Knuth's multiplicative hash: looks random, is not
    day, second = _DAY_TEXTS[number % DAYS], mixed % _SECONDS
    return (
        f'{{"event_id":"e-{number:010d}","user_id":{mixed % 250_000},'
        f'"country":"{COUNTRIES[mixed >> 28]}","action":"{ACTIONS[mixed % 7]}",'
        f'"amount":{mixed % 20_000 / 100},'
        f'"ts":"{day}T{second // 3_600:02d}:{second // 60 % 60:02d}:{second % 60:02d}.{mixed % 1_000:03d}Z",'
        f'"day":"{day}","page":"/p/{mixed % 5_000}"}}'
    ).encode()


_DAY_TEXTS = tuple((_DAY_0 + timedelta(days=n)).strftime("%Y-%m-%d") for n in range(DAYS))


class EventProducer:
    """Produces events 0 to `records` - 1 in order, event n to source partition n modulo `partitions`.

    A first few are produced at once, the others, from `go_on` on, within `seconds` at least: a table's first
    commit takes longer than others, and would swallow half of the demo. Idempotent: the broker holds every
    event once. `failure` is a sentence once it has failed; `done`: everything is on the broker; `per_second`:
    the even pace.
    """

    def __init__(
        self, bootstrap_servers: str, topic: str, *, records: int, partitions: int, seconds: float
    ) -> None:
        self._topic = topic
        self._records = records
        self._partitions = partitions
        self.per_second = records / max(seconds, STEP_S)
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "enable.idempotence": True,
                "compression.type": "lz4",
                "linger.ms": 20,
                "queue.buffering.max.messages": QUEUE_MESSAGES_MAX,
                "delivery.report.only.error": True,
                "on_delivery": self._on_delivery,
            },
            logger=log,
        )
        self._going_on = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="producer", daemon=True)
        self.sent = 0
        self.size_bytes = 0
        self.done = False
        self.failure = ""

    def start(self) -> None:
        self._thread.start()

    def go_on(self) -> None:
        """Produce the others too."""
        self._going_on.set()

    @property
    def started(self) -> bool:
        return self._thread.ident is not None

    def stop(self) -> None:
        """Give up what is not produced yet."""
        self._stopping.set()
        self._going_on.set()
        if self._thread.is_alive():
            self._thread.join(FLUSH_S)

    def sent_to(self) -> Mapping[int, int]:
        """Events handed over so far, by number of the source partition."""
        return MappingProxyType(spread(self.sent, self._partitions))

    def _run(self) -> None:
        try:
            self._produce()
            left = self._producer.flush(FLUSH_S)
            if left and not self._stopping.is_set():
                self.failure = self.failure or f"{left} events were not taken within {FLUSH_S:.0f} s"
        except (KafkaException, Failed) as error:
            self.failure = str(error)
        self.done = self.sent == self._records and not self.failure

    def _produce(self) -> None:
        self._send_until(min(self._records, self._records // FIRST_PART + 1))
        self._producer.flush(FLUSH_S)
        self._going_on.wait()
        began, first = time.monotonic(), self.sent
        while self.sent < self._records and not self._stopping.is_set() and not self.failure:
            due = first + int((time.monotonic() - began) * self.per_second) + 1
            self._send_until(min(due, self._records, self.sent + STEP_EVENTS_MAX))
            self._producer.poll(0)
            self._stopping.wait(STEP_S)

    def _send_until(self, end: int) -> None:
        for number in range(self.sent, end):
            value = event(number)
            self._send(value, number % self._partitions)
            self.size_bytes += len(value)
            self.sent = number + 1

    def _send(self, value: bytes, partition: int) -> None:
        for _ in range(int(FLUSH_S / STEP_S)):
            try:
                return self._producer.produce(self._topic, value, partition=partition)
            except BufferError:  # the broker is slower than we are
                self._producer.poll(STEP_S)
        raise Failed(f"the broker has taken no event for {FLUSH_S:.0f} s: its log says why")

    def _on_delivery(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None and not self.failure:
            self.failure = f"an event was not delivered: {error.str()}"


def spread(records: int, partitions: int) -> dict[int, int]:
    """How many of the first `records` events go to each source partition."""
    return {number: records // partitions + (number < records % partitions) for number in range(partitions)}

"""The thread that produces a demo's records at an even pace while the job runs."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from lockstep.demo.records import DemoRecord
from lockstep.errors import Failed

log = logging.getLogger("lockstep.demo.producer")

STEP_S = 0.02
STEP_RECORDS_MAX = 10_000
FIRST_PART = 50
"""One record in so many is produced before the first commit."""
LAST_PART = 4
"""One record in so many comes slowly while something is still to happen."""
SLOWNESS = 20
FLUSH_S = 60.0
QUEUE_MESSAGES_MAX = 200_000


class RecordProducer:
    """Produces `records`, of which there are `wanted`, by number of the source partition, in their order.

    A first few are produced at once, the others, from `go_on` on, within `seconds` at least: a table's first
    commit takes longer than others, and would swallow half of the demo. While `slowly` says so, the last of
    them come slowly: on a busy machine workers would be killed over nothing, since all is committed by then.
    Idempotent: the broker holds every record once. `failure` is a sentence once it has failed; `done`:
    everything is on the broker; `per_second`: the even pace; `size_bytes`: of the values handed over so far.
    """

    def __init__(
        self,
        bootstrap_servers: str,
        topic: str,
        records: Iterator[DemoRecord],
        *,
        wanted: Mapping[int, int],
        seconds: float,
        slowly: Callable[[], bool] = lambda: False,
    ) -> None:
        self._topic = topic
        self._records = records
        self._count = sum(wanted.values())
        self._slowly = slowly
        self._sent_to = dict.fromkeys(wanted, 0)
        self.per_second = self._count / max(seconds, STEP_S)
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
        """Records handed over so far, by number of the source partition."""
        return MappingProxyType(self._sent_to)

    def _run(self) -> None:
        try:
            self._produce()
            left = self._producer.flush(FLUSH_S)
            if left and not self._stopping.is_set():
                self.failure = self.failure or f"{left} records were not taken within {FLUSH_S:.0f} s"
        except (KafkaException, Failed) as error:
            self.failure = str(error)
        self.done = self.sent == self._count and not self.failure

    def _produce(self) -> None:
        self._send_until(min(self._count, self._count // FIRST_PART + 1))
        self._producer.flush(FLUSH_S)
        self._going_on.wait()
        looked_s, due = time.monotonic(), self.sent + 1.0
        while self.sent < self._count and not self._stopping.is_set() and not self.failure:
            is_last = self._count - self.sent <= self._count // LAST_PART
            pace = self.per_second / (SLOWNESS if is_last and self._slowly() else 1)
            before_s, looked_s = looked_s, time.monotonic()
            due = min(due + (looked_s - before_s) * pace, self.sent + STEP_RECORDS_MAX)
            self._send_until(min(int(due), self._count))
            self._producer.poll(0)
            self._stopping.wait(STEP_S)

    def _send_until(self, end: int) -> None:
        while self.sent < end:
            record = next(self._records)
            self._send(record)
            self._sent_to[record.source_partition] += 1
            self.size_bytes += len(record.value or b"")
            self.sent += 1

    def _send(self, record: DemoRecord) -> None:
        for _ in range(int(FLUSH_S / STEP_S)):
            try:
                return self._producer.produce(
                    self._topic, record.value, record.key, partition=record.source_partition
                )
            except BufferError:  # the broker is slower than we are
                self._producer.poll(STEP_S)
        raise Failed(f"the broker has taken no record for {FLUSH_S:.0f} s: its log says why")

    def _on_delivery(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None and not self.failure:
            self.failure = f"a record was not delivered: {error.str()}"

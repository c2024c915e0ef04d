"""A continuous load of events with known numbers, from a process of its own; it outlives broker restarts.

`Load` is the handle; the process is `python -m tests.faults.load`. Event n of the load is `event(n)`, of
upserts `upsert_model.change(n, …)`, once: the producer is idempotent and never gives a record up. SIGTERM
asks it to deliver what it holds and end.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from confluent_kafka import KafkaError, Message, Producer

from tests.faults.upsert_model import change

STEP_S = 0.02
FLUSH_S = 120.0
QUEUE_MESSAGES_MAX = 500_000
COUNT_BYTES = 20
"""The progress file holds one decimal number of this width."""


class Load:
    """`per_second` events from number `first` on. `weights`: how many of each round go to which partition.

    `upserts`: changes of keyed rows instead of events.
    """

    def __init__(
        self,
        *,
        folder: Path,
        bootstrap_servers: str,
        topic: str,
        weights: Sequence[int],
        per_second: int,
        first: int,
        upserts: bool = False,
    ) -> None:
        self._count = folder / f"load-{first}.count"
        self._log = folder / f"load-{first}.log"
        self._count.write_bytes(f"{first:>{COUNT_BYTES}}".encode())
        command = [sys.executable, "-m", "tests.faults.load", bootstrap_servers, topic]
        command += [",".join(map(str, weights)), str(per_second), str(first), str(self._count)]
        command += ["--upserts"] if upserts else []
        with self._log.open("w") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)

    @property
    def sent(self) -> int:
        """The number of the next event, as of a moment ago: every event before it was handed over."""
        return int(self._count.read_bytes())

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> int:
        """Deliver everything and end; the number of the next event. Fails where an event was not taken."""
        if self.running:
            self._process.send_signal(signal.SIGTERM)
        status = self._process.wait(FLUSH_S + 30)
        assert status == 0, f"the load ended with {status}: {self._log.read_text()[-2_000:]}"
        return self.sent

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(10)


def event(number: int) -> bytes:
    """The same event as `tests.harness.event`, made faster."""
    return (
        f'{{"event_id":"e-{number:09d}","user_id":{number % 1_000},"amount":{number / 4},'
        f'"day":"2026-01-{1 + number % 3:02d}","note":""}}'
    ).encode()


def rounds(weights: Sequence[int]) -> list[int]:
    """The source partitions of one round, the heavy ones spread out over it: (3, 1) gives 0 0 1 0."""
    places = [
        ((turn + 0.5) / weight, number) for number, weight in enumerate(weights) for turn in range(weight)
    ]
    return [number for _, number in sorted(places)]


def _produce(arguments: argparse.Namespace) -> int:
    """Until SIGTERM, or until the process that asked for it is gone. The exit code."""
    ending: list[int] = []
    refused: list[str] = []

    def on_delivery(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            refused.append(str(error))

    signal.signal(signal.SIGTERM, lambda number, _frame: ending.append(number))
    parent = os.getppid()
    producer = Producer(
        {
            "bootstrap.servers": arguments.bootstrap_servers,
            "enable.idempotence": True,
            "message.timeout.ms": 0,  # for ever: the broker comes back
            "reconnect.backoff.max.ms": 500,
            "socket.connection.setup.timeout.ms": 3_000,
            "compression.type": "lz4",
            "linger.ms": 10,
            "queue.buffering.max.messages": QUEUE_MESSAGES_MAX,
            "delivery.report.only.error": True,
            "on_delivery": on_delivery,
        }
    )
    order = rounds([int(weight) for weight in arguments.weights.split(",")])
    sent = arguments.first
    began = time.monotonic()
    with open(arguments.count_file, "r+b", buffering=0) as count:
        while not ending and not refused and os.getppid() == parent:
            due = arguments.first + int((time.monotonic() - began) * arguments.per_second)
            try:
                while sent < due:
                    partition = order[sent % len(order)]
                    key, value = change(sent, partition) if arguments.upserts else (None, event(sent))
                    producer.produce(arguments.topic, value, key=key, partition=partition)
                    sent += 1
            except BufferError:
                pass  # the broker is away or slow: later
            producer.poll(0)
            os.pwrite(count.fileno(), f"{sent:>{COUNT_BYTES}}".encode(), 0)
            time.sleep(STEP_S)
    left = producer.flush(FLUSH_S)
    for reason in refused[:5]:
        sys.stderr.write(f"an event was not delivered: {reason}\n")
    if left:
        sys.stderr.write(f"{left} events were not taken within {FLUSH_S:.0f} s\n")
    return 1 if left or refused else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("bootstrap_servers", "topic", "weights"):
        parser.add_argument(name)
    parser.add_argument("per_second", type=int)
    parser.add_argument("first", type=int)
    parser.add_argument("count_file")
    parser.add_argument("--upserts", action="store_true")
    return _produce(parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())

"""Fills a topic fast and evenly, or feeds it at a steady rate.

One block of distinct records is made once and produced over and over: ids repeat after a block. That changes
nothing for rivals that only insert, and takes the making of records out of what the machine does meanwhile.
Records of upserts are all made: each is to change its row.

    python -m bench.load WORKLOAD BOOTSTRAP TOPIC PER_SECOND SECONDS

feeds at a steady rate until the time is over or SIGTERM, and prints how many records it sent.
"""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from bench.workloads import EVERY, Workload
from lockstep.errors import Failed

BLOCK_BYTES_MAX = 200_000_000
BLOCK_RECORDS_MAX = 240_000
BLOCK_STEP = 60_000
"""A whole number of rounds of every workload's weights."""
FLUSH_S = 120.0
TOPIC_S = 30.0
STEP_S = 0.02

Record = tuple[bytes, int]
"""A value and its source partition."""


def create_topic(bootstrap_servers: str, topic: str, *, partitions: int) -> None:
    """Raises `Failed` where the broker does not make it."""
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    try:
        admin.create_topics([NewTopic(topic, partitions)])[topic].result(TOPIC_S)
    except KafkaException as error:
        raise Failed(f"The topic {topic} was not made: {error.args[0].str()}.") from error


def ends(bootstrap_servers: str, topic: str, *, partitions: int) -> list[int]:
    """The next offset of each source partition."""
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": "lockstep-bench-ends"})
    try:
        return [
            consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=TOPIC_S)[1]
            for number in range(partitions)
        ]
    finally:
        consumer.close()


def fill(bootstrap_servers: str, topic: str, workload: Workload, *, records: int) -> int:
    """Make the topic and produce `records` to it; the bytes of their values. Raises `Failed`."""
    create_topic(bootstrap_servers, topic, partitions=workload.source_partitions)
    size_bytes = produce(bootstrap_servers, topic, workload, records=records)
    held = sum(ends(bootstrap_servers, topic, partitions=workload.source_partitions))
    if held != records:
        raise Failed(
            f"The topic {topic} holds {held:,} records where {records:,} were produced: run it again."
        )
    return size_bytes


def produce(bootstrap_servers: str, topic: str, workload: Workload, *, records: int) -> int:
    """To a topic that exists; the bytes of the values. Raises `Failed`."""
    feeder = _Feeder(bootstrap_servers, topic)
    size_bytes = 0
    for value, partition in itertools.islice(_looped(workload, records), records):
        feeder.send(value, partition)
        size_bytes += len(value)
    feeder.finish()
    return size_bytes


def pace(bootstrap_servers: str, topic: str, workload: Workload, *, per_second: int, seconds: float) -> int:
    """Produce at this rate to a topic that exists, until the time is over or SIGTERM; how many were sent."""
    ending: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: ending.append(number))
    records = _looped(workload, BLOCK_RECORDS_MAX)
    feeder = _Feeder(bootstrap_servers, topic, linger_ms=5)
    parent, began, sent = os.getppid(), time.monotonic(), 0
    while not ending and os.getppid() == parent:
        elapsed_s = time.monotonic() - began
        if elapsed_s >= seconds:
            break
        for value, partition in itertools.islice(records, max(0, int(elapsed_s * per_second) - sent)):
            feeder.send(value, partition)
            sent += 1
        feeder.poll()
        time.sleep(STEP_S)
    feeder.finish()
    return sent


def start_pace(
    folder: Path, bootstrap_servers: str, topic: str, workload: Workload, *, per_second: int, seconds: float
) -> subprocess.Popen[bytes]:
    """`pace` in a process of its own, which the caller ends. What it says goes to `pace.log`."""
    words = [workload.name, bootstrap_servers, topic, str(per_second), str(seconds)]
    with (folder / "pace.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "bench.load", *words], stdout=log, stderr=log, stdin=subprocess.DEVNULL
        )


def block_records(workload: Workload) -> int:
    """How many distinct records are made: enough that no dictionary of a parquet file holds all their ids."""
    fitting = min(BLOCK_RECORDS_MAX, BLOCK_BYTES_MAX // workload.size_bytes)
    return max(1, fitting // BLOCK_STEP) * BLOCK_STEP


def _looped(workload: Workload, records: int) -> Iterator[Record]:
    if workload.key_of is not None:
        return ((workload.value(number), workload.source_partition(number)) for number in itertools.count())
    block = [
        (workload.value(number), workload.source_partition(number))
        for number in range(min(records, block_records(workload)))
    ]
    return itertools.cycle(block)


class _Feeder:
    """A producer that waits where its queue is full, and remembers what was not taken."""

    def __init__(self, bootstrap_servers: str, topic: str, *, linger_ms: int = 20) -> None:
        self._topic = topic
        self._refused: list[str] = []
        refused = self._refused  # not self: a cycle would keep the client alive after the broker is gone
        self._unpolled = 0
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "compression.type": "lz4",
                "linger.ms": linger_ms,
                "batch.size": 1_000_000,
                "queue.buffering.max.messages": 500_000,
                "queue.buffering.max.kbytes": 512 * 1_024,
                "delivery.report.only.error": True,
                "on_delivery": lambda error, _message: refused.append(error.str()),
            }
        )

    def send(self, value: bytes, partition: int) -> None:
        while True:
            try:
                self._producer.produce(self._topic, value, partition=partition)
                break
            except BufferError:
                self._producer.poll(0.02)
        self._unpolled += 1
        if self._unpolled >= 10_000:
            self.poll()

    def poll(self) -> None:
        """Raises `Failed` where a record was not taken."""
        self._unpolled = 0
        self._producer.poll(0)
        if self._refused:
            raise Failed(f"A record was not taken by {self._topic}: {self._refused[0]}.")

    def finish(self) -> None:
        left = self._producer.flush(FLUSH_S)
        self.poll()
        if left:
            raise Failed(f"{left:,} records were not taken by {self._topic} within {FLUSH_S:.0f} s.")


@click.command()
@click.argument("workload", type=click.Choice(list(EVERY)))
@click.argument("bootstrap_servers")
@click.argument("topic")
@click.argument("per_second", type=int)
@click.argument("seconds", type=float)
def main(workload: str, bootstrap_servers: str, topic: str, per_second: int, seconds: float) -> None:
    """Feed a topic at a steady rate."""
    print(pace(bootstrap_servers, topic, EVERY[workload], per_second=per_second, seconds=seconds))


if __name__ == "__main__":
    main()

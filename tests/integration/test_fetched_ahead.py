"""What is fetched ahead and what one call hands over, on a real broker: bounded by the worker's memory."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest
from confluent_kafka import Producer

from lockstep.brokers.local import Broker

pytestmark = pytest.mark.integration

PARTITIONS = 4
QUEUE_BYTES = 512_000_000 // 8
READS = """
import os, sys, threading, time
from control_topic.messages import SourcePartition
from participant.source.fetcher import fetch_settings
from participant.source.native import open_fetcher

def resident() -> int:
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

def watch() -> None:
    global peak
    while True:
        peak = max(peak, resident())
        time.sleep(0.002)

servers, topic, reader, queue_bytes = sys.argv[1:]
settings = fetch_settings({"bootstrap.servers": servers}, group="g", queue_bytes_max=int(queue_bytes))
fetcher = open_fetcher(settings, reader, whole=True)
peak = before = resident()
threading.Thread(target=watch, daemon=True).start()
for number in range(4):
    fetcher.read_from(SourcePartition(topic, number), 0)
grown, still_since = 0, time.monotonic()
while grown < before + 10_000_000 or time.monotonic() - still_since < 3:  # until nothing more is fetched
    if resident() > grown + 1_000_000:
        grown, still_since = resident(), time.monotonic()
    time.sleep(0.05)
taken = fetcher.fetch(1.0)
print(sum(map(len, taken.batches)), peak - before)
"""


def produce(servers: str, topic: str, count: int, *, value: bytes, header: bytes | None = None) -> None:
    """As large batches as a broker takes by default, compressed."""
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "compression.type": "lz4",
            "linger.ms": 200,
            "batch.size": 1_000_000,
            "batch.num.messages": 1_000_000,
            "queue.buffering.max.messages": 2_000_000,
        }
    )
    headers = None if header is None else [("h", header)]
    for number in range(count):
        while True:
            try:
                producer.produce(topic, value, partition=number * PARTITIONS // count, headers=headers)
                break
            except BufferError:
                producer.poll(0.05)
    assert producer.flush(120) == 0


def taken_and_grown(servers: str, topic: str, reader: str) -> tuple[int, int]:
    """Records of one call once nothing more is fetched ahead; the bytes that the process grew by at most."""
    done = subprocess.run(
        [sys.executable, "-c", READS, servers, topic, reader, str(QUEUE_BYTES)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    records, grown_bytes = map(int, done.stdout.split())
    return records, grown_bytes


@pytest.mark.parametrize("reader", ["native", "plain"])
def test_a_flood_of_tiny_compressed_records_is_fetched_ahead_within_bounds(
    broker: Broker, make_topic: Callable[..., str], reader: str
) -> None:
    topic = make_topic(partitions=PARTITIONS)
    produce(broker.bootstrap_servers, topic, 1_250_000, value=b"nope")
    records, grown_bytes = taken_and_grown(broker.bootstrap_servers, topic, reader)
    assert records
    assert grown_bytes < 4 * QUEUE_BYTES, f"{records} records, {grown_bytes / 1e6:.0f} MB"


@pytest.mark.parametrize("reader", ["native", "plain"])
def test_large_headers_count_where_records_are_taken(
    broker: Broker, make_topic: Callable[..., str], reader: str
) -> None:
    topic = make_topic(partitions=PARTITIONS)
    produce(broker.bootstrap_servers, topic, 2_000, value=b"nope", header=os.urandom(64) * 4_687)
    records, grown_bytes = taken_and_grown(broker.bootstrap_servers, topic, reader)
    assert 0 < records < 500
    assert grown_bytes < 7 * QUEUE_BYTES, f"{records} records, {grown_bytes / 1e6:.0f} MB"

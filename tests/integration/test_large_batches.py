"""Batches that are larger than the client takes, of a real broker: what both readers make of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Producer

from control_topic.messages import SourcePartition
from lockstep.brokers.local import Broker
from participant.source import reading as source
from participant.source import stalls
from participant.source.fetched import Fetched
from participant.source.fetcher import fetch_settings
from participant.source.native import missing, open_fetcher
from participant.source.reading import SourceThread
from tests.broker_fixture import create_topic
from tests.harness import await_that

pytestmark = pytest.mark.integration

READERS = ("plain", "native")
QUEUE_BYTES = 64_000_000
"""Of the default of `memory.per_worker`."""


@contextmanager
def reading(servers: str, topic: str, reader: str, **more: str) -> Iterator[tuple[list[Fetched], list[str]]]:
    """What is delivered of the topic's two source partitions from offset 0 on, and why one stands still."""
    if reader == "native" and missing({}):
        pytest.skip(missing({}))
    partitions = [SourcePartition(topic, number) for number in (0, 1)]
    delivered: list[Fetched] = []
    stuck: list[str] = []
    kafka = {"bootstrap.servers": servers, **more}
    settings = fetch_settings(kafka, group="large", queue_bytes_max=QUEUE_BYTES)
    reads = SourceThread(
        fetcher=lambda: open_fetcher(settings, reader),
        until=None,
        on_data_loss="fail",
        callbacks=source.SourceCallbacks(
            owned=lambda: frozenset(partitions),
            deliver=lambda fetched: delivered.append(fetched) is None,
            stuck=lambda _partition, _generation, reason: stuck.append(reason),
            failed=stuck.append,
        ),
    )
    reads.start()
    for partition in partitions:
        reads.rewind(partition, 0, 1)
    try:
        yield delivered, stuck
    finally:
        assert reads.stop(20)


def count(delivered: list[Fetched]) -> int:
    return sum(len(one.raw) for one in delivered if one.raw is not None)


@pytest.mark.parametrize("reader", READERS)
def test_an_answer_that_is_larger_than_the_client_takes_halts_with_the_property(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, reader: str
) -> None:
    monkeypatch.setattr(source, "ALARM_S", 2.0)
    monkeypatch.setattr(stalls, "LOOK_EVERY_S", 1.0)
    topic = f"large-answer-{reader}"
    create_topic(broker.bootstrap_servers, topic, partitions=2)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    producer.produce(topic, b"{}", partition=0)
    assert producer.flush(30) == 0
    producer.produce(topic, os.urandom(300_000), partition=0)
    producer.produce(topic, b"{}", partition=1)
    assert producer.flush(30) == 0
    small = {"receive.message.max.bytes": "200000", "fetch.max.bytes": "100000"}
    with reading(broker.bootstrap_servers, topic, reader, **small) as (_delivered, stuck):
        reason = await_that("reason why it stands still", lambda: stuck[:1])[0]
    assert "increase receive.message.max.bytes" in reason and "Raise memory.per_worker" in reason
    assert f"{topic}:0 at offset" in reason
    with reading(broker.bootstrap_servers, topic, reader) as (delivered, stuck):
        await_that("all records", lambda: count(delivered) == 3)
        assert not stuck


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("reader", READERS)
def test_a_batch_that_unpacks_to_60_megabytes_is_read(broker: Broker, reader: str, codec: str) -> None:
    topic = f"unpacks-{reader}-{codec}"
    larger = {"max.message.bytes": "20000000"}  # snappy makes 60 MB some 3
    create_topic(broker.bootstrap_servers, topic, partitions=2, config=larger)
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "compression.type": codec,
            "batch.size": 200_000_000,
            "message.max.bytes": 200_000_000,
            "linger.ms": 5_000,
        }
    )
    failed: list[object] = []
    for _ in range(60):
        producer.produce(
            topic, b"a" * 1_000_000, partition=0, on_delivery=lambda error, _: failed.append(error)
        )
    assert producer.flush(60) == 0 and failed == [None] * 60
    with reading(broker.bootstrap_servers, topic, reader) as (delivered, stuck):
        await_that("all records", lambda: count(delivered) == 60 or stuck)
        assert not stuck and count(delivered) == 60

"""What stood on a source partition before the place from which it is read, from a real broker."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest
from confluent_kafka import Producer

from control_topic.messages import SourcePartition
from lockstep.brokers.local import Broker
from participant.source import look_back
from participant.source.look_back import TopicLookBack
from tests.transactions import end_transaction

pytestmark = pytest.mark.integration


@pytest.fixture
def topic(broker: Broker, make_topic: Callable[..., str]) -> str:
    """Offsets 0 to 9 hold records; 10 to 14 an aborted transaction with its marker; 15 and 16 records."""
    name = make_topic()
    produce(broker, name, range(10))
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": name})
    producer.init_transactions(30)
    producer.begin_transaction()
    for _ in range(4):
        producer.produce(name, b"aborted", partition=0)
    producer.flush(30)
    end_transaction(producer, name, {"bootstrap.servers": broker.bootstrap_servers}, commit=False)
    produce(broker, name, range(15, 17))
    return name


def produce(broker: Broker, topic: str, numbers: range) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for number in numbers:
        producer.produce(topic, b"%d" % number, partition=0)
    assert producer.flush(30) == 0


@pytest.mark.parametrize(
    ("offset", "records", "wanted"),
    [
        (16, 1_000, [*range(10), 15]),
        (15, 1_000, list(range(10))),
        (12, 3, [9]),
        (17, 2, [15, 16]),
        (5, 2, [3, 4]),
        (0, 1_000, []),
    ],
)
def test_the_records_before_an_offset_are_read_and_no_others(
    broker: Broker, topic: str, offset: int, records: int, wanted: list[int]
) -> None:
    before = TopicLookBack({"bootstrap.servers": broker.bootstrap_servers}, group=topic, records=records)
    found = [
        (number, value)
        for batch in before(SourcePartition(topic, 0), offset)
        for number, value in zip(batch.offsets.tolist(), batch.values, strict=True)
    ]
    assert found == [(number, b"%d" % number) for number in wanted]


def test_what_cannot_be_read_is_said_and_passed_over(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("participant.source.fetcher.BOUNDS_S", 1.0)
    before = TopicLookBack({"bootstrap.servers": "127.0.0.1:1"}, group="g")
    with caplog.at_level(logging.WARNING, look_back.log.name):
        assert list(before(SourcePartition("t", 0), 5)) == []
    assert "what stands before offset 5 cannot be read" in caplog.text

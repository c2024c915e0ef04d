"""Damage in a real broker's log, and a group that does not take a worker in: what both readers make of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer as KafkaConsumer
from confluent_kafka import Producer

from control_topic.messages import SourcePartition
from lockstep.brokers.local import Broker
from participant.source import group_trouble, membership, stalls
from participant.source import reading as source
from participant.source.fetched import Fetched
from participant.source.fetcher import fetch_settings
from participant.source.membership import Membership
from participant.source.native import missing, open_fetcher
from participant.source.reading import SourceThread
from tests.broker_fixture import create_topic
from tests.damage import Damage, damage
from tests.harness import await_that

pytestmark = pytest.mark.integration

BATCH = 100
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
READERS = ("plain", "native")


@pytest.fixture(scope="module")
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Broker, Path]]:
    """A broker whose log is damaged, and its folder."""
    folder = tmp_path_factory.mktemp("damaged-broker")
    with Broker(folder, heap_mb=256) as running:
        yield running, folder


@contextmanager
def reading(servers: str, topic: str, reader: str) -> Iterator[tuple[list[Fetched], list[str], SourceThread]]:
    """What is delivered of the topic's one source partition from offset 0 on, and why it stands still."""
    partition = SourcePartition(topic, 0)
    delivered: list[Fetched] = []
    stuck: list[str] = []

    def deliver(fetched: Fetched) -> bool:
        delivered.append(fetched)
        return True

    settings = fetch_settings({"bootstrap.servers": servers}, group="damage", queue_bytes_max=1 << 20)
    reads = SourceThread(
        fetcher=lambda: open_fetcher(settings, reader),
        until=None,
        on_data_loss="fail",
        callbacks=source.SourceCallbacks(
            owned=lambda: frozenset({partition}),
            deliver=deliver,
            stuck=lambda _partition, _generation, reason: stuck.append(reason),
            failed=stuck.append,
        ),
    )
    reads.start()
    reads.rewind(partition, 0, 1)
    try:
        yield delivered, stuck, reads
    finally:
        assert reads.stop(20)


def fill(servers: str, topic: str, codec: str) -> None:
    """Three batches."""
    for turn in range(3):
        producer = Producer({"bootstrap.servers": servers, "compression.type": codec, "linger.ms": 200})
        for number in range(BATCH):
            producer.produce(topic, f'{{"x":"{turn * BATCH + number} {"a" * 40}"}}'.encode(), partition=0)
        assert producer.flush(30) == 0


@pytest.mark.parametrize("how", Damage)
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("reader", READERS)
def test_what_lies_before_damage_is_delivered_and_nothing_behind_it(
    own_broker: tuple[Broker, Path],
    monkeypatch: pytest.MonkeyPatch,
    reader: str,
    codec: str,
    how: Damage,
) -> None:
    if reader == "native" and missing({}):
        pytest.skip(missing({}))
    if codec == "none" and how is Damage.PAYLOAD:
        pytest.skip("records that are not compressed have nothing of their own to tell damage by")
    broker, folder = own_broker
    topic = f"damaged-{reader}-{codec}-{how.value}"
    create_topic(broker.bootstrap_servers, topic)
    fill(broker.bootstrap_servers, topic, codec)
    damaged = damage(folder, topic, 0, 1, how)
    with reading(broker.bootstrap_servers, topic, reader) as (delivered, stuck, _reads):
        await_that("what lies before", lambda: delivered and delivered[-1].next == damaged.first)
        monkeypatch.setattr(source, "ALARM_S", 1.0)
        monkeypatch.setattr(source, "STALLED_MAX_S", 4.0)
        monkeypatch.setattr(stalls, "LOOK_EVERY_S", 0.5)
        reason = await_that("reason why it stands still", lambda: stuck[:1])[0]
    assert reason.startswith(f"{topic}:0 at offset {damaged.first}: "), reason
    assert "kafka-dump-log" in reason
    assert delivered[-1].next == damaged.first
    assert sum(len(one.raw) for one in delivered if one.raw is not None) == damaged.first


@pytest.mark.parametrize("reader", READERS)
def test_the_end_of_the_log_and_an_open_transaction_are_no_standstill(
    broker: Broker, make_topic: Callable[..., str], monkeypatch: pytest.MonkeyPatch, reader: str
) -> None:
    if reader == "native" and missing({}):
        pytest.skip(missing({}))
    monkeypatch.setattr(source, "ALARM_S", 0.5)
    monkeypatch.setattr(source, "STALLED_MAX_S", 2.0)
    monkeypatch.setattr(stalls, "LOOK_EVERY_S", 0.2)
    topic = make_topic()
    fill(broker.bootstrap_servers, topic, "lz4")
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"{}", partition=0)
    assert producer.flush(30) == 0
    with reading(broker.bootstrap_servers, topic, reader) as (delivered, stuck, reads):
        await_that("records", lambda: delivered and delivered[-1].next == 3 * BATCH)
        waited = reads._stalls.waited_s
        await_that("time", lambda: reads._stalls.waited_s - waited > 4)
        assert (stuck, reads.alarms) == ([], ())
        producer.commit_transaction(30)
        await_that("the transaction's record", lambda: delivered[-1].next > 3 * BATCH)


def test_a_foreign_assignor_in_the_group_is_said_shown_and_ends_the_run(
    broker: Broker,
    make_topic: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(group_trouble, "LASTS_MAX_S", 3.0)
    topic = make_topic()
    foreign = KafkaConsumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": topic,
            "partition.assignment.strategy": "range",
        }
    )
    given: list[object] = []
    foreign.subscribe([topic], on_assign=lambda _consumer, places: given.append(places))
    stop = threading.Event()

    def poll() -> None:
        while not stop.is_set():
            foreign.poll(0.1)

    polls = threading.Thread(target=poll)
    polls.start()
    refused: list[str] = []
    assigned: list[object] = []
    try:
        await_that("assignment of the foreign member", lambda: given)
        member = Membership(
            kafka={"bootstrap.servers": broker.bootstrap_servers},
            group=topic,
            instance="slot-0",
            topics=[topic],
            session_timeout_ms=45_000,
            callbacks=membership.MembershipCallbacks(
                committed=dict,
                assigned=assigned.append,
                revoked=lambda _partitions: None,
                fenced=refused.append,
                failed=refused.append,
                refused=refused.append,
            ),
        )
        member.start()
        try:
            alarm = await_that("alarm", lambda: member.alarms)[0]
            assert "another partition.assignment.strategy" in alarm
            assert alarm in caplog.text
            (reason,) = await_that("end of the patience", lambda: refused[:1])
            assert reason.startswith(alarm)
            stop.set()
            polls.join()
            foreign.close()
            await_that("assignment, once the other one has gone", lambda: assigned)
            assert member.alarms == ()
        finally:
            assert member.leave(20)
    finally:
        stop.set()
        polls.join()
        with closing(foreign):
            pass

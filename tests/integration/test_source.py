"""What the broker says of the source topics, on a real broker."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from control_topic.messages import SourcePartition
from lockstep.brokers.group import coordinator_partition
from lockstep.brokers.local import Broker
from lockstep.brokers.one_record import read_value
from lockstep.brokers.source_topics import SourceTopics
from lockstep.errors import Failed
from lockstep.offsets.standing import compare, look
from table.service.source_facts import (
    MissingTopic,
    NoCoordinator,
    SourceRefused,
    SourceUnavailable,
    Unauthorized,
)
from tests.broker_fixture import create_topic, delete_topic
from tests.busy_member import COOPERATIVE, busy_member
from tests.harness import await_that
from tests.transactions import end_transaction

pytestmark = pytest.mark.integration

DEADLINE_S = 30.0
STATIC_MEMBER = {"group.instance.id": "slot-0", "client.id": "w0", "session.timeout.ms": 6_000}


@pytest.fixture
def kafka(broker: Broker) -> dict[str, str]:
    return {"bootstrap.servers": broker.bootstrap_servers}


def produce(kafka: dict[str, str], topic: str, values: list[str], *, partition: int = 0) -> None:
    producer = Producer(kafka)
    for value in values:
        producer.produce(topic, value, partition=partition)
    assert producer.flush(DEADLINE_S) == 0


@contextmanager
def transaction(kafka: dict[str, str], transactional_id: str) -> Iterator[Producer]:
    """A transaction that is open inside of the `with`; whoever opens it ends it."""
    producer = Producer({**kafka, "transactional.id": transactional_id})
    producer.init_transactions(DEADLINE_S)
    producer.begin_transaction()
    yield producer


def test_what_an_open_producer_transaction_holds_back_is_seen(
    kafka: dict[str, str], make_topic: Callable[..., str]
) -> None:
    topic = make_topic()
    produce(kafka, topic, ["a", "b"])
    with transaction(kafka, topic) as producer:
        for value in "cde":
            producer.produce(topic, value, partition=0)
        assert producer.flush(DEADLINE_S) == 0
        (row,) = compare(None, look(SourceTopics(kafka, [topic]), "g"))
        assert (row.end, row.undecided) == (2, 3)
        end_transaction(producer, topic, kafka, commit=True)
    (row,) = compare(None, look(SourceTopics(kafka, [topic]), "g"))
    assert row.undecided == 0


def test_facts_name_the_cluster_the_topic_ids_and_every_partition(
    kafka: dict[str, str], make_topic: Callable[..., str]
) -> None:
    first, second = make_topic(partitions=2), make_topic()
    facts = SourceTopics(kafka, [first, second]).facts()
    assert facts.partitions == (
        SourcePartition(first, 0),
        SourcePartition(first, 1),
        SourcePartition(second, 0),
    )
    assert facts.cluster
    assert facts.topics[first] and facts.topics[second]
    assert facts.topics[first] != facts.topics[second]


def test_a_recreated_topic_has_another_id(kafka: dict[str, str], make_topic: Callable[..., str]) -> None:
    topic = make_topic()
    source = SourceTopics(kafka, [topic])
    before = source.facts()
    delete_topic(kafka["bootstrap.servers"], topic)
    create_topic(kafka["bootstrap.servers"], topic)
    after = source.facts()
    assert after.topics[topic] != before.topics[topic]
    assert after.cluster == before.cluster


def test_a_missing_topic_is_named_with_what_to_do(kafka: dict[str, str]) -> None:
    with pytest.raises(MissingTopic, match=r"never-made .*create it, or correct source\.topics"):
        SourceTopics(kafka, ["never-made"], timeout_s=5).facts()


def test_a_missing_partition_is_named(kafka: dict[str, str], make_topic: Callable[..., str]) -> None:
    topic = make_topic()
    with pytest.raises(MissingTopic, match=f"{topic}:7"):
        SourceTopics(kafka, [topic], timeout_s=5).end([SourcePartition(topic, 7)])


def test_an_unreachable_broker_is_unavailable_within_the_deadline() -> None:
    source = SourceTopics({"bootstrap.servers": "127.0.0.1:1"}, ["events"], timeout_s=2)
    started = time.monotonic()
    with pytest.raises(SourceUnavailable, match=r"127\.0\.0\.1:1 .*source\.bootstrap_servers"):
        source.facts()
    assert time.monotonic() - started < 20


def test_wrong_security_settings_are_told_without_the_secret(broker: Broker) -> None:
    kafka = {
        "bootstrap.servers": broker.bootstrap_servers,
        "security.protocol": "SSL",
        "ssl.endpoint.identification.algorithm": "none",
        "ssl.key.password": "sesame",
    }
    with pytest.raises((Unauthorized, SourceUnavailable)) as caught:
        SourceTopics(kafka, ["events"], timeout_s=4).facts()
    assert "sesame" not in str(caught.value)


def test_properties_that_librdkafka_refuses_are_told_without_their_values(broker: Broker) -> None:
    kafka = {"bootstrap.servers": broker.bootstrap_servers, "security.protocol": "sesame"}
    with pytest.raises(SourceRefused, match=r"source\.kafka") as caught:
        SourceTopics(kafka, ["events"])
    assert "sesame" not in str(caught.value)


def test_an_empty_topic_begins_and_ends_at_zero(
    kafka: dict[str, str], make_topic: Callable[..., str]
) -> None:
    source = SourceTopics(kafka, [make_topic(partitions=2)])
    partitions = source.facts().partitions
    assert source.earliest(partitions) == source.end(partitions) == dict.fromkeys(partitions, 0)


def test_what_was_deleted_moves_the_earliest_offset(
    kafka: dict[str, str], make_topic: Callable[..., str]
) -> None:
    topic = make_topic()
    produce(kafka, topic, ["a", "b", "c"])
    place = TopicPartition(topic, 0, 2)
    admin = AdminClient(kafka)  # its futures are never answered once it is gone
    admin.delete_records([place])[place].result(DEADLINE_S)
    source, only = SourceTopics(kafka, [topic]), SourcePartition(topic, 0)
    assert source.earliest([only]) == {only: 2}
    assert source.end([only]) == {only: 3}


def test_the_end_stays_at_the_last_stable_offset_while_a_transaction_is_open(
    kafka: dict[str, str], make_topic: Callable[..., str]
) -> None:
    topic = make_topic()
    produce(kafka, topic, ["before"])
    source, only = SourceTopics(kafka, [topic]), SourcePartition(topic, 0)
    with transaction(kafka, f"open-{topic}") as producer:
        producer.produce(topic, "inside", partition=0)
        assert producer.flush(DEADLINE_S) == 0
        produce(kafka, topic, ["behind it"])
        assert source.end([only]) == {only: 1}
        assert source.end([only], read_committed=False) == {only: 3}
        end_transaction(producer, topic, kafka, commit=True)
    assert source.end([only]) == {only: 4}  # the commit's marker takes an offset


def test_the_end_covers_aborted_records_and_their_marker(
    kafka: dict[str, str], make_topic: Callable[..., str]
) -> None:
    topic = make_topic()
    source, only = SourceTopics(kafka, [topic]), SourcePartition(topic, 0)
    with transaction(kafka, f"aborted-{topic}") as producer:
        producer.produce(topic, "never", partition=0)
        assert producer.flush(DEADLINE_S) == 0
        end_transaction(producer, topic, kafka, commit=False)
    assert source.end([only]) == {only: 2}


def test_a_group_that_never_was_has_no_offsets_and_no_members(
    kafka: dict[str, str], make_topic: Callable[..., str]
) -> None:
    source = SourceTopics(kafka, [make_topic()])
    assert source.group_offsets("nobody") == {}
    assert source.group_members("nobody") == []


def test_a_groups_offsets_and_living_members_are_seen(
    kafka: dict[str, str], make_topic: Callable[..., str]
) -> None:
    topic = make_topic(partitions=2)
    produce(kafka, topic, ["a", "b"], partition=1)
    group = f"group-{topic}"
    consumer = Consumer({**kafka, "group.id": group, **STATIC_MEMBER})
    source = SourceTopics(kafka, [topic])
    with closing(consumer):
        consumer.subscribe([topic])
        deadline = time.monotonic() + DEADLINE_S
        while len(consumer.assignment()) < 2:
            assert time.monotonic() < deadline, "no assignment"
            consumer.poll(0.1)
        consumer.commit(offsets=[TopicPartition(topic, 1, 2)], asynchronous=False)
        (member,) = source.group_members(group)
        assert (member.client, member.instance) == ("w0", "slot-0")
        assert set(member.partitions) == {SourcePartition(topic, 0), SourcePartition(topic, 1)}
    assert source.group_offsets(group) == {SourcePartition(topic, 1): 2}
    deadline = time.monotonic() + DEADLINE_S
    while source.group_members(group):  # until its session ends: a static member's close leaves nothing
        assert time.monotonic() < deadline, "the member never left"


def test_the_first_offset_of_a_time_is_told_and_absent_where_no_record_is_so_young(
    kafka: dict[str, str], make_topic: Callable[..., str]
) -> None:
    topic = make_topic(partitions=2)
    producer = Producer(kafka)
    began_ms = int(time.time() * 1_000) - 10_000
    for number in range(5):
        producer.produce(topic, b"x", partition=0, timestamp=began_ms + 1_000 * number)
    assert producer.flush(DEADLINE_S) == 0
    source = SourceTopics(kafka, [topic])
    partitions = source.facts().partitions
    assert source.at_time(partitions, began_ms - 1) == {partitions[0]: 0}
    assert source.at_time(partitions, began_ms + 2_500) == {partitions[0]: 3}
    assert source.at_time(partitions, began_ms + 5_000) == {}


def test_a_groups_offsets_are_asked_for_again_with_the_consumer_that_was_kept(
    kafka: dict[str, str], make_topic: Callable[..., str]
) -> None:
    topic = make_topic(partitions=1)
    produce(kafka, topic, ["a", "b", "c"])
    source = SourceTopics(kafka, [topic], keeps_consumer=True)
    with closing(Consumer({**kafka, "group.id": topic})) as member:
        for offset in (1, 2):
            member.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
            assert source.group_offsets(topic) == {SourcePartition(topic, 0): offset}
            kept = source._kept
            assert source.group_offsets(f"{topic}-other") == {}
            assert source._kept is not kept, "a consumer is of one group"
            assert source.group_offsets(topic) == {SourcePartition(topic, 0): offset}
            kept = source._kept
            assert source.group_offsets(topic) == {SourcePartition(topic, 0): offset}
            assert source._kept is kept
    source.close()
    assert source.group_offsets(topic) == {SourcePartition(topic, 0): 2}
    source.close()
    assert source.group_members(topic) == [], "it has joined nothing"


def test_a_broker_that_restarts_is_waited_for(broker: Broker, make_topic: Callable[..., str]) -> None:
    topic = make_topic()
    source = SourceTopics({"bootstrap.servers": broker.bootstrap_servers}, [topic])
    before = source.facts()
    broker.kill()
    broker.start()
    try:
        assert source.facts() == before
    except KafkaException:
        pytest.fail("a Kafka exception came through")


def test_a_cluster_that_has_fenced_its_brokers_is_waited_for_and_ends_nobody(tmp_path: Path) -> None:
    """Answers of such a cluster name no broker, at which librdkafka's `describe_cluster` ends the process."""
    # there for a second of each 2.7: were it shorter, librdkafka, which asks in steps of whole seconds, might
    # miss it for minutes
    flapping = {"broker.session.timeout.ms": "1000", "broker.heartbeat.interval.ms": "2700"}
    with Broker(tmp_path, heap_mb=512, properties=flapping) as broker:
        create_topic(broker.bootstrap_servers, "events")
        kafka = {"bootstrap.servers": broker.bootstrap_servers}
        source = SourceTopics(kafka, ["events"], timeout_s=4 * DEADLINE_S)
        before = source.facts()
        admin = AdminClient(kafka)
        deadline = time.monotonic() + 6 * DEADLINE_S
        for brokers in (0, 1, 0, 1):
            while len(admin.list_topics("events", timeout=DEADLINE_S).brokers) != brokers:
                assert time.monotonic() < deadline, f"there never were {brokers} brokers"
                assert source.facts() == before


ASKING = """
import os, sys
from lockstep.brokers.source_topics import SourceTopics
from table.service.source_facts import SourceUnavailable
source = SourceTopics({"bootstrap.servers": sys.argv[1]}, ["events"], timeout_s=2)
threads = len(os.listdir("/proc/self/task"))
try:
    source.group_members("nobody")
except SourceUnavailable as error:
    print(error, flush=True)
print("left behind:", len(os.listdir("/proc/self/task")) - threads, flush=True)
sys.stdin.readline()
for _ in range(20):
    print(source.group_members("nobody"), flush=True)
"""


def test_a_group_that_was_asked_for_in_vain_ends_nobody_once_its_coordinator_is_back(tmp_path: Path) -> None:
    """In a process of its own: librdkafka would end it, at a question whose time had run out."""
    with Broker(tmp_path, heap_mb=512) as broker:
        broker.pause()
        asking = subprocess.Popen(
            [sys.executable, "-c", ASKING, broker.bootstrap_servers],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert asking.stdout is not None
        try:
            assert "did not describe consumer group nobody within 2 s" in asking.stdout.readline()
            assert asking.stdout.readline() == "left behind: 0\n"
        finally:
            broker.resume()
        said, _ = asking.communicate("go on\n", timeout=2 * DEADLINE_S)
        assert (asking.returncode, said) == (0, "[]\n" * 20)


def test_asking_makes_no_topic_where_the_broker_would(tmp_path: Path) -> None:
    with Broker(tmp_path, heap_mb=512, properties={"auto.create.topics.enable": "true"}) as broker:
        kafka = {"bootstrap.servers": broker.bootstrap_servers}
        for _ in range(2):
            with pytest.raises(MissingTopic):
                SourceTopics(kafka, ["never-made"], timeout_s=5).facts()
        assert "never-made" not in AdminClient(kafka).list_topics(timeout=DEADLINE_S).topics


def test_a_member_that_does_not_come_back_to_a_rebalance_is_seen_in_the_group_with_what_it_had_before(
    kafka: dict[str, str], make_topic: Callable[..., str]
) -> None:
    topic = make_topic(partitions=2)
    group = f"group-{topic}"
    source = SourceTopics(kafka, [topic])
    ours = Consumer({**kafka, "group.id": group, **STATIC_MEMBER, **COOPERATIVE})
    with closing(ours), busy_member(kafka, group, topic):
        # Whoever joins while the group is being made is in it at once, and no rebalance begins.
        await_that("group at rest", lambda: source.group(group).settled)
        ours.subscribe([topic])
        deadline = time.monotonic() + 2 * DEADLINE_S
        rebalancing = False
        while not rebalancing:
            assert time.monotonic() < deadline, "no rebalance that lasts"
            ours.poll(0.5)
            seen = source.group(group)
            rebalancing = seen.rebalancing and {one.client for one in seen.members} == {"w0", "busy-app"}
        assert not seen.settled
        held = {one.client: len(one.partitions) for one in seen.members}
        assert held == {"w0": 0, "busy-app": 2}


def test_a_cluster_that_cannot_keep_groups_answers_and_has_no_coordinator(tmp_path: Path) -> None:
    """One broker, and Kafka's own default of three replicas for the topic in which groups are kept."""
    with Broker(tmp_path, heap_mb=384, properties={"offsets.topic.replication.factor": "3"}) as broker:
        kafka = {"bootstrap.servers": broker.bootstrap_servers}
        create_topic(broker.bootstrap_servers, "events")
        source = SourceTopics(kafka, ["events"], timeout_s=5)
        assert source.facts().partitions == (SourcePartition("events", 0),)
        with pytest.raises(
            NoCoordinator, match="consumer group g has no coordinator: its topic __consumer_off"
        ):
            source.group("g")
        broker.pause()
        try:
            with pytest.raises(SourceUnavailable) as away:
                source.group("g")
        finally:
            broker.resume()
        assert not isinstance(away.value, NoCoordinator), "a broker that is away is another thing"


def test_where_a_group_is_kept_is_where_the_broker_keeps_it(
    kafka: dict[str, str], make_topic: Callable[..., str]
) -> None:
    """By the offsets that the broker itself writes: the log of that one partition grows."""
    source, admin = SourceTopics(kafka, ["__consumer_offsets"]), AdminClient(kafka)
    group = "polygenelubricants-and-others"
    source.group(group)  # makes the offsets topic, where nobody has asked for a group yet
    count = len(
        admin.list_topics("__consumer_offsets", timeout=DEADLINE_S).topics["__consumer_offsets"].partitions
    )
    here = SourcePartition("__consumer_offsets", coordinator_partition(group, count))
    before = source.end([here], read_committed=False)
    with closing(Consumer({**kafka, "group.id": group})) as consumer:
        consumer.commit(offsets=[TopicPartition(make_topic(), 0, 7)], asynchronous=False)
    assert source.end([here], read_committed=False)[here] > before[here]


def test_the_value_of_one_record_is_read_by_its_place_and_nothing_else_is_changed(
    broker: Broker, kafka: dict[str, str]
) -> None:
    create_topic(broker.bootstrap_servers, "values")
    produce(kafka, "values", ["first", "second"])
    place = SourcePartition("values", 0)
    assert read_value(kafka, "readers", place, 1, timeout_s=DEADLINE_S) == b"second"
    with pytest.raises(Failed, match="values:0@2 cannot be read: it is not in the log any more"):
        read_value(kafka, "readers", place, 2, timeout_s=DEADLINE_S)
    with pytest.raises(Failed, match="values:0@9 cannot be read"):
        read_value(kafka, "readers", place, 9, timeout_s=DEADLINE_S)
    assert SourceTopics(kafka, ["values"]).group_members("readers") == []
    silent = {**kafka, "bootstrap.servers": "127.0.0.1:1"}
    with pytest.raises(Failed, match="values:0@1"):
        read_value(silent, "readers", place, 1, timeout_s=1)

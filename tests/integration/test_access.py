"""Rights that are missing, or taken away while a pipeline reads: on a broker with Kafka's own authorizer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import ResourceType

from lockstep.brokers.local import Broker
from lockstep.config.load import from_mapping
from lockstep.validate_records import check_records
from participant.source.native import missing
from tests.broker_fixture import create_topic
from tests.harness import await_that
from tests.integration.test_source_consumer import Consumer, rows
from tests.rights import AUTHORIZER, denied

pytestmark = pytest.mark.integration

DEADLINE_S = 120.0


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker(tmp_path_factory.mktemp("guarded"), heap_mb=384, properties=AUTHORIZER) as broker:
        yield broker


@pytest.fixture(params=["plain", "native"])
def consumer(request: pytest.FixtureRequest, guarded: Broker) -> Iterator[Callable[[], Consumer]]:
    if request.param == "native" and (why_not := missing({})):
        pytest.skip(f"no native reader here: {why_not}")
    topic = f"topic-{uuid4().hex[:8]}"
    create_topic(guarded.bootstrap_servers, topic)
    made: list[Consumer] = []

    def start(*, joins: bool = True) -> Consumer:
        kafka = {"bootstrap.servers": guarded.bootstrap_servers, "topic.metadata.refresh.interval.ms": "500"}
        made.append(Consumer(kafka, topic, reader=request.param, joins=joins))
        return made[-1]

    yield start
    for one in made:
        one.leave()


def produce(one: Consumer, count: int) -> None:
    producer = Producer(one.kafka)
    for number in range(count):
        producer.produce(one.topic, f"{number}", partition=0)
    assert producer.flush(DEADLINE_S) == 0


def test_the_right_to_read_the_topic_that_is_taken_away_ends_the_reading_and_names_it(
    guarded: Broker, consumer: Callable[[], Consumer]
) -> None:
    one = consumer()
    produce(one, 5)
    one.rewind(0, 1)
    assert rows(one.await_next(5)) == [0, 1, 2, 3, 4]
    with denied(guarded.bootstrap_servers, ResourceType.TOPIC, one.topic):
        produce(one, 5)
        said = await_that("reason", lambda: [*one.stuck, *one.refused], deadline_s=DEADLINE_S)
        assert any("does not let this worker" in reason for reason in said), said


def test_a_group_that_may_not_be_joined_is_refused_at_once_with_what_to_give(
    guarded: Broker, consumer: Callable[..., Consumer]
) -> None:
    one = consumer(joins=False)
    with denied(guarded.bootstrap_servers, ResourceType.GROUP, one.group):
        one.membership.start()
        (reason,) = await_that("refusal", lambda: one.refused, deadline_s=DEADLINE_S)
    assert f"does not let this worker into consumer group {one.group}" in reason
    assert "the right to read the group" in reason


def test_validate_fails_without_the_right_to_read_the_topic(guarded: Broker) -> None:
    topic = f"topic-{uuid4().hex[:8]}"
    kafka = {"bootstrap.servers": guarded.bootstrap_servers}
    create_topic(guarded.bootstrap_servers, topic)
    producer = Producer(kafka)
    producer.produce(topic, b'{"id":1}', partition=0)
    assert producer.flush(DEADLINE_S) == 0
    config = from_mapping(
        {
            "pipeline": {"id": topic, "workers": 1},
            "source": {"bootstrap_servers": guarded.bootstrap_servers, "topics": [topic]},
            "record": {"schema": "id BIGINT"},
            "table": {"path": "file:///nothing/yet", "name": "t"},
        }
    )
    with denied(guarded.bootstrap_servers, ResourceType.TOPIC, topic):
        found = check_records(config, kafka)
    assert found.verdict == "failed" and topic in found.detail and "uthoriz" in found.detail, found
    assert check_records(config, kafka).verdict == "ok"

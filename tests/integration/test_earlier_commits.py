"""Signs of earlier commits that a real broker gives."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from control_topic.messages import SourcePartition
from lockstep.brokers.local import Broker
from lockstep.brokers.source_topics import SourceTopics
from tests.broker_fixture import create_topic, delete_topic
from tests.harness import await_that

pytestmark = pytest.mark.integration


def test_a_topic_that_is_created_again_has_no_offsets_of_the_group(
    broker: Broker, make_topic: Callable[..., str]
) -> None:
    """Else a pipeline in a new table would be told that it has committed before."""
    kafka, topic = {"bootstrap.servers": broker.bootstrap_servers}, make_topic()
    producer = Producer(kafka)
    producer.produce(topic, b"one")
    assert producer.flush(30) == 0
    with closing(Consumer({**kafka, "group.id": topic})) as consumer:
        consumer.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)
    source = SourceTopics(kafka, [topic])
    assert source.group_offsets(topic) == {SourcePartition(topic, 0): 1}
    delete_topic(broker.bootstrap_servers, topic)
    create_topic(broker.bootstrap_servers, topic)
    await_that("end of the group's offsets", lambda: not source.group_offsets(topic))

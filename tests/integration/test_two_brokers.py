"""What the broker that leads a source partition does not tell is not taken for an answer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from control_topic.messages import SourcePartition
from lockstep.brokers.local import Broker
from lockstep.brokers.source_topics import SourceTopics
from lockstep.launch.local_server import HOST, free_port
from table.service.source_facts import SourceUnavailable
from tests.harness import await_that

pytestmark = pytest.mark.integration

CLUSTER = "AEx0d28tYnJva2Vycy10ZQ"
"""Sixteen bytes in base64, as Kafka wants it."""
TOPIC = "events"
LED_BY_ONE, LED_BY_TWO = SourcePartition(TOPIC, 0), SourcePartition(TOPIC, 1)


class Node(Broker):
    """One of two brokers of one cluster."""

    def _cluster_id(self) -> str:
        return CLUSTER


@pytest.fixture
def nodes(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[Node, Node]]:
    """The topic has two source partitions, one led by each. By default who is frozen goes on leading, else
    until the session's timeout, which is the parameter, in milliseconds.
    """
    port, controller, other_port = free_port(), free_port(), free_port()
    both = {
        "controller.quorum.voters": f"1@{HOST}:{controller}",
        "offsets.topic.num.partitions": "1",
        "broker.session.timeout.ms": str(getattr(request, "param", 120_000)),
        "broker.heartbeat.interval.ms": "1000",
    }
    listeners = {"listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller}"}
    other = {
        "process.roles": "broker",
        "node.id": "2",
        "listeners": f"PLAINTEXT://{HOST}:{other_port}",
    }
    with (
        Node(tmp_path / "one", port=port, heap_mb=384, properties={**both, **listeners}) as one,
        Node(tmp_path / "two", port=other_port, heap_mb=384, properties={**both, **other}) as two,
    ):
        admin = AdminClient({"bootstrap.servers": one.bootstrap_servers})
        await_that("second broker", lambda: len(admin.list_topics(timeout=10).brokers) == 2)
        topic = NewTopic(TOPIC, num_partitions=2, replica_assignment=[[1], [2]])
        admin.create_topics([topic])[TOPIC].result(30)
        yield one, two


def test_offsets_that_one_leader_does_not_tell_are_asked_for_again_and_then_are_an_outage(
    nodes: tuple[Node, Node],
) -> None:
    one, two = nodes
    both = [LED_BY_ONE, LED_BY_TWO]
    kafka = {"bootstrap.servers": f"{one.bootstrap_servers},{two.bootstrap_servers}"}
    source = SourceTopics(kafka, [TOPIC], timeout_s=12)
    await_that("leaders", lambda: source.earliest(both) == dict.fromkeys(both, 0))
    two.pause()
    try:
        for ask in (source.earliest, source.end):
            began = time.monotonic()
            with pytest.raises(SourceUnavailable, match=f"leads {TOPIC}:1 does not answer"):
                ask(both)
            assert time.monotonic() - began < 40
        assert source.end([LED_BY_ONE]) == {LED_BY_ONE: 0}
    finally:
        two.resume()
    await_that("answer", lambda: source.end(both) == dict.fromkeys(both, 0))


@pytest.mark.parametrize("nodes", [6_000], indirect=True)
def test_a_source_partition_without_a_leader_is_named_and_a_cluster_that_is_away_is_no_missing_topic(
    nodes: tuple[Node, Node],
) -> None:
    one, two = nodes
    both = [LED_BY_ONE, LED_BY_TWO]
    kafka = {"bootstrap.servers": f"{one.bootstrap_servers},{two.bootstrap_servers}"}
    before = SourceTopics(kafka, [TOPIC], timeout_s=12)
    await_that("leaders", lambda: before.earliest(both) == dict.fromkeys(both, 0))
    two.kill()
    admin = AdminClient({"bootstrap.servers": one.bootstrap_servers})
    await_that(
        "loss of a leader",
        lambda: admin.list_topics(TOPIC, timeout=10).topics[TOPIC].partitions[1].leader == -1,
    )
    said = rf"no broker leads source partition {TOPIC}:1: .*--topic {TOPIC} --unavailable-partitions"
    for source in (before, SourceTopics(kafka, [TOPIC], timeout_s=12)):
        with pytest.raises(SourceUnavailable, match=said):
            source.earliest(both)
        assert source.end([LED_BY_ONE]) == {LED_BY_ONE: 0}
    one.kill()
    for source in (before, SourceTopics(kafka, [TOPIC], timeout_s=12)):
        for ask in (source.earliest, source.end):
            with pytest.raises(SourceUnavailable, match=r"Check that it is up"):
                ask(both)

"""Why the offsets of source partitions are not to be had: no leader, no broker, or no such partition."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from control_topic.messages import SourcePartition
from lockstep.brokers import questions
from lockstep.brokers.source_topics import SourceTopics
from table.service.source_facts import MissingTopic, SourceUnavailable

PARTS = [SourcePartition("events", number) for number in range(3)]
NONE, HERE = -1, 7
"""A partition's leader."""


class Cluster:
    """`leaders`: of `events`, as metadata has them; `offset`: what is answered, or else the error's code."""

    def __init__(self) -> None:
        self.leaders: Mapping[int, int] = dict.fromkeys(range(3), HERE)
        self.offset = -1001
        self.code = 0
        self.topic_error: KafkaError | None = None
        self.away = False

    def list_offsets(
        self, request: Mapping[TopicPartition, object], **_: object
    ) -> dict[TopicPartition, Future[object]]:
        answers = {}
        for place in request:
            answer: Future[object] = Future()
            if self.code:
                answer.set_exception(KafkaException(KafkaError(self.code)))
            else:
                led = self.leaders.get(place.partition, NONE) != NONE
                answer.set_result(SimpleNamespace(offset=0 if led else self.offset))
            answers[place] = answer
        return answers

    def list_topics(self, topic: str, timeout: float) -> object:
        if self.away:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT))
        partitions = {number: SimpleNamespace(leader=leader) for number, leader in self.leaders.items()}
        return SimpleNamespace(topics={topic: SimpleNamespace(error=self.topic_error, partitions=partitions)})

    def poll(self, timeout: float) -> int:
        return 0


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster()
    monkeypatch.setattr(questions, "AdminClient", lambda *_, **__: made)
    return made


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is missing is so at the first look."""
    monkeypatch.setattr(questions, "MISSING_GRACE_S", 0.0)


def earliest(*, timeout_s: float = 0.2) -> object:
    """Of answers that a later look may better, only the time ends the wait."""
    return SourceTopics({"bootstrap.servers": "kafka:9092"}, ["events"], timeout_s=timeout_s).earliest(PARTS)


@pytest.mark.parametrize(
    "code", [KafkaError._NOENT, KafkaError._TIMED_OUT, KafkaError.LEADER_NOT_AVAILABLE, 0]
)
def test_source_partitions_without_a_leader_are_named_with_what_shows_them(
    cluster: Cluster, code: int
) -> None:
    """However librdkafka says so: with an error, or with no error and an offset that is none."""
    cluster.leaders, cluster.code = {0: HERE, 1: NONE, 2: NONE}, code
    said = r"no broker leads source partitions events:1, events:2: .*--topic events --unavailable-partitions"
    with pytest.raises(SourceUnavailable, match=said):
        earliest()


@pytest.mark.parametrize("code", [KafkaError._NOENT, KafkaError._TIMED_OUT])
@pytest.mark.parametrize("away", [True, False])
def test_a_broker_that_is_away_is_no_missing_topic(cluster: Cluster, code: int, away: bool) -> None:
    cluster.code, cluster.away = code, away
    with pytest.raises(SourceUnavailable, match="Check that it is up"):
        earliest()


@pytest.mark.usefixtures("at_once")
def test_a_source_partition_that_is_not_in_the_cluster_is_missing(cluster: Cluster) -> None:
    cluster.leaders, cluster.code = {0: HERE, 1: NONE}, KafkaError._NOENT
    with pytest.raises(MissingTopic, match="events:2 does not exist"):
        earliest(timeout_s=60)


@pytest.mark.usefixtures("at_once")
def test_a_source_topic_that_is_not_in_the_cluster_is_missing(cluster: Cluster) -> None:
    cluster.code, cluster.leaders = KafkaError._NOENT, {}
    cluster.topic_error = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
    with pytest.raises(MissingTopic, match="events does not exist"):
        earliest(timeout_s=60)

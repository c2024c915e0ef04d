"""Topics that a broker's policy does not let be created as they were asked for. On a real broker:
tests/integration/test_topic_policies.py."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from control_topic.creation import BROKERS_DEFAULT, WantedTopic, create_topic

WANTED = WantedTopic(
    topic="t", partitions=1, replicas=1, optional={"a.b": "1", "c.d": "2"}, required={"kept": "3"}
)


class Admin:
    """Creates a topic if the policy names nothing in it."""

    def __init__(self, policy: Callable[[Any], str], code: int = KafkaError.POLICY_VIOLATION) -> None:
        self._policy, self._code = policy, code
        self.asked: list[tuple[set[str], int]] = []

    def create_topics(self, topics: list[Any], **_: Any) -> dict[str, Future[None]]:
        (topic,) = topics
        self.asked.append((set(topic.config), topic.replication_factor))
        future: Future[None] = Future()
        why = self._policy(topic)
        if why:
            future.set_exception(KafkaException(KafkaError(self._code, why)))
        else:
            future.set_result(None)
        return {"t": future}


def created(admin: Admin, wanted: WantedTopic = WANTED) -> tuple[str, ...]:
    return create_topic(admin, wanted, timeout_s=1.0).left_out  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("policy", "left_out", "attempts"),
    [
        (lambda _: "", (), 1),
        (lambda topic: "no a.b here" if "a.b" in topic.config else "", ("a.b",), 2),
        (lambda topic: "two are forbidden" if len(topic.config) > 1 else "", ("a.b", "c.d"), 3),
        (lambda topic: "three replicas" if topic.replication_factor == 1 else "", ("replication factor",), 2),
        (
            lambda topic: "none of it" if len(topic.config) > 1 or topic.replication_factor == 1 else "",
            ("a.b", "c.d", "replication factor"),
            4,
        ),
    ],
    ids=["free", "named", "not named", "replicas", "both"],
)
def test_what_is_optional_is_left_out_until_the_broker_creates_it(
    policy: Callable[[Any], str], left_out: tuple[str, ...], attempts: int
) -> None:
    admin = Admin(policy)
    assert created(admin) == left_out
    assert len(admin.asked) == attempts and all("kept" in names for names, _ in admin.asked)


def test_where_nothing_helps_the_first_refusal_is_raised_after_few_attempts() -> None:
    admin = Admin(lambda topic: f"{len(topic.config)} settings are too many")
    with pytest.raises(KafkaException, match="3 settings are too many"):
        created(admin)
    assert len(admin.asked) == 4 and {replicas for _, replicas in admin.asked} == {1, BROKERS_DEFAULT}


@pytest.mark.parametrize("code", [KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError._TIMED_OUT])
def test_what_fewer_settings_do_not_change_is_raised_at_once(code: int) -> None:
    admin = Admin(lambda _: "no", code)
    with pytest.raises(KafkaException):
        created(admin)
    assert len(admin.asked) == 1
    assert created(Admin(lambda _: "it is there", KafkaError.TOPIC_ALREADY_EXISTS)) == ()


def test_the_command_creates_it_as_it_was_asked_for() -> None:
    assert WANTED.command("b:9092") == (
        "kafka-topics.sh --bootstrap-server b:9092 --create --topic t --partitions 1 --replication-factor 1 "
        "--config kept=3 --config a.b=1 --config c.d=2"
    )

"""Whether a topic is another one than before, by what a broker answers, which here is old, slow or away."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Uuid

from control_topic import topic_watch
from control_topic.topic_watch import TopicWatch

FIRST, SECOND, OLD_BROKER = Uuid(1, 1), Uuid(2, 2), Uuid(0, 0)


class Broker:
    """Answers with what is put there: an id, an error's code, or nothing."""

    def __init__(self) -> None:
        self.answer: Uuid | int | None = FIRST
        self.asked = 0

    def describe_topics(self, _topics: object, *, request_timeout: float) -> dict[str, Future[Any]]:
        self.asked += 1
        future: Future[Any] = Future()
        if isinstance(self.answer, Uuid):
            future.set_result(SimpleNamespace(topic_id=self.answer))
        elif self.answer is not None:
            future.set_exception(KafkaException(KafkaError(self.answer)))
        return {"control": future}


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    broker = Broker()
    monkeypatch.setattr(topic_watch, "AdminClient", lambda *_, **__: broker)
    monkeypatch.setattr(topic_watch, "ASK_EVERY_S", 0.0)
    return broker


def is_another(watch: TopicWatch) -> bool:
    """Asked, and then looked at what was answered."""
    return watch.is_another() or watch.is_another()


@pytest.mark.parametrize(
    ("before", "after", "another"),
    [
        (FIRST, FIRST, False),
        (FIRST, SECOND, True),
        (OLD_BROKER, OLD_BROKER, False),
        (OLD_BROKER, FIRST, False),
        (FIRST, OLD_BROKER, False),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, FIRST, False),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, FIRST, False),
        (FIRST, KafkaError.UNKNOWN_TOPIC_OR_PART, False),
        (FIRST, KafkaError._TRANSPORT, False),
        (FIRST, None, False),
    ],
    ids=str,
)
def test_a_topic_is_another_one_where_two_ids_are_known_and_differ(
    broker: Broker, before: Uuid | int, after: Uuid | int | None, another: bool
) -> None:
    watch = TopicWatch({}, "control")
    broker.answer = before
    watch.begin(1.0)
    broker.answer = after
    assert is_another(watch) is another
    assert not is_another(watch)  # that is said once


def test_a_topic_made_again_while_nobody_answered_is_noticed_later(broker: Broker) -> None:
    watch = TopicWatch({}, "control")
    watch.begin(1.0)
    for broker.answer in (KafkaError._TIMED_OUT, KafkaError.UNKNOWN_TOPIC_OR_PART, OLD_BROKER):
        assert not is_another(watch)
    broker.answer = SECOND
    assert is_another(watch)


def test_a_question_that_is_not_answered_is_not_asked_again_and_holds_up_nobody(broker: Broker) -> None:
    watch = TopicWatch({}, "control")
    watch.begin(1.0)
    broker.answer = None
    assert not any(watch.is_another() for _ in range(10))
    assert broker.asked == 2


def test_it_is_asked_now_and_then_only(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_watch, "ASK_EVERY_S", 3_600.0)
    watch = TopicWatch({}, "control")
    watch.begin(1.0)
    assert not any(watch.is_another() for _ in range(10))
    assert broker.asked == 1


@pytest.mark.parametrize("answer", [KafkaError._TRANSPORT, None], ids=str)
def test_reading_does_not_begin_while_nobody_answers(broker: Broker, answer: int | None) -> None:
    broker.answer = answer
    with pytest.raises(KafkaException):
        TopicWatch({}, "control").begin(0.01)

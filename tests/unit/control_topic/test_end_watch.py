"""Whether a consumer of the control topic hangs, by what another client says of the log's end."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from control_topic import end_watch
from control_topic.end_watch import QUIET_S, EndWatch


class Broker:
    """Answers with an end, an error's code, or not yet; and says what time it is."""

    def __init__(self) -> None:
        self.end: int | None = 10
        self.error = 0
        self.asked = 0
        self.now_s = 1_000.0

    def list_offsets(self, wanted: dict[TopicPartition, object], **_: object) -> dict[Any, Future[Any]]:
        self.asked += 1
        future: Future[Any] = Future()
        if self.error:
            future.set_exception(KafkaException(KafkaError(self.error)))
        elif self.end is not None:
            future.set_result(SimpleNamespace(offset=self.end))
        return dict.fromkeys(wanted, future)


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    broker = Broker()
    monkeypatch.setattr(end_watch, "AdminClient", lambda *_, **__: broker)
    monkeypatch.setattr(end_watch.time, "monotonic", lambda: broker.now_s)
    return broker


def after(broker: Broker, watch: EndWatch, quiet_s: float, reached: int = 5) -> bool:
    """Whether it hangs, after so long without anything: asked, and then looked at what was answered."""
    broker.now_s += quiet_s
    return watch.hangs(reached) or watch.hangs(reached)


def test_a_consumer_that_brings_nothing_while_the_log_goes_on_hangs(broker: Broker) -> None:
    watch = EndWatch({}, "control", 0)
    assert not watch.hangs(5)
    assert not after(broker, watch, QUIET_S - 1) and broker.asked == 0
    assert after(broker, watch, 1)
    assert not after(broker, watch, QUIET_S - 1), "another one has as long"
    assert after(broker, watch, 1) and broker.asked == 2


@pytest.mark.parametrize("end", [5, 4])
def test_at_the_end_of_the_log_nothing_is_to_come(broker: Broker, end: int) -> None:
    broker.end = end
    watch = EndWatch({}, "control", 0)
    assert not watch.hangs(5)
    assert not any(after(broker, watch, QUIET_S) for _ in range(3)) and broker.asked == 3


def test_what_comes_begins_the_time_anew_and_an_answer_from_before_counts_nothing(broker: Broker) -> None:
    watch = EndWatch({}, "control", 0)
    assert not watch.hangs(5)
    broker.now_s += QUIET_S
    assert not watch.hangs(5) and broker.asked == 1
    assert not watch.hangs(10), "what was asked about 5 says nothing of 10"
    assert not after(broker, watch, QUIET_S - 1, reached=10)


@pytest.mark.parametrize("error", [KafkaError._TIMED_OUT, KafkaError._TRANSPORT, 0])
def test_a_broker_that_does_not_say_proves_nothing(broker: Broker, error: int) -> None:
    broker.error, broker.end = error, None
    watch = EndWatch({}, "control", 0)
    assert not watch.hangs(5)
    assert not any(after(broker, watch, QUIET_S) for _ in range(3))
    watch.close()

"""The topic's producer, where the broker gives errors."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError, KafkaException

from lockstep.hooks import topic
from lockstep.hooks.commits import TableTold
from lockstep.hooks.port import SinkError
from lockstep.hooks.topic import TopicSink
from tests.unit.lockstep.hooks.test_delivery import commit

FATAL = KafkaError(KafkaError._FATAL, "out of order", fatal=True)
TABLE = TableTold(path="memory:/events", name="events", kind="memory", mode="insert")


class Broken:
    """A producer that failed for good: librdkafka's refuses everything then. `at_once`: by an exception."""

    made = 0
    at_once = True

    def __init__(self, *_settings: object, **_more: object) -> None:
        type(self).made += 1
        self._answer: Callable[[KafkaError, None], None] | None = None

    def produce(
        self, *_arguments: object, on_delivery: Callable[[KafkaError, None], None], **_more: object
    ) -> None:
        if self.at_once:
            raise KafkaException(FATAL)
        self._answer = on_delivery

    def poll(self, _timeout_s: float) -> None:
        assert self._answer is not None
        self._answer(FATAL, None)

    def purge(self) -> None: ...


@pytest.mark.parametrize("at_once", [True, False])
def test_a_producer_that_failed_is_not_kept(at_once: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Broken, "made", 0)
    monkeypatch.setattr(Broken, "at_once", at_once)
    monkeypatch.setattr(topic, "Producer", Broken)
    sink = TopicSink({}, "commits", pipeline="events", table=TABLE)
    for tries in (1, 2, 3):
        with pytest.raises(SinkError, match="out of order"):
            sink.deliver(commit(1))
        assert Broken.made == tries

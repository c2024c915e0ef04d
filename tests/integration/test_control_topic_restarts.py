"""The control topic on a broker that is restarted, and then deletes the topic and has it made again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from control_topic.clocks import wall_ms
from control_topic.kafka import ControlReader, ControlWriter, Received
from control_topic.messages import EndCommit, Message
from lockstep.brokers.local import Broker
from tests.broker_fixture import create_topic, delete_topic
from tests.harness import await_that

pytestmark = pytest.mark.integration

TOPIC = "control"


@pytest.fixture
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """It is killed."""
    with Broker(tmp_path_factory.mktemp("broker"), heap_mb=512) as running:
        create_topic(running.bootstrap_servers, TOPIC)
        yield running


class Conversation:
    """One writer and one reader, which stay the same."""

    def __init__(self, broker: Broker) -> None:
        kafka = {"bootstrap.servers": broker.bootstrap_servers}
        self.reader = ControlReader(kafka, TOPIC, start="beginning")
        self._writer = ControlWriter(
            kafka,
            TOPIC,
            pipeline="events",
            run="r1",
            sender="worker-1",
            incarnation="i1",
            clock_ms=wall_ms,
            key=bytes(32),
        )
        self._received: list[Received] = []

    def say(self, transaction: str) -> None:
        """Again until the broker has it, as a run does."""

        def is_written() -> bool:
            failures = self._writer.failures
            self._writer.send(EndCommit(transaction=transaction), epoch=1)
            return self._writer.flush(30) and self._writer.failures == failures

        await_that(f"{transaction} on the control topic", is_written)

    def heard(self, transaction: str) -> bool:
        self._received += self.reader.poll(0.2)
        contents = [one.content for one in self._received]
        return any(
            isinstance(one, Message) and one.body == EndCommit(transaction=transaction) for one in contents
        )

    def passes(self, transaction: str) -> None:
        self.say(transaction)
        await_that(f"{transaction} is heard", lambda: self.heard(transaction))

    def close(self) -> None:
        self._writer.close()
        self.reader.close()


@pytest.fixture
def conversation(own_broker: Broker) -> Iterator[Conversation]:
    with closing(Conversation(own_broker)) as opened:
        yield opened


def poll_for(seconds: float, reader: ControlReader) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        reader.poll(0.2)


@pytest.mark.parametrize(
    "while_it_is_gone",
    [lambda reader: None, lambda reader: poll_for(6, reader)],
    ids=["at once", "and was missed before"],
)
def test_a_topic_made_again_after_the_brokers_restart_is_read_on(
    own_broker: Broker, conversation: Conversation, while_it_is_gone: Callable[[ControlReader], None]
) -> None:
    """The client takes what it hears of the new topic for outdated: its leader's epoch is lower."""
    conversation.passes("before")
    own_broker.kill()
    own_broker.start()
    conversation.passes("after the restart")
    delete_topic(own_broker.bootstrap_servers, TOPIC)
    while_it_is_gone(conversation.reader)
    create_topic(own_broker.bootstrap_servers, TOPIC)
    conversation.passes("made again")
    assert conversation.reader.recoveries >= 1
    conversation.passes("and on")

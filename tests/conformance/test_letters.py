"""The dead-letter topic: what the simulator's assumes of a refusal, on a real broker as well."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Protocol

import numpy as np
import pytest
from confluent_kafka import Consumer, TopicPartition

from control_topic.messages import SourcePartition
from participant.errors import DeadLetterRefused
from participant.records.raw import RawBatch, Values
from participant.records.rejects import HeldRejects, Rejects
from participant.source.dead_letters import DeadLetters
from tests.broker_fixture import set_config
from tests.harness import await_that
from tests.simulation.letters import DeadLetterTopic

pytestmark = [pytest.mark.integration, pytest.mark.xdist_group("conformance")]

SOURCE = SourcePartition("events", 3)
LIMIT_BYTES = 20_000
LARGE = np.random.default_rng(1).bytes(50_000)
OFFSETS = 1_000


class Side(Protocol):
    """`small` and `large`: offsets of rejected records that the topic takes, and does not."""

    small: tuple[int, ...]
    large: tuple[int, ...]

    def send(self, *offsets: int) -> str:
        """By a sender of its own, all of them; why one was refused, empty where none was."""

    def taken(self) -> set[int]: ...

    def mend(self) -> None: ...


class Simulated:
    def __init__(self) -> None:
        self._topic = DeadLetterTopic(seed=1, refused_share=0.5)
        refused = [self._topic.refuses((SOURCE, offset)) for offset in range(OFFSETS)]
        self.small = tuple(offset for offset in range(OFFSETS) if not refused[offset])
        self.large = tuple(offset for offset in range(OFFSETS) if refused[offset])

    def send(self, *offsets: int) -> str:
        letters = [(SOURCE, offset) for offset in offsets]
        refusal = self._topic.refusal(letters)
        if not refusal:
            self._topic.taken.update(letters)
        return refusal

    def taken(self) -> set[int]:
        return {offset for _, offset in self._topic.taken}

    def mend(self) -> None:
        self._topic.mend()


class OnKafka:
    def __init__(self, servers: str, topic: str) -> None:
        self._kafka, self._topic = {"bootstrap.servers": servers}, topic
        self.small = tuple(range(0, OFFSETS, 2))
        self.large = tuple(range(1, OFFSETS, 2))

    def send(self, *offsets: int) -> str:
        at = np.array(offsets, dtype=np.int64)
        values = [LARGE if offset in self.large else b"small" for offset in offsets]
        batch = RawBatch(partition=SOURCE, offsets=at, timestamps_ms=at, values=Values.of(values))
        held = HeldRejects.of(batch, Rejects.of(dict.fromkeys(range(len(offsets)), "bad"), at))
        with closing(DeadLetters(self._kafka, self._topic, bytes_max=1 << 20)) as letters:
            try:
                letters.send([held])
            except DeadLetterRefused as refused:
                return str(refused)
        return ""

    def taken(self) -> set[int]:
        with closing(Consumer({**self._kafka, "group.id": "reader"})) as consumer:
            place = TopicPartition(self._topic, 0, 0)
            end = consumer.get_watermark_offsets(place, timeout=30)[1]
            consumer.assign([place])
            found: list[bytes] = []

            def all_of_it() -> bool:
                found.extend(m.key() for m in consumer.consume(1_000, 0.2) if m.error() is None)
                return len(found) >= end

            await_that("what the topic holds", all_of_it)
        return {int(key.decode().rpartition("-")[2]) for key in found}

    def mend(self) -> None:
        set_config(self._kafka["bootstrap.servers"], self._topic, {"max.message.bytes": "1000000"})


@pytest.fixture(params=["kafka", "simulated"])
def side(request: pytest.FixtureRequest) -> Iterator[Side]:
    if request.param == "simulated":
        yield Simulated()
        return
    make_topic: Callable[..., str] = request.getfixturevalue("make_topic")
    topic = make_topic(config={"max.message.bytes": str(LIMIT_BYTES)})
    yield OnKafka(request.getfixturevalue("broker").bootstrap_servers, topic)


def test_a_record_that_is_too_large_is_named_and_refused_whoever_sends_it_until_the_limit_is_raised(
    side: Side,
) -> None:
    (first, before, *_), (large, *_) = side.small, side.large
    assert side.send(first) == ""
    for _ in range(2):
        assert f"the rejected record events-3-{large} " in side.send(before, large)
        assert first in side.taken()
        assert large not in side.taken()
    side.mend()
    await_that("larger limit", lambda: side.send(before, large) == "")
    assert side.taken() == {first, before, large}

"""The source consumer alone, on a real broker: what it delivers, and what it says where it cannot go on."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from control_topic.messages import Lost, Offsets, SourcePartition
from lockstep.broker import Broker
from participant.fetched import Callbacks, Fetched, Position
from participant.source import Source
from table.source import SourceTopics
from tests.harness import await_that

pytestmark = pytest.mark.integration

DEADLINE_S = 30.0


@dataclass
class Consumer:
    """A source with one topic of one source partition, and all that it said."""

    kafka: dict[str, str]
    topic: str
    on_data_loss: str = "fail"
    until: int | None = None
    joins: bool = True
    delivered: list[Fetched] = field(default_factory=list)
    assigned: list[Offsets] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.partition = SourcePartition(self.topic, 0)
        self.group = f"group-{self.topic}"
        self.source = Source(
            kafka=self.kafka,
            group=self.group,
            instance="slot-0",
            topics=[self.topic],
            until=None if self.until is None else {self.partition: self.until},
            on_data_loss=self.on_data_loss,
            session_timeout_ms=6_000,
            queue_bytes_max=1 << 20,
            callbacks=Callbacks(
                committed=lambda: {},
                assigned=lambda offsets: self.assigned.append(dict(offsets)),
                revoked=lambda partitions: None,
                deliver=lambda fetched: self.delivered.append(fetched) or True,
                stuck=lambda partition, generation, reason: self.stuck.append(reason),
                fenced=self.failed.append,
                failed=self.failed.append,
            ),
        )
        if self.joins:
            self.source.start()
            await_that("assignment", lambda: self.assigned)

    def rewind(self, offset: int, generation: int) -> None:
        self.source.rewind(self.partition, offset, generation)

    def await_next(self, next_offset: int, generation: int = 1) -> list[Fetched]:
        """What was delivered with this generation, once it reaches so far; it leaves no gap."""

        def probe() -> list[Fetched]:
            assert not self.failed, self.failed
            mine = [one for one in self.delivered if one.generation == generation]
            return mine if mine and mine[-1].next >= next_offset else []

        found = await_that(f"delivery up to offset {next_offset}", probe, deadline_s=DEADLINE_S)
        assert [one.start for one in found[1:]] == [one.next for one in found[:-1]], found
        return found

    def await_stuck(self) -> str:
        return await_that("source partition that is stuck", lambda: self.stuck, deadline_s=DEADLINE_S)[0]


@pytest.fixture
def make(broker: Broker, make_topic: Callable[..., str]) -> Iterator[Callable[..., Consumer]]:
    made: list[Consumer] = []

    def start(**options: object) -> Consumer:
        made.append(Consumer({"bootstrap.servers": broker.bootstrap_servers}, make_topic(), **options))
        return made[-1]

    yield start
    for one in made:
        assert one.source.leave(DEADLINE_S)
        assert not one.failed, one.failed


def produce(consumer: Consumer, count: int) -> None:
    producer = Producer(consumer.kafka)
    for number in range(count):
        producer.produce(consumer.topic, f"{number}", partition=0)
    assert producer.flush(DEADLINE_S) == 0


def delete_before(consumer: Consumer, offset: int) -> None:
    place = TopicPartition(consumer.topic, 0, offset)
    admin = AdminClient(consumer.kafka)  # its futures are never answered once it is gone
    admin.delete_records([place])[place].result(DEADLINE_S)


def rows(fetched: list[Fetched]) -> list[int]:
    """The offsets that have a record."""
    return [int(offset) for one in fetched if one.raw is not None for offset in one.raw.offsets]


def test_nothing_is_delivered_before_a_generation_is_given_and_a_rewind_begins_another(
    make: Callable[..., Consumer],
) -> None:
    consumer = make()
    assert consumer.assigned == [{consumer.partition: 0}]
    produce(consumer, 10)
    consumer.rewind(2, 7)
    assert rows(consumer.await_next(10, 7)) == list(range(2, 10))
    consumer.rewind(4, 8)
    assert rows(consumer.await_next(10, 8)) == list(range(4, 10))
    assert {one.generation for one in consumer.delivered} == {7, 8}
    assert consumer.delivered == sorted(consumer.delivered, key=lambda one: one.generation)


def test_a_paused_source_delivers_nothing_until_it_is_resumed(make: Callable[..., Consumer]) -> None:
    consumer = make()
    consumer.source.pause()
    consumer.rewind(0, 1)
    produce(consumer, 5)
    owned: list[bool] = []
    consumer.source.prove(consumer.partition, 0, lambda owner, why: owned.append(owner))
    await_that("answer of the group", lambda: owned)  # the orders before it are obeyed
    assert owned == [True]
    assert not consumer.delivered
    consumer.source.resume()
    assert rows(consumer.await_next(5)) == list(range(5))


def test_aborted_records_and_markers_are_a_range_without_rows(make: Callable[..., Consumer]) -> None:
    consumer = make()
    producer = Producer({**consumer.kafka, "transactional.id": uuid.uuid4().hex})
    producer.init_transactions(DEADLINE_S)
    producer.begin_transaction()
    producer.produce(consumer.topic, "never", partition=0)
    producer.flush(DEADLINE_S)
    producer.abort_transaction(DEADLINE_S)
    topics = SourceTopics(consumer.kafka, [consumer.topic])
    await_that("marker", lambda: topics.end([consumer.partition]) == {consumer.partition: 2})
    produce(consumer, 1)
    consumer.rewind(0, 1)
    found = consumer.await_next(3)
    assert found[0].start == 0
    assert rows(found) == [2]


def test_it_stops_exactly_where_it_is_told_to(make: Callable[..., Consumer]) -> None:
    consumer = make(until=4)
    produce(consumer, 9)
    consumer.rewind(0, 1)
    found = consumer.await_next(4)
    assert found[-1].next == 4
    assert rows(found) == [0, 1, 2, 3]


def test_what_retention_removed_is_refused_with_what_to_do(make: Callable[..., Consumer]) -> None:
    consumer = make()
    produce(consumer, 10)
    delete_before(consumer, 6)
    consumer.rewind(2, 1)
    said = consumer.await_stuck()
    assert "retention removed the offsets from 2 to 5" in said
    assert f"offsets --set {consumer.partition}=6" in said
    assert not consumer.delivered
    consumer.rewind(6, 2)
    assert rows(consumer.await_next(10, 2)) == [6, 7, 8, 9]


def test_what_retention_removed_is_reported_as_lost_where_that_is_accepted(
    make: Callable[..., Consumer],
) -> None:
    consumer = make(on_data_loss="earliest")
    produce(consumer, 10)
    delete_before(consumer, 6)
    consumer.rewind(2, 1)
    found = consumer.await_next(10)
    assert [one.lost for one in found if one.lost] == [(Lost(partition=consumer.partition, start=2, next=6),)]
    assert found[0].start == 2
    assert rows(found) == [6, 7, 8, 9]


def test_an_offset_beyond_the_log_is_refused_with_what_to_do(make: Callable[..., Consumer]) -> None:
    consumer = make()
    produce(consumer, 3)
    consumer.rewind(9, 1)
    said = consumer.await_stuck()
    assert "offset 9 is beyond the log's end 3" in said
    assert "offsets --adopt" in said


def test_an_offset_that_the_log_has_grown_up_to_since_it_was_refused_is_gone_on_from(
    make: Callable[..., Consumer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after an unclean election: the broker refuses the offset, and has it when asked for its bounds."""
    consumer = make()
    produce(consumer, 3)
    refused = consumer.source._take_out_of_range

    def meanwhile(partition: SourcePartition, position: Position) -> None:
        produce(consumer, 9)
        refused(partition, position)

    monkeypatch.setattr(consumer.source, "_take_out_of_range", meanwhile)
    consumer.rewind(5, 1)
    assert rows(consumer.await_next(12)) == list(range(5, 12))
    assert not consumer.stuck


def test_who_leaves_is_no_member_any_more(make: Callable[..., Consumer]) -> None:
    consumer = make()
    topics = SourceTopics(consumer.kafka, [consumer.topic])
    assert [one.instance for one in topics.group_members(consumer.group)] == ["slot-0"]
    assert consumer.source.leave(DEADLINE_S)
    assert topics.group_members(consumer.group) == []


def test_who_leaves_before_the_group_may_be_joined_never_joins(make: Callable[..., Consumer]) -> None:
    consumer = make(joins=False)
    assert consumer.source.leave(DEADLINE_S)
    consumer.source.start()
    assert consumer.source.leave(DEADLINE_S)
    assert not consumer.assigned

"""Reading the source alone, on a real broker: what is delivered, and what is said where it cannot go on.

Every test runs with each reader: the plain one, and the one without a Python object per record.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from control_topic.messages import Lost, Offsets, SourcePartition
from lockstep.brokers.local import Broker
from lockstep.brokers.source_topics import SourceTopics
from participant.records.raw import RawBatch
from participant.source import membership
from participant.source import reading as source
from participant.source.fetched import Fetched
from participant.source.fetcher import fetch_settings
from participant.source.membership import Membership
from participant.source.native import missing, open_fetcher
from participant.source.position import Position
from participant.source.reading import SourceThread
from tests.harness import await_that
from tests.transactions import end_transaction

pytestmark = pytest.mark.integration

DEADLINE_S = 30.0
SESSION_MS = 45_000
"""The group gives up nobody who stands still with the whole machine."""


@dataclass
class Consumer:
    """A member of a group, the reading of the one source partition that there is, and what they said."""

    kafka: dict[str, str]
    topic: str
    reader: str = "plain"
    tombstone_keys: bool = False
    on_data_loss: str = "fail"
    until: int | None = None
    joins: bool = True
    delivered: list[Fetched] = field(default_factory=list)
    assigned: list[Offsets] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    room: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.partition = SourcePartition(self.topic, 0)
        self.group = f"group-{self.topic}"
        self.room.set()
        self.membership = Membership(
            kafka=self.kafka,
            group=self.group,
            instance="slot-0",
            topics=[self.topic],
            session_timeout_ms=SESSION_MS,
            callbacks=membership.MembershipCallbacks(
                committed=lambda: {self.partition: 0},
                assigned=lambda offsets: self.assigned.append(dict(offsets)),
                revoked=lambda partitions: self.source.drop(partitions),
                fenced=self.failed.append,
                failed=self.failed.append,
                refused=self.refused.append,
            ),
        )
        settings = fetch_settings(self.kafka, group=self.group, queue_bytes_max=1 << 20)
        self.source = SourceThread(
            fetcher=lambda: open_fetcher(settings, self.reader, tombstone_keys=self.tombstone_keys),
            until=None if self.until is None else {self.partition: self.until},
            on_data_loss=self.on_data_loss,
            callbacks=source.SourceCallbacks(
                owned=lambda: self.membership.partitions,
                deliver=self.deliver,
                stuck=lambda partition, generation, reason: self.stuck.append(reason),
                failed=self.failed.append,
            ),
        )
        if self.joins:
            self.membership.start()
            self.source.start()
            await_that("assignment", lambda: self.assigned)

    def deliver(self, fetched: Fetched) -> bool:
        if not self.room.wait(0.1):
            return False
        self.delivered.append(fetched)
        return True

    def leave(self) -> bool:
        return self.source.stop(DEADLINE_S) and self.membership.leave(DEADLINE_S)

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


@pytest.fixture(params=["plain", "native"])
def reader(request: pytest.FixtureRequest) -> str:
    why_not = missing({}) if request.param == "native" else ""
    if why_not:
        pytest.skip(f"no native reader here: {why_not}")
    return request.param


@pytest.fixture
def make(broker: Broker, make_topic: Callable[..., str], reader: str) -> Iterator[Callable[..., Consumer]]:
    made: list[Consumer] = []

    def start(**options: object) -> Consumer:
        kafka = {"bootstrap.servers": broker.bootstrap_servers}
        topic = make_topic(config={"retention.ms": "-1"})  # records of some tests are old
        made.append(Consumer(kafka, topic, reader=reader, **options))
        return made[-1]

    yield start
    for one in made:
        assert one.leave()
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
    obeyed = threading.Event()
    consumer.source._orders.give(obeyed.set)
    assert obeyed.wait(DEADLINE_S)
    obeyed.clear()
    consumer.source._orders.give(obeyed.set)  # a whole fetch lies between the two
    assert obeyed.wait(DEADLINE_S)
    assert not consumer.delivered
    consumer.source.resume()
    assert rows(consumer.await_next(5)) == list(range(5))


def test_a_source_partition_that_was_given_up_while_it_was_paused_is_read_when_it_is_given_again(
    broker: Broker, make_topic: Callable[..., str], reader: str
) -> None:
    """The client itself remembers the pause."""
    kafka, partition = {"bootstrap.servers": broker.bootstrap_servers}, SourcePartition(make_topic(), 0)
    producer = Producer(kafka)
    producer.produce(partition.topic, "a", partition=0)
    assert producer.flush(DEADLINE_S) == 0
    fetcher = open_fetcher(fetch_settings(kafka, group="g", queue_bytes_max=1 << 20), reader)
    with closing(fetcher):
        for _ in range(2):
            fetcher.read_from(partition, 0)
            await_that("its record", lambda: fetcher.fetch(0.1).batches, deadline_s=DEADLINE_S)
            fetcher.pause([partition])
            fetcher.drop(partition)


def test_another_client_goes_on_where_the_one_before_stood_which_is_closed(
    make: Callable[..., Consumer],
) -> None:
    consumer = make()
    consumer.rewind(0, 1)
    produce(consumer, 20)
    consumer.await_next(20)
    for more in (40, 60):
        before = consumer.source._fetcher
        consumer.source._orders.give(lambda: consumer.source._renew("a test asks for it"))
        await_that("another client", lambda before=before: consumer.source._fetcher is not before)
        produce(consumer, 20)
        assert rows(consumer.await_next(more)) == list(range(more))
        closing = consumer.source._closing
        assert closing is not None
        await_that("the end of the one before", lambda closing=closing: not closing.is_alive())
    assert not consumer.failed and not consumer.stuck


def whole_fetch(consumer: Consumer) -> None:
    """Lies between what was ordered before and the end of this."""
    for _ in range(2):
        obeyed = threading.Event()
        consumer.source._orders.give(obeyed.set)
        assert obeyed.wait(DEADLINE_S)


def test_a_source_partition_that_is_held_delivers_nothing_until_it_is_released_or_read_from_elsewhere(
    make: Callable[..., Consumer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And is none that stands still, however long it is held."""
    monkeypatch.setattr(source, "ALARM_S", 0.0)
    monkeypatch.setattr(source, "STALLED_MAX_S", 0.0)
    consumer = make()
    consumer.rewind(0, 1)
    produce(consumer, 5)
    assert rows(consumer.await_next(5)) == list(range(5))
    consumer.source.hold(consumer.partition, 1, "it waits")
    consumer.source.hold(consumer.partition, 0, "of another generation")
    whole_fetch(consumer)
    produce(consumer, 5)
    consumer.source.pause()
    consumer.source.resume()
    whole_fetch(consumer)
    consumer.source._orders.give(consumer.source._look)
    whole_fetch(consumer)
    assert consumer.await_next(5)[-1].next == 5 and consumer.source.alarms == ("it waits",)
    assert not consumer.stuck
    monkeypatch.undo()
    consumer.source.release(consumer.partition, 0)
    consumer.source.release(consumer.partition, 1)
    assert rows(consumer.await_next(10)) == list(range(10))
    await_that("its end", lambda: not consumer.source.alarms)

    consumer.source.hold(consumer.partition, 1, "it waits")
    whole_fetch(consumer)
    consumer.rewind(7, 2)
    produce(consumer, 1)
    assert rows(consumer.await_next(11, 2)) == list(range(7, 11))
    assert not consumer.source.alarms


def test_the_group_itself_says_who_owns_a_source_partition(make: Callable[..., Consumer]) -> None:
    consumer = make()
    answers: list[bool] = []
    consumer.membership.prove(consumer.partition, 0, lambda owner, why: answers.append(owner))
    consumer.membership.prove(SourcePartition("another", 0), 0, lambda owner, why: answers.append(owner))
    await_that("answers of the group", lambda: len(answers) == 2)
    assert answers == [True, False]


def test_nothing_of_before_a_rewind_comes_after_it(make: Callable[..., Consumer]) -> None:
    """A record of before would be taken for one behind a gap, and the gap for offsets without records."""
    consumer = make()
    produce(consumer, 20_000)
    for generation in range(1, 60):
        offset = generation * 7_919 % 15_000
        consumer.rewind(offset, generation)
        assert rows(consumer.await_next(offset + 1, generation))[0] == offset
    assert rows(consumer.await_next(20_000, 59)) == list(range(59 * 7_919 % 15_000, 20_000))


def test_an_end_that_was_met_before_a_rewind_passes_over_nothing_behind_it(
    make: Callable[..., Consumer],
) -> None:
    """While there is no room the client meets the log's end, and holds it for whoever fetches next."""
    consumer = make()
    produce(consumer, 20)
    for generation in range(1, 60, 2):
        consumer.room.clear()
        consumer.rewind(19, generation)
        threading.Event().wait(generation * 0.01)  # so that the end comes before, at, and after the rewind
        consumer.rewind(generation % 17, generation + 1)
        consumer.room.set()
        assert rows(consumer.await_next(20, generation + 1)) == list(range(generation % 17, 20))


def test_who_has_no_room_for_long_stays_a_member_and_loses_nothing(make: Callable[..., Consumer]) -> None:
    consumer = make()
    consumer.room.clear()
    produce(consumer, 20_000)
    consumer.rewind(0, 1)
    answers: list[bool] = []
    consumer.membership.prove(consumer.partition, 0, lambda owner, why: answers.append(owner))
    await_that("answer of the group", lambda: answers)
    assert answers == [True]
    assert not consumer.delivered
    consumer.room.set()
    assert rows(consumer.await_next(20_000)) == list(range(20_000))


def test_values_keys_of_no_value_and_times_arrive_as_they_were_sent(make: Callable[..., Consumer]) -> None:
    consumer = make()
    sent = [b"one", b"", None, b"\n", b"\x00\xff", b"x" * 100_000, "ü".encode()]
    producer = Producer(consumer.kafka)
    for number, value in enumerate(sent):
        producer.produce(consumer.topic, value, partition=0, timestamp=1_700_000_000_000 + number)
    assert producer.flush(DEADLINE_S) == 0
    consumer.rewind(0, 1)
    found = [one for one in consumer.await_next(len(sent)) if one.raw is not None]
    assert [value for one in found for value in one.raw.values] == sent
    assert sum(one.size_bytes for one in found) == sum(len(value or b"") for value in sent)
    times = [int(time) - 1_700_000_000_000 for one in found for time in one.raw.timestamps_ms]
    assert times == list(range(len(sent)))


KEYED = [
    (b"a", b"a value"),
    (b"b", None),
    (None, None),
    (b"d", b""),
    (b"", None),
    (None, b"without a key"),
    (b"b", None),
    (b"\x00\n\xff", None),
    (b"i", b"behind"),
    (b"k" * 100_000, None),
]
"""Keys and values; the offset is the index."""
TOMBSTONES = {offset: key for offset, (key, value) in enumerate(KEYED) if value is None}


def produce_keyed(kafka: dict[str, str], topic: str, partition: int) -> None:
    producer = Producer(kafka)
    for key, value in KEYED:
        producer.produce(topic, value, key=key, partition=partition)
    assert producer.flush(DEADLINE_S) == 0


def keys_by_offset(batches: list[RawBatch]) -> dict[int, bytes | None]:
    return {int(batch.offsets[index]): key for batch in batches for index, key in batch.keys.items()}


@pytest.mark.parametrize(("asked", "keys"), [(True, TOMBSTONES), (False, {})])
def test_a_null_value_comes_with_its_key_where_that_is_asked_for_and_nothing_else_does(
    broker: Broker,
    make_topic: Callable[..., str],
    reader: str,
    asked: bool,
    keys: dict[int, bytes | None],
) -> None:
    """Of two source partitions that are read together, each has its own."""
    kafka = {"bootstrap.servers": broker.bootstrap_servers}
    topic = make_topic(partitions=2)
    settings = fetch_settings(kafka, group=topic, queue_bytes_max=1 << 20)
    batches: dict[int, list[RawBatch]] = {0: [], 1: []}
    for number in batches:
        produce_keyed(kafka, topic, number)

    def complete() -> bool:
        for batch in fetcher.fetch(0.1).batches:
            batches[batch.partition.number].append(batch)
        return all(sum(map(len, found)) == len(KEYED) for found in batches.values())

    with closing(open_fetcher(settings, reader, tombstone_keys=asked)) as fetcher:
        for number in batches:
            fetcher.read_from(SourcePartition(topic, number), 0)
        await_that("records", complete, deadline_s=DEADLINE_S)
    for found in batches.values():
        assert keys_by_offset(found) == keys
        assert [value for batch in found for value in batch.values] == [value for _, value in KEYED]


@pytest.mark.parametrize("reader", ["native", "plain"])
def test_no_fetch_brings_more_records_than_may_be_decoded_at_once(
    broker: Broker, make_topic: Callable[..., str], reader: str
) -> None:
    kafka = {"bootstrap.servers": broker.bootstrap_servers}
    topic = make_topic()
    producer = Producer(kafka)
    for _ in range(3_000):
        producer.produce(topic, b"{}", partition=0)
    assert producer.flush(DEADLINE_S) == 0
    settings = fetch_settings(kafka, group=topic, queue_bytes_max=1 << 20)
    fetches: list[int] = []

    def complete() -> bool:
        fetches.append(sum(map(len, fetcher.fetch(0.1).batches)))
        return sum(fetches) == 3_000

    with closing(open_fetcher(settings, reader, records_max=700)) as fetcher:
        fetcher.read_from(SourcePartition(topic, 0), 0)
        await_that("records", complete, deadline_s=DEADLINE_S)
    assert 0 < max(fetches) <= 700


@pytest.mark.parametrize("until", [2, 7])
def test_a_batch_that_is_cut_where_reading_stops_has_the_keys_up_to_there(
    make: Callable[..., Consumer], until: int
) -> None:
    consumer = make(until=until, tombstone_keys=True)
    produce_keyed(consumer.kafka, consumer.topic, 0)
    consumer.rewind(0, 1)
    found = consumer.await_next(until)
    assert rows(found) == list(range(until))
    kept = keys_by_offset([one.raw for one in found if one.raw is not None])
    assert kept == {offset: key for offset, key in TOMBSTONES.items() if offset < until}


def test_aborted_records_and_markers_are_a_range_without_rows(make: Callable[..., Consumer]) -> None:
    consumer = make()
    producer = Producer({**consumer.kafka, "transactional.id": uuid.uuid4().hex})
    producer.init_transactions(DEADLINE_S)
    producer.begin_transaction()
    producer.produce(consumer.topic, "never", partition=0)
    producer.flush(DEADLINE_S)
    end_transaction(producer, consumer.topic, consumer.kafka, commit=False)
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


def test_an_offset_that_the_log_has_grown_up_to_since_it_was_refused_is_not_gone_on_from(
    make: Callable[..., Consumer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after an unclean election: the broker refuses the offset, and has it when asked for its bounds.

    Offsets 3 and 4 are of records that nobody has read.
    """
    consumer = make()
    produce(consumer, 3)
    refused = consumer.source._on_out_of_range

    def meanwhile(partition: SourcePartition, position: Position, text: str) -> None:
        produce(consumer, 9)
        refused(partition, position, text)

    monkeypatch.setattr(consumer.source, "_on_out_of_range", meanwhile)
    consumer.rewind(5, 1)
    assert "the log lost its end and goes on to 12 again" in consumer.await_stuck()
    assert not consumer.delivered


def test_who_leaves_is_no_member_any_more(make: Callable[..., Consumer]) -> None:
    consumer = make()
    topics = SourceTopics(consumer.kafka, [consumer.topic])
    assert [one.instance for one in topics.group_members(consumer.group)] == ["slot-0"]
    assert consumer.leave()
    assert topics.group_members(consumer.group) == []


def test_who_leaves_before_the_group_may_be_joined_never_joins(make: Callable[..., Consumer]) -> None:
    consumer = make(joins=False)
    assert consumer.leave()
    consumer.membership.start()
    assert consumer.leave()
    assert not consumer.assigned

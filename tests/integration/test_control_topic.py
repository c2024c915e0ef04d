"""The control topic on a real broker."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import pairwise

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from control_topic import end_watch
from control_topic.codec import Incomplete, Unreadable, encode
from control_topic.errors import ControlTopicRefused, ControlTopicUnavailable
from control_topic.kafka import ControlReader, ControlTopic, ControlWriter, Received
from control_topic.messages import (
    Body,
    CoordinatorClaim,
    DataFile,
    EndCommit,
    Halt,
    Message,
    ParticipantJoin,
    SourcePartition,
    StartCommit,
    WriteStatus,
)
from control_topic.refused_writes import RefusedWrites
from control_topic.trust import Trust
from lockstep.brokers.local import Broker
from participant.records import headers
from tests.broker_fixture import create_topic, delete_topic
from tests.odd_headers import produce_odd
from tests.transactions import end_transaction

pytestmark = pytest.mark.integration

DEADLINE_S = 120.0
KEY = bytes(range(32))
LARGE = WriteStatus(
    transaction="t1",
    ranges=(),
    files=tuple(
        DataFile(path=f"{n:0100d}.parquet", body=f"{n}-0", table_partition="d", rows=n, size_bytes=n)
        for n in range(12_000)
    ),
)
"""Travels in several records."""


@pytest.fixture
def kafka(broker: Broker) -> dict[str, str]:
    return {"bootstrap.servers": broker.bootstrap_servers}


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def open_writer(
    kafka: dict[str, str],
    topic: str,
    *,
    incarnation: str = "i1",
    key: bytes = KEY,
    refused: RefusedWrites | None = None,
) -> ControlWriter:
    return ControlWriter(
        kafka,
        topic,
        pipeline="events",
        run="r1",
        sender="worker-1",
        incarnation=incarnation,
        clock_ms=now_ms,
        key=key,
        refused=refused,
    )


@pytest.fixture
def topic(kafka: dict[str, str], make_topic: Callable[..., str]) -> str:
    return make_topic()


@pytest.fixture
def writer(kafka: dict[str, str], topic: str) -> Iterator[ControlWriter]:
    with closing(open_writer(kafka, topic)) as opened:
        yield opened


def read(reader: ControlReader, until: Callable[[list[Received]], bool]) -> list[Received]:
    """Everything read up to the poll after which `until` holds."""
    deadline = time.monotonic() + DEADLINE_S
    received: list[Received] = []
    while not until(received):
        assert time.monotonic() < deadline, f"not within {DEADLINE_S} s, but: {received} {reader.last_error}"
        received += reader.poll(0.2)
    return received


def bodies(received: list[Received]) -> list[Body]:
    return [r.content.body for r in received if isinstance(r.content, Message)]


def ends(first: int, following: int) -> list[Body]:
    return [EndCommit(transaction=f"t{n}") for n in range(first, following)]


def write(writer: ControlWriter, messages: list[Body], *, epoch: int = 1) -> None:
    for body in messages:
        writer.send(body, epoch=epoch)
    assert writer.flush(DEADLINE_S)
    assert writer.failures == 0


def produce_raw(kafka: dict[str, str], topic: str, values: list[bytes | None]) -> None:
    producer = Producer(kafka)
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(DEADLINE_S) == 0


# --- the topic ----------------------------------------------------------------------------------


def test_a_message_whose_headers_cannot_be_read_is_passed_over(kafka, topic, writer) -> None:
    """Anybody may write to the topic, and brokers take any bytes for a header's name."""
    produce_odd(kafka, topic, headers.pack([("\udcff", b"v")]), count=100)
    write(writer, ends(0, 1))
    with closing(ControlReader(kafka, topic, start="beginning")) as reader:
        assert bodies(read(reader, lambda received: len(bodies(received)) == 1)) == ends(0, 1)


@pytest.mark.parametrize(
    ("setting", "hint"),
    [({"cleanup.policy": "compact"}, "set it to delete"), ({"max.message.bytes": "80"}, "max.message.bytes")],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_topic_that_refuses_messages_is_noted_with_what_helps(
    kafka: dict[str, str], make_topic: Callable[..., str], setting: dict[str, str], hint: str
) -> None:
    name = make_topic(config=setting)
    refused = RefusedWrites(name)
    with closing(open_writer(kafka, name, refused=refused)) as writer:
        writer.send(ends(0, 1)[0], epoch=1)
        writer.flush(DEADLINE_S)
        assert writer.failures == 1
    assert hint in refused.alarm(time.monotonic())


def test_a_missing_topic_is_made_with_one_partition_and_kept_by_time(kafka, topic) -> None:
    name = f"{topic}-new"
    control = ControlTopic(kafka, name)
    assert not control.describe().exists
    control.ensure(timeout_s=DEADLINE_S)
    facts = control.describe()
    assert (facts.exists, facts.partitions) == (True, 1)
    control.ensure(timeout_s=DEADLINE_S)
    assert control.describe() == facts


def test_a_topic_with_more_partitions_is_refused_with_what_to_do(kafka, make_topic) -> None:
    name = make_topic(partitions=3)
    with pytest.raises(ControlTopicRefused, match=f"{name} has 3 partitions .* delete it"):
        ControlTopic(kafka, name).ensure(timeout_s=DEADLINE_S)


def test_a_compacted_topic_is_refused_with_what_to_do(kafka, make_topic) -> None:
    name = make_topic(config={"cleanup.policy": "compact"})
    with pytest.raises(ControlTopicRefused, match=r"cleanup\.policy=compact.* set it to delete"):
        ControlTopic(kafka, name).ensure(timeout_s=DEADLINE_S)


def test_a_topic_that_is_made_again_has_another_id(kafka, topic) -> None:
    before = ControlTopic(kafka, topic).describe()
    delete_topic(kafka["bootstrap.servers"], topic)
    create_topic(kafka["bootstrap.servers"], topic)
    after = ControlTopic(kafka, topic).describe()
    assert before.topic_id != after.topic_id


def test_a_broker_that_is_not_there_is_named_with_what_to_check() -> None:
    with pytest.raises(ControlTopicUnavailable, match=r"control-x .* source\.bootstrap_servers"):
        ControlTopic({"bootstrap.servers": "127.0.0.1:1"}, "control-x").ensure(timeout_s=1.0)


# --- reading and writing ------------------------------------------------------------------------


def test_messages_arrive_whole_and_in_order(kafka, topic, writer) -> None:
    t0, t1 = SourcePartition("t", 0), SourcePartition("t", 1)
    start = StartCommit(transaction="t1", instant="1", committed={t0: 5, t1: 0}, writers={t0: "a", t1: "b"})
    sent = [CoordinatorClaim(), start, *ends(0, 1_000)]
    before_ms = now_ms()
    write(writer, sent, epoch=7)
    with closing(ControlReader(kafka, topic, start="beginning", pipeline="events")) as reader:
        received = read(reader, lambda got: len(got) >= len(sent))
        assert reader.caught_up
        assert reader.highest_epoch == 7
    assert bodies(received) == sent
    assert [r.offset for r in received] == list(range(len(sent)))
    assert [r.content.sequence for r in received if isinstance(r.content, Message)] == list(range(len(sent)))
    assert all(before_ms - 1_000 <= r.time_ms <= now_ms() + 1_000 for r in received)


def test_every_reader_sees_the_same_order_of_two_senders(kafka, topic, writer) -> None:
    with closing(open_writer(kafka, topic, incarnation="i2")) as other:
        for n in range(50):
            writer.send(EndCommit(transaction=f"a{n}"), epoch=1)
            other.send(EndCommit(transaction=f"b{n}"), epoch=1)
        assert writer.flush(DEADLINE_S)
        assert other.flush(DEADLINE_S)
    seen = []
    for _ in range(2):
        with closing(ControlReader(kafka, topic, start="beginning")) as reader:
            seen.append(bodies(read(reader, lambda got: len(got) >= 100)))
    assert seen[0] == seen[1]
    assert [b for b in seen[0] if b.transaction.startswith("a")] == [
        EndCommit(transaction=f"a{n}") for n in range(50)
    ]


def test_a_message_larger_than_a_record_arrives_joined(kafka, topic, writer) -> None:
    write(writer, [LARGE, EndCommit(transaction="after")])
    with closing(ControlReader(kafka, topic, start="beginning")) as reader:
        assert bodies(read(reader, lambda got: len(got) >= 2)) == [LARGE, EndCommit(transaction="after")]
    with closing(ControlReader(kafka, topic, start="beginning", surface_parts=True)) as reader:
        received = read(reader, lambda got: len(bodies(got)) >= 2)
    assert sum(isinstance(r.content, Incomplete) for r in received) >= 2
    assert max(r.size_bytes for r in received) < 1_000_000


def test_foreign_bytes_between_messages_are_shown_and_stop_nothing(kafka, topic, writer) -> None:
    write(writer, ends(0, 1))
    later = Message(
        pipeline="events",
        run="r",
        epoch=99,
        sender="s",
        incarnation="i",
        sequence=0,
        sent_at_ms=0,
        body=Halt(reason="x"),
        version=2,
    )
    produce_raw(kafka, topic, [b"not a message", None, b"", *encode(later)])
    write(writer, ends(1, 2))
    with closing(ControlReader(kafka, topic, start="beginning")) as reader:
        received = read(reader, lambda got: len(got) >= 6)
        assert (reader.unreadable, reader.highest_epoch) == (4, 1)
    assert bodies(received) == ends(0, 2)
    assert [isinstance(r.content, Unreadable) for r in received] == [False, True, True, True, True, False]


@pytest.mark.parametrize(
    ("start", "expected"), [("beginning", 0), ("tail", 7), ("end", 10), (4, 4), (99, 10), (-5, 0)]
)
def test_a_reader_begins_where_it_was_told(kafka, topic, writer, start, expected) -> None:
    write(writer, ends(0, 10))
    with closing(ControlReader(kafka, topic, start=start, tail_messages=3)) as reader:
        read(reader, lambda got: reader.caught_up)
        write(writer, ends(10, 11))
    with closing(ControlReader(kafka, topic, start=start, tail_messages=3)) as reader:
        wanted = expected + 1 if start in ("tail", "end", 99) else expected  # one more is there by now
        received = read(reader, lambda got: reader.caught_up)
        assert bodies(received) == ends(wanted, 11)


def test_a_reader_of_an_empty_topic_has_caught_up(kafka, topic) -> None:
    with closing(ControlReader(kafka, topic)) as reader:
        assert not reader.caught_up
        assert read(reader, lambda got: reader.caught_up) == []


def test_a_reader_that_is_asked_for_the_end_anew_has_caught_up_when_it_comes_there(
    kafka, topic, writer
) -> None:
    write(writer, ends(0, 3))
    with closing(ControlReader(kafka, topic, start="beginning")) as reader:
        assert len(read(reader, lambda got: reader.caught_up)) == 3
        write(writer, ends(3, 900))
        assert reader.caught_up, "as far as it went when reading began"
        reader.ask_for_end(DEADLINE_S)
        assert not reader.caught_up
        assert len(read(reader, lambda got: reader.caught_up)) == 897
        reader.ask_for_end(DEADLINE_S)
        assert reader.caught_up


def test_a_reader_has_caught_up_though_the_log_ends_with_what_is_no_message(kafka, topic) -> None:
    """The mark of a transaction that somebody gave up: it has an offset, and is given to nobody."""
    with closing(ControlReader(kafka, topic, start="beginning")) as reader:
        read(reader, lambda got: reader.caught_up)
        stranger = Producer({**kafka, "transactional.id": topic})
        stranger.init_transactions(DEADLINE_S)
        stranger.begin_transaction()
        stranger.produce(topic, b"no message")
        stranger.flush(DEADLINE_S)
        end_transaction(stranger, topic, kafka, commit=False)
        for _ in range(2):
            reader.ask_for_end(DEADLINE_S)
            read(reader, lambda got: reader.caught_up)


def test_a_poll_gives_less_where_messages_are_large(kafka, topic, writer) -> None:
    """Each is held until all of a poll are: 500 that somebody wrote would be gigabytes."""
    large = ParticipantJoin(partitions=tuple(SourcePartition("t", number) for number in range(100_000)))
    write(writer, [large] * 12)
    with closing(ControlReader(kafka, topic, start="beginning")) as reader:
        polls = []
        read(reader, lambda got: reader.caught_up or polls.append(len(got)))
        most = max(after - before for before, after in pairwise([0, *polls]))
        assert 1 <= most <= 5
        assert reader.bodies_bytes > 12 * 200_000


def test_a_worker_hears_what_its_runs_key_has_marked_and_a_warning_tells_of_the_rest(
    kafka, topic, writer, caplog
) -> None:
    forged = Message(
        pipeline="events",
        run="r1",
        epoch=99,
        sender="worker-1",
        incarnation="i1",
        sequence=2**62,
        sent_at_ms=0,
        body=Halt(reason="a stranger says so"),
    )
    produce_raw(kafka, topic, encode(forged))
    with closing(open_writer(kafka, topic, key=bytes(32))) as stranger:
        write(stranger, ends(90, 92), epoch=99)
    write(writer, [LARGE, *ends(0, 2)])
    trust = Trust(pipeline="events", run="r1", key=KEY)
    with closing(ControlReader(kafka, topic, start="beginning", pipeline="events", trust=trust)) as reader:
        received = read(reader, lambda got: len(bodies(got)) >= 3)
        assert bodies(received) == [LARGE, *ends(0, 2)]
        assert all(one.marked for one in received)
        assert (reader.untrusted, reader.forged, reader.highest_epoch) == (3, 3, 1)
    assert "are in this run's name and not of it" in caplog.text
    with closing(ControlReader(kafka, topic, start="beginning")) as reader:  # nobody needs the key to read
        assert len(bodies(read(reader, lambda got: len(bodies(got)) >= 6))) == 6


def test_only_the_given_pipeline_raises_the_highest_epoch(kafka, topic, writer) -> None:
    write(writer, ends(0, 1), epoch=12)
    with closing(ControlReader(kafka, topic, pipeline="another")) as reader:
        assert len(read(reader, lambda got: reader.caught_up)) == 1
        assert reader.highest_epoch == 0


# --- what happens to topics ---------------------------------------------------------------------


def test_a_topic_deleted_and_made_again_is_read_on_from_what_is_new(kafka, topic, writer) -> None:
    write(writer, ends(0, 20))
    with closing(ControlReader(kafka, topic, start="beginning")) as reader:
        assert bodies(read(reader, lambda got: len(got) >= 20)) == ends(0, 20)
        delete_topic(kafka["bootstrap.servers"], topic)
        assert reader.poll(0.5) == []
        create_topic(kafka["bootstrap.servers"], topic)
        with closing(open_writer(kafka, topic)) as other:
            write(other, ends(100, 103))
            received = read(reader, lambda got: bool(got) and got[-1].offset == 2)[-3:]
        assert bodies(received) == ends(100, 103)
        assert [r.offset for r in received] == [0, 1, 2]
        assert reader.recoveries >= 1, "again where its consumer has not heard of the new topic yet"


def test_of_a_topic_made_again_nothing_is_skipped_though_it_is_longer_than_what_was_read(
    kafka, topic, writer
) -> None:
    """Then the old position is one of the new log's, too, and the client reads on from there."""
    write(writer, ends(0, 3))
    with closing(ControlReader(kafka, topic, start="beginning")) as reader:
        read(reader, lambda got: len(got) >= 3)
        delete_topic(kafka["bootstrap.servers"], topic)
        create_topic(kafka["bootstrap.servers"], topic)
        with closing(open_writer(kafka, topic)) as other:
            write(other, ends(100, 110))
        wanted = ends(100, 110)
        received = read(reader, lambda got: all(body in bodies(got) for body in wanted))
        assert bodies(received)[-10:] == wanted
        assert reader.recoveries >= 1


def test_a_topic_made_again_with_more_partitions_is_noticed_and_still_read(
    kafka, topic, writer, caplog
) -> None:
    write(writer, ends(0, 5))
    with closing(ControlReader(kafka, topic, start="beginning")) as reader:
        read(reader, lambda got: len(got) >= 5)
        assert reader.partitions == 1
        delete_topic(kafka["bootstrap.servers"], topic)
        create_topic(kafka["bootstrap.servers"], topic, partitions=3)
        with closing(open_writer(kafka, topic)) as other:
            write(other, ends(100, 103))
            received = read(reader, lambda got: bool(got) and got[-1].offset == 2)[-3:]
        assert bodies(received) == ends(100, 103)
        assert reader.partitions == 3
    assert f"The control topic {topic} has 3 partitions now" in caplog.text


def test_a_writer_goes_on_after_its_topic_was_made_again(kafka, topic, writer) -> None:
    write(writer, ends(0, 3))
    delete_topic(kafka["bootstrap.servers"], topic)
    create_topic(kafka["bootstrap.servers"], topic)
    with closing(ControlReader(kafka, topic, start="beginning")) as reader:
        deadline = time.monotonic() + DEADLINE_S
        received: list[Received] = []
        while not received and time.monotonic() < deadline:
            writer.send(EndCommit(transaction="again"), epoch=1)
            received = reader.poll(0.2)
        assert bodies(received)[:1] == [EndCommit(transaction="again")]


def test_a_reader_whose_records_were_removed_goes_on_with_what_is_left(kafka, topic, writer) -> None:
    write(writer, ends(0, 10))
    admin = AdminClient(kafka)
    partition = TopicPartition(topic, 0, 8)
    admin.delete_records([partition])[partition].result(DEADLINE_S)
    with closing(ControlReader(kafka, topic, start=2)) as reader:
        assert bodies(read(reader, lambda got: len(got) >= 2)) == ends(8, 10)


def test_a_consumer_that_hangs_is_another_one_which_reads_on_where_it_was(
    kafka, topic, writer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Paused here, it brings nothing and asks the broker all else, as one that waits for a lost answer."""
    monkeypatch.setattr(end_watch, "QUIET_S", 0.5)
    write(writer, ends(0, 1))
    with closing(ControlReader(kafka, topic, start="beginning", pipeline="events")) as reader:
        assert bodies(read(reader, bool)) == ends(0, 1)
        for number in (1, 2):
            hung = reader._consumer
            hung.pause([TopicPartition(topic, 0)])
            write(writer, ends(number, number + 1))
            assert bodies(read(reader, bool)) == ends(number, number + 1)
            assert reader._consumer is not hung and reader.recoveries == 0
    assert caplog.text.count("Created another consumer of the control topic") == 2


def test_a_reader_of_a_topic_that_is_not_there_waits_for_it(kafka, topic) -> None:
    name = f"{topic}-later"
    with closing(ControlReader(kafka, name, start="beginning")) as reader:
        assert reader.poll(0.3) == []
        assert not reader.caught_up
        create_topic(kafka["bootstrap.servers"], name)
        with closing(open_writer(kafka, name)) as other:
            write(other, ends(0, 2))
        assert bodies(read(reader, lambda got: len(got) >= 2)) == ends(0, 2)


def test_nothing_is_raised_while_no_broker_answers() -> None:
    nowhere = {"bootstrap.servers": "127.0.0.1:1", "reconnect.backoff.max.ms": "100"}
    with (
        closing(ControlReader(nowhere, "control-x")) as reader,
        closing(open_writer(nowhere, "control-x")) as writer,
    ):
        writer.send(EndCommit(transaction="t"), epoch=1)
        assert read(reader, lambda _received: reader.errors > 0) == []
        assert not reader.caught_up
        assert not writer.flush(0.2)

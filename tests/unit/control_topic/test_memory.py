"""The control topic in memory behaves as the one in Kafka does."""

from __future__ import annotations

import threading

import pytest

from control_topic.codec import Incomplete, Unreadable
from control_topic.memory import MemoryReader, MemoryTopic, MemoryWriter
from control_topic.messages import DataFile, EndCommit, Message, WriteStatus
from control_topic.transport import Reader, Received, Writer

DEADLINE_S = 10.0
KEY = bytes(range(32))


@pytest.fixture
def topic() -> MemoryTopic:
    return MemoryTopic(clock_ms=lambda: 42)


@pytest.fixture
def writer(topic: MemoryTopic) -> Writer:
    return MemoryWriter(
        topic, pipeline="events", run="r1", sender="w", incarnation="i1", clock_ms=lambda: 41, key=KEY
    )


def ends(writer: Writer, first: int, following: int, *, epoch: int = 1) -> None:
    for n in range(first, following):
        writer.send(EndCommit(transaction=f"t{n}"), epoch=epoch)


def transactions(received: list[Received]) -> list[str]:
    return [r.content.transaction for r in received if isinstance(r.content, Message)]


def test_every_reader_sees_all_in_the_same_order(topic, writer) -> None:
    readers: list[Reader] = [MemoryReader(topic, start="beginning") for _ in range(3)]
    ends(writer, 0, 3, epoch=5)
    for reader in readers:
        received = reader.poll(0)
        assert transactions(received) == ["t0", "t1", "t2"]
        assert [(r.offset, r.time_ms) for r in received] == [(0, 42), (1, 42), (2, 42)]
        assert [r.content.sequence for r in received] == [0, 1, 2]
        assert reader.highest_epoch == 5
        assert reader.poll(0) == []


@pytest.mark.parametrize(
    ("start", "expected"), [("beginning", 0), ("tail", 7), ("end", 10), (4, 4), (99, 10), (-5, 0)]
)
def test_a_reader_begins_where_it_was_told(topic, writer, start, expected) -> None:
    ends(writer, 0, 10)
    reader = MemoryReader(topic, start=start, tail_messages=3)
    ends(writer, 10, 11)
    assert transactions(reader.poll(0)) == [f"t{n}" for n in range(expected, 11)]


def test_a_reader_has_caught_up_when_it_has_read_what_was_there_at_its_start(topic, writer) -> None:
    assert MemoryReader(topic).caught_up
    ends(writer, 0, 600)
    reader = MemoryReader(topic)
    assert not reader.caught_up
    assert len(reader.poll(0)) == 500
    assert not reader.caught_up
    assert len(reader.poll(0)) == 100
    assert reader.caught_up


def test_foreign_bytes_are_shown_and_stop_nothing(topic, writer) -> None:
    topic.append(b"not a message")
    topic.append(None)
    ends(writer, 0, 1)
    received = MemoryReader(topic).poll(0)
    assert [isinstance(r.content, Unreadable) for r in received] == [True, True, False]


def test_a_large_message_arrives_joined(topic, writer) -> None:
    files = tuple(
        DataFile(path=f"{n:0100d}", body=str(n), table_partition="", rows=n, size_bytes=n)
        for n in range(6_000)
    )
    status = WriteStatus(transaction="t", ranges=(), files=files)
    writer.send(status, epoch=1)
    (received,) = MemoryReader(topic).poll(0)
    assert received.content.body == status
    surfaced = MemoryReader(topic, surface_parts=True).poll(0)
    assert [type(r.content) for r in surfaced] == [Incomplete, Message]


def test_a_topic_made_again_is_read_on_from_what_is_new(topic, writer) -> None:
    ends(writer, 0, 5)
    reader = MemoryReader(topic)
    reader.poll(0)
    topic.recreate()
    ends(writer, 5, 7)
    assert reader.poll(0) == []
    assert transactions(reader.poll(0)) == ["t5", "t6"]
    assert reader.recoveries == 1


def test_a_reader_whose_records_were_removed_goes_on_with_what_is_left(topic, writer) -> None:
    ends(writer, 0, 10)
    reader = MemoryReader(topic, start="beginning")
    topic.truncate(8)
    assert topic.bounds() == (8, 10)
    assert reader.poll(0) == []
    assert transactions(reader.poll(0)) == ["t8", "t9"]


def test_a_waiting_reader_is_woken_by_the_first_message(topic, writer) -> None:
    reader = MemoryReader(topic)
    received: list[Received] = []
    thread = threading.Thread(target=lambda: received.extend(reader.poll(DEADLINE_S)))
    thread.start()
    ends(writer, 0, 1)
    thread.join(DEADLINE_S)
    assert transactions(received) == ["t0"]


def test_only_the_given_pipeline_raises_the_highest_epoch(topic, writer) -> None:
    ends(writer, 0, 1, epoch=9)
    for pipeline, expected in (("events", 9), ("", 9), ("another", 0)):
        reader = MemoryReader(topic, pipeline=pipeline)
        reader.poll(0)
        assert reader.highest_epoch == expected

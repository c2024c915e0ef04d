"""Whose word on the control topic a worker takes, and what anybody else can do to it: nothing."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from control_topic.codec import encode
from control_topic.memory import MemoryReader, MemoryTopic, MemoryWriter
from control_topic.messages import (
    EPOCH_LEAD_MAX,
    DataFile,
    EndCommit,
    Halt,
    Message,
    ParticipantReady,
    WriteStatus,
)
from control_topic.trust import MAC_BYTES, Trust, mark
from participant.worker.spec import WorkerSpec
from table.port import TableLayout

KEY = bytes(range(32))
OTHER_KEY = bytes(32)
TABLE_EPOCH = 5
TRUST = Trust(pipeline="events", run="r1", key=KEY, table_epoch=TABLE_EPOCH)
READY = Message(
    pipeline="events",
    run="r1",
    epoch=6,
    sender="worker-0",
    incarnation="i1",
    sequence=0,
    sent_at_ms=0,
    body=ParticipantReady(),
)


@pytest.fixture
def topic() -> MemoryTopic:
    return MemoryTopic(clock_ms=lambda: 42)


def open_writer(topic: MemoryTopic, *, key: bytes = KEY, run: str = "r1") -> MemoryWriter:
    return MemoryWriter(
        topic, pipeline="events", run=run, sender="w", incarnation="i1", clock_ms=lambda: 41, key=key
    )


def heard(reader: MemoryReader) -> list[object]:
    return [one.content.body for one in reader.poll(0) if isinstance(one.content, Message)]


def test_a_worker_hears_its_own_run_and_nobody_else(topic: MemoryTopic) -> None:
    reader = MemoryReader(topic, start="beginning", pipeline="events", trust=TRUST)
    open_writer(topic).send(EndCommit(transaction="ours"), epoch=6)
    open_writer(topic, key=OTHER_KEY).send(Halt(reason="forged"), epoch=6)
    open_writer(topic, key=OTHER_KEY, run="r2").send(Halt(reason="another run's"), epoch=9)
    (bare,) = encode(replace(READY, body=Halt(reason="without a mark")))
    topic.append(bare)
    for mac in (b"", b"\0" * MAC_BYTES, mark(KEY, bare)[:-1], mark(KEY, bare + b"x"), mark(OTHER_KEY, bare)):
        topic.append(bare, mac)
    topic.append(None, mark(KEY, b""))
    assert heard(reader) == [EndCommit(transaction="ours")]
    assert reader.highest_epoch == 6
    receiver = reader._receiver
    assert (receiver.untrusted, receiver.forged, receiver.last_forged) == (9, 7, 8)


@pytest.mark.parametrize("place", ["value", "mac"])
def test_a_mark_fits_only_the_very_bytes(place: str) -> None:
    (raw,) = encode(READY)
    mac = mark(KEY, raw)
    assert TRUST.authentic(raw, mac)
    target = raw if place == "value" else mac
    for bit in range(8 * len(target)):
        damaged = bytearray(target)
        damaged[bit // 8] ^= 1 << bit % 8
        pair = (bytes(damaged), mac) if place == "value" else (raw, bytes(damaged))
        assert not TRUST.authentic(*pair)


def test_what_is_not_trusted_takes_no_room_among_the_parts_of_large_messages(topic: MemoryTopic) -> None:
    file = DataFile(path="x" * 10_000, body="f", table_partition="", rows=1, size_bytes=1)
    status = WriteStatus(transaction="t", ranges=(), files=(file,) * 100)
    open_writer(topic, key=OTHER_KEY).send(status, epoch=6)
    topic.truncate(1)  # the first part is gone, and the others wait for it where they are believed
    believing = MemoryReader(topic, start="beginning")
    believing.poll(0)
    assert believing._receiver._decoder.joiner.pending_bytes > 0
    reader = MemoryReader(topic, start="beginning", trust=TRUST)
    reader.poll(0)
    assert reader._receiver._decoder.joiner.pending_bytes == 0
    open_writer(topic).send(status, epoch=6)
    assert heard(reader) == [status]


@pytest.mark.parametrize("beyond", [1, EPOCH_LEAD_MAX, 2**63, 2**64 - 1 - TABLE_EPOCH - EPOCH_LEAD_MAX])
def test_an_epoch_far_beyond_the_tables_is_nobodys_whoever_says_it(topic: MemoryTopic, beyond: int) -> None:
    reader = MemoryReader(topic, start="beginning", pipeline="events", trust=TRUST)
    writer = open_writer(topic)
    writer.send(ParticipantReady(), epoch=TABLE_EPOCH + EPOCH_LEAD_MAX + beyond)
    assert heard(reader) == []
    assert reader.highest_epoch == 0
    writer.send(ParticipantReady(), epoch=TABLE_EPOCH + EPOCH_LEAD_MAX)
    assert heard(reader) == [ParticipantReady()]


def test_what_our_own_key_marked_in_anothers_name_is_not_heard(topic: MemoryTopic) -> None:
    reader = MemoryReader(topic, start="beginning", trust=TRUST)
    open_writer(topic, run="r2").send(Halt(reason="x"), epoch=6)
    assert heard(reader) == []


def test_reading_needs_no_key_and_says_what_carries_a_mark(topic: MemoryTopic) -> None:
    open_writer(topic).send(EndCommit(transaction="t"), epoch=6)
    topic.append(encode(READY)[0])
    received = MemoryReader(topic, start="beginning").poll(0)
    assert [(type(one.content), one.marked) for one in received] == [(Message, True), (Message, False)]


def test_a_key_of_another_length_is_none() -> None:
    with pytest.raises(ValueError, match="a key of 3 bytes"):
        replace(TRUST, key=b"abc")


def test_nothing_that_is_printed_shows_the_key(caplog: pytest.LogCaptureFixture) -> None:
    spec = WorkerSpec(
        pipeline="events",
        run="r1",
        workers=1,
        kafka={},
        topics=("events",),
        control_topic="events-control",
        table_address="127.0.0.1:1",
        token="a-token",
        key=KEY,
        table_epoch=TABLE_EPOCH,
        layout=TableLayout(
            kind="hudi",
            path="/t",
            key_fields=(),
            partition_fields=(),
            kafka_columns=True,
            target_file_bytes=1,
            ddl="a INT",
        ),
        interval_ms=1,
        write_timeout_ms=1,
        memory_bytes=1,
    )
    assert spec.trust == TRUST
    with caplog.at_level(logging.DEBUG):
        logging.getLogger("x").info("%s %r %s", spec, spec, spec.trust)
    for shown in (caplog.text, repr(spec), str(spec.trust)):
        assert repr(KEY) not in shown
        assert KEY.hex() not in shown
        assert "a-token" not in shown

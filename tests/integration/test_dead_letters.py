"""Dead letters on a real broker: whole, durable, bounded; refused where they cannot be; by both senders."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from control_topic.messages import SourcePartition
from lockstep.brokers.dead_letter_topics import ROOM_BYTES, DeadLetterTopics
from lockstep.brokers.local import Broker
from lockstep.errors import Failed
from participant.errors import DeadLetterError, DeadLetterRefused
from participant.records import headers
from participant.records.raw import RawBatch, Values
from participant.records.rejects import HeldRejects, Rejects
from participant.source import dead_letters as dead_letter
from participant.source.dead_letters import DeadLetters
from participant.source.fetcher import fetch_settings
from participant.source.letter_senders import PIECES_MAX, NativeSender, PlainSender, producer_settings
from participant.source.native import open_fetcher
from tests.broker_fixture import create_topic, set_produce_quota
from tests.harness import await_that
from tests.odd_headers import produce_odd

DEADLINE_S = 120.0
HEADERS = [("trace", b"\x00\xff"), ("trace", None), ("", b""), ("ünicode", b"x" * 300)]
RECORDS: list[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]], int]] = [
    (b"k1", b"not json", HEADERS, 1_000_000_000_001),
    (None, b"no key", [], 1_000_000_000_002),
    (b"tombstone's", None, [], 1_000_000_000_003),
    (b"", b"", [], 1_000_000_000_004),
]
"""Key, value, headers, timestamp."""
KEPT = {"retention.ms": "-1"}
"""By these timestamps a topic has nothing to keep, whenever the broker looks."""


@pytest.fixture
def kafka(broker: Broker) -> dict[str, str]:
    return {"bootstrap.servers": broker.bootstrap_servers}


@pytest.fixture(params=[NativeSender, PlainSender], ids=["native", "plain"])
def letters(
    request: pytest.FixtureRequest, kafka: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., DeadLetters]:
    """Makes dead letters that one of the two senders sends."""
    monkeypatch.setattr(dead_letter, "open_sender", request.param)
    return lambda topic, **limits: DeadLetters(kafka, topic, **{"bytes_max": 1 << 20, **limits})


def read(kafka: dict[str, str], topic: str, count: int) -> list[Message]:
    """All that the topic's one partition holds, which must be so many."""
    consumer = Consumer({**kafka, "group.id": "reader", "fetch.message.max.bytes": 10_000_000})
    with closing(consumer):
        place = TopicPartition(topic, 0, 0)
        consumer.assign([place])
        found: list[Message] = []
        deadline = time.monotonic() + DEADLINE_S
        while len(found) < count:
            assert time.monotonic() < deadline, f"{len(found)} of {count} in {topic}"
            found += [m for m in consumer.consume(1_000, 0.2) if m.error() is None]
        assert consumer.get_watermark_offsets(place, timeout=DEADLINE_S)[1] == count
    return found


def held(
    topic: str, values: list[bytes | None], *, first: int = 0, number: int = 3, reason: str = "bad"
) -> HeldRejects:
    offsets = np.arange(first, first + len(values), dtype=np.int64)
    batch = RawBatch(
        partition=SourcePartition(topic, number),
        offsets=offsets,
        timestamps_ms=offsets + 5,
        values=Values.of(values),
    )
    return HeldRejects.of(batch, Rejects.of(dict.fromkeys(range(len(values)), reason), offsets))


@pytest.mark.parametrize("reader", ["native", "plain"])
def test_a_dead_letter_carries_value_key_headers_and_timestamp_of_its_record(
    kafka: dict[str, str],
    make_topic: Callable[..., str],
    letters: Callable[..., DeadLetters],
    reader: str,
) -> None:
    source, dead = make_topic(config=KEPT), make_topic()
    producer = Producer(kafka)
    for key, value, sent, timestamp in RECORDS:
        producer.produce(source, value, key, headers=sent, timestamp=timestamp)
    assert producer.flush(DEADLINE_S) == 0
    settings = fetch_settings(kafka, group=source, queue_bytes_max=1 << 20)
    batches: list[RawBatch] = []
    with closing(open_fetcher(settings, reader, whole=True)) as fetcher:
        fetcher.read_from(SourcePartition(source, 0), 0)
        deadline = time.monotonic() + DEADLINE_S
        while sum(map(len, batches)) < len(RECORDS):
            assert time.monotonic() < deadline
            batches += fetcher.fetch(0.1).batches
    out = letters(dead, run="run-1")
    out.send(
        HeldRejects.of(b, Rejects.of({i: f"why {i}" for i in range(len(b))}, b.offsets)) for b in batches
    )
    out.close()
    found = read(kafka, dead, len(RECORDS))
    for offset, (message, (key, value, sent, timestamp)) in enumerate(zip(found, RECORDS, strict=True)):
        assert message.key() == f"{source}-0-{offset}".encode()
        assert message.value() == value
        told = message.headers()
        assert told[: len(sent)] == sent
        ours = dict(told[len(sent) :])
        assert ours.pop("lockstep.key", None) == key
        assert ours.pop("lockstep.reason").startswith(b"why ")
        assert ours == {
            "lockstep.topic": source.encode(),
            "lockstep.partition": b"0",
            "lockstep.offset": str(offset).encode(),
            "lockstep.timestamp": str(timestamp).encode(),
            "lockstep.run": b"run-1",
        }
        assert message.timestamp()[1] > timestamp, "retention would count from when the record was made"


def test_headers_are_the_same_after_they_were_packed() -> None:
    assert headers.unpack(headers.pack(HEADERS)) == HEADERS
    odd = [("\udcff-name", b"v"), ("a\0b", None)]
    assert headers.unpack(headers.pack(odd)) == odd


MANY = headers.pack([("h", None)] * 100_001)
CUT = (headers.NOTE, b"a name has a NUL: it is given up to there")
NONE = (headers.NOTE, b"none could be read")


@pytest.mark.parametrize(
    ("sent", "by_native", "by_plain"),
    [
        (headers.pack([("\udcff", b"v"), ("ok", b"w")]), [("\udcff", b"v"), ("ok", b"w")], None),
        (
            headers.pack([("a\0b", b"v"), ("ok", b"w")]),
            [("a", b"v"), ("ok", b"w"), CUT],
            [("a", b"v"), ("ok", b"w")],
        ),
        (
            headers.pack([("a", None), ("a\0b", None)]),
            [("a", None), ("a", None), CUT],
            [("a", None), ("a", None)],
        ),
        (
            headers.pack([("a\0b", b"v")] + [("h", b"")] * 99),
            [("a", b"v"), *[("h", b"")] * 99, CUT],
            [("a", b"v"), *[("h", b"")] * 99],
        ),
        (MANY, [NONE], []),
    ],
    ids=["no UTF-8", "NUL", "NUL, null", "NUL of many", "more than librdkafka reads"],
)
@pytest.mark.parametrize("reader", ["native", "plain"])
def test_a_record_with_odd_headers_is_read_and_its_dead_letter_says_what_of_them_could_not_be(
    kafka: dict[str, str],
    make_topic: Callable[..., str],
    letters: Callable[..., DeadLetters],
    reader: str,
    sent: bytes,
    by_native: list[headers.Header],
    by_plain: list[headers.Header] | None,
) -> None:
    """Brokers take any bytes for a header's name, and many clients send them."""
    source, dead = make_topic(), make_topic()
    produce_odd(kafka, source, sent)
    [batch] = fetch_whole(kafka, source, reader)
    assert list(batch.values) == [b"nope"]
    out = letters(dead)
    out.send([HeldRejects.of(batch, Rejects.of({0: "why"}, batch.offsets))])
    out.close()
    [letter] = fetch_whole(kafka, dead, "native")
    assert list(letter.values) == [b"nope"] and letter.headers is not None
    found = headers.unpack(letter.headers[0] or b"")
    assert [value for name, value in found if name == "lockstep.reason"][-1] == b"why"
    own = [one for one in found if one[0] == headers.NOTE or not one[0].startswith("lockstep.")]
    expected = by_native if reader == "native" else by_plain
    if expected is None:
        assert own == [(headers.NOTE, headers.NO_UTF8)]
    elif sent is not MANY or reader == "native":
        replaced = [(name.replace("\udcff", "\ufffd"), value) for name, value in expected]
        assert own in (expected, [*replaced, (headers.NOTE, headers.REPLACED)])


def test_a_thousand_records_with_odd_headers_are_read_as_one_is(
    kafka: dict[str, str], make_topic: Callable[..., str]
) -> None:
    """Python's own calls are other ones once they are warm: then what confluent-kafka answers ended it."""
    topic = make_topic()
    produce_odd(kafka, topic, headers.pack([("\udcff", b"v"), ("ok", b"w")]), count=1_000)
    batches = fetch_whole(kafka, topic, "plain", count=1_000)
    assert {one for batch in batches for one in batch.headers or ()} == {headers.UNREADABLE}


def fetch_whole(kafka: dict[str, str], topic: str, reader: str, *, count: int = 1) -> list[RawBatch]:
    """So many records of the topic."""
    found: list[RawBatch] = []

    def complete() -> bool:
        found.extend(fetcher.fetch(0.1).batches)
        return sum(map(len, found)) >= count

    settings = fetch_settings(kafka, group=topic, queue_bytes_max=1 << 20)
    with closing(open_fetcher(settings, reader, whole=True)) as fetcher:
        fetcher.read_from(SourcePartition(topic, 0), 0)
        await_that("records", complete, deadline_s=DEADLINE_S)
    return found


def test_many_pass_through_a_small_bound_and_one_that_exceeds_it_does_too(
    kafka: dict[str, str], make_topic: Callable[..., str], letters: Callable[..., DeadLetters]
) -> None:
    dead = make_topic()
    out = letters(dead, bytes_max=50_000)
    out.send([held("t", [b"x" * (i % 50) for i in range(5_000)]), held("u", [b"y" * 400_000])])
    out.close()
    found = read(kafka, dead, 5_001)
    assert [m.key() for m in found[:5_000]] == [f"t-3-{i}".encode() for i in range(5_000)]


def test_what_the_broker_has_is_not_sent_again_when_a_transaction_is_done_again(
    kafka: dict[str, str], make_topic: Callable[..., str], letters: Callable[..., DeadLetters]
) -> None:
    dead = make_topic()
    out = letters(dead)
    out.send([held("t", [b"a"] * 10)])
    out.send([held("t", [b"a"] * 15), held("u", [b"b"])])
    out.close()
    assert len({m.key() for m in read(kafka, dead, 16)}) == 16


def test_a_record_of_megabytes_is_a_dead_letter_in_a_topic_that_was_made_for_it(
    kafka: dict[str, str], make_topic: Callable[..., str], letters: Callable[..., DeadLetters]
) -> None:
    source = make_topic(config={"max.message.bytes": "3000000"})
    dead = f"{source}.dlq"
    topics = DeadLetterTopics(kafka, [dead], [source], partitions=1)
    taken = topics.ensure(timeout_s=DEADLINE_S)
    assert taken == 3_000_000 + ROOM_BYTES
    assert topics.ensure(timeout_s=DEADLINE_S) == taken
    out = letters("", message_bytes_max=taken)
    noise = [np.random.default_rng(size).bytes(size) for size in (999_999, 1_000_000, 2_990_000)]
    out.send([held(source, [b"small", *noise, b"small"])])
    out.close()
    assert [m.value() for m in read(kafka, dead, 5)] == [b"small", *noise, b"small"]


def test_a_record_that_the_dead_letter_topic_does_not_take_is_refused_with_what_to_set(
    kafka: dict[str, str], make_topic: Callable[..., str], letters: Callable[..., DeadLetters]
) -> None:
    dead = make_topic(config={"max.message.bytes": "20000"})
    out = letters(dead, message_bytes_max=20_000)
    out.send([held("t", [b"small"] * 2_000)])
    large = held("t", [np.random.default_rng(1).bytes(50_000)], first=7_000)
    with pytest.raises(
        DeadLetterRefused, match=r"t-3-7000 \(50,000 bytes\) is larger.*max.message.bytes"
    ) as why:
        out.send([large])
    assert dead in str(why.value)
    with pytest.raises(DeadLetterRefused):
        out.send([large])
    out.close()
    assert len(read(kafka, dead, 2_000)) == 2_000


@pytest.mark.parametrize("large", ["key", "headers"])
def test_what_is_to_be_set_takes_the_record_s_key_and_headers_too(
    make_topic: Callable[..., str], letters: Callable[..., DeadLetters], kafka: dict[str, str], large: str
) -> None:
    dead = make_topic(config={"max.message.bytes": "500000"})
    size_bytes, offset = 700_000, np.array([7], dtype=np.int64)
    content = os.urandom(size_bytes)
    batch = RawBatch(
        partition=SourcePartition("with-dashes-1", 3),
        offsets=offset,
        timestamps_ms=offset,
        values=Values.of([b"nope"]),
        record_keys=Values.of([content if large == "key" else b"k"]),
        headers=Values.of([headers.pack([("h", content)] if large == "headers" else [])]),
    )
    record = HeldRejects.of(batch, Rejects.of({0: "bad"}, offset))
    ordinary = held("with-dashes-1", [b"{}"] * 3)
    out = letters(dead)
    try:
        with pytest.raises(DeadLetterRefused, match=r"max\.message\.bytes to") as refused:
            out.send([ordinary, record])
    finally:
        out.close()
    said = re.search(r"-3-7 \(([0-9,]+) bytes\).*max.message.bytes to ([0-9]+)", str(refused.value))
    assert said is not None, refused.value
    assert int(said[1].replace(",", "")) >= size_bytes
    roomy = make_topic(config={"max.message.bytes": said[2]})
    out = letters(roomy)
    out.send([record])
    out.close()
    assert len(read(kafka, roomy, 1)) == 1


def test_a_topic_may_be_slower_than_it_may_be_silent_and_takes_all_and_nothing_twice(
    kafka: dict[str, str],
    make_topic: Callable[..., str],
    letters: Callable[..., DeadLetters],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At a quota, by which the broker answers nothing for some seconds after each batch."""
    dead, rate, count, size_bytes = make_topic(), 500_000, 200, 50_000
    monkeypatch.setitem(kafka, "client.id", dead)
    noise = np.random.default_rng(7)
    records = held("t", [noise.bytes(size_bytes) for _ in range(count)])
    out, taken = letters(dead, bytes_max=32_000_000, silence_s=10.0), []
    set_produce_quota(kafka["bootstrap.servers"], dead, rate)
    try:
        began = time.monotonic()
        out.send([records], taken.append)
        assert time.monotonic() - began > 10.0
    finally:
        set_produce_quota(kafka["bootstrap.servers"], dead, 0)
        out.close()
    assert sum(taken) == count
    assert sum(1 for some in taken if some) > 10, "whoever waits must see that it gets on"
    assert len({m.key() for m in read(kafka, dead, count)}) == count


def test_small_records_pass_a_topic_whose_limit_is_smaller_than_a_batch_and_is_not_known(
    kafka: dict[str, str], make_topic: Callable[..., str], letters: Callable[..., DeadLetters]
) -> None:
    """The broker refuses the batch, with the words in which it refuses a record."""
    dead = make_topic(config={"max.message.bytes": "20000"})
    noise = np.random.default_rng(7)
    out = letters(dead)
    out.send([held("t", [noise.bytes(200) for _ in range(5_000)])])
    large = held("t", [b"small", noise.bytes(50_000), b"small"], first=5_000)
    with pytest.raises(DeadLetterRefused, match=r"t-3-5001 \(50,000 bytes\) is larger"):
        out.send([large])
    out.close()
    consumer = Consumer({**kafka, "group.id": "reader"})
    with closing(consumer):
        low, high = consumer.get_watermark_offsets(TopicPartition(dead, 0), timeout=DEADLINE_S)
    assert 5_000 <= high - low < 5_500, "few are sent twice"


@pytest.mark.parametrize("first", ["orders", "orders-1"])
def test_the_topic_that_refuses_is_named_whatever_topics_are_called_alike(
    kafka: dict[str, str], make_topic: Callable[..., str], letters: Callable[..., DeadLetters], first: str
) -> None:
    """`orders-1-1-7` is offset 7 of source partition 1 of `orders-1`, and of no partition of `orders`."""
    stem = make_topic()
    roomy, narrow = stem, f"{stem}-1"
    create_topic(kafka["bootstrap.servers"], f"{roomy}.dlq")
    create_topic(kafka["bootstrap.servers"], f"{narrow}.dlq", config={"max.message.bytes": "20000"})
    passes = held(roomy, [b"small"], number=1)
    fails = held(narrow, [np.random.default_rng(7).bytes(50_000)], number=1, first=7)
    out = letters("")
    with pytest.raises(DeadLetterRefused) as why:
        out.send([passes, fails] if first == "orders" else [fails, passes])
    out.close()
    assert f"{narrow}-1-7 (50,000 bytes)" in str(why.value)
    assert f"dead-letter topic {narrow}.dlq takes" in str(why.value)
    assert f"--entity-name {narrow}.dlq" in str(why.value)


@pytest.mark.parametrize("sender", [NativeSender, PlainSender], ids=["native", "plain"])
def test_a_sender_says_of_a_piece_which_record_was_refused_and_of_no_other_piece(
    kafka: dict[str, str], make_topic: Callable[..., str], sender: type[NativeSender | PlainSender]
) -> None:
    dead = make_topic(config={"max.message.bytes": "20000"})
    noise = np.random.default_rng(7).bytes(50_000)
    good, bad = held("t", [b"x", None, b""] * 10), held("t", [b"", noise, None, noise, b"x"])
    with closing(sender(producer_settings(kafka, batch_bytes_max=1, alone=True))) as out:
        out.send(0, dead, good, 10, 30)
        out.send(PIECES_MAX - 1, dead, bad, 1, 5)
        out.send(PIECES_MAX + 1, dead, bad, 0, 1)
        with pytest.raises(ValueError, match="so many pieces"):
            out.send(2 * PIECES_MAX - 1, dead, good, 0, 1)
        assert out.wait(PIECES_MAX - 1, DEADLINE_S)[:5] == (0, 2, KafkaError.MSG_SIZE_TOO_LARGE, 0, 50_000)
        assert out.wait(0, DEADLINE_S)[:2] == (0, 0)
        assert out.wait(PIECES_MAX + 1, DEADLINE_S)[:2] == (0, 0)
        assert out.wait(0, DEADLINE_S).delivered == 20 + 2 + 1
    found = {m.key().decode(): m.value() for m in read(kafka, dead, 23)}
    assert found == {
        **{f"t-3-{i}": good.values[i] for i in range(10, 30)},
        **{f"t-3-{i}": bad.values[i] for i in (0, 2, 4)},
    }


def test_a_sender_waits_no_longer_than_it_is_told_to() -> None:
    for sender in (NativeSender, PlainSender):
        away = producer_settings({"bootstrap.servers": "127.0.0.1:1"}, batch_bytes_max=1_000)
        with closing(sender(away)) as out:
            out.send(0, "dead", held("t", [b"x"] * 3), 1, 3)
            began = time.monotonic()
            assert out.wait(0, 0.3) == (2, 0, 0, 0, 0, 0)
            assert 0.2 < time.monotonic() - began < 30


def test_a_topic_that_is_gone_is_not_made_by_sending_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brokers make topics that are asked for, unless told otherwise, with a retention of seven days."""
    with Broker(tmp_path, heap_mb=384, properties={"auto.create.topics.enable": "true"}) as broker:
        asked = {"bootstrap.servers": broker.bootstrap_servers}
        admin = AdminClient(asked)
        for sender in (NativeSender, PlainSender):
            monkeypatch.setattr(dead_letter, "open_sender", sender)
            quick = {**asked, "topic.metadata.propagation.max.ms": "2000"}
            out = DeadLetters(quick, sender.__name__, bytes_max=1 << 20)
            with pytest.raises(DeadLetterError, match="See that the topic is there"):
                out.send([held("t", [b"nope"])])
            out.close()
        assert not {NativeSender.__name__, PlainSender.__name__} & admin.list_topics(timeout=10).topics.keys()


def test_a_compacted_topic_is_warned_of(
    kafka: dict[str, str], make_topic: Callable[..., str], caplog: pytest.LogCaptureFixture
) -> None:
    source, dead, other = make_topic(), make_topic(config={"cleanup.policy": "compact,delete"}), make_topic()
    DeadLetterTopics(kafka, [dead, other], [source], partitions=1).ensure(timeout_s=DEADLINE_S)
    assert f"the dead-letter topic {dead} has cleanup.policy = compact" in caplog.text
    assert other not in caplog.text


def test_a_broker_that_is_away_is_no_refusal() -> None:
    out = DeadLetters({"bootstrap.servers": "127.0.0.1:1"}, "dead", bytes_max=1 << 20, silence_s=1.0)
    with pytest.raises(DeadLetterError, match="offsets do not move") as why:
        out.send([held("t", [b"x"])])
    assert not isinstance(why.value, DeadLetterRefused)
    out.close()


def test_a_missing_topic_that_is_not_to_be_made_refuses_the_run_at_once(
    kafka: dict[str, str], make_topic: Callable[..., str]
) -> None:
    source = make_topic()
    began = time.monotonic()
    with pytest.raises(Failed, match=rf"{source}.dlq does not exist.*dead_letter_partitions"):
        DeadLetterTopics(kafka, [f"{source}.dlq"], [source], partitions=0).ensure(timeout_s=300)
    assert time.monotonic() - began < 30


def test_a_dead_letter_topic_that_somebody_deletes_is_made_again(
    kafka: dict[str, str], make_topic: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from lockstep.brokers import dead_letter_topics
    from tests.broker_fixture import delete_topic

    monkeypatch.setattr(dead_letter_topics, "LOOK_EVERY_S", 0.2)
    source, dead = make_topic(), make_topic()
    topics = DeadLetterTopics(kafka, [dead], [source], partitions=2)
    topics.start()
    try:
        delete_topic(kafka["bootstrap.servers"], dead)
        await_that("topic", lambda: not topics.look().missing, deadline_s=DEADLINE_S)
    finally:
        topics.stop()


def test_a_topic_that_takes_less_than_the_source_is_told_of(
    kafka: dict[str, str], make_topic: Callable[..., str], caplog: pytest.LogCaptureFixture
) -> None:
    source, dead = make_topic(config={"max.message.bytes": "3000000"}), make_topic()
    DeadLetterTopics(kafka, [dead], [source], partitions=1).ensure(timeout_s=DEADLINE_S)
    assert f"{dead} has max.message.bytes = " in caplog.text
    assert f"set it to {3_000_000 + ROOM_BYTES}" in caplog.text

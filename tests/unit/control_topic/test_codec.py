"""Messages to bytes and back, and whatever else may stand in the topic."""

from __future__ import annotations

import hashlib
from dataclasses import fields, replace
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from control_topic.causes import COMMIT_PARTS
from control_topic.codec import (
    _TO_PROTO,
    NAME_CHARS_MAX,
    RAW_BYTES_MAX,
    Incomplete,
    MessageDecoder,
    Unreadable,
    encode,
    offsets_from_proto,
    offsets_to_proto,
    partitions_from_proto,
    partitions_to_proto,
    ranges_from_proto,
    ranges_to_proto,
    run_named,
    write_status_from_proto,
    write_status_to_proto,
)
from control_topic.controls import SETTINGS, TEXTS
from control_topic.errors import Malformed
from control_topic.messages import (
    EVENT_TIME_MAX_MS,
    TYPE_NAMES,
    AbortCommit,
    AckCommit,
    Body,
    Control,
    CoordinatorClaim,
    DataFile,
    EndCommit,
    EndRequest,
    EventTimes,
    Halt,
    Lost,
    Message,
    ParticipantJoin,
    ParticipantLeave,
    ParticipantReady,
    Range,
    Reject,
    RunAnnounce,
    SourcePartition,
    StartCommit,
    Witness,
    WriteProgress,
    WriteStatus,
)
from control_topic.stubs import control_pb2 as pb
from control_topic.values import FINGERPRINT_MAX

INT64_MAX = 2**63 - 1

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
offset = st.integers(0, INT64_MAX)
topic = st.text("abz059._-", min_size=1, max_size=20).filter(lambda name: name not in (".", ".."))
source_partition = st.builds(SourcePartition, topic, st.integers(0, 2**31 - 1))
source_partitions = st.lists(source_partition, unique=True, max_size=8).map(tuple)
offsets = st.dictionaries(source_partition, offset, max_size=8)


@st.composite
def ranges(draw: st.DrawFn) -> tuple[Range, ...]:
    result = []
    for partition in draw(source_partitions):
        start, following = sorted((draw(offset), draw(offset)))
        records = draw(st.integers(0, following - start))
        result.append(Range(partition=partition, start=start, next=following, records=records))
    return tuple(result)


@st.composite
def lost(draw: st.DrawFn) -> Lost:
    start, following = sorted((draw(offset), draw(offset)))
    return Lost(partition=draw(source_partition), start=start, next=following)


count = st.integers(0, 2**64 - 1)
event_time = st.integers(-EVENT_TIME_MAX_MS, EVENT_TIME_MAX_MS)
witnesses = st.lists(
    st.builds(
        Witness, partition=source_partition, offset=offset, fingerprint=st.integers(0, FINGERPRINT_MAX)
    ),
    max_size=8,
).map(lambda found: {witness.partition: witness for witness in sorted(found, key=lambda w: w.partition)})
write_status = st.builds(
    WriteStatus,
    transaction=text,
    ranges=ranges(),
    files=st.lists(
        st.builds(DataFile, path=text, body=text, table_partition=text, rows=count, size_bytes=count),
        max_size=4,
    ).map(tuple),
    rejects=st.lists(
        st.builds(Reject, partition=source_partition, offset=offset, reason=text), max_size=4
    ).map(tuple),
    lost=st.lists(lost(), max_size=4).map(tuple),
    reject_count=offset,
    columns=text,
    columns_from=text,
    witnesses=witnesses.map(lambda found: tuple(found.values())),
    event_times=st.lists(
        st.builds(
            EventTimes,
            partition=source_partition,
            greatest_ms=st.none() | event_time,
            late=offset,
            absurd=offset,
        ),
        max_size=4,
        unique_by=lambda times: times.partition,
    ).map(lambda found: tuple(sorted(found, key=lambda times: times.partition))),
)
BODIES: dict[type, st.SearchStrategy] = {
    RunAnnounce: st.builds(
        RunAnnounce, address=text, table_epoch=count, started_at_ms=st.integers(0, 2**63 - 1)
    ),
    CoordinatorClaim: st.builds(CoordinatorClaim),
    ParticipantJoin: st.builds(ParticipantJoin, partitions=source_partitions),
    ParticipantLeave: st.builds(
        ParticipantLeave, partitions=source_partitions, transaction=text, reason=text
    ),
    ParticipantReady: st.builds(ParticipantReady),
    StartCommit: st.builds(
        StartCommit,
        transaction=text,
        instant=text,
        committed=offsets,
        writers=st.dictionaries(source_partition, st.sampled_from(["a", "b", "c"]), max_size=8),
        records_max=count,
        witnesses=witnesses,
        watermark_ms=st.none() | event_time,
    ),
    EndRequest: st.builds(EndRequest, transaction=text, reason=text),
    EndCommit: st.builds(EndCommit, transaction=text, reason=text),
    WriteProgress: st.builds(
        WriteProgress, transaction=text, records=count, files=count, size_bytes=count, steps=count
    ),
    WriteStatus: st.builds(replace, write_status, behind=offsets),
    AckCommit: st.builds(
        AckCommit,
        transaction=text,
        instant=text,
        committed=offsets,
        took_ms=st.dictionaries(st.sampled_from(list(COMMIT_PARTS)), offset),
    ),
    AbortCommit: st.builds(AbortCommit, transaction=text, reason=text, cause=text),
    Halt: st.builds(Halt, reason=text),
    Control: st.builds(
        Control,
        number=count,
        action=text,
        settings=st.builds(
            lambda numbers, texts: {**numbers, **texts},
            st.dictionaries(st.sampled_from([name for name in SETTINGS if name not in TEXTS]), offset),
            st.dictionaries(st.sampled_from(sorted(TEXTS)), text),
        ),
        who=text,
        why=text,
    ),
}


def messages(bodies: st.SearchStrategy) -> st.SearchStrategy[Message]:
    return st.builds(
        Message,
        pipeline=text,
        run=text,
        epoch=offset,
        sender=text,
        incarnation=text,
        sequence=count,
        sent_at_ms=st.integers(-(2**63), INT64_MAX),
        body=bodies,
    )


any_message = messages(st.one_of(*BODIES.values()))


def message(body: Body, **changes: object) -> Message:
    plain = Message(
        pipeline="events",
        run="r1",
        epoch=7,
        sender="worker-1",
        incarnation="i1",
        sequence=3,
        sent_at_ms=5,
        body=body,
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def enveloped(body: pb.Body | bytes, **changes: object) -> bytes:
    raw = body if isinstance(body, bytes) else body.SerializeToString()
    values = {"version": 1, "parts": 1, "digest": hashlib.sha256(raw).digest(), "body": raw, **changes}
    return pb.Envelope(**values).SerializeToString()


def body_of(body: Body) -> Body:
    """As it is read."""
    heard = MessageDecoder().feed(encode(message(body))[0])
    assert isinstance(heard, Message), heard
    return heard.body


def reason(raw: bytes | None) -> str:
    answer = MessageDecoder().feed(raw)
    assert isinstance(answer, Unreadable), answer
    return answer.reason


def test_every_type_of_body_is_tried() -> None:
    assert set(BODIES) == set(get_args(Body)) == set(TYPE_NAMES)
    assert len(pb.Body.DESCRIPTOR.oneofs_by_name["kind"].fields) == len(BODIES)


@pytest.mark.parametrize("kind", BODIES, ids=TYPE_NAMES.get)
def test_a_message_comes_back_as_it_was(kind: type) -> None:
    @settings(max_examples=60)
    @given(sent=messages(BODIES[kind]))
    def check(sent: Message) -> None:
        (raw,) = encode(sent)
        received = MessageDecoder().feed(raw)
        assert received == sent
        for field in fields(sent.body):
            assert type(getattr(received.body, field.name)) is type(getattr(sent.body, field.name))

    check()


@given(sent=any_message, size=st.integers(1, 40), order=st.randoms(use_true_random=False))
def test_a_message_in_parts_comes_back_as_it_was_in_whatever_order(sent: Message, size: int, order) -> None:
    records = encode(sent, body_bytes_max=size)
    order.shuffle(records)
    decoder = MessageDecoder()
    answers = [decoder.feed(raw) for raw in records]
    assert all(isinstance(answer, Incomplete) for answer in answers[:-1])
    assert answers[-1] == sent


@given(raw=st.binary(max_size=400))
def test_no_bytes_make_the_decoder_raise(raw: bytes) -> None:
    assert isinstance(MessageDecoder().feed(raw), Message | Unreadable | Incomplete)


@settings(max_examples=300)
@given(sent=any_message, data=st.data())
def test_no_damage_to_a_message_makes_the_decoder_raise(sent: Message, data: st.DataObject) -> None:
    raw = bytearray(encode(sent)[0])
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(raw)))
    for damaged in (bytes(raw), bytes(raw[:cut]), bytes(raw[cut:])):
        assert isinstance(MessageDecoder().feed(damaged), Message | Unreadable | Incomplete)


@settings(max_examples=300)
@given(sent=any_message, data=st.data())
def test_no_damage_inside_a_digest_that_fits_makes_the_decoder_raise(
    sent: Message, data: st.DataObject
) -> None:
    body = bytearray(pb.Envelope.FromString(encode(sent)[0]).body)
    for _ in range(data.draw(st.integers(1, 4)) if body else 0):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    answer = MessageDecoder().feed(enveloped(bytes(body)))
    assert isinstance(answer, Message | Unreadable)
    if isinstance(answer, Message):  # whatever is accepted can be written again and says the same
        assert MessageDecoder().feed(encode(answer)[0]) == answer


def test_a_record_without_a_value_is_unreadable() -> None:
    assert "without a value" in reason(None)


def test_another_version_is_unreadable_and_named() -> None:
    assert "version 2" in reason(encode(message(EndCommit(transaction="t"), version=2))[0])


def test_a_record_over_the_limit_is_refused_before_it_is_parsed() -> None:
    assert str(RAW_BYTES_MAX + 1) in reason(b"\xff" * (RAW_BYTES_MAX + 1))


def test_text_that_is_not_utf8_is_unreadable() -> None:
    raw = encode(message(Halt(reason="stop"), sender="SENDER"))[0]
    assert "not a protobuf" in reason(raw.replace(b"SENDER", b"SEND\xff\xfe"))
    assert "not a protobuf" in reason(enveloped(b"\x62\x05\x0a\x03\xff\xff\xff"))


def test_a_type_from_a_later_protocol_is_unreadable() -> None:
    later_body = b"\x9a\x06\x00"  # field 99, a message, empty
    assert "type" in reason(enveloped(later_body))
    assert "type" in reason(enveloped(b""))


def test_a_body_that_is_not_what_its_digest_says_is_unreadable() -> None:
    assert "digest" in reason(enveloped(pb.Body(halt=pb.Halt()), digest=b"\0" * 32))


@pytest.mark.parametrize("changes", [{"parts": 0}, {"part": 1}, {"parts": 2**32 - 1}, {"digest": b"x"}])
def test_part_numbers_that_cannot_be_are_unreadable(changes: dict) -> None:
    reason(enveloped(pb.Body(halt=pb.Halt()), **changes))


@pytest.mark.parametrize("epoch", [2**63 - 1, 2**63, 2**64 - 1])
def test_a_table_whose_epoch_was_driven_high_is_gone_on_with(epoch: int) -> None:
    sent = message(Halt(reason="stop"), epoch=epoch)
    assert MessageDecoder().feed(encode(sent)[0]) == sent


def test_who_named_itself_is_known_of_whatever_was_written() -> None:
    assert run_named(encode(message(Halt(reason="stop"), run="r7"))[0]) == "r7"
    assert run_named(encode(message(Halt(reason="stop"), run="r7", version=9))[0]) == "r7"
    for raw in (None, b"", b"\xff", b"\xff" * (RAW_BYTES_MAX + 1)):
        assert run_named(raw) == ""


def start(**changes: object) -> pb.Body:
    return pb.Body(start_commit=pb.StartCommit(**changes))


def status(**changes: object) -> pb.Body:
    return pb.Body(write_status=pb.WriteStatus(**changes))


def offsets_of(partitions: list[int], values: list[int]) -> pb.TopicOffsets:
    return pb.TopicOffsets(topic="t", partitions=partitions, offsets=values)


def ranges_of(
    partitions: list[int], starts: list[int], nexts: list[int], records: list[int]
) -> pb.TopicRanges:
    return pb.TopicRanges(topic="t", partitions=partitions, starts=starts, nexts=nexts, records=records)


def writers_of(partitions: list[int], writers: list[int]) -> pb.TopicWriters:
    return pb.TopicWriters(topic="t", partitions=partitions, writers=writers)


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (start(committed=[offsets_of([0, 1], [5])]), "parallel"),
        (start(committed=[offsets_of([0], [5, 6])]), "parallel"),
        (start(committed=[offsets_of([0, 0], [5, 5])]), ":0 has two offsets"),
        (start(committed=[offsets_of([0], [5]), offsets_of([0], [5])]), ":0 has two offsets"),
        (start(committed=[offsets_of([0], [2**63])]), "not an offset"),
        (start(committed=[offsets_of([2**31], [0])]), "number"),
        (start(incarnations=["a"], writers=[writers_of([0], [1])]), "writer 1 of 1"),
        (start(incarnations=["a"], writers=[writers_of([0, 1], [0])]), "parallel"),
        (start(incarnations=["a"], writers=[writers_of([0, 0], [0, 0])]), "two writers"),
        (status(ranges=[ranges_of([0], [6], [5], [0])]), "not a range"),
        (status(ranges=[ranges_of([0], [5], [6], [2])]), "2 records"),
        (status(ranges=[ranges_of([0], [5], [2**63], [0])]), "not an offset"),
        (status(ranges=[ranges_of([0, 1], [5, 5], [6, 6], [0])]), "parallel"),
        (status(ranges=[ranges_of([0, 0], [5, 6], [6, 7], [0, 0])]), "named twice"),
        (status(lost=[pb.Lost(topic="t", start=6, next=5)]), "not a range"),
        (status(lost=[pb.Lost(topic="t", start=6, next=2**63)]), "not a range"),
        (status(rejects=[pb.Reject(topic="t", offset=2**63)]), "not an offset"),
        (status(rejects=[pb.Reject(topic="t")] * 1_001), "1001 rejects by name"),
        (status(reject_count=2**63), "not an offset"),
        (status(rejects=[pb.Reject(topic="t", partition=2**31)]), "number"),
        (
            pb.Body(
                participant_join=pb.ParticipantJoin(
                    partitions=[pb.TopicPartitions(topic="t", partitions=[1, 1])]
                )
            ),
            "named twice",
        ),
    ],
)
def test_content_that_cannot_be_is_unreadable(body: pb.Body, complaint: str) -> None:
    assert complaint in reason(enveloped(body))


T0 = SourcePartition("t", 0)


@pytest.mark.parametrize(
    "body",
    [
        ParticipantJoin(partitions=(T0, T0)),
        ParticipantJoin(partitions=(SourcePartition("t", -1),)),
        ParticipantJoin(partitions=(SourcePartition("t", 2**31),)),
        AckCommit(transaction="x", instant="1", committed={T0: -1}),
        AckCommit(transaction="x", instant="1", committed={T0: 2**63}),
        AckCommit(transaction="\ud800", instant="1", committed={}),
        WriteStatus(transaction="x", ranges=(Range(partition=T0, start=0, next=1),) * 2),
        WriteStatus(transaction="x", ranges=(), lost=(Lost(partition=T0, start=2, next=1),)),
        WriteStatus(
            transaction="x",
            ranges=(),
            files=(DataFile(path="p", body="f", table_partition="", rows=-1, size_bytes=0),),
        ),
    ],
)
def test_what_no_reader_would_accept_is_not_written(body: Body) -> None:
    with pytest.raises(Malformed):
        encode(message(body))


ODD_PARTS = {"lock": 3, "prayer": 1, "\ud800": 1, "check": -1, "write": 2**63, "files": None}


def test_what_nobody_could_send_of_a_commits_time_is_left_out_and_the_rest_is_said() -> None:
    """A courtesy: it never stands in the way of an ACK."""
    odd = AckCommit(transaction="x", instant="1", committed={T0: 1}, took_ms=ODD_PARTS)  # type: ignore[arg-type]
    assert body_of(odd) == replace(odd, took_ms={"lock": 3})


def test_what_another_version_says_of_a_commits_time_is_left_out_and_the_ack_is_heard() -> None:
    told = {"write": 5, "a_new_part": 9, "lock": 2**64 - 1}
    raw = pb.Body(ack_commit=pb.AckCommit(transaction="x", instant="1", took_ms=told))
    heard = MessageDecoder().feed(enveloped(raw))
    assert isinstance(heard, Message)
    assert heard.body == AckCommit(transaction="x", instant="1", committed={}, took_ms={"write": 5})


@pytest.mark.parametrize(
    "body",
    [
        EndCommit(transaction="x", reason="\ud800"),
        AbortCommit(transaction="x", reason="r", cause="\ud800"),
    ],
)
def test_a_word_that_nobody_could_write_is_written_as_well_as_can_be(body: Body) -> None:
    assert "?" in str(body_of(body))


def test_what_an_older_version_says_has_no_reason_no_cause_and_no_times() -> None:
    """Their fields are not there: as they were before."""
    for body in (
        EndCommit(transaction="x"),
        AbortCommit(transaction="x", reason="r"),
        AckCommit(transaction="x", instant="1", committed={}),
    ):
        assert body_of(body) == body


@pytest.mark.parametrize(
    "changes",
    [
        *({"epoch": -1}, {"epoch": 2**64}, {"sequence": -1}, {"sender": "x" * 2**20}),
        {"sender": "x" * (NAME_CHARS_MAX + 1)},
    ],
)
def test_an_envelope_that_no_reader_would_accept_is_not_written(changes: dict) -> None:
    with pytest.raises(Malformed):
        encode(message(Halt(reason="stop"), **changes))


@pytest.mark.parametrize(
    "body",
    [
        EndCommit(transaction="x" * (NAME_CHARS_MAX + 1)),
        StartCommit(transaction="t", instant="1" * (NAME_CHARS_MAX + 1), committed={}, writers={}),
        ParticipantLeave(partitions=(), transaction="x" * (NAME_CHARS_MAX + 1)),
    ],
)
def test_an_id_that_is_too_long_is_neither_written_nor_read(body: Body) -> None:
    with pytest.raises(Malformed, match="characters"):
        encode(message(body))
    assert "characters" in reason(enveloped(_TO_PROTO[type(body)](body)))


def test_a_sender_of_any_length_is_not_read() -> None:
    body = pb.Body(participant_ready=pb.ParticipantReady())
    assert isinstance(MessageDecoder().feed(enveloped(body, sender="x" * NAME_CHARS_MAX)), Message)
    assert "characters" in reason(enveloped(body, sender="x" * 100_000))


def test_a_reason_that_utf8_cannot_hold_still_travels() -> None:
    received = MessageDecoder().feed(encode(message(Halt(reason="no such file: caf\udce9")))[0])
    assert isinstance(received, Message)
    assert received.body == Halt(reason="no such file: caf?")


def test_a_large_status_travels_in_records_within_the_limit() -> None:
    files = tuple(
        DataFile(
            path=f"day={n % 30}/{n:036d}.parquet",
            body=f"{n:036d}-0",
            table_partition="",
            rows=n,
            size_bytes=n,
        )
        for n in range(20_000)
    )
    sent = message(WriteStatus(transaction="t", ranges=(), files=files))
    records = encode(sent)
    assert len(records) > 1
    assert max(map(len, records)) <= RAW_BYTES_MAX
    decoder = MessageDecoder()
    assert [decoder.feed(raw) for raw in records][-1] == sent


@given(value=offsets)
def test_offsets_come_back_from_protobuf(value) -> None:
    assert offsets_from_proto(offsets_to_proto(value)) == value


@given(value=source_partitions)
def test_partitions_come_back_from_protobuf_in_their_order(value) -> None:
    assert partitions_from_proto(partitions_to_proto(value)) == value


@given(value=ranges())
def test_ranges_come_back_from_protobuf_in_their_order(value) -> None:
    assert ranges_from_proto(ranges_to_proto(value)) == value


@given(value=write_status)
def test_a_write_status_comes_back_from_protobuf(value) -> None:
    assert write_status_from_proto(write_status_to_proto(value)) == value


def test_a_topic_is_named_once_where_its_partitions_are_in_order() -> None:
    partitions = [SourcePartition(topic, n) for topic in "ab" for n in range(5)]
    assert [g.topic for g in partitions_to_proto(partitions)] == ["a", "b"]
    assert [g.topic for g in offsets_to_proto(dict.fromkeys(partitions, 1))] == ["a", "b"]

"""Every text and every list of a message has a bound: what people read is cut, what cannot be is refused."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from typing import Any

import pytest

from control_topic.bounds import (
    ADDRESS_CHARS_MAX,
    COLUMNS_CHARS_MAX,
    FILES_MAX,
    LISTS_BYTES_MAX,
    NAME_CHARS_MAX,
    REASON_CHARS_MAX,
    REJECT_CHARS_MAX,
    SOURCE_PARTITIONS_MAX,
    TOPIC_CHARS_MAX,
    WORD_CHARS_MAX,
)
from control_topic.codec import RAW_BYTES_MAX, MessageDecoder, encode
from control_topic.controls import WHO_CHARS_MAX, WHY_CHARS_MAX
from control_topic.errors import Malformed
from control_topic.messages import (
    AbortCommit,
    AckCommit,
    Body,
    Control,
    DataFile,
    EndCommit,
    EndRequest,
    Halt,
    Lost,
    Message,
    ParticipantJoin,
    ParticipantLeave,
    Range,
    Reject,
    RunAnnounce,
    SourcePartition,
    StartCommit,
    WriteStatus,
)
from control_topic.parts import PENDING_BYTES_MAX, split
from control_topic.stubs import control_pb2 as pb
from control_topic.wire import fields
from participant.records.rejects import REASON_LENGTH_MAX as REJECT_KEPT_MAX
from table.service.codec import REASON_CHARS_MAX as SERVICE_CHARS_MAX
from tests.unit.control_topic.test_codec import body_of, enveloped, message, reason

LONG = 30_000
TOO_LONG = "t" * (TOPIC_CHARS_MAX + 1)
CUT: list[tuple[str, pb.Body, Any, str, int]] = [
    ("LEAVE", pb.Body(participant_leave=pb.ParticipantLeave(reason="x" * LONG)),
     ParticipantLeave(partitions=(), reason="x" * LONG), "reason", REASON_CHARS_MAX),
    ("ABORT", pb.Body(abort_commit=pb.AbortCommit(reason="x" * LONG)),
     AbortCommit(transaction="", reason="x" * LONG), "reason", REASON_CHARS_MAX),
    ("ABORT's cause", pb.Body(abort_commit=pb.AbortCommit(cause="x" * LONG)),
     AbortCommit(transaction="", reason="", cause="x" * LONG), "cause", WORD_CHARS_MAX),
    ("HALT", pb.Body(halt=pb.Halt(reason="x" * LONG)), Halt(reason="x" * LONG), "reason", REASON_CHARS_MAX),
    ("END_REQUEST", pb.Body(end_request=pb.EndRequest(reason="x" * LONG)),
     EndRequest(transaction="", reason="x" * LONG), "reason", WORD_CHARS_MAX),
    ("END", pb.Body(end_commit=pb.EndCommit(reason="x" * LONG)),
     EndCommit(transaction="", reason="x" * LONG), "reason", WORD_CHARS_MAX),
    ("CONTROL's action", pb.Body(control=pb.Control(action="x" * LONG)),
     Control(number=0, action="x" * LONG), "action", WORD_CHARS_MAX),
    ("CONTROL's who", pb.Body(control=pb.Control(who="x" * LONG)),
     Control(number=0, action="", who="x" * LONG), "who", WHO_CHARS_MAX),
    ("CONTROL's why", pb.Body(control=pb.Control(why="x" * LONG)),
     Control(number=0, action="", why="x" * LONG), "why", WHY_CHARS_MAX),
    ("ANNOUNCE", pb.Body(run_announce=pb.RunAnnounce(address="x" * LONG)),
     RunAnnounce(address="x" * LONG), "address", ADDRESS_CHARS_MAX),
]  # fmt: skip


def heard(body: pb.Body) -> Body:
    answer = MessageDecoder().feed(enveloped(body))
    assert isinstance(answer, Message), answer
    return answer.body


@pytest.mark.parametrize(
    ("raw", "sent", "field", "chars_max"), [one[1:] for one in CUT], ids=[c[0] for c in CUT]
)
def test_what_people_read_is_cut_by_who_writes_it_and_by_who_reads_it(
    raw: pb.Body, sent: Any, field: str, chars_max: int
) -> None:
    assert heard(raw) == body_of(sent) == replace(sent, **{field: "x" * chars_max})


def test_a_reject_that_says_much_is_named_with_less() -> None:
    told = WriteStatus(
        transaction="t",
        ranges=(),
        rejects=(Reject(partition=SourcePartition("t", 0), offset=1, reason="x" * LONG),),
    )
    raw = pb.WriteStatus(transaction="t", rejects=[pb.Reject(topic="t", offset=1, reason="x" * LONG)])
    cut = replace(told, rejects=(replace(told.rejects[0], reason="x" * REJECT_CHARS_MAX),))
    assert heard(pb.Body(write_status=raw)) == body_of(told) == cut


def test_nothing_that_our_own_parts_say_is_cut_without_need() -> None:
    assert SERVICE_CHARS_MAX <= REASON_CHARS_MAX and REJECT_KEPT_MAX <= REJECT_CHARS_MAX


ILL_NAMED = ("", "..", TOO_LONG, "caf\u00e9", "t\n", "x" * 500_000)


@pytest.mark.parametrize("topic", ILL_NAMED, ids=lambda name: name[:9] + str(len(name)))
@pytest.mark.parametrize("kind", ["join", "leave", "committed", "writers", "ack", "ranges", "reject", "lost"])
def test_a_topic_that_kafka_does_not_allow_is_neither_written_nor_read(topic: str, kind: str) -> None:
    place = SourcePartition(topic, 0)
    body, raw = {
        "join": (
            ParticipantJoin(partitions=(place,)),
            pb.Body(participant_join={"partitions": [{"topic": topic, "partitions": [0]}]}),
        ),
        "leave": (
            ParticipantLeave(partitions=(place,)),
            pb.Body(participant_leave={"partitions": [{"topic": topic, "partitions": [0]}]}),
        ),
        "committed": (
            StartCommit(transaction="t", instant="1", committed={place: 1}, writers={}),
            pb.Body(start_commit={"committed": [{"topic": topic, "partitions": [0], "offsets": [1]}]}),
        ),
        "writers": (
            StartCommit(transaction="t", instant="1", committed={}, writers={place: "w"}),
            pb.Body(
                start_commit={
                    "incarnations": ["w"],
                    "writers": [{"topic": topic, "partitions": [0], "writers": [0]}],
                }
            ),
        ),
        "ack": (
            AckCommit(transaction="t", instant="1", committed={place: 1}),
            pb.Body(ack_commit={"committed": [{"topic": topic, "partitions": [0], "offsets": [1]}]}),
        ),
        "ranges": (
            WriteStatus(transaction="t", ranges=(Range(partition=place, start=0, next=1),)),
            pb.Body(
                write_status={
                    "ranges": [
                        {"topic": topic, "partitions": [0], "starts": [0], "nexts": [1], "records": [0]}
                    ]
                }
            ),
        ),
        "reject": (
            WriteStatus(transaction="t", ranges=(), rejects=(Reject(partition=place, offset=0, reason="r"),)),
            pb.Body(write_status={"rejects": [{"topic": topic}]}),
        ),
        "lost": (
            WriteStatus(transaction="t", ranges=(), lost=(Lost(partition=place, start=0, next=1),)),
            pb.Body(write_status={"lost": [{"topic": topic, "start": 0, "next": 1}]}),
        ),
    }[kind]
    with pytest.raises(Malformed, match="not a topic's name"):
        encode(message(body))
    told = reason(enveloped(raw))
    assert "not a topic's name" in told and len(told) < 200


def test_a_group_without_source_partitions_may_not_have_any_name_either() -> None:
    raw = pb.Body(participant_join={"partitions": [{"topic": TOO_LONG}]})
    assert "not a topic's name" in reason(enveloped(raw))


@pytest.mark.parametrize("field", ["pipeline", "run", "incarnation", "sender"])
def test_a_name_in_the_envelope_that_is_too_long_is_neither_written_nor_read(field: str) -> None:
    body = pb.Body(participant_ready=pb.ParticipantReady())
    assert isinstance(MessageDecoder().feed(enveloped(body, **{field: "x" * NAME_CHARS_MAX})), Message)
    assert "characters" in reason(enveloped(body, **{field: "x" * (NAME_CHARS_MAX + 1)}))
    with pytest.raises(Malformed, match="characters"):
        encode(message(Halt(reason="stop"), **{field: "x" * (NAME_CHARS_MAX + 1)}))


def test_a_thousand_source_partitions_of_the_longest_names_are_read_as_they_were_written() -> None:
    places = tuple(SourcePartition(f"{n:03}".rjust(TOPIC_CHARS_MAX, "t"), n) for n in range(1_000))
    why = "the table's storage took nothing for ten minutes. " * 12
    for body in (
        ParticipantJoin(partitions=places),
        ParticipantLeave(partitions=places, transaction="t" * 32, reason=why),
        StartCommit(
            transaction="t" * 32,
            instant="2" * 17,
            committed=dict.fromkeys(places, 2**63 - 1),
            writers={place: f"{place.number:032x}" for place in places},
        ),
        AckCommit(transaction="t" * 32, instant="2" * 17, committed=dict.fromkeys(places, 2**63 - 1)),
        WriteStatus(
            transaction="t" * 32,
            ranges=tuple(Range(partition=one, start=2**62, next=2**63 - 1, records=9) for one in places),
            lost=tuple(Lost(partition=one, start=0, next=2**62) for one in places),
            rejects=tuple(Reject(partition=one, offset=1, reason=why) for one in places),
        ),
        AbortCommit(transaction="t" * 32, reason=why),
        Halt(reason=why),
    ):
        decoder = MessageDecoder()
        answers = [decoder.feed(raw) for raw in encode(message(body))]
        assert answers[-1] == message(body)


def many(count: int) -> range:
    return range(count)


TOO_MANY = SOURCE_PARTITIONS_MAX + 1


@pytest.mark.parametrize(
    "raw",
    [
        pb.Body(participant_join={"partitions": [{"topic": "t", "partitions": many(TOO_MANY)}]}),
        pb.Body(
            participant_leave={
                "partitions": [
                    {"topic": topic, "partitions": many(SOURCE_PARTITIONS_MAX // 2 + 1)} for topic in "ab"
                ]
            }
        ),
        pb.Body(
            ack_commit={
                "committed": [{"topic": "t", "partitions": many(TOO_MANY), "offsets": many(TOO_MANY)}]
            }
        ),
        pb.Body(
            start_commit={
                "incarnations": ["w"],
                "writers": [{"topic": "t", "partitions": many(TOO_MANY), "writers": [0] * TOO_MANY}],
            }
        ),
        pb.Body(start_commit={"incarnations": [""] * TOO_MANY}),
        pb.Body(
            write_status={
                "ranges": [
                    {
                        "topic": "t",
                        **dict.fromkeys(("partitions", "starts", "nexts", "records"), [0] * TOO_MANY),
                    }
                ]
            }
        ),
        pb.Body(write_status={"lost": [{"topic": "t"}] * TOO_MANY}),
        pb.Body(write_status={"files": [{}] * (FILES_MAX + 1)}),
    ],
    ids=["join", "leave", "ack", "writers", "incarnations", "ranges", "lost", "files"],
)
def test_a_list_that_nobody_can_have_is_not_read(raw: pb.Body) -> None:
    assert "at most 100000" in reason(enveloped(raw))


def test_more_columns_than_a_schema_of_records_has_are_not_read() -> None:
    raw = pb.Body(write_status={"columns": "x" * (COLUMNS_CHARS_MAX + 1)})
    assert f"at most {COLUMNS_CHARS_MAX} are read" in reason(enveloped(raw))


@pytest.mark.parametrize(
    "body",
    [
        ParticipantJoin(partitions=tuple(SourcePartition("t", n) for n in range(TOO_MANY))),
        AckCommit(
            transaction="t", instant="1", committed={SourcePartition("t", n): 1 for n in range(TOO_MANY)}
        ),
        WriteStatus(
            transaction="t",
            ranges=tuple(Range(partition=SourcePartition("t", n), start=0, next=1) for n in range(TOO_MANY)),
        ),
        WriteStatus(
            transaction="t",
            ranges=(),
            files=(DataFile(path="p", body="", table_partition="", rows=1, size_bytes=1),) * (FILES_MAX + 1),
        ),
        WriteStatus(
            transaction="t",
            ranges=(),
            columns="x" * (COLUMNS_CHARS_MAX + 1),
        ),
    ],
    ids=["join", "ack", "ranges", "files", "columns"],
)
def test_a_list_that_nobody_would_read_is_not_written(body: Body) -> None:
    with pytest.raises(Malformed, match="at most"):
        encode(message(body))


def in_parts(body: bytes) -> str:
    """What is said of a body that travels in parts, whatever it holds."""
    decoder, answer = MessageDecoder(), None
    for part in split(pipeline="p", run="r", incarnation="i", body=body, payload_bytes_max=512 * 1024):
        raw = pb.Envelope(
            version=1, pipeline="p", run="r", incarnation="i", digest=part.digest,
            part=part.part, parts=part.parts, body=part.payload,
        )  # fmt: skip
        answer = decoder.feed(raw.SerializeToString())
    return getattr(answer, "reason", "")


def test_a_text_of_megabytes_is_refused_before_it_is_parsed() -> None:
    assert "bytes" in in_parts(pb.Body(halt=pb.Halt(reason="x" * RAW_BYTES_MAX)).SerializeToString())
    assert "bytes" in in_parts(pb.Body(control={"who": "x" * RAW_BYTES_MAX}).SerializeToString())


@pytest.mark.parametrize(
    ("tag", "entry"),
    [(3, b"\x0a\x00"), (6, b"\x22\x00"), (9, b"\x1a\x00"), (9, b"\x2a\x00"), (10, b"\x22\x00")],
    ids=["groups", "incarnations", "files", "lost", "times"],
)
def test_a_body_full_of_nothing_costs_no_more_than_itself(tag: int, entry: bytes) -> None:
    inner = entry * 1_000_000
    size = len(inner)
    length = bytes([size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80, size >> 14 & 0x7F | 0x80, size >> 21])
    body = bytes([tag << 3 | 2]) + length + inner
    tracemalloc.start()
    try:
        assert "at most" in in_parts(body)
        assert tracemalloc.get_traced_memory()[1] < 4 * len(body)
    finally:
        tracemalloc.stop()


def test_a_body_that_holds_two_messages_is_none() -> None:
    small, large = (pb.Body(halt=pb.Halt(reason=one)).SerializeToString() for one in ("a", "b"))
    assert "one message" in reason(enveloped(small + large))


def test_numbers_that_grow_when_they_are_read_are_refused_before() -> None:
    raw = pb.Body(participant_join={"partitions": [{"topic": "t", "partitions": [0] * LISTS_BYTES_MAX}]})
    assert "bytes" in in_parts(raw.SerializeToString())


def test_a_body_that_no_reader_would_put_together_is_not_sent() -> None:
    file = DataFile(path="p" * 1_000, body="", table_partition="", rows=1, size_bytes=1)
    body = WriteStatus(transaction="t", ranges=(), files=(file,) * (PENDING_BYTES_MAX // 1_000))
    with pytest.raises(Malformed, match="bytes"):
        encode(message(body))


def test_what_is_no_protobuf_has_no_fields() -> None:
    for raw in (b"\x0a", b"\x0a\x05a", b"\x0b", b"\x80", b"\x08" + b"\xff" * 11, b"\x09123"):
        with pytest.raises(Malformed, match="not a protobuf"):
            list(fields(raw, 0, len(raw)))
    raw = b"\x08\x96\x01" + b"\x12\x03abc" + b"\x1d1234" + b"\x2112345678"
    assert [(number, raw[begin:end]) for number, begin, end in fields(raw, 0, len(raw))] == [
        (1, raw[1:3]), (2, b"abc"), (3, b"1234"), (4, b"12345678"),
    ]  # fmt: skip

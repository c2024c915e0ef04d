"""How messages of the control topic look, for people and for programs."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC

import pytest

from control_topic.codec import Incomplete, Unreadable
from control_topic.messages import (
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
from control_topic.transport import Received
from lockstep.watch.topic_lines import (
    TYPES,
    Content,
    Filter,
    as_json,
    as_text,
    heading,
    transaction,
    type_name,
)

TXN = "0123456789abcdef0123456789abcdef"
INSTANT = "20251121024824226"
E0, E1 = SourcePartition("events", 0), SourcePartition("events", 1)

WRITE_STATUS = WriteStatus(
    transaction=TXN,
    ranges=(Range(partition=E0, start=0, next=30_000, records=30_000), Range(partition=E1, start=5, next=9)),
    files=tuple(
        DataFile(path=f"a/{n}.parquet", body=str(n), table_partition="a", rows=60_000, size_bytes=9_100_000)
        for n in range(2)
    ),
    rejects=(Reject(partition=E0, offset=7, reason="not JSON"),),
    lost=(Lost(partition=E1, start=0, next=5),),
    witnesses=(Witness(partition=E0, offset=29_999, fingerprint=255),),
    event_times=(EventTimes(partition=E0, greatest_ms=-7, late=2_000, absurd=1),),
)

CASES: list[tuple[Body, str, dict[str, object]]] = [
    (
        RunAnnounce(address="127.0.0.1:5000", table_epoch=3, started_at_ms=12),
        "run run-1 · answers at 127.0.0.1:5000",
        {"address": "127.0.0.1:5000", "table_epoch": 3, "started_at_ms": 12},
    ),
    (CoordinatorClaim(), "incarnation 0000abcd", {}),
    (
        ParticipantJoin(partitions=(E0, E1, SourcePartition("events", 3), SourcePartition("other", 2))),
        "events:0-1,3 other:2 · incarnation 0000abcd",
        {
            "partitions": [
                {"topic": "events", "partition": 0},
                {"topic": "events", "partition": 1},
                {"topic": "events", "partition": 3},
                {"topic": "other", "partition": 2},
            ]
        },
    ),
    (
        ParticipantLeave(partitions=(E0,), transaction=TXN),
        "events:0 · drops its open data",
        {"partitions": [{"topic": "events", "partition": 0}], "reason": None},
    ),
    (
        ParticipantLeave(partitions=(), reason="the disk is full"),
        "the disk is full",
        {"partitions": [], "reason": "the disk is full"},
    ),
    (ParticipantReady(), "", {}),
    (EndRequest(transaction=TXN, reason="memory"), "memory", {"reason": "memory"}),
    (EndCommit(transaction=TXN, reason="interval"), "interval", {"reason": "interval"}),
    (EndCommit(transaction=TXN), "", {"reason": None}),
    (
        AbortCommit(transaction=TXN, reason="no WRITE_STATUS from worker-1", cause="silent"),
        "silent · no WRITE_STATUS from worker-1",
        {"reason": "no WRITE_STATUS from worker-1", "cause": "silent"},
    ),
    (
        AbortCommit(transaction=TXN, reason="an older version's"),
        "an older version's",
        {"reason": "an older version's", "cause": None},
    ),
    (
        Halt(reason="events:0 offset 7 is not JSON"),
        "events:0 offset 7 is not JSON",
        {"reason": "events:0 offset 7 is not JSON"},
    ),
    (
        Control(
            number=3,
            action="set",
            settings={"interval_ms": 2_000, "max_records": 0},
            who="me@here",
            why="a <b>backlog</b>",
        ),
        "set transaction.interval=2s transaction.max_records=no limit · by me@here · a <b>backlog</b>",
        {
            "number": 3,
            "action": "set",
            "settings": {"transaction.interval": 2_000, "transaction.max_records": 0},
            "who": "me@here",
            "why": "a <b>backlog</b>",
        },
    ),
    (
        Control(number=4, action="resume"),
        "resume",
        {"number": 4, "action": "resume", "settings": {}, "who": "", "why": None},
    ),
    (
        StartCommit(transaction=TXN, instant=INSTANT, committed={E1: 5, E0: 0}, writers={E0: "w0", E1: "w1"}),
        f"instant {INSTANT} · 2 workers · events:0@0 events:1@5",
        {
            "instant": INSTANT,
            "committed": [
                {"topic": "events", "partition": 0, "offset": 0},
                {"topic": "events", "partition": 1, "offset": 5},
            ],
            "records_max": None,
            "writers": [
                {"topic": "events", "partition": 0, "incarnation": "w0"},
                {"topic": "events", "partition": 1, "incarnation": "w1"},
            ],
            "last_records": [],
            "watermark_ms": None,
            "takers": {},
        },
    ),
    (
        StartCommit(transaction=TXN, instant=INSTANT, committed={}, writers={E0: "w0"}, records_max=50_000),
        f"instant {INSTANT} · 1 worker · at most 50,000 records",
        {
            "instant": INSTANT,
            "committed": [],
            "records_max": 50_000,
            "writers": [{"topic": "events", "partition": 0, "incarnation": "w0"}],
            "last_records": [],
            "watermark_ms": None,
            "takers": {},
        },
    ),
    (
        WriteProgress(transaction=TXN, records=30_000, files=1_200, size_bytes=5_000_000, steps=2_500),
        "1,200 files so far 5.0 MB · of 30,000 records",
        {"records": 30_000, "files": 1_200, "size_bytes": 5_000_000, "steps": 2_500},
    ),
    (
        AckCommit(transaction=TXN, instant=INSTANT, committed={E0: 30_000}),
        f"instant {INSTANT} · events:0@30000",
        {
            "instant": INSTANT,
            "committed": [{"topic": "events", "partition": 0, "offset": 30_000}],
            "took_ms": {},
        },
    ),
    (
        AckCommit(
            transaction=TXN,
            instant=INSTANT,
            committed={},
            took_ms={"files": 4, "lock": 31, "check": 12, "metadata": 150, "write": 58},
        ),
        f"instant {INSTANT} · files 4 ms lock 31 ms check 12 ms metadata 150 ms write 58 ms",
        {
            "instant": INSTANT,
            "committed": [],
            "took_ms": {"files": 4, "lock": 31, "check": 12, "metadata": 150, "write": 58},
        },
    ),
    (
        WRITE_STATUS,
        "2 files 18.2 MB 120,000 rows · events:0 [0,30000) events:1 [5,9) · 1 rejected"
        " · lost events:1 [0,5) · 2,000 late",
        {
            "ranges": [
                {"topic": "events", "partition": 0, "start": 0, "next": 30_000, "records": 30_000},
                {"topic": "events", "partition": 1, "start": 5, "next": 9, "records": 0},
            ],
            "files": [
                {
                    "path": f"a/{n}.parquet",
                    "body": str(n),
                    "table_partition": "a",
                    "rows": 60_000,
                    "size_bytes": 9_100_000,
                    "deletes": 0,
                }
                for n in range(2)
            ],
            "rejects": [{"topic": "events", "partition": 0, "offset": 7, "reason": "not JSON"}],
            "reject_count": 1,
            "lost": [{"topic": "events", "partition": 1, "start": 0, "next": 5}],
            "event_times": [
                {"topic": "events", "partition": 0, "greatest_ms": -7, "late": 2_000, "absurd": 1}
            ],
            "last_records": [
                {"topic": "events", "partition": 0, "offset": 29_999, "fingerprint": "00000000000000ff"}
            ],
            "behind": [],
            "handed": {},
            "taken": {},
        },
    ),
]


def message(body: Body, *, sender: str = "worker-1") -> Message:
    return Message(
        pipeline="events",
        run="run-1",
        epoch=3,
        sender=sender,
        incarnation="0000abcdef",
        sequence=9,
        sent_at_ms=1,
        body=body,
    )


def received(content: Content) -> Received:
    return Received(offset=41, time_ms=1_763_690_400_123, content=content, size_bytes=2_048, marked=True)


def test_the_cases_hold_every_type_of_message() -> None:
    assert {type(body) for body, _, _ in CASES} == set(TYPE_NAMES)


@pytest.mark.parametrize(("body", "text", "content"), CASES, ids=[type(case[0]).__name__ for case in CASES])
def test_every_message_is_one_line_and_one_json_object(
    body: Body, text: str, content: dict[str, object]
) -> None:
    line = as_text(received(message(body)), zone=UTC).plain
    assert line.split("  ", 1)[0] == "02:00:00.123"
    assert line.split()[1:5] == ["41", "3", TYPE_NAMES[type(body)], "worker-1"]
    assert line.endswith(text)
    assert ("\n" in line) is False
    document = as_json(received(message(body)))
    assert {key: document[key] for key in ("offset", "time", "type", "epoch", "sender")} == {
        "offset": 41,
        "time": 1_763_690_400_123,
        "type": TYPE_NAMES[type(body)],
        "epoch": 3,
        "sender": "worker-1",
    }
    assert document["content"] == content
    assert document["transaction"] == (getattr(body, "transaction", "") or None)
    assert json.loads(json.dumps(document)) == document


def test_each_message_says_that_nobody_checked_whose_word_it_is() -> None:
    marked = received(message(Halt(reason="stop")))
    bare = replace(marked, marked=False)
    assert as_json(marked)["mark"] == "unchecked"
    assert as_json(bare)["mark"] == "none"
    assert as_text(marked).plain.endswith("stop")
    assert as_text(bare).plain.endswith("stop · without a mark")


@pytest.mark.parametrize("time_ms", [-(2**63), -(2**62), 2**62, 2**63 - 1])
def test_a_time_that_is_in_no_calendar_stops_nothing(time_ms: int) -> None:
    line = as_text(replace(received(message(Halt(reason="stop"))), time_ms=time_ms), zone=UTC).plain
    assert line.startswith("--:--:--.---")
    assert line.endswith("stop")


def test_a_damaged_message_is_shown_as_such() -> None:
    damaged = received(Unreadable("the digest does not match"))
    line = as_text(damaged).plain
    assert "UNREADABLE" in line
    assert line.endswith("2.0 kB: the digest does not match")
    document = as_json(damaged)
    assert (document["type"], document["epoch"], document["sender"], document["transaction"]) == (
        "UNREADABLE",
        None,
        None,
        None,
    )
    assert document["content"] == {"reason": "the digest does not match", "size_bytes": 2_048}


def test_a_part_of_a_message_is_shown_as_such() -> None:
    part = received(Incomplete(part=0, parts=3))
    assert as_text(part).plain.endswith("part 1 of 3, 2.0 kB")
    assert as_json(part)["content"] == {"part": 0, "parts": 3, "size_bytes": 2_048}


def test_the_columns_of_all_lines_are_below_each_other() -> None:
    lines = [as_text(received(message(body, sender="coordinator@worker-0"))).plain for body, _, _ in CASES]
    lines += [as_text(received(Unreadable("x"))).plain]
    at = heading().plain.index("content")
    assert {line[at - 2 : at] for line in lines if len(line) > at} == {"  "}
    assert heading().plain.split() == ["time", "offset", "epoch", "type", "sender", "txn", "content"]


def test_on_a_narrow_terminal_what_does_not_fit_goes_below_and_nothing_is_cut_off() -> None:
    for body, text, _ in CASES:
        lines = as_text(received(message(body)), width=100).plain.split("\n")
        assert max(map(len, lines)) <= 100
        assert " ".join(" ".join(lines).split()).endswith(text)
    assert len(as_text(received(message(WRITE_STATUS)), width=100).plain.split("\n")) > 1


def test_a_long_sender_is_cut_and_long_lists_are_counted() -> None:
    offsets = {SourcePartition("events", number): 1 for number in range(20)}
    body = AckCommit(transaction=TXN, instant=INSTANT, committed=offsets)
    line = as_text(received(message(body, sender="x" * 40))).plain
    assert "xxx…" in line
    assert line.endswith("events:5@1 and 14 more")


def test_a_filter_lets_through_its_types_and_what_begins_like_its_transaction() -> None:
    start = received(message(EndCommit(transaction=TXN)))
    ready = received(message(ParticipantReady()))
    damaged = received(Unreadable("x"))
    assert all(map(Filter(), (start, ready, damaged)))
    assert [*map(Filter(types=frozenset({"END_COMMIT"})), (start, ready, damaged))] == [True, False, False]
    assert [*map(Filter(transaction=TXN[:8]), (start, ready, damaged))] == [True, False, False]
    assert [*map(Filter(types=frozenset({"UNREADABLE"})), (start, ready, damaged))] == [False, False, True]


def test_every_type_can_be_asked_for() -> None:
    assert {type_name(message(body)) for body, _, _ in CASES} < set(TYPES)
    assert transaction(Unreadable("x")) == ""

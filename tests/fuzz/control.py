"""The control topic and the table service: whatever bytes come, they are answered and cost bounded memory."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from random import Random
from typing import Any

from google.protobuf.message import DecodeError

from control_topic import messages as m
from control_topic.bounds import REASON_CHARS_MAX, TOPIC_CHARS_MAX
from control_topic.causes import COMMIT_PARTS
from control_topic.codec import Incomplete, MessageDecoder, Unreadable, encode
from control_topic.controls import ACTIONS, SET, SETTINGS, TEXT_CHARS_MAX, TEXTS, Controls, Tuning
from control_topic.errors import Malformed
from control_topic.parts import Joiner
from control_topic.stubs import control_pb2 as control_pb
from table.service import codec
from table.service.calls import (
    Answer,
    CoordinatorReport,
    Directive,
    Order,
    Result,
    RunMode,
    WorkerReport,
)
from table.stubs import table_pb2 as table_pb
from tests.fuzz.target import Target, Wrong, damaged, noise, require

ASSEMBLIES_MAX = 8
PENDING_BYTES_MAX = 2_000


def _text(random: Random) -> str:
    return "".join(random.choice("ab0-:\u00e9\u2603\U0001f600\x00\n") for _ in range(random.randint(0, 8)))


def _partition(random: Random) -> m.SourcePartition:
    repeated = "".join(random.choice("ab0-._") for _ in range(random.choice((1, 3))))
    topic = (repeated * random.choice((1, TOPIC_CHARS_MAX)))[:TOPIC_CHARS_MAX]
    return m.SourcePartition("t" if topic == "." else topic, random.choice((0, 1, 7, 2**31 - 1)))


def _offset(random: Random) -> int:
    return random.choice((0, 1, random.randrange(10**6), 2**63 - 1))


def _ranges(random: Random) -> tuple[m.Range, ...]:
    partitions = {_partition(random) for _ in range(random.randint(0, 3))}
    return tuple(_range(random, partition) for partition in sorted(partitions))


def _range(random: Random, partition: m.SourcePartition) -> m.Range:
    start, following = sorted((_offset(random), _offset(random)))
    records = random.randint(0, min(5, following - start))
    return m.Range(partition=partition, start=start, next=following, records=records)


def _took_ms(random: Random) -> dict[str, int]:
    return {part: _offset(random) for part in COMMIT_PARTS if random.random() < 0.7}


def _body(random: Random) -> m.Body:
    text = _text(random)
    offsets = {_partition(random): _offset(random) for _ in range(random.randint(0, 3))}
    file = m.DataFile(path=text, body=_text(random), table_partition=text, rows=3, size_bytes=9)
    reject = m.Reject(partition=_partition(random), offset=_offset(random), reason=text)
    return random.choice(
        (
            m.RunAnnounce(address=text, table_epoch=random.randrange(2**64), started_at_ms=_offset(random)),
            m.CoordinatorClaim(),
            m.ParticipantJoin(partitions=tuple(offsets), takes_at=text),
            m.ParticipantLeave(partitions=tuple(offsets), transaction=text),
            m.ParticipantReady(),
            m.StartCommit(
                transaction=text,
                instant=text,
                committed=offsets,
                writers=dict.fromkeys(offsets, "i1"),
                records_max=_offset(random),
                takers=random.choice(({}, {"i1": text})) if offsets else {},
            ),
            m.EndRequest(transaction=text, reason=text),
            m.EndCommit(transaction=text, reason=_text(random)),
            m.WriteProgress(
                transaction=text,
                records=_offset(random),
                files=_offset(random),
                size_bytes=0,
                steps=_offset(random),
            ),
            m.WriteStatus(
                transaction=text,
                ranges=_ranges(random),
                files=(file,) * random.randint(0, 2),
                rejects=(reject,) * random.randint(0, 1),
                lost=tuple(
                    m.Lost(partition=r.partition, start=r.start, next=r.next) for r in _ranges(random)
                ),
                behind=offsets,
                handed={text: _offset(random)},
                taken={_text(random): _offset(random)},
            ),
            m.AckCommit(transaction=text, instant=text, committed=offsets, took_ms=_took_ms(random)),
            m.AbortCommit(transaction=text, reason=text, cause=_text(random)),
            m.Halt(reason=text),
            m.Control(
                number=random.randrange(2**64),
                action=text,
                settings={name: _offset(random) for name in SETTINGS if random.random() < 0.5},
                who=_text(random),
                why=_text(random),
            ),
        )
    )


def _message(random: Random) -> m.Message:
    return m.Message(
        pipeline=_text(random),
        run=_text(random),
        epoch=random.randrange(2**40),
        sender=_text(random),
        incarnation=_text(random),
        sequence=random.randrange(2**64),
        sent_at_ms=random.randrange(-(2**63), 2**63),
        body=_body(random),
    )


def _records(random: Random) -> list[bytes]:
    """One message's records: whole or in parts, sound, damaged, or damaged inside a digest that fits."""
    sent = _message(random)
    records = encode(sent, body_bytes_max=random.choice((3, 17, 100_000)))
    envelope = control_pb.Envelope.FromString(records[0])
    match random.randrange(9):
        case 0:
            return [damaged(random, raw) for raw in records]
        case 1:
            envelope.body = damaged(random, control_pb.Envelope.FromString(encode(sent)[0]).body)
            envelope.digest = hashlib.sha256(envelope.body).digest()
            envelope.part, envelope.parts = 0, 1
        case 2:
            envelope.part, envelope.parts = _number(random), _number(random)
        case 3:
            envelope.version = _number(random)
        case 4:
            return [noise(random, 60)]
        case 5:
            # one field of every kind and number, nested groups, and lengths that lie
            field = bytes([random.randrange(256)]) + random.choice(
                (b"", b"\x7f", b"\xff" * 9 + b"\x01", b"\x0b" * 200)
            )
            return [random.choice(records) + field + noise(random, 20)]
        case 6:
            envelope.body, envelope.pipeline = b"", "p" * random.choice((0, 3_000, 100_000))
            envelope.part, envelope.parts = 0, 2
        case 7:
            envelope.body = _oversized(random)
            envelope.digest = hashlib.sha256(envelope.body).digest()
            envelope.part, envelope.parts = 0, 1
        case _:
            random.shuffle(records)
            return records if len(records) == 1 else records[random.randint(0, 1) :]
    return [envelope.SerializeToString()]


def _oversized(random: Random) -> bytes:
    """A body with a text or a list that nobody of ours would write."""
    text = random.choice(("t", "\x1b", "\u2603")) * random.choice((250, 1_001, 8_001, 60_000))
    group = {"topic": text, "partitions": [0], "offsets": [1]}
    body = random.choice(
        (
            {"halt": {"reason": text}},
            {"abort_commit": {"reason": text, "cause": text}},
            {"participant_leave": {"reason": text}},
            {"end_commit": {"reason": text}},
            {"run_announce": {"address": text}},
            {"control": {"action": text, "who": text, "why": text}},
            {"ack_commit": {"committed": [group]}},
            {"write_status": {"rejects": [{"topic": "t", "reason": text}], "reject_count": 1}},
            {"write_status": {"lost": [{"topic": text}]}},
            {"start_commit": {"incarnations": [text], "writers": [{"topic": "t"}]}},
        )
    )
    return control_pb.Body(**body).SerializeToString() * random.choice((1, 1, 1, 2))


def _longest(value: Any) -> int:
    """Of the texts in a message, those of its files left aside: a bound in bytes is theirs."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, m.DataFile):
        return 0
    if isinstance(value, Mapping):
        return max(map(_longest, [*value, *value.values()]), default=0)
    if isinstance(value, tuple):
        return max(map(_longest, value), default=0)
    return (
        max((_longest(getattr(value, one.name)) for one in fields(value)), default=0)
        if is_dataclass(value)
        else 0
    )


def _number(random: Random) -> int:
    return random.choice((0, 1, 2, 4_096, 4_097, 2**31, 2**32 - 1, random.randrange(2**32)))


def make_topic(random: Random, size: int) -> dict[str, list[bytes]]:
    """Records of all kinds in any order, and then the parts of one sound message."""
    records: list[bytes] = []
    waiting: list[bytes] = []
    while len(records) < size:
        waiting += _records(random)
        random.shuffle(waiting)
        records.append(waiting.pop())
    return {"records": records, "sound": encode(_message(random), body_bytes_max=50)}


def check_topic(case: dict[str, list[bytes]]) -> int:
    """A reader's life: whatever comes is answered, and in the end a sound message is read."""
    decoder = MessageDecoder(Joiner(assemblies_max=ASSEMBLIES_MAX, pending_bytes_max=PENDING_BYTES_MAX))
    joiner = decoder.joiner
    for raw in case["records"]:
        answer = decoder.feed(raw)
        require(isinstance(answer, m.Message | Unreadable | Incomplete), "no answer", raw)
        require(joiner.pending <= ASSEMBLIES_MAX, "too many unfinished bodies are kept", raw)
        require(joiner.pending_bytes <= PENDING_BYTES_MAX, "too many bytes are kept", raw)
        if isinstance(answer, Unreadable):
            require(bool(answer.reason), "unreadable without a reason", raw)
        if isinstance(answer, m.Message):
            require(_longest(answer) <= REASON_CHARS_MAX, "a text of any length is read", raw)
            require(answer.version == m.PROTOCOL_VERSION, "another version's message is read", raw)
            again = MessageDecoder().feed(encode(answer)[0])
            require(again == answer, f"an accepted message reads {again} when it is written again", raw)
    answers = [decoder.feed(raw) for raw in case["sound"]]
    final = answers[-1]
    if not isinstance(final, m.Message):
        raise Wrong("a sound message is not read after all that", case["sound"])
    require(encode(final, body_bytes_max=50) == case["sound"], f"it is read as {final}", case["sound"])
    return len(case["records"]) + 1


# --- the table service --------------------------------------------------------------------------------


def _report(random: Random) -> WorkerReport:
    text = _text(random)
    coordinator = CoordinatorReport(
        epoch=_offset(random),
        state=text,
        transaction=text,
        instant=text,
        started_at_ms=_offset(random),
        answered=(text,) * random.randint(0, 2),
        missing=(text,) * random.randint(0, 2),
        ignored=random.randrange(2**31),
    )
    return WorkerReport(
        slot=random.randrange(2**16),
        incarnation=text,
        pid=random.randrange(2**31),
        host=_text(random),
        state=text,
        partitions=tuple(sorted({_partition(random) for _ in range(random.randint(0, 3))})),
        metrics={f"metric_{number}": _offset(random) % 2**53 for number in range(random.randint(0, 3))},
        coordinator=random.choice((coordinator, None)),
        poison=text,
        fenced=random.random() < 0.5,
        seconds={"decode": random.random() * 10, text: 0.5},
    )


def _answer(random: Random) -> Answer:
    offsets = {_partition(random): _offset(random) for _ in range(random.randint(0, 3))}
    return Answer(
        result=random.choice(list(Result)),
        reason=_text(random),
        wait_ms=random.randrange(2**31),
        instant=_text(random),
        committed=offsets,
        partitions=tuple(sorted(offsets)),
        took_ms=_took_ms(random),
    )


def _directive(random: Random) -> Directive:
    dead = (_text(random),) * random.randint(0, 2)
    join = random.random() < 0.5
    mode, controls = random.choice(list(RunMode)), random.choice((None, _controls(random)))
    if mode in (RunMode.RUN, RunMode.PAUSE):  # which a pause tells apart
        mode = RunMode.PAUSE if controls is not None and controls.pause else RunMode.RUN
    return Directive(mode=mode, reason=_text(random), dead=dead, join=join, controls=controls)


def _controls(random: Random) -> Controls:
    tuning = Tuning(
        interval_ms=max(1, _offset(random)),
        write_timeout_ms=max(1, _offset(random)),
        max_records=_offset(random),
        max_bytes=_offset(random),
        schedule=random.choice((None, _text(random)[:TEXT_CHARS_MAX])),
        align_ms=random.choice((None, _offset(random))),
    )
    return Controls(
        number=_offset(random),
        commit=_offset(random),
        pause=random.choice((0, _offset(random))),
        tuning=random.choice((None, tuning)),
    )


def _order(random: Random) -> Order:
    action = random.choice(list(ACTIONS))
    names = random.sample(sorted(SETTINGS), random.randint(1, 4))
    settings = {n: _text(random)[:TEXT_CHARS_MAX] if n in TEXTS else _offset(random) for n in names}
    return Order(
        action=action,
        settings=settings if action == SET else {},
        who=_text(random),
        why=_text(random),
        lives_ms=_offset(random),
    )


_CALLS: dict[str, tuple[Any, Any, Any, Any]] = {
    "report": (table_pb.WorkerReport, codec.report_to_proto, codec.report_from_proto, _report),
    "answer": (table_pb.Reply, codec.answer_to_proto, codec.answer_from_proto, _answer),
    "survey": (table_pb.SurveyReply, codec.survey_to_proto, codec.survey_from_proto, _answer),
    "directive": (table_pb.Directive, codec.directive_to_proto, codec.directive_from_proto, _directive),
    "order": (table_pb.ControlRequest, codec.order_to_proto, codec.order_from_proto, _order),
}


def make_calls(random: Random, size: int) -> list[tuple[str, bytes, bool]]:
    """(what, bytes, whether they are sound): what a worker or driver of any version, or anybody, may send."""
    return [_call(random) for _ in range(size)]


def _call(random: Random) -> tuple[str, bytes, bool]:
    name = random.choice(sorted(_CALLS))
    _, to_proto, _, make = _CALLS[name]
    raw = to_proto(make(random)).SerializeToString()
    match random.randrange(4):
        case 0:
            return name, noise(random, 40), False
        case 1:
            return name, damaged(random, raw * random.randint(1, 2)), False
        case 2:
            return random.choice(sorted(_CALLS)), raw, False
        case _:
            return name, raw, True


def check_calls(case: list[tuple[str, bytes, bool]]) -> int:
    """Every call is understood, and says the same when it is written again, or is refused as malformed."""
    for name, raw, sound in case:
        kind, to_proto, from_proto, _ = _CALLS[name]
        try:
            value = from_proto(kind.FromString(raw))
        except (DecodeError, Malformed) as error:
            require(not sound, f"a sound {name} is refused: {error!r}", raw)
            continue
        again = from_proto(kind.FromString(to_proto(value).SerializeToString()))
        if hasattr(value, "partitions"):  # a set, written in order
            value = replace(value, partitions=tuple(sorted(value.partitions)))
        require(again == value or value != value, f"{value} reads {again} when it is written again", raw)
    return len(case)


TARGETS = (
    Target(
        name="control topic",
        promise="any bytes are a message, or are counted and passed over; memory stays within its limits",
        make=make_topic,
        check=check_topic,
        size=200,
        seeds=50,
    ),
    Target(
        name="table service",
        promise="any call is understood or refused as malformed",
        make=make_calls,
        check=check_calls,
        size=200,
        seeds=50,
    ),
)

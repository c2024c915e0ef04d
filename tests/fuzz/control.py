"""The control topic and the table service: whatever bytes come, they are answered and cost bounded memory."""

from __future__ import annotations

import hashlib
from random import Random

from google.protobuf.message import DecodeError

from control_topic import messages as m
from control_topic.codec import Decoder, Incomplete, Unreadable, encode
from control_topic.errors import Malformed
from control_topic.parts import Joiner
from control_topic.stubs import control_pb2 as control_pb
from table import codec
from table.stubs import table_pb2 as table_pb
from tests.fuzz.target import Target, damaged, require

RECORDS = 100
ASSEMBLIES_MAX = 8
PENDING_BYTES_MAX = 2_000


def _text(random: Random) -> str:
    return "".join(random.choice("ab0-:\u00e9\u2603\U0001f600\x00\n") for _ in range(random.randint(0, 8)))


def _partition(random: Random) -> m.SourcePartition:
    return m.SourcePartition(_text(random), random.choice((0, 1, 7, 2**31 - 1)))


def _offset(random: Random) -> int:
    return random.choice((0, 1, random.randrange(10**6), 2**63 - 1))


def _ranges(random: Random) -> tuple[m.Range, ...]:
    starts = sorted((_offset(random), _offset(random)))
    records = random.randint(0, min(5, starts[1] - starts[0]))
    one = m.Range(partition=_partition(random), start=starts[0], next=starts[1], records=records)
    return (one,) * random.randint(0, 1)


def _body(random: Random) -> m.Body:
    text = _text(random)
    offsets = {_partition(random): _offset(random) for _ in range(random.randint(0, 3))}
    file = m.DataFile(path=text, file_id=_text(random), table_partition=text, rows=3, size_bytes=9)
    reject = m.Reject(partition=_partition(random), offset=_offset(random), reason=text)
    return random.choice(
        (
            m.RunAnnounce(address=text, table_epoch=random.randrange(2**64), started_at_ms=_offset(random)),
            m.CoordinatorClaim(),
            m.ParticipantJoin(partitions=tuple(offsets)),
            m.ParticipantLeave(partitions=tuple(offsets), transaction=text),
            m.ParticipantReady(),
            m.StartCommit(
                transaction=text, instant=text, committed=offsets, writers=dict.fromkeys(offsets, "i1")
            ),
            m.EndRequest(transaction=text, reason=text),
            m.EndCommit(transaction=text),
            m.WriteStatus(
                transaction=text,
                ranges=_ranges(random),
                files=(file,) * random.randint(0, 2),
                rejects=(reject,) * random.randint(0, 1),
            ),
            m.AckCommit(transaction=text, instant=text, committed=offsets),
            m.AbortCommit(transaction=text, reason=text),
            m.Halt(reason=text),
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
    match random.randrange(5):
        case 0:
            return [damaged(random, raw) for raw in records]
        case 1:
            envelope = control_pb.Envelope.FromString(encode(sent)[0])
            envelope.body = damaged(random, envelope.body)
            envelope.digest = hashlib.sha256(envelope.body).digest()
            return [envelope.SerializeToString()]
        case 2:
            envelope = control_pb.Envelope.FromString(random.choice(records))
            envelope.part, envelope.parts = random.randrange(2**32), random.randrange(2**32)
            return [envelope.SerializeToString()]
        case 3:
            return [random.randbytes(random.randint(0, 60))]
        case _:
            random.shuffle(records)
            return records if len(records) == 1 else records[random.randint(0, 1) :]


def control_topic(random: Random) -> int:
    """A reader's life: records of all kinds in any order, and then a sound message, which is read."""
    decoder = Decoder(Joiner(assemblies_max=ASSEMBLIES_MAX, pending_bytes_max=PENDING_BYTES_MAX))
    waiting: list[bytes] = []
    fed = 0
    while fed < RECORDS:
        waiting += _records(random)
        random.shuffle(waiting)
        raw = waiting.pop()
        answer = decoder.feed(raw)
        fed += 1
        require(isinstance(answer, m.Message | Unreadable | Incomplete), "no answer", raw)
        joiner = decoder.joiner
        require(joiner.pending <= ASSEMBLIES_MAX, "too many unfinished bodies are kept", raw)
        require(joiner.pending_bytes <= PENDING_BYTES_MAX, "too many bytes are kept", raw)
        if isinstance(answer, m.Message):
            again = Decoder().feed(encode(answer)[0])
            require(again == answer, f"an accepted message reads {again} when it is written again", raw)
    sound = _message(random)
    answers = [decoder.feed(raw) for raw in encode(sound, body_bytes_max=50)]
    require(answers[-1] == sound, "a sound message is not read after all that", sound)
    return fed + 1


_CALLS = (
    (table_pb.WorkerReport, codec.report_from_proto),
    (table_pb.Directive, codec.directive_from_proto),
    (table_pb.Reply, codec.answer_from_proto),
    (table_pb.SurveyReply, codec.survey_from_proto),
)


def table_service(random: Random) -> int:
    """What a worker or a driver of another version, or anybody, may send in a call."""
    sample = table_pb.WorkerReport(slot=1, incarnation="i", pid=3, host="h", state="WRITING", records=4)
    for _ in range(RECORDS):
        kind, read = random.choice(_CALLS)
        raw = damaged(random, sample.SerializeToString() * random.randint(1, 2))
        raw = random.choice((raw, random.randbytes(random.randint(0, 30))))
        try:
            read(kind.FromString(raw))  # type: ignore[operator]
        except (DecodeError, Malformed):
            continue
    return RECORDS


TARGETS = (
    Target(
        "control topic",
        "any bytes are a message, or are counted and passed over; memory stays within its limits",
        control_topic,
    ),
    Target("table service", "any call is understood or refused as malformed", table_service),
)

"""Messages to bytes and back. With `control_topic.values` and `wire`, all there is that knows the protobuf
messages.

The wire form is `proto/control.proto`. Whatever the bytes are, decoding answers and never raises; what
encoding would not be able to read back, it refuses to write.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from google.protobuf.message import DecodeError

from control_topic.bounds import (
    ADDRESS_CHARS_MAX,
    NAME_CHARS_MAX,
    RAW_BYTES_MAX,
    REASON_CHARS_MAX,
    SOURCE_PARTITIONS_MAX,
    WORD_CHARS_MAX,
    cut,
    few_enough,
    short_enough,
)
from control_topic.controls import WHO_CHARS_MAX, WHY_CHARS_MAX
from control_topic.errors import Malformed
from control_topic.messages import (
    EPOCH_MAX,
    PROTOCOL_VERSION,
    AbortCommit,
    AckCommit,
    Body,
    Control,
    CoordinatorClaim,
    EndCommit,
    EndRequest,
    Halt,
    Message,
    ParticipantJoin,
    ParticipantLeave,
    ParticipantReady,
    RunAnnounce,
    SourcePartition,
    StartCommit,
    WriteProgress,
    WriteStatus,
)
from control_topic.parts import Joiner, Part, split
from control_topic.stubs import control_pb2 as pb
from control_topic.values import (
    columns,
    event_time,
    limited,
    offsets_from_proto,
    offsets_to_proto,
    partitions_from_proto,
    partitions_to_proto,
    ranges_from_proto,
    ranges_to_proto,
    rows,
    set_texts,
    set_to,
    took_ms,
    witnesses_from_proto,
    witnesses_to_proto,
    write_status_from_proto,
    write_status_to_proto,
)
from control_topic.wire import check_size

__all__ = [
    "NAME_CHARS_MAX",
    "RAW_BYTES_MAX",
    "Incomplete",
    "MessageDecoder",
    "Unreadable",
    "encode",
    "offsets_from_proto",
    "offsets_to_proto",
    "partitions_from_proto",
    "partitions_to_proto",
    "ranges_from_proto",
    "ranges_to_proto",
    "read_body",
    "read_envelope",
    "run_named",
    "write_status_from_proto",
    "write_status_to_proto",
]

BODY_BYTES_MAX = 512 * 1024
"""Bytes of a body that travel in one Kafka record, unless told otherwise."""

ENVELOPE_BYTES_MAX = 64 * 1024
"""Room for everything in an envelope but the body."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A record that is not a message of this version, and why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Incomplete:
    """Part `part` (0-based) of a body in `parts`, of which others have not arrived yet."""

    part: int
    parts: int


# --- whole messages ---------------------------------------------------------------------------


def encode(message: Message, *, body_bytes_max: int = BODY_BYTES_MAX) -> list[bytes]:
    """The values of the Kafka records that carry `message`, in order; one, unless its body is large.

    Raises `Malformed` for a message that no reader would accept.
    """
    if not 1 <= body_bytes_max <= RAW_BYTES_MAX - ENVELOPE_BYTES_MAX:
        raise ValueError(f"body_bytes_max is {body_bytes_max}, at most {RAW_BYTES_MAX - ENVELOPE_BYTES_MAX}")
    _check_envelope(message)
    _check_names(message.body)
    try:
        body = _TO_PROTO[type(message.body)](message.body).SerializeToString(deterministic=True)
        check_size(body)
        parts = split(
            pipeline=message.pipeline,
            run=message.run,
            incarnation=message.incarnation,
            body=body,
            payload_bytes_max=body_bytes_max,
        )
        records = [_envelope(message, part).SerializeToString() for part in parts]
    except (ValueError, TypeError) as error:  # protobuf's own: a number out of range, a lone surrogate
        raise Malformed(f"{message.type_name} of {message.sender} cannot be written: {error}") from error
    if (largest := max(map(len, records))) > RAW_BYTES_MAX:
        raise Malformed(f"{message.type_name} takes a record of {largest} bytes, {RAW_BYTES_MAX} are allowed")
    return records


class MessageDecoder:
    """Reads records in topic order. Holds the parts of bodies that have not arrived whole, within limits."""

    def __init__(self, joiner: Joiner | None = None) -> None:
        self.joiner = joiner if joiner is not None else Joiner()
        self.bodies_bytes = 0  # of all that were read

    def feed(self, raw: bytes | None) -> Message | Unreadable | Incomplete:
        """The message that `raw`, one record's value, completes; never raises."""
        try:
            return self._feed(raw)
        except Malformed as error:
            return Unreadable(str(error))

    def _feed(self, raw: bytes | None) -> Message | Incomplete:
        if raw is None:
            raise Malformed("a record without a value")
        if len(raw) > RAW_BYTES_MAX:
            raise Malformed(f"a record of {len(raw)} bytes, at most {RAW_BYTES_MAX} are read")
        envelope, part = self._read_envelope(raw)
        body = self.joiner.add(part)
        if body is None:
            return Incomplete(part.part, part.parts)
        check_size(body)
        self.bodies_bytes += len(body)
        return Message(
            version=envelope.version,
            pipeline=envelope.pipeline,
            run=envelope.run,
            epoch=envelope.epoch,
            sender=envelope.sender,
            incarnation=envelope.incarnation,
            sequence=envelope.sequence,
            sent_at_ms=envelope.sent_at_ms,
            body=self._read_body(body),
        )

    def _read_envelope(self, raw: bytes) -> tuple[pb.Envelope, Part]:
        return read_envelope(raw)

    def _read_body(self, raw: bytes) -> Body:
        return read_body(raw)


def read_envelope(raw: bytes) -> tuple[pb.Envelope, Part]:
    """A record's envelope, and the part of a body that it carries. Raises `Malformed`."""
    envelope = _parse(pb.Envelope, raw)
    _check_envelope(envelope)
    if envelope.version != PROTOCOL_VERSION:
        raise Malformed(f"protocol version {envelope.version}, this Lockstep reads {PROTOCOL_VERSION}")
    part = Part(
        pipeline=envelope.pipeline,
        run=envelope.run,
        incarnation=envelope.incarnation,
        digest=envelope.digest,
        part=envelope.part,
        parts=envelope.parts,
        payload=envelope.body,
    )
    return envelope, part


def read_body(raw: bytes) -> Body:
    """A whole body. Raises `Malformed`."""
    read = _body_from_proto(_parse(pb.Body, raw))
    _check_names(read)
    return read


def _check_envelope(of: Message | pb.Envelope) -> None:
    short_enough(of.pipeline, of.run, of.sender, of.incarnation)


def _check_names(body: Body) -> None:
    short_enough(getattr(body, "transaction", ""), getattr(body, "instant", ""))
    short_enough(*set(getattr(body, "writers", {}).values()))


def run_named(raw: bytes | None) -> str:
    """The run in whose name a record is written, whoever wrote it; empty where it is no message."""
    if raw is None or len(raw) > RAW_BYTES_MAX:
        return ""
    try:
        return str(pb.Envelope.FromString(raw).run)
    except DecodeError:
        return ""


_Proto = TypeVar("_Proto", pb.Envelope, pb.Body)


def _parse(kind: type[_Proto], raw: bytes) -> _Proto:
    try:
        return kind.FromString(raw)
    except DecodeError as error:
        raise Malformed(f"{len(raw)} bytes that are not a protobuf {kind.DESCRIPTOR.name}") from error


def _envelope(message: Message, part: Part) -> pb.Envelope:
    if not 0 <= message.epoch <= EPOCH_MAX:
        raise Malformed(f"epoch {message.epoch} is not within 0 and {EPOCH_MAX}")
    return pb.Envelope(
        version=message.version,
        pipeline=message.pipeline,
        run=message.run,
        epoch=message.epoch,
        sender=message.sender,
        incarnation=message.incarnation,
        sequence=message.sequence,
        sent_at_ms=message.sent_at_ms,
        part=part.part,
        parts=part.parts,
        digest=part.digest,
        body=part.payload,
    )


# --- bodies -----------------------------------------------------------------------------------


def _start_to_proto(start: StartCommit) -> pb.StartCommit:
    incarnations = sorted(set(start.writers.values()))
    index = {incarnation: number for number, incarnation in enumerate(incarnations)}
    writers = [
        pb.TopicWriters(topic=topic, partitions=numbers, writers=[index[i] for i in values])
        for topic, numbers, values in columns(sorted(start.writers.items()))
    ]
    return pb.StartCommit(
        transaction=start.transaction,
        instant=start.instant,
        committed=offsets_to_proto(start.committed),
        incarnations=incarnations,
        writers=writers,
        records_max=start.records_max,
        witnesses=witnesses_to_proto(start.witnesses[p] for p in sorted(start.witnesses)),
        watermark_ms=None if start.watermark_ms is None else event_time(start.watermark_ms),
        takers=[start.takers[incarnation] for incarnation in incarnations] if start.takers else (),
    )


def _start_from_proto(start: pb.StartCommit) -> StartCommit:
    few_enough(len(start.incarnations), SOURCE_PARTITIONS_MAX, "incarnations")
    writers: dict[SourcePartition, str] = {}
    for group in limited(start.writers):
        for partition, index in rows(group.topic, group.partitions, group.writers):
            if index >= len(start.incarnations):
                raise Malformed(f"{partition} has writer {index} of {len(start.incarnations)}")
            if partition in writers:
                raise Malformed(f"{partition} has two writers")
            writers[partition] = start.incarnations[index]
    return StartCommit(
        transaction=start.transaction,
        instant=start.instant,
        committed=offsets_from_proto(start.committed),
        writers=writers,
        records_max=start.records_max,
        witnesses=witnesses_from_proto(start.witnesses),
        watermark_ms=event_time(start.watermark_ms) if start.HasField("watermark_ms") else None,
        takers=_takers_from_proto(start),
    )


def _takers_from_proto(start: pb.StartCommit) -> dict[str, str]:
    """Of every writer, or of none."""
    if len(start.takers) not in (0, len(start.incarnations)):
        raise Malformed(f"{len(start.takers)} takers of {len(start.incarnations)} writers")
    addresses = [cut(address, ADDRESS_CHARS_MAX) for address in start.takers]
    return dict(zip(start.incarnations, addresses, strict=bool(addresses)))


def _report_to_proto(status: WriteStatus) -> pb.WriteStatus:
    """With what is for the coordinator, and not for the table."""
    report = write_status_to_proto(status)
    report.behind.extend(offsets_to_proto(status.behind))
    return report


def _report_from_proto(report: pb.WriteStatus) -> WriteStatus:
    return replace(write_status_from_proto(report), behind=offsets_from_proto(report.behind))


_TO_PROTO: Mapping[type, Callable[[Any], pb.Body]] = {
    RunAnnounce: lambda b: pb.Body(
        run_announce=pb.RunAnnounce(
            address=cut(b.address, ADDRESS_CHARS_MAX),
            table_epoch=b.table_epoch,
            started_at_ms=b.started_at_ms,
        )
    ),
    CoordinatorClaim: lambda _: pb.Body(coordinator_claim=pb.CoordinatorClaim()),
    ParticipantJoin: lambda b: pb.Body(
        participant_join=pb.ParticipantJoin(
            partitions=partitions_to_proto(b.partitions), takes_at=cut(b.takes_at, ADDRESS_CHARS_MAX)
        )
    ),
    ParticipantLeave: lambda b: pb.Body(
        participant_leave=pb.ParticipantLeave(
            partitions=partitions_to_proto(b.partitions),
            transaction=b.transaction,
            reason=cut(b.reason, REASON_CHARS_MAX),
        )
    ),
    ParticipantReady: lambda _: pb.Body(participant_ready=pb.ParticipantReady()),
    StartCommit: lambda b: pb.Body(start_commit=_start_to_proto(b)),
    EndRequest: lambda b: pb.Body(
        end_request=pb.EndRequest(transaction=b.transaction, reason=cut(b.reason, WORD_CHARS_MAX))
    ),
    EndCommit: lambda b: pb.Body(
        end_commit=pb.EndCommit(transaction=b.transaction, reason=cut(b.reason, WORD_CHARS_MAX))
    ),
    WriteProgress: lambda b: pb.Body(
        write_progress=pb.WriteProgress(
            transaction=b.transaction,
            records=b.records,
            files=b.files,
            size_bytes=b.size_bytes,
            steps=b.steps,
        )
    ),
    WriteStatus: lambda b: pb.Body(write_status=_report_to_proto(b)),
    AckCommit: lambda b: pb.Body(
        ack_commit=pb.AckCommit(
            transaction=b.transaction,
            instant=b.instant,
            committed=offsets_to_proto(b.committed),
            took_ms=took_ms(b.took_ms),
        )
    ),
    AbortCommit: lambda b: pb.Body(
        abort_commit=pb.AbortCommit(
            transaction=b.transaction,
            reason=cut(b.reason, REASON_CHARS_MAX),
            cause=cut(b.cause, WORD_CHARS_MAX),
        )
    ),
    Halt: lambda b: pb.Body(halt=pb.Halt(reason=cut(b.reason, REASON_CHARS_MAX))),
    Control: lambda b: pb.Body(
        control=pb.Control(
            number=b.number,
            action=cut(b.action, WORD_CHARS_MAX),
            settings=set_to(b.settings),
            texts=set_texts(b.settings),
            who=cut(b.who, WHO_CHARS_MAX),
            why=cut(b.why, WHY_CHARS_MAX),
        )
    ),
}

_FROM_PROTO: Mapping[str, Callable[[pb.Body], Body]] = {
    "run_announce": lambda b: RunAnnounce(
        address=cut(b.run_announce.address, ADDRESS_CHARS_MAX),
        table_epoch=b.run_announce.table_epoch,
        started_at_ms=b.run_announce.started_at_ms,
    ),
    "coordinator_claim": lambda _: CoordinatorClaim(),
    "participant_join": lambda b: ParticipantJoin(
        partitions=partitions_from_proto(b.participant_join.partitions),
        takes_at=cut(b.participant_join.takes_at, ADDRESS_CHARS_MAX),
    ),
    "participant_leave": lambda b: ParticipantLeave(
        partitions=partitions_from_proto(b.participant_leave.partitions),
        transaction=b.participant_leave.transaction,
        reason=cut(b.participant_leave.reason, REASON_CHARS_MAX),
    ),
    "participant_ready": lambda _: ParticipantReady(),
    "start_commit": lambda b: _start_from_proto(b.start_commit),
    "end_request": lambda b: EndRequest(
        transaction=b.end_request.transaction, reason=cut(b.end_request.reason, WORD_CHARS_MAX)
    ),
    "end_commit": lambda b: EndCommit(
        transaction=b.end_commit.transaction, reason=cut(b.end_commit.reason, WORD_CHARS_MAX)
    ),
    "write_progress": lambda b: WriteProgress(
        transaction=b.write_progress.transaction,
        records=b.write_progress.records,
        files=b.write_progress.files,
        size_bytes=b.write_progress.size_bytes,
        steps=b.write_progress.steps,
    ),
    "write_status": lambda b: _report_from_proto(b.write_status),
    "ack_commit": lambda b: AckCommit(
        transaction=b.ack_commit.transaction,
        instant=b.ack_commit.instant,
        committed=offsets_from_proto(b.ack_commit.committed),
        took_ms=took_ms(b.ack_commit.took_ms),
    ),
    "abort_commit": lambda b: AbortCommit(
        transaction=b.abort_commit.transaction,
        reason=cut(b.abort_commit.reason, REASON_CHARS_MAX),
        cause=cut(b.abort_commit.cause, WORD_CHARS_MAX),
    ),
    "halt": lambda b: Halt(reason=cut(b.halt.reason, REASON_CHARS_MAX)),
    "control": lambda b: Control(
        number=b.control.number,
        action=cut(b.control.action, WORD_CHARS_MAX),
        settings={**set_to(b.control.settings), **set_texts(b.control.texts)},
        who=cut(b.control.who, WHO_CHARS_MAX),
        why=cut(b.control.why, WHY_CHARS_MAX),
    ),
}


def _body_from_proto(body: pb.Body) -> Body:
    kind = body.WhichOneof("kind")
    if kind is None:
        raise Malformed("a message of a type that this Lockstep does not know")
    return _FROM_PROTO[kind](body)

from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Envelope(_message.Message):
    __slots__ = ("version", "pipeline", "run", "epoch", "sender", "incarnation", "sequence", "sent_at_ms", "part", "parts", "digest", "body")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PIPELINE_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    SENDER_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    SENT_AT_MS_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    PARTS_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    version: int
    pipeline: str
    run: str
    epoch: int
    sender: str
    incarnation: str
    sequence: int
    sent_at_ms: int
    part: int
    parts: int
    digest: bytes
    body: bytes
    def __init__(self, version: _Optional[int] = ..., pipeline: _Optional[str] = ..., run: _Optional[str] = ..., epoch: _Optional[int] = ..., sender: _Optional[str] = ..., incarnation: _Optional[str] = ..., sequence: _Optional[int] = ..., sent_at_ms: _Optional[int] = ..., part: _Optional[int] = ..., parts: _Optional[int] = ..., digest: _Optional[bytes] = ..., body: _Optional[bytes] = ...) -> None: ...

class Body(_message.Message):
    __slots__ = ("run_announce", "coordinator_claim", "participant_join", "participant_leave", "participant_ready", "start_commit", "end_request", "end_commit", "write_status", "ack_commit", "abort_commit", "halt", "write_progress", "control")
    RUN_ANNOUNCE_FIELD_NUMBER: _ClassVar[int]
    COORDINATOR_CLAIM_FIELD_NUMBER: _ClassVar[int]
    PARTICIPANT_JOIN_FIELD_NUMBER: _ClassVar[int]
    PARTICIPANT_LEAVE_FIELD_NUMBER: _ClassVar[int]
    PARTICIPANT_READY_FIELD_NUMBER: _ClassVar[int]
    START_COMMIT_FIELD_NUMBER: _ClassVar[int]
    END_REQUEST_FIELD_NUMBER: _ClassVar[int]
    END_COMMIT_FIELD_NUMBER: _ClassVar[int]
    WRITE_STATUS_FIELD_NUMBER: _ClassVar[int]
    ACK_COMMIT_FIELD_NUMBER: _ClassVar[int]
    ABORT_COMMIT_FIELD_NUMBER: _ClassVar[int]
    HALT_FIELD_NUMBER: _ClassVar[int]
    WRITE_PROGRESS_FIELD_NUMBER: _ClassVar[int]
    CONTROL_FIELD_NUMBER: _ClassVar[int]
    run_announce: RunAnnounce
    coordinator_claim: CoordinatorClaim
    participant_join: ParticipantJoin
    participant_leave: ParticipantLeave
    participant_ready: ParticipantReady
    start_commit: StartCommit
    end_request: EndRequest
    end_commit: EndCommit
    write_status: WriteStatus
    ack_commit: AckCommit
    abort_commit: AbortCommit
    halt: Halt
    write_progress: WriteProgress
    control: Control
    def __init__(self, run_announce: _Optional[_Union[RunAnnounce, _Mapping]] = ..., coordinator_claim: _Optional[_Union[CoordinatorClaim, _Mapping]] = ..., participant_join: _Optional[_Union[ParticipantJoin, _Mapping]] = ..., participant_leave: _Optional[_Union[ParticipantLeave, _Mapping]] = ..., participant_ready: _Optional[_Union[ParticipantReady, _Mapping]] = ..., start_commit: _Optional[_Union[StartCommit, _Mapping]] = ..., end_request: _Optional[_Union[EndRequest, _Mapping]] = ..., end_commit: _Optional[_Union[EndCommit, _Mapping]] = ..., write_status: _Optional[_Union[WriteStatus, _Mapping]] = ..., ack_commit: _Optional[_Union[AckCommit, _Mapping]] = ..., abort_commit: _Optional[_Union[AbortCommit, _Mapping]] = ..., halt: _Optional[_Union[Halt, _Mapping]] = ..., write_progress: _Optional[_Union[WriteProgress, _Mapping]] = ..., control: _Optional[_Union[Control, _Mapping]] = ...) -> None: ...

class TopicPartitions(_message.Message):
    __slots__ = ("topic", "partitions")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partitions: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, topic: _Optional[str] = ..., partitions: _Optional[_Iterable[int]] = ...) -> None: ...

class TopicOffsets(_message.Message):
    __slots__ = ("topic", "partitions", "offsets")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    OFFSETS_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partitions: _containers.RepeatedScalarFieldContainer[int]
    offsets: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, topic: _Optional[str] = ..., partitions: _Optional[_Iterable[int]] = ..., offsets: _Optional[_Iterable[int]] = ...) -> None: ...

class TopicWriters(_message.Message):
    __slots__ = ("topic", "partitions", "writers")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    WRITERS_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partitions: _containers.RepeatedScalarFieldContainer[int]
    writers: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, topic: _Optional[str] = ..., partitions: _Optional[_Iterable[int]] = ..., writers: _Optional[_Iterable[int]] = ...) -> None: ...

class TopicRanges(_message.Message):
    __slots__ = ("topic", "partitions", "starts", "nexts", "records")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    STARTS_FIELD_NUMBER: _ClassVar[int]
    NEXTS_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partitions: _containers.RepeatedScalarFieldContainer[int]
    starts: _containers.RepeatedScalarFieldContainer[int]
    nexts: _containers.RepeatedScalarFieldContainer[int]
    records: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, topic: _Optional[str] = ..., partitions: _Optional[_Iterable[int]] = ..., starts: _Optional[_Iterable[int]] = ..., nexts: _Optional[_Iterable[int]] = ..., records: _Optional[_Iterable[int]] = ...) -> None: ...

class TopicWitnesses(_message.Message):
    __slots__ = ("topic", "partitions", "offsets", "fingerprints")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    OFFSETS_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINTS_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partitions: _containers.RepeatedScalarFieldContainer[int]
    offsets: _containers.RepeatedScalarFieldContainer[int]
    fingerprints: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, topic: _Optional[str] = ..., partitions: _Optional[_Iterable[int]] = ..., offsets: _Optional[_Iterable[int]] = ..., fingerprints: _Optional[_Iterable[int]] = ...) -> None: ...

class TopicEventTimes(_message.Message):
    __slots__ = ("topic", "partitions", "greatest_ms", "late", "absurd")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    GREATEST_MS_FIELD_NUMBER: _ClassVar[int]
    LATE_FIELD_NUMBER: _ClassVar[int]
    ABSURD_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partitions: _containers.RepeatedScalarFieldContainer[int]
    greatest_ms: _containers.RepeatedScalarFieldContainer[int]
    late: _containers.RepeatedScalarFieldContainer[int]
    absurd: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, topic: _Optional[str] = ..., partitions: _Optional[_Iterable[int]] = ..., greatest_ms: _Optional[_Iterable[int]] = ..., late: _Optional[_Iterable[int]] = ..., absurd: _Optional[_Iterable[int]] = ...) -> None: ...

class DataFile(_message.Message):
    __slots__ = ("path", "body", "table_partition", "rows", "size_bytes", "deletes")
    PATH_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    TABLE_PARTITION_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    DELETES_FIELD_NUMBER: _ClassVar[int]
    path: str
    body: str
    table_partition: str
    rows: int
    size_bytes: int
    deletes: int
    def __init__(self, path: _Optional[str] = ..., body: _Optional[str] = ..., table_partition: _Optional[str] = ..., rows: _Optional[int] = ..., size_bytes: _Optional[int] = ..., deletes: _Optional[int] = ...) -> None: ...

class Reject(_message.Message):
    __slots__ = ("topic", "partition", "offset", "reason")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    offset: int
    reason: str
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., offset: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class Lost(_message.Message):
    __slots__ = ("topic", "partition", "start", "next")
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    PARTITION_FIELD_NUMBER: _ClassVar[int]
    START_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    topic: str
    partition: int
    start: int
    next: int
    def __init__(self, topic: _Optional[str] = ..., partition: _Optional[int] = ..., start: _Optional[int] = ..., next: _Optional[int] = ...) -> None: ...

class RunAnnounce(_message.Message):
    __slots__ = ("address", "table_epoch", "started_at_ms")
    ADDRESS_FIELD_NUMBER: _ClassVar[int]
    TABLE_EPOCH_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    address: str
    table_epoch: int
    started_at_ms: int
    def __init__(self, address: _Optional[str] = ..., table_epoch: _Optional[int] = ..., started_at_ms: _Optional[int] = ...) -> None: ...

class CoordinatorClaim(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ParticipantJoin(_message.Message):
    __slots__ = ("partitions", "takes_at")
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    TAKES_AT_FIELD_NUMBER: _ClassVar[int]
    partitions: _containers.RepeatedCompositeFieldContainer[TopicPartitions]
    takes_at: str
    def __init__(self, partitions: _Optional[_Iterable[_Union[TopicPartitions, _Mapping]]] = ..., takes_at: _Optional[str] = ...) -> None: ...

class ParticipantLeave(_message.Message):
    __slots__ = ("partitions", "transaction", "reason")
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    partitions: _containers.RepeatedCompositeFieldContainer[TopicPartitions]
    transaction: str
    reason: str
    def __init__(self, partitions: _Optional[_Iterable[_Union[TopicPartitions, _Mapping]]] = ..., transaction: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class ParticipantReady(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class StartCommit(_message.Message):
    __slots__ = ("transaction", "instant", "committed", "incarnations", "writers", "records_max", "witnesses", "watermark_ms", "takers")
    TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    INSTANT_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_FIELD_NUMBER: _ClassVar[int]
    INCARNATIONS_FIELD_NUMBER: _ClassVar[int]
    WRITERS_FIELD_NUMBER: _ClassVar[int]
    RECORDS_MAX_FIELD_NUMBER: _ClassVar[int]
    WITNESSES_FIELD_NUMBER: _ClassVar[int]
    WATERMARK_MS_FIELD_NUMBER: _ClassVar[int]
    TAKERS_FIELD_NUMBER: _ClassVar[int]
    transaction: str
    instant: str
    committed: _containers.RepeatedCompositeFieldContainer[TopicOffsets]
    incarnations: _containers.RepeatedScalarFieldContainer[str]
    writers: _containers.RepeatedCompositeFieldContainer[TopicWriters]
    records_max: int
    witnesses: _containers.RepeatedCompositeFieldContainer[TopicWitnesses]
    watermark_ms: int
    takers: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, transaction: _Optional[str] = ..., instant: _Optional[str] = ..., committed: _Optional[_Iterable[_Union[TopicOffsets, _Mapping]]] = ..., incarnations: _Optional[_Iterable[str]] = ..., writers: _Optional[_Iterable[_Union[TopicWriters, _Mapping]]] = ..., records_max: _Optional[int] = ..., witnesses: _Optional[_Iterable[_Union[TopicWitnesses, _Mapping]]] = ..., watermark_ms: _Optional[int] = ..., takers: _Optional[_Iterable[str]] = ...) -> None: ...

class EndRequest(_message.Message):
    __slots__ = ("transaction", "reason")
    TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    transaction: str
    reason: str
    def __init__(self, transaction: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class EndCommit(_message.Message):
    __slots__ = ("transaction", "reason")
    TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    transaction: str
    reason: str
    def __init__(self, transaction: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class WriteStatus(_message.Message):
    __slots__ = ("transaction", "ranges", "files", "rejects", "lost", "reject_count", "behind", "witnesses", "columns", "columns_from", "event_times", "handed", "taken")
    class HandedEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class TakenEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    RANGES_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    REJECTS_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    REJECT_COUNT_FIELD_NUMBER: _ClassVar[int]
    BEHIND_FIELD_NUMBER: _ClassVar[int]
    WITNESSES_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FROM_FIELD_NUMBER: _ClassVar[int]
    EVENT_TIMES_FIELD_NUMBER: _ClassVar[int]
    HANDED_FIELD_NUMBER: _ClassVar[int]
    TAKEN_FIELD_NUMBER: _ClassVar[int]
    transaction: str
    ranges: _containers.RepeatedCompositeFieldContainer[TopicRanges]
    files: _containers.RepeatedCompositeFieldContainer[DataFile]
    rejects: _containers.RepeatedCompositeFieldContainer[Reject]
    lost: _containers.RepeatedCompositeFieldContainer[Lost]
    reject_count: int
    behind: _containers.RepeatedCompositeFieldContainer[TopicOffsets]
    witnesses: _containers.RepeatedCompositeFieldContainer[TopicWitnesses]
    columns: str
    columns_from: str
    event_times: _containers.RepeatedCompositeFieldContainer[TopicEventTimes]
    handed: _containers.ScalarMap[str, int]
    taken: _containers.ScalarMap[str, int]
    def __init__(self, transaction: _Optional[str] = ..., ranges: _Optional[_Iterable[_Union[TopicRanges, _Mapping]]] = ..., files: _Optional[_Iterable[_Union[DataFile, _Mapping]]] = ..., rejects: _Optional[_Iterable[_Union[Reject, _Mapping]]] = ..., lost: _Optional[_Iterable[_Union[Lost, _Mapping]]] = ..., reject_count: _Optional[int] = ..., behind: _Optional[_Iterable[_Union[TopicOffsets, _Mapping]]] = ..., witnesses: _Optional[_Iterable[_Union[TopicWitnesses, _Mapping]]] = ..., columns: _Optional[str] = ..., columns_from: _Optional[str] = ..., event_times: _Optional[_Iterable[_Union[TopicEventTimes, _Mapping]]] = ..., handed: _Optional[_Mapping[str, int]] = ..., taken: _Optional[_Mapping[str, int]] = ...) -> None: ...

class WriteProgress(_message.Message):
    __slots__ = ("transaction", "records", "files", "size_bytes", "steps")
    TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    transaction: str
    records: int
    files: int
    size_bytes: int
    steps: int
    def __init__(self, transaction: _Optional[str] = ..., records: _Optional[int] = ..., files: _Optional[int] = ..., size_bytes: _Optional[int] = ..., steps: _Optional[int] = ...) -> None: ...

class AckCommit(_message.Message):
    __slots__ = ("transaction", "instant", "committed", "took_ms")
    class TookMsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    INSTANT_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_FIELD_NUMBER: _ClassVar[int]
    TOOK_MS_FIELD_NUMBER: _ClassVar[int]
    transaction: str
    instant: str
    committed: _containers.RepeatedCompositeFieldContainer[TopicOffsets]
    took_ms: _containers.ScalarMap[str, int]
    def __init__(self, transaction: _Optional[str] = ..., instant: _Optional[str] = ..., committed: _Optional[_Iterable[_Union[TopicOffsets, _Mapping]]] = ..., took_ms: _Optional[_Mapping[str, int]] = ...) -> None: ...

class AbortCommit(_message.Message):
    __slots__ = ("transaction", "reason", "cause")
    TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    transaction: str
    reason: str
    cause: str
    def __init__(self, transaction: _Optional[str] = ..., reason: _Optional[str] = ..., cause: _Optional[str] = ...) -> None: ...

class Control(_message.Message):
    __slots__ = ("number", "action", "settings", "who", "why", "texts")
    class SettingsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    class TextsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    ACTION_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    WHO_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    number: int
    action: str
    settings: _containers.ScalarMap[str, int]
    who: str
    why: str
    texts: _containers.ScalarMap[str, str]
    def __init__(self, number: _Optional[int] = ..., action: _Optional[str] = ..., settings: _Optional[_Mapping[str, int]] = ..., who: _Optional[str] = ..., why: _Optional[str] = ..., texts: _Optional[_Mapping[str, str]] = ...) -> None: ...

class Halt(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: str
    def __init__(self, reason: _Optional[str] = ...) -> None: ...

from control_topic.stubs import control_pb2 as _control_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Result(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RESULT_UNSPECIFIED: _ClassVar[Result]
    OK: _ClassVar[Result]
    STALE: _ClassVar[Result]
    REFUSED: _ClassVar[Result]
    UNAVAILABLE: _ClassVar[Result]
    UNKNOWN: _ClassVar[Result]
    HALTED: _ClassVar[Result]
    COMMITTED: _ClassVar[Result]
    ABSENT: _ClassVar[Result]

class Fault(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FAULT_NONE: _ClassVar[Fault]
    FAULT_PIPELINE: _ClassVar[Fault]
    FAULT_ENVIRONMENT: _ClassVar[Fault]

class Mode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MODE_UNSPECIFIED: _ClassVar[Mode]
    RUN: _ClassVar[Mode]
    DRAIN: _ClassVar[Mode]
    HALT: _ClassVar[Mode]
    STOP: _ClassVar[Mode]
RESULT_UNSPECIFIED: Result
OK: Result
STALE: Result
REFUSED: Result
UNAVAILABLE: Result
UNKNOWN: Result
HALTED: Result
COMMITTED: Result
ABSENT: Result
FAULT_NONE: Fault
FAULT_PIPELINE: Fault
FAULT_ENVIRONMENT: Fault
MODE_UNSPECIFIED: Mode
RUN: Mode
DRAIN: Mode
HALT: Mode
STOP: Mode

class Reply(_message.Message):
    __slots__ = ("result", "reason", "wait_ms", "instant", "committed", "partitions", "took_ms", "witnesses", "watermark_ms")
    class TookMsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: int
        def __init__(self, key: _Optional[str] = ..., value: _Optional[int] = ...) -> None: ...
    RESULT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    INSTANT_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    TOOK_MS_FIELD_NUMBER: _ClassVar[int]
    WITNESSES_FIELD_NUMBER: _ClassVar[int]
    WATERMARK_MS_FIELD_NUMBER: _ClassVar[int]
    result: Result
    reason: str
    wait_ms: int
    instant: str
    committed: _containers.RepeatedCompositeFieldContainer[_control_pb2.TopicOffsets]
    partitions: _containers.RepeatedCompositeFieldContainer[_control_pb2.TopicPartitions]
    took_ms: _containers.ScalarMap[str, int]
    witnesses: _containers.RepeatedCompositeFieldContainer[_control_pb2.TopicWitnesses]
    watermark_ms: int
    def __init__(self, result: _Optional[_Union[Result, str]] = ..., reason: _Optional[str] = ..., wait_ms: _Optional[int] = ..., instant: _Optional[str] = ..., committed: _Optional[_Iterable[_Union[_control_pb2.TopicOffsets, _Mapping]]] = ..., partitions: _Optional[_Iterable[_Union[_control_pb2.TopicPartitions, _Mapping]]] = ..., took_ms: _Optional[_Mapping[str, int]] = ..., witnesses: _Optional[_Iterable[_Union[_control_pb2.TopicWitnesses, _Mapping]]] = ..., watermark_ms: _Optional[int] = ...) -> None: ...

class SurveyRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class SurveyReply(_message.Message):
    __slots__ = ("result", "reason", "epoch", "wait_ms")
    RESULT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    WAIT_MS_FIELD_NUMBER: _ClassVar[int]
    result: Result
    reason: str
    epoch: int
    wait_ms: int
    def __init__(self, result: _Optional[_Union[Result, str]] = ..., reason: _Optional[str] = ..., epoch: _Optional[int] = ..., wait_ms: _Optional[int] = ...) -> None: ...

class RegisterRequest(_message.Message):
    __slots__ = ("epoch", "incarnation")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    incarnation: str
    def __init__(self, epoch: _Optional[int] = ..., incarnation: _Optional[str] = ...) -> None: ...

class RecoverRequest(_message.Message):
    __slots__ = ("epoch",)
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    def __init__(self, epoch: _Optional[int] = ...) -> None: ...

class BeginRequest(_message.Message):
    __slots__ = ("epoch", "transaction")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    transaction: str
    def __init__(self, epoch: _Optional[int] = ..., transaction: _Optional[str] = ...) -> None: ...

class CommitRequest(_message.Message):
    __slots__ = ("epoch", "transaction", "instant", "expected", "statuses")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    INSTANT_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FIELD_NUMBER: _ClassVar[int]
    STATUSES_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    transaction: str
    instant: str
    expected: _containers.RepeatedCompositeFieldContainer[_control_pb2.TopicOffsets]
    statuses: _containers.RepeatedCompositeFieldContainer[_control_pb2.WriteStatus]
    def __init__(self, epoch: _Optional[int] = ..., transaction: _Optional[str] = ..., instant: _Optional[str] = ..., expected: _Optional[_Iterable[_Union[_control_pb2.TopicOffsets, _Mapping]]] = ..., statuses: _Optional[_Iterable[_Union[_control_pb2.WriteStatus, _Mapping]]] = ...) -> None: ...

class FindRequest(_message.Message):
    __slots__ = ("transaction", "ranges")
    TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    RANGES_FIELD_NUMBER: _ClassVar[int]
    transaction: str
    ranges: _containers.RepeatedCompositeFieldContainer[_control_pb2.TopicRanges]
    def __init__(self, transaction: _Optional[str] = ..., ranges: _Optional[_Iterable[_Union[_control_pb2.TopicRanges, _Mapping]]] = ...) -> None: ...

class AbortRequest(_message.Message):
    __slots__ = ("epoch", "transaction", "instant", "reason", "fault")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    INSTANT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    FAULT_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    transaction: str
    instant: str
    reason: str
    fault: Fault
    def __init__(self, epoch: _Optional[int] = ..., transaction: _Optional[str] = ..., instant: _Optional[str] = ..., reason: _Optional[str] = ..., fault: _Optional[_Union[Fault, str]] = ...) -> None: ...

class OffsetsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class WorkerReport(_message.Message):
    __slots__ = ("slot", "incarnation", "pid", "host", "state", "partitions", "coordinator", "poison", "fenced", "seconds", "alarms", "metrics")
    class SecondsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    class MetricsEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: float
        def __init__(self, key: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    SLOT_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PARTITIONS_FIELD_NUMBER: _ClassVar[int]
    COORDINATOR_FIELD_NUMBER: _ClassVar[int]
    POISON_FIELD_NUMBER: _ClassVar[int]
    FENCED_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    ALARMS_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    slot: int
    incarnation: str
    pid: int
    host: str
    state: str
    partitions: _containers.RepeatedCompositeFieldContainer[_control_pb2.TopicPartitions]
    coordinator: CoordinatorReport
    poison: str
    fenced: bool
    seconds: _containers.ScalarMap[str, float]
    alarms: _containers.RepeatedScalarFieldContainer[str]
    metrics: _containers.ScalarMap[str, float]
    def __init__(self, slot: _Optional[int] = ..., incarnation: _Optional[str] = ..., pid: _Optional[int] = ..., host: _Optional[str] = ..., state: _Optional[str] = ..., partitions: _Optional[_Iterable[_Union[_control_pb2.TopicPartitions, _Mapping]]] = ..., coordinator: _Optional[_Union[CoordinatorReport, _Mapping]] = ..., poison: _Optional[str] = ..., fenced: _Optional[bool] = ..., seconds: _Optional[_Mapping[str, float]] = ..., alarms: _Optional[_Iterable[str]] = ..., metrics: _Optional[_Mapping[str, float]] = ...) -> None: ...

class CoordinatorReport(_message.Message):
    __slots__ = ("epoch", "state", "transaction", "instant", "started_at_ms", "answered", "missing", "ignored", "settled")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    TRANSACTION_FIELD_NUMBER: _ClassVar[int]
    INSTANT_FIELD_NUMBER: _ClassVar[int]
    STARTED_AT_MS_FIELD_NUMBER: _ClassVar[int]
    ANSWERED_FIELD_NUMBER: _ClassVar[int]
    MISSING_FIELD_NUMBER: _ClassVar[int]
    IGNORED_FIELD_NUMBER: _ClassVar[int]
    SETTLED_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    state: str
    transaction: str
    instant: str
    started_at_ms: int
    answered: _containers.RepeatedScalarFieldContainer[str]
    missing: _containers.RepeatedScalarFieldContainer[str]
    ignored: int
    settled: int
    def __init__(self, epoch: _Optional[int] = ..., state: _Optional[str] = ..., transaction: _Optional[str] = ..., instant: _Optional[str] = ..., started_at_ms: _Optional[int] = ..., answered: _Optional[_Iterable[str]] = ..., missing: _Optional[_Iterable[str]] = ..., ignored: _Optional[int] = ..., settled: _Optional[int] = ...) -> None: ...

class Directive(_message.Message):
    __slots__ = ("mode", "reason", "dead", "died_of", "join", "controls")
    class DiedOfEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: str
        def __init__(self, key: _Optional[str] = ..., value: _Optional[str] = ...) -> None: ...
    MODE_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    DEAD_FIELD_NUMBER: _ClassVar[int]
    DIED_OF_FIELD_NUMBER: _ClassVar[int]
    JOIN_FIELD_NUMBER: _ClassVar[int]
    CONTROLS_FIELD_NUMBER: _ClassVar[int]
    mode: Mode
    reason: str
    dead: _containers.RepeatedScalarFieldContainer[str]
    died_of: _containers.ScalarMap[str, str]
    join: bool
    controls: Controls
    def __init__(self, mode: _Optional[_Union[Mode, str]] = ..., reason: _Optional[str] = ..., dead: _Optional[_Iterable[str]] = ..., died_of: _Optional[_Mapping[str, str]] = ..., join: _Optional[bool] = ..., controls: _Optional[_Union[Controls, _Mapping]] = ...) -> None: ...

class Controls(_message.Message):
    __slots__ = ("number", "commit", "pause", "tuning")
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    COMMIT_FIELD_NUMBER: _ClassVar[int]
    PAUSE_FIELD_NUMBER: _ClassVar[int]
    TUNING_FIELD_NUMBER: _ClassVar[int]
    number: int
    commit: int
    pause: int
    tuning: Tuning
    def __init__(self, number: _Optional[int] = ..., commit: _Optional[int] = ..., pause: _Optional[int] = ..., tuning: _Optional[_Union[Tuning, _Mapping]] = ...) -> None: ...

class Tuning(_message.Message):
    __slots__ = ("interval_ms", "write_timeout_ms", "max_records", "max_bytes", "schedule", "align_ms")
    INTERVAL_MS_FIELD_NUMBER: _ClassVar[int]
    WRITE_TIMEOUT_MS_FIELD_NUMBER: _ClassVar[int]
    MAX_RECORDS_FIELD_NUMBER: _ClassVar[int]
    MAX_BYTES_FIELD_NUMBER: _ClassVar[int]
    SCHEDULE_FIELD_NUMBER: _ClassVar[int]
    ALIGN_MS_FIELD_NUMBER: _ClassVar[int]
    interval_ms: int
    write_timeout_ms: int
    max_records: int
    max_bytes: int
    schedule: str
    align_ms: int
    def __init__(self, interval_ms: _Optional[int] = ..., write_timeout_ms: _Optional[int] = ..., max_records: _Optional[int] = ..., max_bytes: _Optional[int] = ..., schedule: _Optional[str] = ..., align_ms: _Optional[int] = ...) -> None: ...

class ControlRequest(_message.Message):
    __slots__ = ("action", "settings", "who", "why", "lives_ms", "texts")
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
    ACTION_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    WHO_FIELD_NUMBER: _ClassVar[int]
    WHY_FIELD_NUMBER: _ClassVar[int]
    LIVES_MS_FIELD_NUMBER: _ClassVar[int]
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    action: str
    settings: _containers.ScalarMap[str, int]
    who: str
    why: str
    lives_ms: int
    texts: _containers.ScalarMap[str, str]
    def __init__(self, action: _Optional[str] = ..., settings: _Optional[_Mapping[str, int]] = ..., who: _Optional[str] = ..., why: _Optional[str] = ..., lives_ms: _Optional[int] = ..., texts: _Optional[_Mapping[str, str]] = ...) -> None: ...

class ControlReply(_message.Message):
    __slots__ = ("result", "reason", "number", "tuning")
    RESULT_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    TUNING_FIELD_NUMBER: _ClassVar[int]
    result: Result
    reason: str
    number: int
    tuning: Tuning
    def __init__(self, result: _Optional[_Union[Result, str]] = ..., reason: _Optional[str] = ..., number: _Optional[int] = ..., tuning: _Optional[_Union[Tuning, _Mapping]] = ...) -> None: ...

class StatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class StatusReply(_message.Message):
    __slots__ = ("json",)
    JSON_FIELD_NUMBER: _ClassVar[int]
    json: bytes
    def __init__(self, json: _Optional[bytes] = ...) -> None: ...

"""The table service's values to protobuf and back; proto/table.proto is the wire form.

Raises `control_topic.errors.Malformed` for content that cannot be.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import asdict

from control_topic.codec import (
    offsets_from_proto,
    offsets_to_proto,
    partitions_from_proto,
    partitions_to_proto,
)
from control_topic.controls import (
    ACTIONS,
    SET,
    SETTINGS,
    TEXT_CHARS_MAX,
    TEXTS,
    WHO_CHARS_MAX,
    WHY_CHARS_MAX,
    Controls,
    Setting,
    Tuning,
)
from control_topic.errors import Malformed
from control_topic.values import (
    OFFSET_MAX,
    event_time,
    readable,
    took_ms,
    witnesses_from_proto,
    witnesses_to_proto,
)
from table.service.calls import (
    Answer,
    CoordinatorReport,
    Directive,
    Fault,
    Order,
    Ordered,
    Result,
    RunMode,
    WorkerReport,
)
from table.stubs import table_pb2 as pb

REASON_CHARS_MAX = 8_000
ALARMS_MAX = 8
METRICS_MAX = 100
METRIC_NAME = re.compile(r"[a-z][a-z0-9_]{0,59}")
"""Of a sentence on the wire; what is longer is cut, since a reason never carries data."""


def sentence(text: str) -> str:
    """Text for people, fit for the wire."""
    return readable(text[:REASON_CHARS_MAX])


def answer_to_proto(answer: Answer) -> pb.Reply:
    return pb.Reply(
        result=answer.result.name,
        reason=sentence(answer.reason),
        wait_ms=answer.wait_ms,
        instant=answer.instant,
        committed=offsets_to_proto(answer.committed),
        partitions=partitions_to_proto(sorted(answer.partitions)),
        took_ms=took_ms(answer.took_ms),
        witnesses=witnesses_to_proto(answer.witnesses),
        watermark_ms=None if answer.watermark_ms is None else event_time(answer.watermark_ms),
    )


def answer_from_proto(reply: pb.Reply) -> Answer:
    return Answer(
        result=result_from_proto(reply.result),
        reason=reply.reason,
        wait_ms=reply.wait_ms,
        instant=reply.instant,
        committed=offsets_from_proto(reply.committed),
        partitions=partitions_from_proto(reply.partitions),
        took_ms=took_ms(reply.took_ms),
        witnesses=tuple(witnesses_from_proto(reply.witnesses).values()),
        watermark_ms=event_time(reply.watermark_ms) if reply.HasField("watermark_ms") else None,
    )


def survey_to_proto(answer: Answer) -> pb.SurveyReply:
    return pb.SurveyReply(
        result=answer.result.name,
        reason=sentence(answer.reason),
        epoch=answer.epoch,
        wait_ms=answer.wait_ms,
    )


def survey_from_proto(reply: pb.SurveyReply) -> Answer:
    return Answer(
        result=result_from_proto(reply.result),
        reason=reply.reason,
        epoch=reply.epoch,
        wait_ms=reply.wait_ms,
    )


def result_from_proto(number: int) -> Result:
    name = pb.Result.Name(number) if number in pb.Result.values() else ""
    if name not in Result.__members__:
        raise Malformed(f"result {number} is not one that this Lockstep knows")
    return Result[name]


def fault_to_proto(fault: Fault) -> str:
    """The name of the protobuf value."""
    return f"FAULT_{fault.name}"


def fault_from_proto(number: int) -> Fault:
    """An unknown fault counts as the pipeline's own, so that it is counted at all."""
    name = pb.Fault.Name(number).removeprefix("FAULT_") if number in pb.Fault.values() else ""
    return Fault.__members__.get(name, Fault.PIPELINE)


def directive_to_proto(directive: Directive) -> pb.Directive:
    return pb.Directive(
        mode=(RunMode.RUN if directive.mode is RunMode.PAUSE else directive.mode).name,
        reason=sentence(directive.reason),
        dead=directive.dead,
        died_of={who: sentence(why) for who, why in directive.died_of.items()},
        join=directive.join,
        controls=_controls_to_proto(directive.controls) if directive.controls is not None else None,
    )


def directive_from_proto(directive: pb.Directive) -> Directive:
    name = pb.Mode.Name(directive.mode) if directive.mode in pb.Mode.values() else ""
    if name not in RunMode.__members__:
        raise Malformed(f"mode {directive.mode} is not one that this Lockstep knows")
    controls = _controls_from_proto(directive.controls) if directive.HasField("controls") else None
    paused = name == RunMode.RUN.name and controls is not None and controls.pause
    return Directive(
        mode=RunMode.PAUSE if paused else RunMode[name],
        reason=directive.reason,
        dead=tuple(directive.dead),
        died_of=dict(directive.died_of),
        join=directive.join,
        controls=controls,
    )


def _controls_to_proto(controls: Controls) -> pb.Controls:
    return pb.Controls(
        number=controls.number,
        commit=controls.commit,
        pause=controls.pause,
        tuning=tuning_to_proto(controls.tuning),
    )


def _controls_from_proto(controls: pb.Controls) -> Controls:
    return Controls(
        number=controls.number,
        commit=controls.commit,
        pause=controls.pause,
        tuning=tuning_from_proto(controls.tuning) if controls.HasField("tuning") else None,
    )


def tuning_to_proto(tuning: Tuning | None) -> pb.Tuning | None:
    return pb.Tuning(**asdict(tuning)) if tuning is not None else None


def tuning_from_proto(tuning: pb.Tuning) -> Tuning:
    """Raises `Malformed` for times that no transaction can have."""
    if not (0 < tuning.interval_ms <= OFFSET_MAX and 0 < tuning.write_timeout_ms <= OFFSET_MAX):
        raise Malformed(
            f"an interval of {tuning.interval_ms} ms, {tuning.write_timeout_ms} ms to write files"
        )
    return Tuning(
        interval_ms=tuning.interval_ms,
        write_timeout_ms=tuning.write_timeout_ms,
        max_records=tuning.max_records,
        max_bytes=tuning.max_bytes,
        schedule=_short(tuning.schedule) if tuning.HasField("schedule") else None,
        align_ms=tuning.align_ms if tuning.HasField("align_ms") else None,
    )


def _short(text: str) -> str:
    if len(text) > TEXT_CHARS_MAX:
        raise Malformed(f"a setting of {len(text)} characters; {TEXT_CHARS_MAX} are the most")
    return text


def order_to_proto(order: Order) -> pb.ControlRequest:
    return pb.ControlRequest(
        action=order.action,
        settings={name: value for name, value in order.settings.items() if isinstance(value, int)},
        texts={name: sentence(value) for name, value in order.settings.items() if isinstance(value, str)},
        who=sentence(order.who),
        why=sentence(order.why),
        lives_ms=order.lives_ms,
    )


def order_from_proto(order: pb.ControlRequest) -> Order:
    """Raises `Malformed` for one that no operator's command gives."""
    if order.action not in ACTIONS:
        raise Malformed(f"{sentence(order.action[:WHO_CHARS_MAX])!r} is no order that this Lockstep knows")
    if len(order.who) > WHO_CHARS_MAX or len(order.why) > WHY_CHARS_MAX:
        raise Malformed(f"who orders it and why have {len(order.who)} and {len(order.why)} characters")
    strange = sorted(order.settings.keys() - (SETTINGS.keys() - TEXTS)) or sorted(order.texts.keys() - TEXTS)
    if strange:
        raise Malformed(f"{sentence(strange[0][:WHO_CHARS_MAX])!r} cannot be set while a run goes on")
    settings: dict[str, Setting] = {**order.settings, **{n: _short(text) for n, text in order.texts.items()}}
    if bool(settings) != (order.action == SET):
        raise Malformed("an order to set names settings, and no other does")
    return Order(
        action=order.action,
        settings=settings,
        who=order.who,
        why=order.why,
        lives_ms=order.lives_ms,
    )


def ordered_to_proto(answer: Ordered) -> pb.ControlReply:
    return pb.ControlReply(
        result=answer.result.name,
        reason=sentence(answer.reason),
        number=answer.number,
        tuning=tuning_to_proto(answer.tuning),
    )


def ordered_from_proto(reply: pb.ControlReply) -> Ordered:
    return Ordered(
        result=result_from_proto(reply.result),
        reason=reply.reason,
        number=reply.number,
        tuning=tuning_from_proto(reply.tuning) if reply.HasField("tuning") else None,
    )


def report_to_proto(report: WorkerReport) -> pb.WorkerReport:
    return pb.WorkerReport(
        slot=report.slot,
        incarnation=report.incarnation,
        pid=report.pid,
        host=report.host,
        state=report.state,
        partitions=partitions_to_proto(sorted(report.partitions)),
        metrics=report.metrics,
        coordinator=_coordinator_to_proto(report.coordinator) if report.coordinator is not None else None,
        poison=sentence(report.poison),
        fenced=report.fenced,
        seconds=report.seconds,
        alarms=[sentence(alarm) for alarm in report.alarms[:ALARMS_MAX]],
    )


def report_from_proto(report: pb.WorkerReport) -> WorkerReport:
    held = report.HasField("coordinator")
    return WorkerReport(
        slot=report.slot,
        incarnation=report.incarnation,
        pid=report.pid,
        host=report.host,
        state=report.state,
        partitions=partitions_from_proto(report.partitions),
        metrics=_metrics(report.metrics),
        coordinator=_coordinator_from_proto(report.coordinator) if held else None,
        poison=report.poison,
        fenced=report.fenced,
        seconds=_seconds(report.seconds),
        alarms=tuple(report.alarms[:ALARMS_MAX]),
    )


def _seconds(by_stage: Mapping[str, float]) -> dict[str, float]:
    for stage, seconds in by_stage.items():
        if not 0 <= seconds < math.inf:  # nor NaN, which is not JSON, as the status is
            raise Malformed(f"{seconds} is no time that {sentence(stage)} can have taken")
    return dict(by_stage)


def _metrics(by_name: Mapping[str, float]) -> dict[str, float]:
    """Counts as the whole numbers that they are."""
    if len(by_name) > METRICS_MAX:
        raise Malformed(f"{len(by_name)} metrics of one worker; {METRICS_MAX} are the most")
    for name, value in by_name.items():
        if not METRIC_NAME.fullmatch(name):
            raise Malformed(f"{sentence(name)} is no name of a metric")
        if not -math.inf < value < math.inf:
            raise Malformed(f"metric {name} is {value}")
    return {name: int(value) if value.is_integer() else value for name, value in by_name.items()}


def _coordinator_to_proto(report: CoordinatorReport) -> pb.CoordinatorReport:
    return pb.CoordinatorReport(
        epoch=report.epoch,
        state=report.state,
        transaction=report.transaction,
        instant=report.instant,
        started_at_ms=report.started_at_ms,
        answered=report.answered,
        missing=report.missing,
        ignored=report.ignored,
        settled=report.settled,
    )


def _coordinator_from_proto(report: pb.CoordinatorReport) -> CoordinatorReport:
    return CoordinatorReport(
        epoch=report.epoch,
        state=report.state,
        transaction=report.transaction,
        instant=report.instant,
        started_at_ms=report.started_at_ms,
        answered=tuple(report.answered),
        missing=tuple(report.missing),
        ignored=report.ignored,
        settled=report.settled,
    )

"""The table service: the generated servicer on one side, the table's one thread on the other.

Report, Offsets and Status answer from memory and never wait for the table. The rest is done by
table/service/transactions.py on the table thread, in the order it came; a caller whose deadline passes
meanwhile is told `UNKNOWN` where the call may still have an effect.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import grpc

from control_topic.codec import offsets_from_proto, ranges_from_proto, write_status_from_proto
from control_topic.errors import Malformed
from table.service import codec
from table.service.answering import stands
from table.service.calls import Answer, Directive, Ordered, Result, RunMode
from table.service.running import RunService
from table.service.thread import NotStarted, StillRunning
from table.stubs import table_pb2 as pb
from table.stubs import table_pb2_grpc as pb_grpc

if TYPE_CHECKING:
    Servicer = object
else:
    Servicer = pb_grpc.TableServiceServicer

log = logging.getLogger(__name__)

TIMEOUT_DEFAULT_S = 60.0
TIMEOUT_MAX_S = 600.0
REPLY_MARGIN_S = 0.25
"""Kept of a caller's deadline so that the answer reaches it."""

OFFSETS_WAIT_MS = 500

T = TypeVar("T")
Rpc = Callable[["TableService", Any, grpc.ServicerContext], T]


def _sheltered(fallback: Callable[[Result, str], T], *, effect: bool) -> Callable[[Rpc[T]], Rpc[T]]:
    """Nothing that a call raises reaches gRPC: what is malformed is refused, what is unexpected is logged."""

    def decorate(method: Rpc[T]) -> Rpc[T]:
        @wraps(method)
        def sheltered(self: TableService, request: Any, context: grpc.ServicerContext) -> T:
            name = method.__name__
            try:
                return method(self, request, context)
            except Malformed as error:
                return fallback(Result.REFUSED, f"{name}: the request cannot be read: {error}")
            except Exception as error:
                log.exception("%s failed unexpectedly", name)
                reason = f"{name} failed unexpectedly, see the driver's log: {error!r}"
                return fallback(Result.UNKNOWN if effect else Result.UNAVAILABLE, reason)

        return sheltered

    return decorate


def _reply(result: Result, reason: str) -> pb.Reply:
    return codec.answer_to_proto(Answer(result=result, reason=reason))


def _survey_reply(result: Result, reason: str) -> pb.SurveyReply:
    return codec.survey_to_proto(Answer(result=result, reason=reason))


def _directive_reply(_result: Result, reason: str) -> pb.Directive:
    return pb.Directive(mode=pb.MODE_UNSPECIFIED, reason=codec.sentence(reason))


def _control_reply(result: Result, reason: str) -> pb.ControlReply:
    return codec.ordered_to_proto(Ordered(result=result, reason=reason))


def _status_reply(_result: Result, reason: str) -> pb.StatusReply:
    return pb.StatusReply(json=json.dumps({"error": reason}).encode())


class TableService(RunService, Servicer):
    """One run's table service, as workers and commands call it over gRPC. Thread-safe."""

    # --- for the coordinator --------------------------------------------------------------------

    @_sheltered(_survey_reply, effect=False)
    def Survey(self, request: pb.SurveyRequest, context: grpc.ServicerContext) -> pb.SurveyReply:
        answer = self._on_table("survey", context, self._transactions.survey, effect=False)
        return codec.survey_to_proto(answer)

    @_sheltered(_reply, effect=False)
    def Register(self, request: pb.RegisterRequest, context: grpc.ServicerContext) -> pb.Reply:
        def work() -> Answer:
            return self._transactions.register(request.epoch, request.incarnation)

        return codec.answer_to_proto(self._on_table("register", context, work, effect=False))

    @_sheltered(_reply, effect=False)
    def Recover(self, request: pb.RecoverRequest, context: grpc.ServicerContext) -> pb.Reply:
        def work() -> Answer:
            return self._transactions.recover(request.epoch)

        return codec.answer_to_proto(self._on_table("recover", context, work, effect=False))

    @_sheltered(_reply, effect=True)
    def Begin(self, request: pb.BeginRequest, context: grpc.ServicerContext) -> pb.Reply:
        def work() -> Answer:
            return self._transactions.begin(request.epoch, request.transaction)

        answer = self._on_table("begin", context, work, effect=True)
        if answer.result is Result.OK:
            self._some_time("tend", self._table.tend)  # while the workers write
        return codec.answer_to_proto(answer)

    @_sheltered(_reply, effect=True)
    def Commit(self, request: pb.CommitRequest, context: grpc.ServicerContext) -> pb.Reply:
        expected = offsets_from_proto(request.expected)
        statuses = [write_status_from_proto(status) for status in request.statuses]

        def work() -> Answer:
            return self._transactions.commit(
                request.epoch, request.transaction, request.instant, expected, statuses
            )

        return codec.answer_to_proto(self._on_table("commit", context, work, effect=True))

    @_sheltered(_reply, effect=False)
    def Find(self, request: pb.FindRequest, context: grpc.ServicerContext) -> pb.Reply:
        ranges = ranges_from_proto(request.ranges)

        def work() -> Answer:
            return self._transactions.find(request.transaction, ranges)

        return codec.answer_to_proto(self._on_table("find", context, work, effect=False))

    @_sheltered(_reply, effect=True)
    def Abort(self, request: pb.AbortRequest, context: grpc.ServicerContext) -> pb.Reply:
        fault = codec.fault_from_proto(request.fault)

        def work() -> Answer:
            return self._transactions.abort(
                request.epoch, request.transaction, request.instant, request.reason, fault
            )

        return codec.answer_to_proto(self._on_table("abort", context, work, effect=True))

    # --- for every worker, and for people -------------------------------------------------------

    @_sheltered(_reply, effect=False)
    def Offsets(self, request: pb.OffsetsRequest, context: grpc.ServicerContext) -> pb.Reply:
        newest = self._transactions.view.newest
        if newest is not None:
            return codec.answer_to_proto(stands(newest, instant=newest.instant))
        self._refresh()
        reason = "the table's offsets are not known yet: no coordinator has recovered"
        answer = Answer(result=Result.UNAVAILABLE, reason=reason, wait_ms=OFFSETS_WAIT_MS)
        return codec.answer_to_proto(answer)

    @_sheltered(_directive_reply, effect=False)
    def Report(self, request: pb.WorkerReport, context: grpc.ServicerContext) -> pb.Directive:
        report = codec.report_from_proto(request)
        with self._guard:
            now_ms = self._clock_ms()
            dead = self._ledger.dead(now_ms)
            if report.incarnation in dead:
                reason = f"the Spark task of incarnation {report.incarnation} has ended: this is what is left"
                directive = Directive(mode=RunMode.STOP, reason=reason, dead=dead)
            elif not self._roster.note(now_ms, report):
                directive = Directive(mode=RunMode.STOP, reason=f"there is no slot {report.slot}", dead=dead)
            else:
                if report.fenced:
                    self._ledger.fenced(report.incarnation)
                if report.poison:
                    self._ledger.poison(report.poison)
                if report.coordinator is not None:
                    self._ledger.settled(report.coordinator.epoch, report.coordinator.settled)
                state = self._roster.coordinator_state(now_ms, self._ledger.epoch)
                told = self._ledger.directive(now_ms, state)
                directive = replace(told, join=self._roster.gathered(now_ms, self._workers))
        return codec.directive_to_proto(directive)

    @_sheltered(_status_reply, effect=False)
    def Status(self, request: pb.StatusRequest, context: grpc.ServicerContext) -> pb.StatusReply:
        return pb.StatusReply(json=json.dumps(self.progress().to_json()).encode())

    @_sheltered(_control_reply, effect=True)
    def Control(self, request: pb.ControlRequest, context: grpc.ServicerContext) -> pb.ControlReply:
        order = codec.order_from_proto(request)
        return codec.ordered_to_proto(self.order(order))

    # --- how work reaches the table thread ------------------------------------------------------

    def _on_table(
        self, name: str, context: grpc.ServicerContext, work: Callable[[], Answer], *, effect: bool
    ) -> Answer:
        remaining_s = context.time_remaining()
        if remaining_s is None:
            remaining_s = TIMEOUT_DEFAULT_S
        timeout_s = max(0.0, min(remaining_s, TIMEOUT_MAX_S) - REPLY_MARGIN_S)
        try:
            return self._thread.call(name, work, timeout_s=timeout_s)
        except NotStarted as error:
            return self._transactions.unavailable(str(error))
        except StillRunning as error:
            if effect:
                return Answer(result=Result.UNKNOWN, reason=str(error))
            return self._transactions.unavailable(str(error))

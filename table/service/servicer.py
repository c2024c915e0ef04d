"""The table service: the generated servicer on one side, the table's one thread on the other.

Report, Offsets and Status answer from memory and never wait for the table. The rest is done by
table/service/transactions.py on the table thread, in the order it came; a caller whose deadline passes
meanwhile is told `UNKNOWN` where the call may still have an effect.
"""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

import grpc

from control_topic.codec import offsets_from_proto, ranges_from_proto, write_status_from_proto
from control_topic.controls import SET, SETTINGS, Tuning
from control_topic.errors import Malformed
from control_topic.messages import Control
from control_topic.spelling import one_line
from table.errors import OutcomeUnknown, Unavailable
from table.faults import WorkerFault
from table.port import TableLayout, TransactionalTable
from table.service import codec
from table.service.answering import stands
from table.service.calls import Answer, Directive, Order, Ordered, Result, RunMode
from table.service.ledger import Ledger, RunOutcome
from table.service.progress import Progress
from table.service.roster import EARNING_STATES, Roster
from table.service.thread import NotStarted, StillRunning, TableThread
from table.service.transactions import SourceBroker, Transactions
from table.state import TableState
from table.stubs import table_pb2 as pb
from table.stubs import table_pb2_grpc as pb_grpc

if TYPE_CHECKING:
    Servicer = object
else:
    Servicer = pb_grpc.TableServiceServicer

log = logging.getLogger(__name__)

QUEUE_MAX = 8
"""Calls that may wait for the table. The server has more threads than that, so that reports get through."""

SLOTS_MAX = 4_096
TIMEOUT_DEFAULT_S = 60.0
TIMEOUT_MAX_S = 600.0
REPLY_MARGIN_S = 0.25
"""Kept of a caller's deadline so that the answer reaches it."""

OFFSETS_WAIT_MS = 500
REFRESH_EVERY_MS = 1_000

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


def _spelled(order: Order) -> str:
    settings = " ".join(f"{SETTINGS[name]}={value}" for name, value in sorted(order.settings.items()))
    why = f": {order.why}" if order.why else ""
    return one_line(f"{order.action} {settings}".strip() + f", by {order.who or 'somebody'}{why}")


def _status_reply(_result: Result, reason: str) -> pb.StatusReply:
    return pb.StatusReply(json=json.dumps({"error": reason}).encode())


class TableService(Servicer):
    """One run's table service. Thread-safe; `close` ends its table thread.

    `rows_are_records`: see `table.checks.assemble`. `rejects_max`: see `table.checks.too_many_rejects`.
    `starting_offsets`: earliest or latest. `on_data_loss`: fail or earliest. `clock_ms`: never goes back,
    the same clock that the ledger was made with. `workers`: how many the run has. `objection`: why settings
    cannot be as an operator wants them, empty where they can. `ordered`: told of every order that was taken.
    """

    def __init__(
        self,
        *,
        table: TransactionalTable,
        ledger: Ledger,
        source: SourceBroker,
        pipeline: str,
        run: str,
        rows_are_records: bool,
        starting_offsets: str,
        on_data_loss: str,
        rejects_max: int | None,
        clock_ms: Callable[[], int],
        workers: int,
        new_id: Callable[[], str] = lambda: secrets.token_hex(16),
        objection: Callable[[Tuning], str] = lambda _: "",
        ordered: Callable[[Control], None] = lambda _: None,
    ) -> None:
        self._objection = objection
        self._ordered = ordered
        self._table = table
        self._ledger = ledger
        self._pipeline = pipeline
        self._run = run
        self._clock_ms = clock_ms
        self._guard = Lock()
        self._workers = workers
        self._roster = Roster(slots_max=SLOTS_MAX)
        self._thread = TableThread(queue_max=QUEUE_MAX)
        self._refresh_after_ms = 0
        self._alarms: dict[str, tuple[str, bool]] = {}
        self._transactions = Transactions(
            table=table,
            ledger=ledger,
            guard=self._guard,
            source=source,
            pipeline=pipeline,
            run=run,
            rows_are_records=rows_are_records,
            starting_offsets=starting_offsets,
            on_data_loss=on_data_loss,
            rejects_max=rejects_max,
            clock_ms=clock_ms,
            new_id=new_id,
        )

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

    def order(self, order: Order) -> Ordered:
        """An operator's order: taken, which every worker is told with its next report, or refused."""
        with self._guard:
            wanted = self._ledger.orders.tuned(order)
            problem = self._objection(wanted) if wanted is not None and order.action == SET else ""
            number, refusal = (0, problem) if problem else self._ledger.take(self._clock_ms(), order)
            tuning = self._ledger.orders.tuning
        if refusal:
            return Ordered(result=Result.REFUSED, reason=refusal)
        log.info("order %d: %s", number, _spelled(order))
        said = Control(
            number=number, action=order.action, settings=order.settings, who=order.who, why=order.why
        )
        self._ordered(said)
        return Ordered(result=Result.OK, number=number, tuning=tuning)

    # --- for the supervisor, in the same process ------------------------------------------------

    def open(self, *, timeout_s: float) -> TableLayout:
        """Open the table on its thread. Raises `TableError`."""
        return self._in_process("open", self._table.open, timeout_s=timeout_s)

    def newest(self, *, timeout_s: float) -> TableState | None:
        """This pipeline's newest committed state, None before genesis. Raises `TableError`."""
        return self._in_process("newest", self._table.newest, timeout_s=timeout_s)

    def clear(self) -> None:
        """Roll back what earlier runs left open, where a coordinator's recovery does not do it before."""
        self._some_time("clear", self._transactions.clear)

    def seen(self) -> TableState | None:
        """This pipeline's newest committed state as last seen, without asking the table."""
        return self._transactions.view.newest

    def sweep(self, *, grace_ms: int, timeout_s: float) -> int:
        """Remove files that no commit names, older than `grace_ms`; how many. Raises `TableError`."""
        return self._in_process("sweep", lambda: self._transactions.sweep(grace_ms), timeout_s=timeout_s)

    def worker_died(
        self, incarnation: str, reason: str, *, fault: WorkerFault = WorkerFault.PIPELINE
    ) -> None:
        """A worker's Spark task ended against its will; every worker is told with its next report."""
        with self._guard:
            last = self._roster.died(incarnation)
            held = last.coordinator if last is not None else None
            self._ledger.died(
                self._clock_ms(),
                incarnation=incarnation,
                reason=reason,
                recovering=held is not None and held.state in EARNING_STATES,
                fault=fault,
            )

    def request_stop(self, reason: str) -> None:
        """End the open transaction, commit it, and stop."""
        with self._guard:
            self._ledger.request_stop(reason)

    def halt(self, reason: str) -> None:
        """Announce a halt and stop."""
        self._transactions.halt(reason)

    def alarm(self, of: str, text: str, *, stands: bool) -> None:
        """What the driver sees not going on, for the status; empty: nothing any more. One for each `of`.

        `stands`: source partitions are not read because of it.
        """
        with self._guard:
            self._alarms.pop(of, None)
            if text:
                self._alarms[of] = (text, stands)

    def supersede(self, reason: str) -> None:
        """A newer run has taken over: stop at once."""
        with self._guard:
            self._ledger.supersede(reason)

    def finished(self, *, halt_heard: bool = False) -> RunOutcome | None:
        """How the run ended, None while workers are to go on. To be asked often: it also lets time pass.

        `halt_heard`: a worker ended because it heard the halt on the control topic, so it is announced.
        """
        with self._guard:
            now_ms = self._clock_ms()
            heard = self._roster.coordinator_state(now_ms, self._ledger.epoch)
            self._ledger.directive(now_ms, "halted" if halt_heard else heard)
            return self._ledger.outcome()

    def halting(self) -> bool:
        """Whether the run halts and its workers are to end."""
        with self._guard:
            return bool(self._ledger.halted and self._ledger.closed)

    def progress(self) -> Progress:
        """How the run stands now."""
        with self._guard:
            now_ms = self._clock_ms()
            standing = self._ledger.standing(now_ms)
            workers, coordinator = self._roster.entries(), self._roster.coordinator(now_ms)
            alarms = tuple(self._alarms.values())
        view = self._transactions.view  # never older than the orders that are said to be done
        newest, last_ms = view.newest, view.last_commit_at_ms
        return Progress(
            pipeline=self._pipeline,
            run=self._run,
            standing=standing,
            workers=workers,
            coordinator=coordinator,
            committed=newest.offsets if newest is not None else {},
            commits=view.commits,
            rows=view.rows,
            rejects=view.rejects,
            last_commit_age_ms=now_ms - last_ms if last_ms is not None else None,
            newest_instant=newest.instant if newest is not None else "",
            newest_transaction=newest.transaction if newest is not None else "",
            newest_run=newest.run if newest is not None else "",
            busy_with=self._thread.busy_with(),
            queued=self._thread.queued(),
            services=tuple(self._table.services()),
            alarms=tuple(text for text, _ in alarms),
            stands=any(stands for _, stands in alarms),
            now_ms=now_ms,
        )

    def close(self, *, timeout_s: float) -> bool:
        """Finish what is queued, close the table and its thread; whether that was done in time."""
        try:
            self._thread.post("close", self._table.close)
        except NotStarted as error:
            log.warning("the table is not closed: %s", error)
        return self._thread.close(timeout_s=timeout_s)

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

    def _in_process(self, name: str, work: Callable[[], T], *, timeout_s: float) -> T:
        try:
            return self._thread.call(name, work, timeout_s=timeout_s)
        except NotStarted as error:
            raise Unavailable(str(error)) from error
        except StillRunning as error:
            raise OutcomeUnknown(str(error)) from error

    def _refresh(self) -> None:
        """Have the table read again some time soon, by nobody's waiting."""
        with self._guard:
            now_ms = self._clock_ms()
            if now_ms < self._refresh_after_ms:
                return
            self._refresh_after_ms = now_ms + REFRESH_EVERY_MS
        self._some_time("refresh", self._transactions.refresh)

    def _some_time(self, name: str, work: Callable[[], object]) -> None:
        """Do it on the table's thread when its turn comes, unless too much waits. Nobody waits for it."""
        try:
            self._thread.post(name, work)
        except NotStarted as error:
            log.debug("no %s now: %s", name, error)

"""A run as the driver itself sees it: what the supervisor and the page ask of the table and of the workers.

The table has one thread, which does what is asked in the order it came; nothing here waits for it but where a
timeout says so.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from functools import partial
from threading import Lock
from typing import TypeVar

from control_topic.controls import SET, SETTINGS, Tuning
from control_topic.messages import Control
from control_topic.spelling import one_line
from table.errors import OutcomeUnknown, Unavailable
from table.faults import WorkerFault
from table.orphans import SweepReport
from table.port import TableLayout, TransactionalTable
from table.service.calls import Order, Ordered, Result
from table.service.ledger import Ledger, RunOutcome
from table.service.log_ends import AskedBeside
from table.service.progress import Progress
from table.service.roster import EARNING_STATES, Roster
from table.service.source_facts import SourceFacts
from table.service.thread import NotStarted, StillRunning, TableThread
from table.service.transactions import SourceBroker, Transactions
from table.state import TableState
from table.watermark import MarkRule

log = logging.getLogger(__name__)

QUEUE_MAX = 8
"""Calls that may wait for the table. The server has more threads than that, so that reports get through."""

SLOTS_MAX = 4_096
REFRESH_EVERY_MS = 1_000

T = TypeVar("T")


def _spelled(order: Order) -> str:
    settings = " ".join(f"{SETTINGS[name]}={value}" for name, value in sorted(order.settings.items()))
    why = f": {order.why}" if order.why else ""
    return one_line(f"{order.action} {settings}".strip() + f", by {order.who or 'somebody'}{why}")


class RunService:
    """What one run's driver knows of it, and asks of its table. Thread-safe; `close` ends its table thread.

    `rows_are_records`: see `table.checks.assemble`. `rejects_max`: see `table.checks.too_many_rejects`.
    `starting_offsets`: earliest or latest. `on_data_loss`: fail or earliest. `clock_ms`: never goes back,
    the same clock that the ledger was made with. `workers`: how many the run has. `objection`: why settings
    cannot be as an operator wants them, empty where they can. `ordered`: told of every order that was taken.
    `mark_rule`, `earlier_commits`: see `Transactions`.
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
        mark_rule: MarkRule | None = None,
        earlier_commits: Callable[[SourceFacts], str] = lambda _facts: "",
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
            mark_rule=mark_rule,
            earlier_commits=earlier_commits,
            ends=AskedBeside(partial(source.end, read_committed=False)),
        )

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

    def sweep(self, *, grace_ms: int, timeout_s: float) -> SweepReport:
        """Remove files that no commit names, older than `grace_ms`. Raises `TableError`."""
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
            late=view.late,
            absurd=view.absurd,
            last_commit_age_ms=now_ms - last_ms if last_ms is not None else None,
            newest_instant=newest.instant if newest is not None else "",
            newest_transaction=newest.transaction if newest is not None else "",
            newest_run=newest.run if newest is not None else "",
            newest_epoch=newest.epoch if newest is not None else 0,
            watermark=newest.watermark if newest is not None else None,
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

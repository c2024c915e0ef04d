"""A driver: the real ledger and the real transactions over a faulty table, and a model of the supervisor.

Calls are done one at a time, in the order they arrive, as on the table thread of the service.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import TYPE_CHECKING

from control_topic.controls import Tuning
from control_topic.messages import Control, Offsets, RunAnnounce
from coordinator import events as ev
from table.chain import newest_of
from table.errors import TableError
from table.service.calls import (
    Answer,
    CoordinatorReport,
    Directive,
    Order,
    Result,
    RunMode,
    WorkerReport,
)
from table.service.ledger import LedgerLimits, RunOutcome, RunOutcomeKind
from table.service.roster import Roster
from table.state import TableState
from tests.simulation.bus import PIPELINE
from tests.simulation.clocked import Clocked
from tests.simulation.lake import Interruptions
from tests.simulation.scheduler import Channel, Process
from tests.simulation.source_log import fields_of_ddl

if TYPE_CHECKING:
    from tests.simulation.worker import Worker
    from tests.simulation.world import World

DEADLINE_MS = 1_500
LIMITS = LedgerLimits(
    max_consecutive_failures=25,
    backoff_first_ms=100,
    backoff_max_ms=1_000,
    outage_budget_ms=60_000,
    outage_step_ms=2_000,
    drain_silence_ms=6_000,
    drain_ms=20_000,
    halt_ms=2_000,
)
SUPERVISE_MS = 400
SILENCE_MS = 8_000
SWEEP_MS = 5_000
DRIVER_CLOCK_OFF_MAX_MS = 10_000
"""Several intervals, and no longer than a schedule can wait until a clock has passed what the table holds."""
IN_CALL = 1 << 60
EFFECTS = (ev.Begin, ev.Commit, ev.Abort)

Reply = Callable[[Answer], None]


class Driver(Clocked):
    """One run."""

    def __init__(self, world: World, run: str, until: Offsets | None) -> None:
        super().__init__(world.scheduler, f"driver-{run}", skew_ms=world.chance.upto(1_000_000))
        self.world = world
        self.run = run
        self.until = until
        self.wall_skew_ms = world.drivers_ahead_ms
        if world.chance.of(world.faults.driver_clock_wrong):
            self.set_clock(world.chance.between(-DRIVER_CLOCK_OFF_MAX_MS, DRIVER_CLOCK_OFF_MAX_MS))
        tuning = Tuning(
            interval_ms=world.interval_ms,
            write_timeout_ms=world.write_timeout_ms,
            max_records=world.records_max,
        )
        self.ledger = world.cores.ledger(
            run=run, now_ms=self.clock_ms(), limits=LIMITS, until=until, tuning=tuning
        )
        interruptions = Interruptions(
            world.storage,
            self,
            world.scheduler,
            world.chance,
            lambda: world.faults,
            lambda what, content: world.note(self.name, what, content),
            lambda: sum(d.alive for d in world.drivers) == 1,
        )
        self.transactions = world.cores.transactions(
            table=world.cores.table(
                world.storage.timeline, PIPELINE, at=interruptions.reached, wall_ms=self.wall_ms
            ),
            ledger=self.ledger,
            guard=Lock(),
            source=world.log,
            pipeline=PIPELINE,
            run=run,
            rows_are_records=True,
            starting_offsets=world.starting_offsets,
            on_data_loss=world.on_data_loss,
            rejects_max=world.rejects_max.count,
            rejects_listed_max=world.rejects_listed_max,
            clock_ms=self.clock_ms,
            new_id=world.chance.hex,
            mark_rule=world.mark_rule,
        )
        self.columns = fields_of_ddl(world.storage.timeline.columns)
        self.roster = Roster(slots_max=16)
        self.began_ms = world.scheduler.now_ms
        self.outcome: RunOutcome | None = None
        self.workers: dict[int, Worker] = {}
        self._requests = Channel()
        self._busy_until_ms = 0
        self._deaths: dict[int, int] = {}
        newest = newest_of(world.storage.timeline.states(PIPELINE))
        self.table_epoch = newest.epoch if newest is not None else 0
        world.storage.place = run
        self._sender = world.bus_sender(self, run=run, name="driver", incarnation=run)
        self._sender.send(RunAnnounce(table_epoch=self.table_epoch, started_at_ms=self.wall_ms()), 0)
        for slot in range(world.slots):
            self._start_worker(slot)
        world.scheduler.at(0, self, self._clear)
        world.scheduler.at(SUPERVISE_MS, self, self.supervise)
        world.scheduler.at(SWEEP_MS, self, self._sweep)

    def set_clock(self, off_by_ms: int) -> None:
        """Its machine's wall clock, by which instants are named, is off by so much from here on."""
        self.wall_skew_ms = off_by_ms
        self.world.note(self.name, "clock", f"off by {off_by_ms} ms")

    # --- calls ------------------------------------------------------------------------------------

    def call(self, worker: Process, incarnation: str, call: ev.Call, reply: Reply) -> None:
        """As a worker's client sees it: every call is answered once, at its deadline at the latest."""
        chance, faults, scheduler = self.world.chance, self.world.faults, self.world.scheduler
        answered: list[bool] = []
        lost = Answer(
            result=Result.UNKNOWN if isinstance(call, EFFECTS) else Result.UNAVAILABLE,
            reason="the driver did not answer",
        )

        def answer(given: Answer) -> None:
            if not answered:
                answered.append(True)
                reply(given)

        if not self.alive or chance.of(faults.request_lost):
            scheduler.at(chance.upto(200), worker, answer, lost)
            return
        scheduler.at(DEADLINE_MS, worker, answer, lost)
        late = chance.of(faults.call_late)
        work = (incarnation, call)
        started_by_ms = scheduler.now_ms + DEADLINE_MS
        if late:
            scheduler.at(chance.upto(9_000), self, self._do, work, answer, worker, None)
        else:
            scheduler.through(
                self._requests, chance.upto(30), self, self._do, work, answer, worker, started_by_ms
            )

    def _do(
        self, work: tuple[str, ev.Call], answer: Reply, worker: Process, started_by_ms: int | None
    ) -> None:
        """One at a time; a call whose caller has gone by the time it would begin is not begun."""
        world = self.world
        if world.scheduler.now_ms < self._busy_until_ms or self.paused:
            world.scheduler.at(40, self, self._do, work, answer, worker, started_by_ms)
            return
        if started_by_ms is not None and world.scheduler.now_ms > started_by_ms:
            return
        self._busy_until_ms = IN_CALL
        try:
            given = self._perform(*work)
        finally:
            self._busy_until_ms = world.scheduler.now_ms + world.chance.upto(60)
        world.served(self, work[1], given)
        chance, faults = world.chance, world.faults
        lost = chance.of(faults.reply_lost) or (
            isinstance(work[1], ev.Commit) and chance.of(faults.commit_reply_lost)
        )
        if lost:
            world.note(self.name, "reply lost", None)
        else:
            world.scheduler.at(chance.upto(30), worker, answer, given)

    def _perform(self, incarnation: str, call: ev.Call) -> Answer:
        t = self.transactions
        match call:
            case ev.Survey():
                return t.survey()
            case ev.Register():
                return t.register(call.epoch, incarnation)
            case ev.Recover():
                return t.recover(call.epoch)
            case ev.Begin():
                return t.begin(call.epoch, call.transaction)
            case ev.Commit():
                return t.commit(call.epoch, call.transaction, call.instant, call.expected, call.statuses)
            case ev.Find():
                return t.find(call.transaction, call.ranges)
            case ev.Abort():
                return t.abort(call.epoch, call.transaction, call.instant, call.reason, call.fault)

    @property
    def busy(self) -> bool:
        """Whether it is in the middle of a call."""
        return self._busy_until_ms == IN_CALL

    def _clear(self) -> None:
        """As the application has it done when it has announced itself."""
        world = self.world
        if world.scheduler.now_ms < self._busy_until_ms:
            world.scheduler.at(40, self, self._clear)
            return
        self._busy_until_ms = IN_CALL
        try:
            self.transactions.clear()
        finally:
            self._busy_until_ms = world.scheduler.now_ms + world.chance.upto(60)

    def _sweep(self) -> None:
        """As the supervisor has it done from time to time; where the table does not serve, the next time."""
        world = self.world
        world.scheduler.at(SWEEP_MS, self, self._sweep)
        if world.scheduler.now_ms < self._busy_until_ms:
            return
        grace_ms = 2 * (world.write_timeout_ms + world.interval_ms)
        self._busy_until_ms = IN_CALL
        try:
            removed = self.transactions.sweep(grace_ms).removed
        except TableError as error:
            world.note(self.name, "no sweep", str(error))
        else:
            if removed:
                world.note(self.name, "sweeps", f"{removed} files")
        finally:
            self._busy_until_ms = world.scheduler.now_ms

    def reachable(self) -> bool:
        return self.alive and not self.paused

    def newest(self) -> TableState | None:
        """What the driver remembers of the table; read anew where it knows nothing yet."""
        if not self.reachable() or self.world.chance.of(self.world.faults.request_lost):
            return None
        if self.transactions.view.newest is None and self._busy_until_ms <= self.world.scheduler.now_ms:
            self.transactions.refresh()
        return self.transactions.view.newest

    def report(self, report: WorkerReport) -> Directive | None:
        """As the service's Report; None where the driver is out of reach."""
        if not self.reachable() or self.world.chance.of(self.world.faults.request_lost):
            return None
        now_ms = self.clock_ms()
        dead = self.ledger.dead(now_ms)
        if report.incarnation in dead:
            return Directive(mode=RunMode.STOP, reason="its task has ended", dead=dead)
        self.roster.note(now_ms, report)
        if report.fenced:
            self.ledger.fenced(report.incarnation)
        if report.poison:
            self.ledger.poison(report.poison)
        if report.coordinator is not None:
            self._settle(report.coordinator)
        return self.ledger.directive(now_ms, self.roster.coordinator_state(now_ms, self.ledger.epoch))

    def _settle(self, coordinator: CoordinatorReport) -> None:
        before = self.ledger.orders.settled
        self.ledger.settled(coordinator.epoch, coordinator.settled)
        if self.ledger.orders.settled > before:
            self.world.note(self.name, "orders", f"done up to {self.ledger.orders.settled}")
            self.world.checks.orders_done(self)

    def order(self, order: Order) -> None:
        """As an operator's command gives it."""
        number, refusal = self.ledger.take(self.clock_ms(), order)
        self.world.note(self.name, "ordered", refusal or f"{number}: {order.action} {dict(order.settings)}")
        if not refusal:
            self._sender.send(Control(number=number, action=order.action, settings=order.settings), 0)
            self.world.checks.ordered(self, number, order)

    # --- the supervisor ---------------------------------------------------------------------------

    def supervise(self) -> None:
        now_ms = self.clock_ms()
        self.ledger.directive(now_ms, self.roster.coordinator_state(now_ms, self.ledger.epoch))
        self.outcome = self.ledger.outcome()
        if self.outcome is not None:
            self._end()
            return
        for entry in self.roster.entries():
            worker = self.workers[entry.report.slot]
            silent = not entry.dead and now_ms - entry.at_ms > SILENCE_MS
            if silent and worker.alive and worker.incarnation == entry.report.incarnation:
                worker.kill("silent for too long")
        self.world.scheduler.at(SUPERVISE_MS, self, self.supervise)

    def _end(self) -> None:
        assert self.outcome is not None
        self.world.checks.ended(self)
        self.world.note(self.name, "ends", f"{self.outcome.kind.value}: {self.outcome.reason}")
        for worker in self.workers.values():
            self.world.scheduler.at(3_000, worker, worker.kill, "the run has ended")
        self.world.scheduler.at(3_500, self, self.die)
        if self.outcome.kind is not RunOutcomeKind.SUPERSEDED:
            self.world.start_driver_later()

    def _start_worker(self, slot: int) -> None:
        if self.outcome is None:
            self.workers[slot] = self.world.start_worker(self, slot)

    def worker_ended(self, worker: Worker, reason: str, *, failed: bool) -> None:
        """The Spark job of a slot ended."""
        self.world.scheduler.at(self.world.chance.upto(800), self, self._mourn, worker, reason, failed)

    def _taken_by(self) -> str:
        """The run that started after this one, as the table's folder says where it can be read."""
        storage = self.world.storage
        return storage.place if storage.timeline.available and storage.place != self.run else ""

    def _mourn(self, worker: Worker, reason: str, failed: bool) -> None:
        """Tell everybody, then start the next one in its slot, unless a newer run has the pipeline."""
        newer = self._taken_by() if worker.fenced else ""
        if newer:
            self.ledger.supersede(f"run {newer} has taken over")
            return
        if failed:
            now_ms = self.clock_ms()
            self.roster.died(worker.incarnation)
            fault = worker.plane.fault
            self.ledger.died(now_ms, incarnation=worker.incarnation, reason=reason, fault=fault)
        deaths = self._deaths[worker.slot] = self._deaths.get(worker.slot, 0) + 1
        wait_ms = 0 if deaths == 1 else min(100 << min(deaths, 5), 2_000)
        self.world.scheduler.at(wait_ms, self, self._start_worker, worker.slot)

    def die(self) -> None:
        """The whole application dies. In a cluster its executors may live on for a while."""
        if not self.alive:
            return
        self.alive = False
        linger = self.world.chance.of(self.world.faults.zombie_lingers)
        for worker in self.workers.values():
            if worker.alive and not linger:
                worker.kill("its driver died")
        self.world.driver_gone(self)

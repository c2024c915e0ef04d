"""The coordinator's runner as a model: one core per claim; a new claim only after the group's proof."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from control_topic.controls import Controls
from control_topic.messages import Message
from coordinator import events as ev
from coordinator.core import Coordinator
from coordinator.runner import Stamp
from coordinator.times import ByTheClock
from coordinator.transitions import State
from table.service.calls import Answer, CoordinatorReport, Directive
from tests.simulation.bus import PIPELINE
from tests.simulation.by_the_clock import ALIGN_MARGIN_MS, tuned_times
from tests.simulation.hazards import Performer

if TYPE_CHECKING:
    from tests.simulation.worker import Worker

Told = tuple[ev.RunMode, str, Controls | None]
"""What the driver has said last."""

RECORDS_MIN = 5
RECLAIM_MS = (200, 400, 800, 1_600)


def _told(directive: Directive) -> Told:
    return directive.mode, directive.reason, directive.controls


class Claims:
    """Lives from the assignment of source partition 0 until it is taken away."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._world = worker.world
        self._now = worker.clock_ms
        self.configured = ByTheClock(schedule=worker.world.schedule, align=worker.world.align)
        self._by_the_clock = self.configured != ByTheClock()
        self._nonce = worker.world.chance.hex
        self._inbox: deque[Callable[[], ev.Event]] = deque()
        self._waking = False
        self._stopped = False
        self._fenced = 0
        self._ended = False
        self._directive: Told = (ev.RunMode.RUN, "", None)
        if worker.directive is not None:
            self._directive = _told(worker.directive)
        self._performer = Performer(worker, "coordinator", self._perform)
        self.core: Coordinator
        self.incarnation = ""
        self._claim()
        self._world.scheduler.at(self._world.chance.upto(self._world.tick_ms), worker, self._tick)

    def stop(self) -> None:
        self._stopped = True

    def _stamp(self) -> Stamp:
        return {"now_ms": self._now(), "nonce": self._nonce(), "wall_ms": self._worker.wall_ms()}

    def _claim(self) -> None:
        world, worker = self._world, self._worker
        self.incarnation = world.chance.hex()
        self.core = world.cores.new_coordinator(
            ev.Settings(
                pipeline=PIPELINE,
                run=worker.driver.run,
                incarnation=self.incarnation,
                interval_ms=world.interval_ms,
                write_timeout_ms=world.write_timeout_ms,
                write_limit_ms=world.write_limit_ms,
                records_min=RECORDS_MIN,
                repeat_ms=world.repeat_ms,
                settle_ms=500,
                retry_ms=200,
                by_the_clock=self.configured,
                align_margin_ms=ALIGN_MARGIN_MS,
            )
        )
        self._sender = world.bus_sender(
            worker,
            run=worker.driver.run,
            name=f"coordinator@{worker.slot}-{self.incarnation[:4]}",
            incarnation=self.incarnation,
        )
        self._inbox.clear()
        self._ended = False
        epoch = worker.reader.highest_epoch
        self._offer(lambda: ev.Launch(**self._stamp(), topic_epoch=epoch))
        mode, _reason, controls = self._directive
        if mode is not ev.RunMode.RUN or controls is not None:
            self._offer_directed(self._directive)

    # --- what reaches it --------------------------------------------------------------------------

    def hear(self, message: Message) -> None:
        self._offer(lambda: ev.Received(**self._stamp(), message=message))

    def direct(self, directive: Directive) -> None:
        for incarnation in directive.dead:
            if incarnation not in self.core.dead:
                self._offer_died(incarnation, directive.died_of.get(incarnation, ""))
        told = _told(directive)
        if told != self._directive:
            self._directive = told
            self._offer_directed(told)

    def _offer_directed(self, told: Told) -> None:
        mode, reason, controls = told
        tuning = controls.tuning if controls is not None else None
        times = tuned_times(self.configured, tuning) if tuning is not None else None
        self._offer(
            lambda: ev.Directed(
                **self._stamp(), mode=mode, reason=reason, controls=controls, by_the_clock=times
            )
        )

    def _offer_died(self, incarnation: str, reason: str) -> None:
        self._offer(lambda: ev.WorkerDied(**self._stamp(), incarnation=incarnation, reason=reason))

    def _tick(self) -> None:
        if self._stopped:
            return
        if not self._ended:
            self._inbox.append(self._make_tick)
            self._drain()
        tick_ms = self._world.tick_ms
        self._world.scheduler.at(self._world.chance.between(tick_ms // 2, tick_ms), self._worker, self._tick)

    def _make_tick(self) -> ev.Tick:
        return ev.Tick(now_ms=self._now(), nonce=self._nonce(), wall_ms=self._worker.wall_ms())

    def _offer(self, make: Callable[[], ev.Event]) -> None:
        if self._stopped or self._ended:
            return
        self._inbox.append(make)
        if not self._waking:
            self._waking = True
            self._world.scheduler.at(self._world.chance.upto(10), self._worker, self._drain)

    # --- the thread -------------------------------------------------------------------------------

    def _drain(self) -> None:
        self._waking = False
        done = not self._performer.waiting or self._performer.run([])
        while done and self._inbox and not self._stopped and not self._ended:
            done = self._feed(self._inbox.popleft()())
        if not done and not self._waking:
            self._waking = True
            self._world.scheduler.at(0, self._worker, self._drain)

    def _feed(self, event: ev.Event) -> bool:
        """Whether everything that the event caused is done."""
        core, world = self.core, self._world
        machine = core.machine
        before = machine.state
        actions = core.handle(event)
        state, kind = machine.state, type(event)
        told = bool(actions) or state is not before
        if told and world.transcript.recording:
            if kind is not ev.Tick:
                world.note(self._name, "hears", event.message if isinstance(event, ev.Received) else event)
            if state is not before:
                world.note(self._name, "becomes", state)
        waiting = state is State.ENDED or (self._by_the_clock and state is State.STARTED)
        if told or waiting or kind is not ev.Tick or world.tail_began_ms is not None:
            checks = world.checks
            checks.coordinator_handled(self, event, before, actions)
            if kind is ev.Received:
                checks.coordinator_heard(self, event, before, actions)
            elif kind is ev.Directed:
                checks.coordinator_directed(self, event, before, actions)
            elif kind is ev.WorkerDied:
                checks.coordinator_lost(self, event, before, actions)
            if actions:
                checks.coordinator_acts(self, event, before, actions)
        return not actions or self._performer.run(actions)

    @property
    def _name(self) -> str:
        return f"c@{self._worker.slot}-{self.incarnation[:4]}"

    def _perform(self, action: ev.Action) -> None:
        world = self._world
        if isinstance(action, ev.Send):
            world.checks.coordinator_sent(self, action)
            self._sender.send(action.body, action.epoch)
        elif isinstance(action, ev.Stop):
            world.note(self._name, "stops", action)
            self._ended = True
            if action.fenced and self._directive[0] is not ev.RunMode.STOP:
                self._reclaim_later()
        else:
            world.note(self._name, "calls", action)
            incarnation = self.incarnation
            call = action
            self._worker.driver.call(
                self._worker, incarnation, call, lambda answer: self._answered(call, answer, incarnation)
            )

    def _answered(self, call: ev.Call, answer: Answer, incarnation: str) -> None:
        """An answer to an earlier claim's call is nobody's any more."""
        if incarnation != self.incarnation:
            return
        self._offer(
            lambda: ev.Completed(
                **self._stamp(),
                call=call.call,
                result=answer.result,
                reason=answer.reason,
                wait_ms=answer.wait_ms,
                instant=answer.instant,
                epoch=answer.epoch,
                committed=answer.committed,
                partitions=frozenset(answer.partitions),
                watermark_ms=answer.watermark_ms,
            )
        )

    # --- fenced -----------------------------------------------------------------------------------

    def _reclaim_later(self) -> None:
        wait_ms = RECLAIM_MS[min(self._fenced, len(RECLAIM_MS) - 1)]
        self._fenced += 1
        self._world.scheduler.at(wait_ms, self._worker, self._prove)

    def _prove(self) -> None:
        if not self._stopped:
            self._worker.prove(self._proved)

    def _proved(self, ok: bool) -> None:
        if self._stopped:
            return
        self._world.note(self._worker.name, "proof", "ours" if ok else "not ours")
        if ok:
            self._claim()
        else:
            self._reclaim_later()

    def report(self) -> CoordinatorReport:
        """As the runner reports its core's snapshot, without what only people read."""
        core = self.core
        open_one = core.transaction
        return CoordinatorReport(
            epoch=core.epoch,
            state=core.state.value,
            transaction=open_one.id if open_one is not None else "",
            instant=open_one.instant if open_one is not None else "",
            settled=core.rounds.orders.settled,
        )

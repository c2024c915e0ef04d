"""A worker: the participant's core, and a model of its shell: consumer, buffers, writer, group membership.

As in production the parts meet in queues: the consumer's chunks and the core's orders go to the data plane
in one order, everything for the core through one inbox.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from control_topic.controls import Tuning
from control_topic.messages import Message, Offsets, SourcePartition, StartCommit, WriteStatus
from participant import events as ev
from participant.hearing import DECISIONS
from participant.source.witnesses import Remembered
from participant.transitions import State
from table.service.calls import Directive, RunMode, WorkerReport
from tests.simulation.bus import PIPELINE, Reader, key_of
from tests.simulation.claims import Claims
from tests.simulation.clocked import Clocked
from tests.simulation.hazards import Performer
from tests.simulation.plane import Plane
from tests.simulation.scheduler import Channel

if TYPE_CHECKING:
    from tests.simulation.driver import Driver
    from tests.simulation.world import World

REPORT_MS = 500
UNREACHED_MAX_MS = 6_000
GROUP_LATENCY_MS = 100


class Worker(Clocked):
    """One incarnation in one slot of one run."""

    def __init__(self, world: World, driver: Driver, slot: int, incarnation: str) -> None:
        skew_ms = world.chance.upto(1_000_000)
        super().__init__(world.scheduler, f"worker-{slot}-{incarnation[:4]}", skew_ms=skew_ms)
        self.world = world
        self.driver = driver
        self.slot = slot
        self.incarnation = incarnation
        self.core = world.cores.new_participant(
            ev.Settings(
                pipeline=PIPELINE,
                run=driver.run,
                incarnation=incarnation,
                interval_ms=world.interval_ms,
                memory_bytes_max=world.memory_bytes,
                idle_bytes_max=world.idle_bytes,
                records_max=world.records_max,
                repeat_ms=world.repeat_ms,
                repeat_max_ms=4_000,
                until=driver.until or {},
                progress_ms=world.write_timeout_ms // 4,
                piece_records=10,
                rejects_max=world.rejects_max,
                takes_at=world.network.address(incarnation) if world.network is not None else "",
            )
        )
        self.witnesses = Remembered()
        self.plane = Plane(self)
        self.group_channel = Channel()
        self.assigned: Counter[SourcePartition] = Counter()
        """How often each source partition came to it."""
        self.claims: Claims | None = None
        self.first = world.log.first
        self.cut_off_until_ms = 0
        self._poison = ""
        self.directive: Directive | None = None
        self._tuning: Tuning | None = None
        self._performer = Performer(self, "participant", self._perform)
        self._inbox: deque[ev.Event] = deque()
        self._waking = False
        self._leaving = False
        self.fenced = False
        self._reached_ms = self.clock_ms()
        self._sender = world.bus_sender(self, run=driver.run, name=f"worker-{slot}", incarnation=incarnation)
        trust = world.cores.trust(
            pipeline=PIPELINE, run=driver.run, key=key_of(driver.run), table_epoch=driver.table_epoch
        )
        self.reader: Reader = world.bus.attach(self, self.on_control, trust)
        world.scheduler.at(world.chance.upto(world.tick_ms), self, self._tick)
        world.scheduler.at(world.chance.upto(REPORT_MS), self, self._report)
        world.scheduler.at(world.chance.upto(200), self, world.group.join, self)

    @property
    def write_timeout_ms(self) -> int:
        """Write timeout of the tuning that this worker received last."""
        tuning = self._tuning
        return self.world.write_timeout_ms if tuning is None else tuning.write_timeout_ms

    # --- the core's thread ------------------------------------------------------------------------

    def post(self, event: ev.Event) -> None:
        """Stamped when posted, handled when the core's thread gets to it."""
        self._inbox.append(event)
        if not self._waking:
            self._waking = True
            self.world.scheduler.at(self.world.chance.upto(10), self, self._drain)

    def _drain(self) -> None:
        self._waking = False
        inbox, machine = self._inbox, self.core.machine
        done = not self._performer.waiting or self._performer.run([])
        while done and inbox and self.alive and machine.state is not State.STOPPED:
            done = self._feed(inbox.popleft())
        if not done and not self._waking:
            self._waking = True
            self.world.scheduler.at(0, self, self._drain)

    def _feed(self, event: ev.Event) -> bool:
        """Whether everything that the event caused is done."""
        core, world = self.core, self.world
        machine = core.machine
        before, epoch = machine.state, machine.epoch
        heard = event if type(event) is ev.Received else None
        if heard is not None and isinstance(heard.message.body, StartCommit):
            start = heard.message.body
            self.witnesses.note(start.witnesses.values(), start.committed)
        actions = core.handle(event)
        if world.transcript.recording:
            if not isinstance(event, ev.Tick):
                world.note(self.name, "hears", heard.message if heard is not None else event)
            if machine.state is not before:
                world.note(self.name, "becomes", machine.state)
        if heard is not None:
            world.checks.participant_heard(self, heard, before, epoch, actions)
            if isinstance(heard.message.body, DECISIONS):
                world.checks.decision_heard(self, heard, before, epoch, actions)
        return not actions or self._performer.run(actions)

    def _perform(self, action: ev.Action) -> None:
        match action:
            case ev.Send():
                if isinstance(action.body, WriteStatus):
                    self.witnesses.wrote(action.body)
                self._sender.send(action.body, action.epoch)
            case ev.FetchOffsets():
                self.world.scheduler.at(self.world.chance.upto(60), self, self._fetch_offsets, action.call)
            case ev.CommitGroup():
                self.world.scheduler.at(
                    self.world.chance.upto(GROUP_LATENCY_MS), self, self._commit_group, action.offsets
                )
            case ev.Poison():
                self.world.note(self.name, "does", action)
                self._poison = self._poison or action.reason
            case ev.Stop():
                self._stop(action)
            case _:
                self.world.note(self.name, "does", action)
                self.plane.order(action)

    def _tick(self) -> None:
        scheduler, world = self.scheduler, self.world
        self._inbox.append(ev.Tick(now_ms=scheduler.now_ms + self.skew_ms))
        self._drain()
        tick_ms = world.tick_ms
        scheduler.at(world.chance.between(tick_ms // 2, tick_ms), self, self._tick)

    def _fetch_offsets(self, call: int) -> None:
        committed = self._committed()
        outcome = ev.Outcome.SUCCEEDED if committed is not None else ev.Outcome.UNKNOWN
        self.post(
            ev.OffsetsFetched(now_ms=self.clock_ms(), call=call, outcome=outcome, committed=committed or {})
        )

    def _committed(self) -> Offsets | None:
        """As the worker of production learns it, and what stands before."""
        newest = self.driver.newest()
        if newest is None:
            return None
        self.witnesses.table_has(newest.witnesses.values(), newest.offsets)
        return newest.offsets

    def _commit_group(self, offsets: Offsets) -> None:
        for partition, offset in offsets.items():
            if partition in self.plane.positions:
                self.world.group.commit(self, partition, offset)

    def prove(self, answer: Callable[[bool], None]) -> None:
        """A synchronous commit of what the table holds: only the group's real member succeeds."""
        committed = self._committed()
        if committed is None:
            committed = self.world.group.offsets
        ok = self.first in self.plane.positions and self.world.group.commit(
            self, self.first, committed.get(self.first, 0)
        )
        self.world.scheduler.at(self.world.chance.upto(GROUP_LATENCY_MS), self, answer, ok)

    # --- the end of it ----------------------------------------------------------------------------

    def _stop(self, action: ev.Stop) -> None:
        """Leave the group first, so that others take over at once; then close what is open."""
        self.world.note(self.name, "stops", action)
        self._leaving = True
        self._stop_claims()
        self.plane.stop()
        for partition in list(self.plane.positions):
            self.plane.positions.pop(partition)
            self.world.group.revoked(self, partition)
        self.world.group.leave(self)
        self._send_report()
        self.world.scheduler.at(self.world.chance.upto(600), self, self._gone, action)

    def _gone(self, action: ev.Stop) -> None:
        self.alive = False
        self.driver.worker_ended(self, action.reason, failed=action.failed)

    def kill(self, reason: str) -> None:
        """SIGKILL: nothing is said to anybody."""
        if self.alive:
            self.world.note(self.name, "killed", reason)
            self.alive = False
            self.driver.worker_ended(self, reason, failed=True)

    # --- from the group ---------------------------------------------------------------------------

    def on_assign(self, partitions: tuple[SourcePartition, ...]) -> None:
        """Start offsets come from the table and are part of the assignment itself.

        The client adds what it does not have: what it has is no news.
        """
        had = self.plane.positions
        partitions = tuple(p for p in partitions if self.world.group.is_owner(self, p) and p not in had)
        if self._leaving or not partitions:
            return
        committed = self._committed() or {}
        offsets = {p: committed.get(p) for p in partitions}
        self.plane.assign(partitions)
        self.assigned.update(partitions)
        self.post(ev.Assigned(now_ms=self.clock_ms(), offsets=offsets))
        if self.first in partitions and self.claims is None:
            self.claims = Claims(self)

    def on_revoke(self, partition: SourcePartition) -> None:
        self._revoked((partition,))
        self.world.group.revoked(self, partition)

    def on_expired(self, partitions: tuple[SourcePartition, ...]) -> None:
        """It wakes up and does not know yet; the next poll tells it, and it joins anew."""
        self.world.scheduler.at(self.world.chance.upto(1_500), self, self._on_lost, partitions)

    def _on_lost(self, partitions: tuple[SourcePartition, ...]) -> None:
        if self._leaving:
            return
        self._revoked(tuple(p for p in partitions if not self.world.group.is_owner(self, p)))
        if self.world.group.members.get(self.slot) is None:
            self.world.group.join(self)
        elif self.world.group.members[self.slot] is not self:
            self.on_fenced()

    def _revoked(self, partitions: tuple[SourcePartition, ...]) -> None:
        gone = tuple(p for p in partitions if p in self.plane.positions)
        for partition in gone:
            del self.plane.positions[partition]
        if self.first in gone:
            self._stop_claims()
        if gone:
            self.post(ev.Revoked(now_ms=self.clock_ms(), partitions=gone))

    def on_fenced(self) -> None:
        """Kafka gave our membership to another process."""
        self.fenced = True
        self.world.note(self.name, "fenced", "by the group")
        self.post(ev.EffectFailed(now_ms=self.clock_ms(), reason="Kafka fenced this worker"))

    def _stop_claims(self) -> None:
        if self.claims is not None:
            self.claims.stop()
            self.claims = None

    # --- from the control topic and the driver ----------------------------------------------------

    def on_control(self, message: Message) -> None:
        if self.claims is not None:
            self.claims.hear(message)
        self.post(ev.Received(now_ms=self.scheduler.now_ms + self.skew_ms, message=message))

    def _report(self) -> None:
        now_ms = self.clock_ms()
        directive = self._send_report()
        if directive is not None:
            self._reached_ms = now_ms
            self._tune(directive)
            self.directive = directive
            if self.claims is not None:
                self.claims.direct(directive)
            if directive.mode is RunMode.STOP:
                self.post(ev.Leave(now_ms=now_ms, reason=directive.reason))
        elif now_ms - self._reached_ms > UNREACHED_MAX_MS:
            self.post(ev.EffectFailed(now_ms=now_ms, reason="the driver does not answer"))
        self.world.scheduler.at(REPORT_MS, self, self._report)

    def _tune(self, directive: Directive) -> None:
        tuning = directive.controls.tuning if directive.controls is not None else None
        if tuning is not None and tuning != self._tuning:
            self._tuning = tuning
            self.post(ev.Tuned(now_ms=self.clock_ms(), tuning=tuning))

    def _send_report(self) -> Directive | None:
        return self.driver.report(
            WorkerReport(
                slot=self.slot,
                incarnation=self.incarnation,
                state=self.core.state.value,
                coordinator=self.claims.report() if self.claims is not None else None,
                poison=self._poison,
                fenced=self.fenced,
            )
        )

    @property
    def stopped(self) -> bool:
        return self.core.state is State.STOPPED

    @property
    def holds(self) -> Offsets:
        """Where the core stands, for messages of failing checks."""
        return {p: o.start for p, o in self.core.owned.items()}

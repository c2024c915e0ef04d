"""A worker: one long-running Spark task. Wires the participant's core to Kafka, files and the driver.

Threads: this one runs the protocol; `membership` is a member of the consumer group; `source` reads; `plane`
decodes and writes; `control` reads the control topic; `report` talks to the driver; `coordinator` runs where
source partition 0 is owned. They meet in queues. The core alone decides; everything here performs.
"""

from __future__ import annotations

import logging
import os
import queue
import secrets
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from control_topic.clocks import monotonic_ms, wall_ms
from control_topic.kafka import ControlReader, ControlWriter
from control_topic.messages import CoordinatorClaim, Message, Offsets, SourcePartition
from control_topic.refused_writes import RefusedWrites
from control_topic.spelling import some
from control_topic.threads import guarded
from coordinator import events as coordinator_events
from coordinator.runner import Environment, Runner
from participant import events as ev
from participant.core import Participant
from participant.source.dead_letters import SILENCE_S, DeadLetters
from participant.source.fetcher import Fetcher, fetch_settings
from participant.source.look_back import TopicLookBack
from participant.source.membership import Membership, MembershipCallbacks
from participant.source.native import open_fetcher
from participant.source.reading import Source, SourceCallbacks
from participant.worker.metrics import Parts, measured
from participant.worker.plane import Plane
from participant.worker.reporter import Reporter
from participant.worker.spec import Ended, WorkerSpec
from participant.worker.stages import stages
from table.port import UPSERT
from table.service.calls import CoordinatorReport, Directive, Mode, Result, WorkerReport
from table.service.client import TableClient

log = logging.getLogger("lockstep.worker")

TICK_S = 0.05
EVENTS_MAX = 100_000
LEAVE_S = 15
CONTROL_POLL_S = 0.05
PROGRESS_MS = 1_000
"""How often a worker that closes files says how far it is; oftener where it is not waited for so long."""


def nonce() -> str:
    return secrets.token_hex(16)


class Worker:
    """One incarnation, from its start to its end."""

    def __init__(self, spec: WorkerSpec, slot: int) -> None:
        self._spec = spec
        self._slot = slot
        self.incarnation = nonce()
        self._name = f"worker-{slot}"
        self._events: queue.Queue[ev.Event] = queue.Queue(EVENTS_MAX)
        self._poison = ""
        self._fenced = ""
        self._ended: ev.Stop | None = None
        self._first = SourcePartition(spec.topics[0], 0)
        self._runner: Runner | None = None
        self._runner_lock = threading.Lock()
        self._leaving = False
        self._stopping = threading.Event()
        self._table = TableClient(spec.table_address, spec.token)
        self._calls = ThreadPoolExecutor(max_workers=1, thread_name_prefix="offsets")
        self._refused_writes = RefusedWrites(spec.control_topic)
        self._writer = self._control_writer(self._name, self.incarnation)
        self._reader = ControlReader(
            spec.kafka, spec.control_topic, start="tail", pipeline=spec.pipeline, trust=spec.trust
        )
        memory = spec.memory
        self._core = Participant(self._settings())
        self._plane = Plane(
            stages=stages(
                layout=spec.layout,
                slot=slot,
                incarnation=self.incarnation,
                memory=memory,
                record=spec.record,
                look_back=TopicLookBack(spec.kafka, group=spec.group),
            ),
            queued_bytes_max=memory.queued_bytes,
            dead_letters=(
                DeadLetters(
                    spec.kafka,
                    spec.dead_letter_topic,
                    bytes_max=memory.letters_bytes,
                    message_bytes_max=spec.dead_letter_bytes_max,
                    silence_s=min(SILENCE_S, spec.write_timeout_ms / 2_000),
                )
                if spec.on_error == "dead_letter"
                else None
            ),
            post=self._events.put,
            now_ms=monotonic_ms,
        )
        self._membership = Membership(
            kafka=spec.kafka,
            group=spec.group,
            instance=spec.instance(slot),
            topics=spec.topics,
            session_timeout_ms=spec.session_timeout_ms,
            callbacks=MembershipCallbacks(
                committed=self._committed,
                assigned=self._on_assigned,
                revoked=self._on_revoked,
                fenced=self._on_fenced,
                failed=self._on_failed,
                refused=self._on_refused,
            ),
        )
        self._source = Source(
            fetcher=self._open_fetcher,
            until=spec.until,
            on_data_loss=spec.on_data_loss,
            callbacks=SourceCallbacks(
                owned=lambda: self._membership.partitions,
                deliver=self._plane.deliver,
                stuck=self._on_stuck,
                failed=self._on_failed,
            ),
        )
        self._reporter = Reporter(self._table, self._report, self._on_directive, self._on_failed)

    def _settings(self) -> ev.Settings:
        spec = self._spec
        return ev.Settings(
            pipeline=spec.pipeline,
            run=spec.run,
            incarnation=self.incarnation,
            interval_ms=spec.interval_ms,
            memory_bytes_max=spec.memory.buffered_bytes,
            records_max=spec.records_max,
            bytes_max=spec.bytes_max,
            until=spec.until or {},
            progress_ms=min(PROGRESS_MS, spec.write_timeout_ms // 4),
            rejects_max=spec.rejects_max,
        )

    def _open_fetcher(self) -> Fetcher:
        spec = self._spec
        settings = fetch_settings(spec.kafka, group=spec.group, queue_bytes_max=spec.memory.fetched_bytes)
        fetcher = open_fetcher(
            settings,
            spec.reader,
            tombstone_keys=spec.layout.mode == UPSERT,
            whole=spec.on_error == "dead_letter",
            records_max=self._plane.records_max,
        )
        log.info("records are read by the %s reader", fetcher.name)
        return fetcher

    def _control_writer(self, sender: str, incarnation: str) -> ControlWriter:
        return ControlWriter(
            self._spec.kafka,
            self._spec.control_topic,
            pipeline=self._spec.pipeline,
            run=self._spec.run,
            sender=sender,
            incarnation=incarnation,
            clock_ms=wall_ms,
            key=self._spec.key,
            refused=self._refused_writes,
        )

    # --- the protocol's thread --------------------------------------------------------------------

    def run(self) -> Ended:
        """Work until told to end, or until something fails that a fresh worker may overcome."""
        control = threading.Thread(
            target=guarded("control", self._read_control, self._on_failed), name="control", daemon=True
        )
        self._reporter.start()
        self._plane.start()
        self._source.start()
        control.start()
        next_tick = time.monotonic()
        try:
            while self._ended is None:
                timeout_s = next_tick - time.monotonic()
                try:
                    event = self._events.get(timeout=max(0.0, timeout_s)) if timeout_s > 0 else None
                except queue.Empty:
                    event = None
                if event is None:
                    next_tick = time.monotonic() + TICK_S
                    event = ev.Tick(now_ms=monotonic_ms())
                self._feed(event)
        finally:
            self._shut_down()
            control.join(5)
        return Ended(
            slot=self._slot,
            incarnation=self.incarnation,
            reason=self._ended.reason,
            failed=self._ended.failed,
            fenced=bool(self._fenced),
            fault=self._plane.fault,
        )

    def _feed(self, event: ev.Event) -> None:
        before = self._core.state
        for action in self._core.handle(event):
            self._perform(action)
        if self._core.state is not before:
            log.debug("%s -> %s on %s", before.name, self._core.state.name, type(event).__name__)

    def _perform(self, action: ev.Action) -> None:
        match action:
            case ev.Send():
                self._writer.send(action.body, epoch=action.epoch)
            case ev.FetchOffsets():
                self._calls.submit(
                    guarded("offsets", partial(self._fetch_offsets, action.call), self._on_failed)
                )
            case ev.Rewind():
                self._plane.order(action)  # first, so that it knows the generation when records come
                self._source.rewind(action.partition, action.offset, action.generation)
            case ev.Drop() | ev.Open() | ev.Write() | ev.Flush() | ev.Discard():
                self._plane.order(action)
            case ev.CommitGroup():
                self._membership.commit(action.offsets)
            case ev.Pause():
                self._source.pause()
            case ev.Resume():
                self._source.resume()
            case ev.Poison():
                self._poison = self._poison or action.reason
            case ev.Stop():
                self._ended = action

    def _shut_down(self) -> None:
        """Leave the group first, so that others take over at once; then close what is open."""
        self._source.stop(0)
        if not self._membership.leave(LEAVE_S):
            log.warning("leaving the consumer group took longer than %d s", LEAVE_S)
        self._stop_runner()
        self._source.stop(LEAVE_S)
        self._plane.stop(LEAVE_S)
        self._writer.flush(5)
        self._stopping.set()
        self._reporter.stop()
        self._calls.shutdown(wait=False, cancel_futures=True)
        self._writer.close()
        self._table.close()

    # --- from the source's thread -----------------------------------------------------------------

    def _committed(self) -> Offsets | None:
        answer = self._table.offsets()
        return answer.committed if answer.result is Result.OK else None

    def _fetch_offsets(self, call: int) -> None:
        committed = self._committed()
        self._events.put(
            ev.OffsetsFetched(
                now_ms=monotonic_ms(),
                call=call,
                outcome=ev.Outcome.SUCCEEDED if committed is not None else ev.Outcome.UNKNOWN,
                committed=committed or {},
            )
        )

    def _on_assigned(self, offsets: Mapping[SourcePartition, int | None]) -> None:
        log.info("assigned %s", some(sorted(offsets)))
        self._events.put(ev.Assigned(now_ms=monotonic_ms(), offsets=offsets))
        if self._first in offsets:
            self._start_runner()

    def _on_revoked(self, partitions: Sequence[SourcePartition]) -> None:
        log.info("revoked %s", some(sorted(partitions)))
        if self._first in partitions:
            self._stop_runner()
        self._source.drop(partitions)
        self._events.put(ev.Revoked(now_ms=monotonic_ms(), partitions=tuple(partitions)))

    def _on_stuck(self, partition: SourcePartition, generation: int, reason: str) -> None:
        blocked = ev.Blocked(now_ms=monotonic_ms(), partition=partition, generation=generation, reason=reason)
        self._events.put(blocked)

    def _on_fenced(self, reason: str) -> None:
        """Kafka gave our membership to another process: the driver decides what that means."""
        self._fenced = reason
        self._on_failed(f"Kafka fenced this worker's membership ({reason}); another has taken its slot")

    def _on_refused(self, reason: str) -> None:
        """No worker can go on like that: what others hold is committed, and the run halts."""
        if not self._poison:
            log.error("%s", reason)
        self._poison = self._poison or reason

    def _on_failed(self, reason: str) -> None:
        self._events.put(ev.EffectFailed(now_ms=monotonic_ms(), reason=reason))

    # --- the coordinator --------------------------------------------------------------------------

    def _start_runner(self) -> None:
        spec = self._spec
        with self._runner_lock:
            if self._runner is not None or self._leaving:
                return
            self._runner = Runner(
                coordinator_events.Settings(
                    pipeline=spec.pipeline,
                    run=spec.run,
                    incarnation="",
                    interval_ms=spec.interval_ms,
                    write_timeout_ms=spec.write_timeout_ms,
                    write_limit_ms=spec.write_limit_ms,
                ),
                Environment(
                    sender=lambda incarnation: self._control_writer(f"coordinator@{self._name}", incarnation),
                    table=self._table,
                    prove=self._prove,
                    topic_epoch=lambda: self._reader.highest_epoch,
                    failed=self._on_failed,
                    now_ms=monotonic_ms,
                    nonce=nonce,
                ),
            )
            self._runner.start()

    def _stop_runner(self) -> None:
        with self._runner_lock:
            runner, self._runner = self._runner, None
        if runner is not None:
            runner.stop()

    def _prove(self, answer: coordinator_events.Prove) -> None:
        """A synchronous commit of what the table holds: only the group's real member succeeds."""
        committed = self._committed()
        offset = None if committed is None else committed.get(self._first, 0)
        self._membership.prove(self._first, offset, answer)

    # --- the control topic ------------------------------------------------------------------------

    def _read_control(self) -> None:
        try:
            while not self._stopping.is_set():
                for received in self._reader.poll(CONTROL_POLL_S):
                    if isinstance(received.content, Message):
                        self._hear(received.content)
        finally:
            self._reader.close()

    def _hear(self, message: Message) -> None:
        if message.pipeline != self._spec.pipeline:
            return
        with self._runner_lock:
            runner = self._runner
        if runner is not None:
            runner.received(message)
        if isinstance(message.body, CoordinatorClaim) and message.run == self._spec.run:
            log.debug("%s claims epoch %d", message.sender, message.epoch)
        self._events.put(ev.Received(now_ms=monotonic_ms(), message=message))

    # --- the driver -------------------------------------------------------------------------------

    def _on_directive(self, directive: Directive) -> None:
        if directive.join:
            self._membership.start()
        with self._runner_lock:
            runner = self._runner
        if runner is not None:
            runner.died(directive.dead, directive.died_of)
            runner.directed(directive.mode, directive.reason)
        if directive.mode is Mode.STOP and not self._leaving:
            self._leaving = True
            self._events.put(ev.Leave(now_ms=monotonic_ms(), reason=directive.reason))

    def _report(self) -> WorkerReport:
        with self._runner_lock:
            runner = self._runner
        snapshot = runner.snapshot() if runner is not None else None
        now_s = time.monotonic()
        if refused := self._refused_writes.final(now_s):
            self._on_refused(refused)
        refused = self._refused_writes.alarm(now_s)
        return WorkerReport(
            slot=self._slot,
            incarnation=self.incarnation,
            pid=os.getpid(),
            host=socket.gethostname(),
            state=self._core.state.value,
            partitions=tuple(sorted(self._core.owned)),
            metrics=measured(Parts(core=self._core, plane=self._plane, source=self._source)),
            coordinator=_report_of(snapshot) if snapshot is not None else None,
            poison=self._poison,
            fenced=bool(self._fenced),
            alarms=(*([refused] if refused else ()), *self._membership.alarms, *self._source.alarms),
            seconds={"consume": self._source.consume_s, **self._plane.meters.seconds},
        )


def _report_of(snapshot: coordinator_events.Snapshot) -> CoordinatorReport:
    """Ages, not instants of a clock that only this process has: turned into wall time here."""
    started = wall_ms() - (monotonic_ms() - snapshot.started_at_ms) if snapshot.started_at_ms else 0
    return CoordinatorReport(
        epoch=snapshot.epoch,
        state=snapshot.state,
        transaction=snapshot.transaction,
        instant=snapshot.instant,
        started_at_ms=started,
        answered=snapshot.answered,
        missing=snapshot.missing,
        ignored=sum(snapshot.ignored.values()),
    )

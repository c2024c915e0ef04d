"""A worker: one long-running Spark task. Wires the lane of its table to Kafka and the driver.

Threads: this one runs the protocol; `membership` is a member of the consumer group; `source` reads; `plane`
decodes and writes; `control` reads the control topic; `report` talks to the driver; `coordinator` runs where
source partition 0 is owned. They meet in queues. The core alone decides; everything here performs.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Mapping, Sequence

from control_topic.clocks import monotonic_ms, wall_ms
from control_topic.kafka import ControlReader, ControlWriter
from control_topic.messages import CoordinatorClaim, Message, SourcePartition
from control_topic.refused_writes import RefusedWrites
from control_topic.spelling import some
from control_topic.threads import guarded
from coordinator import events as coordinator_events
from coordinator.runner import Environment
from participant import events as ev
from participant.exchange.exchange import Exchange, host_towards
from participant.source.fetcher import Fetcher, fetch_settings
from participant.source.membership import Membership, MembershipCallbacks
from participant.source.native import open_fetcher
from participant.source.reading import SourceCallbacks, SourceThread
from participant.worker.coordinator_host import CoordinatorHost
from participant.worker.lane import Lane, LaneCallbacks
from participant.worker.metrics import Parts, measured
from participant.worker.plane import Arrived, PlaneCallbacks
from participant.worker.reporter import Reporter
from participant.worker.spec import Ended, WorkerSpec
from table.port import UPSERT
from table.service.calls import Directive, RunMode, WorkerReport
from table.service.client import TableClient

log = logging.getLogger("lockstep.worker")

LEAVE_S = 15
CONTROL_POLL_S = 0.05


def nonce() -> str:
    return secrets.token_hex(16)


class Worker:
    """One incarnation, from its start to its end."""

    def __init__(self, spec: WorkerSpec, slot: int) -> None:
        self._spec = spec
        self._slot = slot
        self.incarnation = nonce()
        self._name = f"worker-{slot}"
        self._fenced = ""
        self._first = SourcePartition(spec.topics[0], 0)
        self._leaving = False
        self._tuning = spec.tuning
        self._stopping = threading.Event()
        self._table = TableClient(spec.table_address, spec.token)
        self._refused_writes = RefusedWrites(spec.control_topic)
        self._reader = ControlReader(
            spec.kafka, spec.control_topic, start="tail", pipeline=spec.pipeline, trust=spec.trust
        )
        self._exchange = self._open_exchange()
        self._lane = Lane(
            spec,
            slot=slot,
            incarnation=self.incarnation,
            table=self._table,
            writer=self._control_writer(self._name, self.incarnation),
            callbacks=LaneCallbacks(
                rewind=lambda *to: self._source.rewind(*to),
                pause=lambda: self._source.pause(),
                resume=lambda: self._source.resume(),
                commit=lambda offsets: self._membership.commit(offsets),
                plane=PlaneCallbacks(
                    hold=lambda *what: self._source.hold(*what),
                    release=lambda *what: self._source.release(*what),
                ),
            ),
            exchange=self._exchange,
        )
        self._membership = Membership(
            kafka=spec.kafka,
            group=spec.group,
            instance=spec.instance(slot),
            topics=spec.topics,
            session_timeout_ms=spec.session_timeout_ms,
            callbacks=MembershipCallbacks(
                committed=self._lane.committed,
                assigned=self._on_assigned,
                revoked=self._on_revoked,
                fenced=self._on_fenced,
                failed=self._lane.failed,
                refused=self._on_refused,
            ),
        )
        self._source = SourceThread(
            fetcher=self._open_fetcher,
            until=spec.until,
            on_data_loss=spec.on_data_loss,
            callbacks=SourceCallbacks(
                owned=lambda: self._membership.partitions,
                deliver=self._lane.plane.deliver,
                stuck=self._on_stuck,
                failed=self._lane.failed,
            ),
        )
        self._coordinator = self._coordinator_host()
        self._reporter = Reporter(self._table, self._report, self._on_directive, self._lane.failed)

    def _open_exchange(self) -> Exchange | None:
        """Where others hand rows over to this worker. It can do without: then nobody hands any over."""
        spec = self._spec
        if not spec.homes or spec.workers < 2:
            return None
        try:
            return Exchange(
                incarnation=self.incarnation,
                token=spec.token,
                host=host_towards(spec.table_address),
                writers_max=spec.workers,
                homes=spec.homes,
                bytes_max=spec.memory.exchanged_bytes,
                arrived=lambda: self._lane.plane.order(Arrived()),
            )
        except OSError as error:
            log.warning("each worker writes what it reads (transaction.writers_per_partition): %s", error)
            return None

    def _coordinator_host(self) -> CoordinatorHost:
        spec = self._spec
        return CoordinatorHost(
            coordinator_events.Settings(
                pipeline=spec.pipeline,
                run=spec.run,
                incarnation="",
                interval_ms=spec.interval_ms,
                write_timeout_ms=spec.write_timeout_ms,
                write_limit_ms=spec.write_limit_ms,
                by_the_clock=spec.by_the_clock(spec.tuning),
            ),
            Environment(
                sender=lambda incarnation: self._control_writer(f"coordinator@{self._name}", incarnation),
                table=self._table,
                prove=self._prove,
                topic_epoch=lambda: self._reader.highest_epoch,
                failed=self._lane.failed,
                now_ms=monotonic_ms,
                wall_ms=wall_ms,
                nonce=nonce,
                by_the_clock=spec.by_the_clock,
            ),
        )

    def _open_fetcher(self) -> Fetcher:
        spec = self._spec
        settings = fetch_settings(spec.kafka, group=spec.group, queue_bytes_max=spec.memory.fetched_bytes)
        fetcher = open_fetcher(
            settings,
            spec.reader,
            tombstone_keys=spec.layout.mode == UPSERT,
            whole=spec.on_error == "dead_letter" or spec.record.wants_whole,
            records_max=self._lane.plane.records_max,
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
            target=guarded("control", self._read_control, self._lane.failed), name="control", daemon=True
        )
        self._reporter.start()
        self._lane.start()
        self._source.start()
        control.start()
        try:
            while (ended := self._lane.ended) is None:
                self._lane.step()
        finally:
            self._shut_down()
            control.join(5)
        return Ended(
            slot=self._slot,
            incarnation=self.incarnation,
            reason=ended.reason,
            failed=ended.failed,
            fenced=bool(self._fenced),
            fault=self._lane.plane.fault,
        )

    def _shut_down(self) -> None:
        """Leave the group first, so that others take over at once; then close what is open."""
        self._source.stop(0)
        if not self._membership.leave(LEAVE_S):
            log.warning("leaving the consumer group took longer than %d s", LEAVE_S)
        self._coordinator.stop()
        self._source.stop(LEAVE_S)
        self._lane.stop(LEAVE_S)
        self._stopping.set()
        self._reporter.stop()
        self._lane.close()
        if self._exchange is not None:
            self._exchange.close()
        self._table.close()

    # --- from the source's thread -----------------------------------------------------------------

    def _on_assigned(self, offsets: Mapping[SourcePartition, int | None]) -> None:
        log.info("assigned %s", some(sorted(offsets)))
        self._lane.post(ev.Assigned(now_ms=monotonic_ms(), offsets=offsets))
        if self._first in offsets:
            self._coordinator.start()

    def _on_revoked(self, partitions: Sequence[SourcePartition]) -> None:
        log.info("revoked %s", some(sorted(partitions)))
        if self._first in partitions:
            self._coordinator.stop()
        self._source.drop(partitions)
        self._lane.post(ev.Revoked(now_ms=monotonic_ms(), partitions=tuple(partitions)))

    def _on_stuck(self, partition: SourcePartition, generation: int, reason: str) -> None:
        blocked = ev.Blocked(now_ms=monotonic_ms(), partition=partition, generation=generation, reason=reason)
        self._lane.post(blocked)

    def _on_fenced(self, reason: str) -> None:
        """Kafka gave our membership to another process: the driver decides what that means."""
        self._fenced = reason
        self._lane.failed(f"Kafka fenced this worker's membership ({reason}); another has taken its slot")

    def _on_refused(self, reason: str) -> None:
        """No worker can go on like that: what others hold is committed, and the run halts."""
        if not self._lane.poison:
            log.error("%s", reason)
        self._lane.poison = self._lane.poison or reason

    def _prove(self, answer: coordinator_events.Prove) -> None:
        """A synchronous commit of what the table holds: only the group's real member succeeds."""
        committed = self._lane.committed()
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
        self._coordinator.received(message)
        if isinstance(message.body, CoordinatorClaim) and message.run == self._spec.run:
            log.debug("%s claims epoch %d", message.sender, message.epoch, extra={"epoch": message.epoch})
        self._lane.post(ev.Received(now_ms=monotonic_ms(), message=message))

    # --- the driver -------------------------------------------------------------------------------

    def _on_directive(self, directive: Directive) -> None:
        if directive.join:
            self._membership.start()
        self._coordinator.directed(directive)
        tuning = directive.controls.tuning if directive.controls is not None else None
        if tuning is not None and tuning != self._tuning:
            self._tuning = tuning
            self._lane.post(ev.Tuned(now_ms=monotonic_ms(), tuning=tuning))
        if directive.mode is RunMode.STOP and not self._leaving:
            self._leaving = True
            self._lane.post(ev.Leave(now_ms=monotonic_ms(), reason=directive.reason))

    def _report(self) -> WorkerReport:
        now_s = time.monotonic()
        if refused := self._refused_writes.final(now_s):
            self._on_refused(refused)
        refused = self._refused_writes.alarm(now_s)
        return WorkerReport(
            slot=self._slot,
            incarnation=self.incarnation,
            pid=os.getpid(),
            host=socket.gethostname(),
            state=self._lane.core.state.value,
            partitions=tuple(sorted(self._lane.core.owned)),
            metrics=measured(Parts(core=self._lane.core, plane=self._lane.plane, source=self._source)),
            coordinator=self._coordinator.report(),
            poison=self._lane.poison,
            fenced=bool(self._fenced),
            alarms=(*([refused] if refused else ()), *self._membership.alarms, *self._source.alarms),
            seconds={"consume": self._source.consume_s, **self._lane.plane.meters.seconds},
        )

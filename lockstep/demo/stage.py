"""What every demo does: start everything, watch, kill, wait, stop, have it proven, tell."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from control_topic.kafka import ControlReader
from control_topic.messages import SourcePartition
from lockstep.brokers.local import Broker
from lockstep.config import Config, load, resolve_kafka
from lockstep.demo.driver import Driver
from lockstep.demo.kills import KillPlan
from lockstep.demo.lake import FILE, Lake, make_lake
from lockstep.demo.page import page_of
from lockstep.demo.pipeline import CONTROL_TOPIC, PIPELINE, WORKERS, Job, create_topic, write_config
from lockstep.demo.play import Play
from lockstep.demo.producer import RecordProducer
from lockstep.demo.report import DemoReport, Finding, Ran
from lockstep.demo.telling import sentence
from lockstep.demo.view import Scene, View
from lockstep.errors import EXIT_WELL, Failed
from lockstep.launch.jars import KAFKA_VERSION
from lockstep.output import Output, readable_count, readable_duration
from lockstep.watch.tail import as_heard
from lockstep.watch.told import Aborted, Committed, Heard
from lockstep.watch.topic_fold import Fold

JOB_LOG = "run.log"
POLL_S = 0.1
FIRST_COMMIT_S = 900
"""The first start downloads Hudi, some hundred megabytes."""
STALLED_S = 120
AWAITED_S = 60.0
"""What a play waits for after the last commit it waits for so long at most."""
PACE_S = (20.0, 60.0)
"""Records are produced at a play's pace, but for at least and at most so long."""


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Stage:
    """One play in one folder. Everything it starts is ended when `run` returns or raises."""

    def __init__(
        self, play: Play, folder: Path, output: Output, view: View, *, interval: str, keep: bool, store: str
    ) -> None:
        self._play = play
        self._records = sum(play.wanted.values())
        self._interval = interval
        self._store = store
        self._lake: Lake  # once it is made
        self._keep = keep
        self._folder = folder
        self._output = output
        self._view = view
        self._known = Fold()
        self._plan = KillPlan(WORKERS, play.kills)
        self._began_ms = now_ms()
        self._producing_ms = 0
        self._page = ""
        self._scene = Scene(
            title=play.title,
            known=self._known,
            began_ms=self._began_ms,
            wanted=self._by_partition(play.wanted),
        )

    def run(self) -> DemoReport:
        """Raises `Failed`; ends everything it started, whatever happens."""
        try:
            with ExitStack() as stack:
                try:
                    return self._run(stack)
                except KeyboardInterrupt:
                    self._doing("interrupted: everything that was started is ended")
                    raise
        finally:
            self._view.close()

    def _run(self, stack: ExitStack) -> DemoReport:
        broker = self._start_broker(stack)
        servers, topic = broker.bootstrap_servers, self._play.topic
        lake = self._lake = self._make_lake(stack)
        for said in self._play.prepare(self._folder, stack, self._doing):
            self._view.say(said)
        sections = self._play.sections(lake.path) + lake.section
        config_path = write_config(self._folder, servers, self._interval, topic=topic, sections=sections)
        config = load(config_path)
        create_topic(servers, topic)
        seconds = min(max(self._records / self._play.per_second, PACE_S[0]), PACE_S[1])
        producer = RecordProducer(
            servers,
            topic,
            self._play.records(),
            wanted=self._play.wanted,
            seconds=seconds,
            slowly=lambda: not self._plan.is_over,
        )
        job = Job(config_path, self._folder / JOB_LOG)
        stack.callback(job.close)
        stack.callback(producer.stop)
        self._doing("spark-submit starts the job (the first time on a machine it downloads Hudi)")
        job.start()
        self._drive(stack, config, job, producer)
        self._stop(job)
        running_ms = self._known.last_commit_ms - self._producing_ms
        finding = self._play.prove(config, config_path, self._doing)
        self._doing("")
        return self._report(producer, (broker.port, lake.port), finding, running_ms)

    def _start_broker(self, stack: ExitStack) -> Broker:
        self._doing(f"Kafka {KAFKA_VERSION} starts (the first time on a machine it is downloaded)")
        began = time.monotonic()
        broker = Broker(self._folder / "kafka", heap_mb=512)
        broker.start()
        stack.callback(broker.stop)
        took = readable_duration(int((time.monotonic() - began) * 1_000))
        self._view.say(f"a Kafka broker answers on {broker.bootstrap_servers} after {took}")
        return broker

    def _make_lake(self, stack: ExitStack) -> Lake:
        if self._store != FILE:
            self._doing("the store of the table starts (HDFS is downloaded the first time on a machine)")
        lake = make_lake(self._store, self._folder, stack)
        if lake.started:
            self._view.say(lake.started)
        return lake

    # --- while it runs ----------------------------------------------------------------------------

    def _drive(self, stack: ExitStack, config: Config, job: Job, producer: RecordProducer) -> None:
        """Until every record is committed."""
        reader = ControlReader(resolve_kafka(config), CONTROL_TOPIC, start="beginning", pipeline=PIPELINE)
        stack.callback(reader.close)
        driver = Driver(PIPELINE)
        stack.callback(driver.close)
        while not (producer.done and self._known.committed_total >= self._records):
            if producer.failure:
                raise Failed(f"the records could not be produced: {producer.failure}")
            self._look(reader, driver, job, producer)
            self._check_progress(job)
        self._view.say("everything that was produced is committed", style="green")
        if awaited := self._play.awaited():
            self._doing(awaited)
        until = time.monotonic() + AWAITED_S
        while self._play.awaited() and time.monotonic() < until:
            self._look(reader, driver, job, producer)
        self._view.show(self._scene)

    def _look(self, reader: ControlReader, driver: Driver, job: Job, producer: RecordProducer) -> None:
        """Take what is new, kill who is due, show it."""
        job.check()
        for received in reader.poll(POLL_S):
            heard = as_heard(received, PIPELINE)
            if heard is not None:
                self._hear(heard, producer)
        for said in self._play.look(self._lake, producer.sent):
            self._view.say(said, style="cyan")
        self._scene.workers = driver.workers()
        self._kill_who_is_due(self._scene.workers)
        self._scene.sent = self._by_partition(producer.sent_to())
        self._view.show(self._scene)

    def _hear(self, heard: Heard, producer: RecordProducer) -> None:
        news = self._known.hear(heard)
        for one in news:
            if said := sentence(one, self._known):
                self._view.say(said, style="red" if isinstance(one, Aborted) else "")
        if self._known.halted is not None:
            reason, _ = self._known.halted
            raise Failed(f"the run halted: {reason}")
        if self._known.run and not producer.started:
            producer.start()
            self._doing("the table's first commit (it makes the metadata table and takes longest)")
        if any(isinstance(one, Committed) for one in news):
            self._tell_page()
            self._go_on(producer)
            kill = self._plan.committed(self._known.last_commit_ms)
            if kill is not None:
                after = readable_duration(kill.outage_ms)
                self._view.say(f"commits go on, {after} after {kill.worker} was killed", style="bold green")

    def _tell_page(self) -> None:
        """Once: the job says where its page is soon after it is up."""
        if not self._page and (page := page_of(self._folder / JOB_LOG)):
            self._page = self._scene.page = page
            self._view.say(f"look at it in a browser, live: {page}", style="bold")

    def _go_on(self, producer: RecordProducer) -> None:
        """From the first commit on events come at an even pace, and figures are taken."""
        if not self._producing_ms:
            self._producing_ms = now_ms()
            producer.go_on()
            pace = readable_count(round(producer.per_second))
            self._view.say(
                f"now {pace} records a second, and a transaction every {self._interval}; the seconds beside "
                "each are those from its start to its commit"
            )
            self._doing("")

    def _kill_who_is_due(self, workers: Sequence[Mapping[str, Any]]) -> None:
        open_one = self._known.open_transaction
        due = self._plan.due(
            fraction=self._known.committed_total / self._records,
            writing=open_one is not None,
            workers=workers,
        )
        if due is None:
            return
        kill, pid = due
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            return  # it ended by itself a moment ago: the next look finds another
        kill.done_ms = now_ms()
        role = ", which holds the coordinator," if kill.coordinator else ""
        self._view.say(f"SIGKILL for {kill.worker}{role} in the middle of a transaction", style="bold red")

    def _check_progress(self, job: Job) -> None:
        last_ms = self._known.last_commit_ms or self._began_ms
        waited_s = (now_ms() - last_ms) / 1_000
        if waited_s > (STALLED_S if self._known.last_commit_ms else FIRST_COMMIT_S):
            raise Failed(f"nothing was committed for {waited_s:.0f} s; {job.last_words()}")

    # --- afterwards -------------------------------------------------------------------------------

    def _stop(self, job: Job) -> None:
        self._doing("SIGTERM: the job commits what is open and leaves")
        status = job.stop()
        if status != EXIT_WELL:
            raise Failed(f"the job was asked to leave and ended with {status}; {job.last_words()}")
        self._view.say("the job has left cleanly")
        self._scene.workers = ()

    def _report(
        self, producer: RecordProducer, ports: tuple[int, int], finding: Finding, running_ms: int
    ) -> DemoReport:
        ran = Ran(
            started_as=self._play.started_as + (f" --store {self._store}" if self._store != FILE else ""),
            records=self._records,
            produced_bytes=producer.size_bytes,
            running_ms=running_ms,
            total_ms=now_ms() - self._began_ms,
            commits=self._known.commits,
            aborts=[replace(one, reason=self._known.named(one.reason)) for one in self._known.given_up],
            epoch=self._known.epoch,
            kills=self._plan.kills,
            kept=self._folder if self._keep or not finding.exact else None,
            port=ports[0],
            lake_port=ports[1],
            lake_command=self._store,
            page=self._page,
            encoded=self._play.encoded,
        )
        return DemoReport(ran=ran, finding=finding)

    def _doing(self, sentence: str) -> None:
        self._scene.doing = sentence
        if sentence and not self._output.console.is_terminal:
            self._view.say(sentence)
        self._view.show(self._scene)

    def _by_partition(self, numbers: Mapping[int, int]) -> dict[SourcePartition, int]:
        return {SourcePartition(self._play.topic, number): count for number, count in numbers.items()}

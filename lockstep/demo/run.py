"""The demo from beginning to end: start everything, watch, kill, wait, stop, prove, tell."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from control_topic.kafka import ControlReader
from control_topic.messages import Message, SourcePartition
from lockstep.broker import Broker
from lockstep.config import Config, load, resolve_kafka
from lockstep.demo.driver import Driver
from lockstep.demo.kills import KillPlan
from lockstep.demo.pipeline import (
    CONTROL_TOPIC,
    PARTITIONS,
    PIPELINE,
    TOPIC,
    WORKERS,
    Job,
    create_topic,
    write_config,
)
from lockstep.demo.producer import EventProducer, spread
from lockstep.demo.proof import Counts, count_with_hudi, count_with_spark, verify
from lockstep.demo.report import Report
from lockstep.demo.view import Scene, View, make_view
from lockstep.demo.watch import Watch
from lockstep.errors import EXIT_WELL, Failed
from lockstep.jars import KAFKA_VERSION, find_java
from lockstep.output import Output, readable_count, readable_duration

POLL_S = 0.1
FIRST_COMMIT_S = 900
"""The first start downloads Hudi, some hundred megabytes."""
STALLED_S = 120
PACE_PER_SECOND = 25_000
PACE_S = (20.0, 60.0)
"""Events are produced at this pace, for at least and at most so long."""
LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
KEEP_FOLDER = Path(".demo")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """`interval`: as the configuration spells it, `2s`."""

    records: int
    interval: str
    keep: bool


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def run_demo(settings: Settings, output: Output) -> Report:
    """The whole demo. Raises `Failed`, with the folder kept, where it could not be carried through."""
    find_java()
    folder = _folder(settings.keep)
    with _signals_as_interrupts(), _state_in(folder / "state"), _logs_in(folder / "demo.log"):
        try:
            report = Demo(settings, folder, output).run()
        except Failed as error:
            raise Failed(f"{error}\nEverything it made is kept in {folder}") from error
        except BaseException:
            _remove(folder, unless=settings.keep)
            raise
    _remove(folder, unless=report.kept is not None)
    return report


def _folder(keep: bool) -> Path:
    if not keep:
        return Path(tempfile.mkdtemp(prefix="lockstep-demo-"))
    folder = KEEP_FOLDER / datetime.now().strftime("%Y%m%d-%H%M%S")
    folder.mkdir(parents=True)
    return folder.resolve()


def _remove(folder: Path, *, unless: bool) -> None:
    if not unless:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _signals_as_interrupts() -> Iterator[None]:
    """SIGTERM and a closed terminal end the demo as Ctrl-C does: everything it started is ended."""

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    previous = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, before in previous.items():
            signal.signal(number, before)


@contextmanager
def _logs_in(file: Path) -> Iterator[None]:
    """Log lines would tear the live view apart: while it is shown they go into a file."""
    root = logging.getLogger()
    before = root.handlers[:]
    handler = logging.FileHandler(file, encoding="utf-8")
    handler.setFormatter(logging.Formatter(LOG_FORMAT))
    root.handlers[:] = [handler]
    try:
        yield
    finally:
        root.handlers[:] = before
        handler.close()


@contextmanager
def _state_in(folder: Path) -> Iterator[None]:
    """Run files of this process and its children go there, apart from those of real pipelines."""
    before = os.environ.get("LOCKSTEP_STATE")
    os.environ["LOCKSTEP_STATE"] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ["LOCKSTEP_STATE"]
        else:
            os.environ["LOCKSTEP_STATE"] = before


class Demo:
    """ ""One demo in one folder. Everything it starts is ended when `run` returns or raises."""

    def __init__(self, settings: Settings, folder: Path, output: Output) -> None:
        self._settings = settings
        self._folder = folder
        self._output = output
        self._view: View = make_view(output)
        self._watch = Watch(PIPELINE)
        self._plan = KillPlan(WORKERS)
        self._began_ms = now_ms()
        self._producing_ms = 0
        self._scene = Scene(
            title=f"{readable_count(settings.records)} events from Kafka into Hudi, exactly once",
            watch=self._watch,
            began_ms=self._began_ms,
            wanted=_by_partition(spread(settings.records, PARTITIONS)),
        )

    def run(self) -> Report:
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

    def _run(self, stack: ExitStack) -> Report:
        broker = self._start_broker(stack)
        config_path = write_config(self._folder, broker.bootstrap_servers, self._settings.interval)
        config = load(config_path)
        create_topic(broker.bootstrap_servers)
        producer = EventProducer(
            broker.bootstrap_servers,
            TOPIC,
            records=self._settings.records,
            partitions=PARTITIONS,
            seconds=min(max(self._settings.records / PACE_PER_SECOND, PACE_S[0]), PACE_S[1]),
        )
        job = Job(config_path, self._folder / "run.log")
        stack.callback(job.close)
        stack.callback(producer.stop)
        self._doing("spark-submit starts the job (the first time on a machine it downloads Hudi)")
        job.start()
        self._drive(stack, config, job, producer)
        self._stop(job)
        running_ms = self._watch.last_commit_ms - self._producing_ms
        counts, files, verdict = self._prove(config, config_path)
        return self._report(producer, broker, counts, files, verdict, running_ms)

    def _start_broker(self, stack: ExitStack) -> Broker:
        self._doing(f"Kafka {KAFKA_VERSION} starts (the first time on a machine it is downloaded)")
        began = time.monotonic()
        broker = Broker(self._folder / "kafka", heap_mb=512)
        broker.start()
        stack.callback(broker.stop)
        took = readable_duration(int((time.monotonic() - began) * 1_000))
        self._view.say(f"a Kafka broker answers on {broker.bootstrap_servers} after {took}")
        return broker

    # --- while it runs ----------------------------------------------------------------------------

    def _drive(self, stack: ExitStack, config: Config, job: Job, producer: EventProducer) -> None:
        """Until every event is committed."""
        reader = ControlReader(resolve_kafka(config), CONTROL_TOPIC, start="beginning", pipeline=PIPELINE)
        stack.callback(reader.close)
        driver = Driver(PIPELINE)
        stack.callback(driver.close)
        while not (producer.done and self._watch.committed_total >= self._settings.records):
            job.check()
            if producer.failure:
                raise Failed(f"the events could not be produced: {producer.failure}")
            for received in reader.poll(POLL_S):
                if isinstance(received.content, Message):
                    self._hear(received.content, received.time_ms, producer)
            self._scene.workers = driver.workers()
            self._kill_who_is_due(self._scene.workers)
            self._scene.sent = _by_partition(producer.sent_to())
            self._view.show(self._scene)
            self._check_progress(job)
        self._view.say("everything that was produced is committed", style="green")
        self._view.show(self._scene)

    def _hear(self, message: Message, time_ms: int, producer: EventProducer) -> None:
        commits = len(self._watch.commits)
        for sentence in self._watch.take(message, time_ms):
            self._view.say(sentence, style="red" if "abort" in sentence else "")
        if self._watch.halted:
            raise Failed(f"the run halted: {self._watch.halted}")
        if self._watch.run and not producer.started:
            producer.start()
            self._doing("the table's first commit (it makes the metadata table and takes longest)")
        if len(self._watch.commits) > commits:
            self._go_on(producer)
            kill = self._plan.committed(self._watch.last_commit_ms)
            if kill is not None:
                after = readable_duration(kill.outage_ms)
                self._view.say(f"commits go on, {after} after {kill.worker} was killed", style="bold green")

    def _go_on(self, producer: EventProducer) -> None:
        """From the first commit on events come at an even pace, and figures are taken."""
        if not self._producing_ms:
            self._producing_ms = now_ms()
            producer.go_on()
            pace = readable_count(round(producer.per_second))
            self._view.say(
                f"from now on {pace} events a second, and a transaction every {self._settings.interval}; its "
                "seconds are from its start to its commit"
            )
            self._doing("")

    def _kill_who_is_due(self, workers: Sequence[Mapping[str, Any]]) -> None:
        open_one = self._watch.open_transaction
        due = self._plan.due(
            fraction=self._watch.committed_total / self._settings.records,
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
        last_ms = self._watch.last_commit_ms or self._began_ms
        waited_s = (now_ms() - last_ms) / 1_000
        if waited_s > (STALLED_S if self._watch.last_commit_ms else FIRST_COMMIT_S):
            raise Failed(f"nothing was committed for {waited_s:.0f} s; {job.last_words()}")

    # --- afterwards -------------------------------------------------------------------------------

    def _stop(self, job: Job) -> None:
        self._doing("SIGTERM: the job commits what is open and leaves")
        status = job.stop()
        if status != EXIT_WELL:
            raise Failed(f"the job was asked to leave and ended with {status}; {job.last_words()}")
        self._view.say("the job has left cleanly")
        self._scene.workers = ()

    def _prove(self, config: Config, config_path: Path) -> tuple[list[Counts], int, dict[str, Any]]:
        self._doing("Spark SQL counts the table")
        spark, found = count_with_spark(config, config_path, self._folder)
        self._doing("the hudi reader counts it too, without a JVM")
        hudi = count_with_hudi(config.table.path)
        self._doing("lockstep verify compares table, timeline and topic, offset by offset")
        verdict = verify(config_path, self._folder)
        self._doing("")
        return [spark, hudi], found["files"], verdict

    def _report(
        self,
        producer: EventProducer,
        broker: Broker,
        counts: Sequence[Counts],
        files: int,
        verdict: dict[str, Any],
        running_ms: int,
    ) -> Report:
        report = Report(
            records=self._settings.records,
            produced_bytes=producer.size_bytes,
            running_ms=running_ms,
            total_ms=now_ms() - self._began_ms,
            commits=self._watch.commits,
            aborts=self._watch.aborts,
            epoch=self._watch.epoch,
            kills=self._plan.kills,
            files=files,
            counts=counts,
            verdict=verdict,
            kept=self._folder,
            port=broker.port,
        )
        return report if self._settings.keep or not report.exact else replace(report, kept=None)

    def _doing(self, sentence: str) -> None:
        self._scene.doing = sentence
        if sentence and not self._output.console.is_terminal:
            self._view.say(sentence)
        self._view.show(self._scene)


def _by_partition(numbers: Mapping[int, int]) -> dict[SourcePartition, int]:
    return {SourcePartition(TOPIC, number): count for number, count in numbers.items()}

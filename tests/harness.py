"""A whole pipeline for tests: a topic with records, a configuration, real `lockstep run`s, faults."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from confluent_kafka import Producer

from lockstep.brokers.local import Broker
from lockstep.driver.rundir import read_run_file
from table.errors import TableError
from table.kinds import HUDI, table_kind
from table.service.client import TableClient
from tests.place import Folder, OnServer, Place

T = TypeVar("T")

SCHEMA = "event_id STRING NOT NULL, user_id BIGINT, amount DOUBLE, day STRING, note STRING"
DEADLINE_S = 240.0
"""Of what comes within seconds: on a busy machine the start of a run alone takes a minute and a half."""

SHORT_LIVED = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
"""For runs of seconds, several in a test: what the optimizing compiler makes of a driver, and what is counted
for it, pays after minutes. The long ones (`python -m tests.faults`) are compiled as a user's."""


def await_that(
    what: str, probe: Callable[[], T | None], *, deadline_s: float = DEADLINE_S, every_s: float = 0.05
) -> T:
    """Ask until the probe answers something; fail, naming what did not happen, when it never does."""
    until = time.monotonic() + deadline_s
    while time.monotonic() < until:
        answer = probe()
        if answer:
            return answer
        time.sleep(every_s)
    raise AssertionError(f"within {deadline_s:.0f} s there was no {what}")


def event(number: int, *, note: str = "") -> bytes:
    return json.dumps(
        {
            "event_id": f"e-{number:09d}",
            "user_id": number % 1_000,
            "amount": number / 4,
            "day": f"2026-01-{1 + number % 3:02d}",
            "note": note,
        },
        separators=(",", ":"),
    ).encode()


PARTITION_UA = -1
"""librdkafka's: a record's key chooses its source partition."""

TOLD_LATER = "; the next run delivers it"
"""What the log says of a hook at the end of a run, which waits for it for some seconds only."""


@dataclass(slots=True)
class Pipeline:
    """One pipeline in a folder of its own. Every process it starts is ended by `close`.

    `bucket`: where its table is, if that is not in this folder.
    """

    folder: Path
    broker: Broker
    topic: str
    partitions: int
    settings: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    spark: dict[str, str] = field(default_factory=dict)
    """Spark's properties of each run; one that a test gives to a run counts before it."""
    produced: int = 0
    bucket: OnServer | None = None
    _runs: list[Run] = field(default_factory=list)

    @property
    def id(self) -> str:
        return self.topic

    @property
    def runs(self) -> list[Run]:
        """All runs that were started, in order."""
        return list(self._runs)

    @property
    def kafka(self) -> dict[str, str]:
        """A client's settings."""
        return {"bootstrap.servers": self.broker.bootstrap_servers}

    @property
    def place(self) -> Place:
        """Where the table is."""
        return self.bucket or Folder(self.table)

    @property
    def table(self) -> Path:
        """The same, for whoever has to do with its files."""
        assert self.bucket is None, f"the table is in no folder, but at {self.bucket.address}"
        return self.folder / "table"

    def put_at(self, bucket: OnServer, *, kind: str = "insert") -> None:
        """Its table is there, of this kind. Before anything asks for its configuration."""
        self.bucket = bucket
        text = self.config.read_text(encoding="utf-8")
        text = text.replace('name = "events"', f'name = "events"\nkind = "{kind}"')
        self.config.write_text(text, encoding="utf-8")

    @property
    def config(self) -> Path:
        path = self.folder / "pipeline.toml"
        if not path.exists():
            path.write_text(self._toml(), encoding="utf-8")
        return path

    def _toml(self) -> str:
        return f"""
[pipeline]
id = "{self.id}"
workers = 2

[source]
bootstrap_servers = "{self.broker.bootstrap_servers}"
topics = ["{self.topic}"]

[record]
schema = "{SCHEMA}"

[table]
path = "{self.place.address}"
name = "events"
key = ["event_id"]
partition_by = "day"

[transaction]
interval = "1s"
write_timeout = "20s"

[control]
topic = "{self.topic}-control"

[ui]
port = 0
{self.place.toml}"""

    def produce(self, count: int, *, to: Iterable[int] | None = None) -> None:
        """`count` more events, spread over the source partitions, delivered."""
        producer = Producer({**self.kafka, "linger.ms": 5})
        targets = list(to) if to is not None else list(range(self.partitions))
        for number in range(self.produced, self.produced + count):
            while True:
                try:
                    producer.produce(self.topic, event(number), partition=targets[number % len(targets)])
                    break
                except BufferError:
                    producer.poll(0.1)
        assert producer.flush(DEADLINE_S) == 0
        self.produced += count

    def produce_keyed(
        self, records: Iterable[tuple[bytes | None, bytes | None]], *, partition: int = PARTITION_UA
    ) -> None:
        """(key, value) pairs; a key always goes to the same source partition, unless one is named."""
        producer = Producer(self.kafka)
        for key, value in records:
            producer.produce(self.topic, value, key=key, partition=partition)
        assert producer.flush(DEADLINE_S) == 0

    def produce_raw(self, values: Iterable[bytes | None], *, partition: int) -> None:
        producer = Producer(self.kafka)
        for value in values:
            producer.produce(self.topic, value, partition=partition)
        assert producer.flush(DEADLINE_S) == 0

    # --- runs -------------------------------------------------------------------------------------

    def start(self, *arguments: str) -> Run:
        """`lockstep run` in a process group of its own, with this pipeline's `environment`."""
        log = self.folder / f"run-{len(self._runs)}.log"
        command = [sys.executable, "-m", "lockstep.cli", "run", "-c", str(self.config)]
        for name, value in self.settings.items():
            command += ["--set", f"{name}={value}"]
        for name, value in self.spark.items():
            command += ["--conf", f"{name}={value}"]
        with log.open("w") as output:
            process = subprocess.Popen(
                [*command, *arguments],
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**self._environment(), **self.environment},
                start_new_session=True,
            )
        run = Run(pipeline=self, process=process, log=log)
        self._runs.append(run)
        return run

    def run_to_end(self, *arguments: str, deadline_s: float = DEADLINE_S) -> Run:
        """`lockstep run --until latest`, awaited."""
        run = self.start("--until", "latest", *arguments)
        run.wait(deadline_s)
        return run

    def run_until_told(self, *arguments: str) -> Run:
        """`run_to_end`, and again until the hooks have taken all that was committed."""

        def told() -> Run | None:
            run = self.run_to_end(*arguments)
            assert run.process.returncode == 0, run.text()
            return None if TOLD_LATER in run.text() else run

        return await_that("run at whose end the hooks had taken all", told)

    def change_offsets(self, *change: str, reason: str) -> None:
        """As an operator does with `lockstep offsets`, once the group counts no member any more."""
        arguments = ("offsets", *change, "--execute", "--reason", reason)
        await_that(
            "change of offsets, refused while the group still counts a member",
            lambda: self.command(*arguments).returncode == 0,
        )

    def command(self, *arguments: str, deadline_s: float = DEADLINE_S) -> subprocess.CompletedProcess[str]:
        """Another `lockstep` command on this pipeline."""
        name, *rest = arguments
        return subprocess.run(
            [sys.executable, "-m", "lockstep.cli", name, "-c", str(self.config), *rest],
            capture_output=True,
            text=True,
            timeout=deadline_s,
            check=False,
            env=self._environment(),
        )

    def verify(self) -> dict[str, Any]:
        """The verdict of `lockstep verify`."""
        done = self.command("verify", "--output", "json")
        assert done.stdout, done.stderr
        verdict: dict[str, Any] = json.loads(done.stdout)
        return verdict

    def committed(self) -> int:
        """Offsets committed in the table, all source partitions together; 0 before there is a table.

        Asked again and again while a run goes on: not with a command, whose process takes a second of a core.
        """
        try:
            place = self.place
            state = table_kind(HUDI).reader(place.plain, place.settings).newest(self.id)
        except TableError:
            return 0
        return sum(state.offsets.values()) if state is not None else 0

    def await_all_committed(self) -> None:
        """Wait until the table's offsets are at all that was produced."""
        await_that(f"commit of all {self.produced:,} records", lambda: self.committed() == self.produced)

    def _environment(self) -> dict[str, str]:
        own = {"LOCKSTEP_STATE": str(self.folder / "state"), "NO_COLOR": "1"}
        return {**os.environ, **self.place.environment, **own}

    def assert_exact(self, rows: int) -> None:
        verdict = self.verify()
        assert verdict["exact"] is True, json.dumps(verdict, indent=1)[:4_000]
        assert verdict["rows"] == rows, f"{verdict['rows']:,} rows are exact, {rows:,} were to be there"

    def close(self) -> None:
        for run in self._runs:
            run.kill()


@dataclass(slots=True)
class Run:
    """One `lockstep run` process and its workers."""

    pipeline: Pipeline
    process: subprocess.Popen[bytes]
    log: Path

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def status(self) -> dict[str, Any] | None:
        """The driver's live status, None while it does not answer."""
        before = os.environ.get("LOCKSTEP_STATE")
        os.environ["LOCKSTEP_STATE"] = str(self.pipeline.folder / "state")
        try:
            file = read_run_file(self.pipeline.id)
        finally:
            if before is None:
                del os.environ["LOCKSTEP_STATE"]
            else:
                os.environ["LOCKSTEP_STATE"] = before
        if file is None:
            return None
        client = TableClient(file.address, file.token)
        try:
            status = client.status()
        finally:
            client.close()
        return status if isinstance(status, dict) else None

    def await_commits(self, count: int, *, deadline_s: float = DEADLINE_S) -> dict[str, Any]:
        """Wait until this run has committed so often; its status then."""

        def probe() -> dict[str, Any] | None:
            assert self.process.poll() is None, f"the run ended early:\n{self.text()[-4_000:]}"
            status = self.status()
            return status if status and status["commits"] >= count else None

        return await_that(f"commit number {count}", probe, deadline_s=deadline_s)

    def await_rows(self, rows: int, *, deadline_s: float = DEADLINE_S) -> None:
        def probe() -> bool:
            status = self.status()
            return bool(status and status["rows"] >= rows)

        await_that(f"{rows} rows committed by this run", probe, deadline_s=deadline_s)

    def await_consumed(self, records: int) -> None:
        """Wait until its workers, none of which was killed, have taken so many: a drain commits no other."""

        def probe() -> bool:
            workers = (self.status() or {}).get("workers", ())
            return sum(worker.get("records", 0) for worker in workers) >= records

        await_that(f"{records} records consumed", probe)

    def workers(self, *, coordinator: bool) -> list[int]:
        """Pids of living workers that hold the coordinator, or do not."""
        status = self.status() or {"workers": []}
        return [
            worker["pid"]
            for worker in status["workers"]
            if worker["coordinator"] == coordinator and worker["state"] != "dead"
        ]

    def kill_worker(self, *, coordinator: bool, with_signal: int = signal.SIGKILL) -> int:
        """Signal one worker; its pid."""
        pids = await_that("such a worker", lambda: self.workers(coordinator=coordinator))
        os.kill(pids[0], with_signal)
        return pids[0]

    def stop(self, *, deadline_s: float = DEADLINE_S) -> int:
        """SIGTERM, as an orchestrator would; the exit code. What it has not consumed is the next run's."""
        os.kill(self.process.pid, signal.SIGTERM)
        return self.wait(deadline_s)

    def wait(self, deadline_s: float) -> int:
        try:
            return self.process.wait(deadline_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"the run did not end in {deadline_s} s:\n{self.text()[-6_000:]}") from None

    def kill(self) -> None:
        """SIGKILL for wrapper, JVM and driver. Nothing is said, nothing is committed."""
        for pid in [*_children(self.process.pid), self.process.pid]:
            try:
                os.killpg(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.wait(60)


def _children(pid: int) -> list[int]:
    """Direct children: spark-submit, which leads a process group of its own."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []

"""Where a scenario plays: a pipeline, its broker, a continuous load, and what judges the outcome."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lockstep.brokers.local import Broker
from lockstep.config import load
from lockstep.launch.class_archive import options_to_use
from lockstep.launch.jars import classified
from lockstep.launch.local_server import LocalServer
from lockstep.launch.submit import Submission, compose, environment, find_jars, find_spark_home, needs_of
from tests.faults import commits, processes, upkeep, upsert_model
from tests.faults.commits import Landed, Leftovers, wall_ms
from tests.faults.load import Load
from tests.faults.processes import Processes
from tests.faults.upkeep import Action
from tests.faults.upsert_model import Difference, Row
from tests.harness import DEADLINE_S, Pipeline, Run, await_that
from tests.merge_model import Key
from tests.s3_proxy import S3Proxy

PER_SECOND = 4_000
START_S = DEADLINE_S
"""A run's start and the table's first commits take long on a busy machine; no scenario is about them."""
SETTLE_S = 2 * DEADLINE_S
SWEEP_S = DEADLINE_S
SELDOM = {
    Action.COMPACTION: {"services.compaction_every": "10000"},
    Action.CLUSTERING: {
        "services.clustering_every": "10000",
        "services.clustering_files": "10000",
        "services.clustering_after": "24h",
    },
}
"""Services whose unfinished work the next run takes away at once. A clean is finished by the next clean."""
SWEEP_JOB = Path(__file__).with_name("sweep_job.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """Seconds from a moment to the next commit of a transaction that began after it, and to the first commit
    by which every source partition has moved on."""

    commit_s: float
    all_partitions_s: float


@dataclass(slots=True)
class Stage:
    """One scenario's own topic, table and broker. `close` ends whatever was started here.

    `weights`: how the load is spread over the source partitions; evenly where it is empty. `upserts`: see
    `with_upserts`. `others`: rows of an upsert table that somebody else has written. `server`: of the
    store, where the table is on one. `proxy`: what is between it and the pipeline, if a scenario wants one.
    `proof`: what proves a table of which `lockstep verify` cannot say enough; its figures.
    """

    broker: Broker
    pipeline: Pipeline
    run: Run | None = None
    load: Load | None = None
    weights: Sequence[int] = field(default_factory=tuple)
    upserts: bool = False
    others: dict[Key, Row] = field(default_factory=dict)
    server: LocalServer | None = None
    proxy: S3Proxy | None = None
    proof: Callable[[Stage], dict[str, int]] | None = None

    # --- beginning --------------------------------------------------------------------------------

    def with_upserts(self, **services: str) -> None:
        """Before anything is started: the table is one of upserts, and the load changes of its rows.

        `services`: the configuration's section of that name.
        """
        self.upserts = True
        self.pipeline.settings |= upsert_model.SETTINGS
        self.pipeline.settings |= {f"services.{name}": value for name, value in services.items()}

    def start(self, *, per_second: int = PER_SECOND, arguments: Sequence[str] = ()) -> Run:
        """The load and a run, with every worker there and the first commits landed."""
        began_ms = wall_ms()
        self.start_load(per_second=per_second)
        run = self.restart(*arguments)
        self.await_commit_after(began_ms, deadline_s=START_S)
        self.processes()
        self.await_commit_after(wall_ms())
        return run

    def start_load(self, *, per_second: int = PER_SECOND) -> Load:
        assert self.load is None, "there is a load already"
        self.load = Load(
            folder=self.pipeline.folder,
            bootstrap_servers=self.broker.bootstrap_servers,
            topic=self.pipeline.topic,
            weights=self.weights or [1] * self.pipeline.partitions,
            per_second=per_second,
            first=self.pipeline.produced,
            upserts=self.upserts,
        )
        return self.load

    def stop_load(self) -> int:
        """Everything produced is on the broker; how many events that is."""
        if self.load is not None:
            self.pipeline.produced = self.load.stop()
            self.load = None
        return self.pipeline.produced

    def restart(self, *arguments: str) -> Run:
        """Another run of the same pipeline, as an orchestrator starts it when one has ended."""
        self.run = self.pipeline.start(*arguments)
        return self.run

    # --- while it runs ----------------------------------------------------------------------------

    @property
    def current(self) -> Run:
        assert self.run is not None, "nothing runs"
        return self.run

    def processes(self) -> Processes:
        """The run's processes, once all are there."""
        return processes.await_processes(self.current)

    def commits_after(self, moment_ms: int) -> list[Landed]:
        """Commits with records that landed since, oldest first."""
        return commits.landed_since(self.pipeline.place, self.pipeline.id, moment_ms)

    def await_commit_after(self, moment_ms: int, *, deadline_s: float = DEADLINE_S) -> Landed:
        """The first commit with records whose transaction began after the moment (Unix epoch, ms).

        One that was open already when a worker is killed may still land: that is no recovery.
        """

        def probe() -> Landed | None:
            self._assert_goes_on()
            return next((one for one in self.commits_after(moment_ms) if one.requested_ms > moment_ms), None)

        return await_that("commit of a later transaction", probe, deadline_s=deadline_s)

    def recovery(self, moment_ms: int, *, deadline_s: float = DEADLINE_S) -> Recovery:
        """How long after the moment commits went on, for anybody and for everybody."""
        first = self.await_commit_after(moment_ms, deadline_s=deadline_s)
        everybody = commits.log_ends(
            self.broker.bootstrap_servers, self.pipeline.topic, self.pipeline.partitions
        )
        loaded = {one for one, weight in zip(sorted(everybody), self._weights(), strict=True) if weight}

        def probe() -> Landed | None:
            self._assert_goes_on()
            moved: set[object] = set()
            for one in self.commits_after(moment_ms):
                moved |= one.moved if one.requested_ms > moment_ms else set()
                if loaded <= moved:
                    return one
            return None

        last = await_that("commit by which every source partition moved on", probe, deadline_s=deadline_s)
        return Recovery(
            commit_s=(first.landed_ms - moment_ms) / 1_000,
            all_partitions_s=(last.landed_ms - moment_ms) / 1_000,
        )

    def recovery_s(self, moment_ms: int, *, deadline_s: float = DEADLINE_S) -> float:
        """Seconds from the moment to the next commit of a transaction that began after it."""
        return self.recovery(moment_ms, deadline_s=deadline_s).commit_s

    def _weights(self) -> Sequence[int]:
        return self.weights or [1] * self.pipeline.partitions

    def _assert_goes_on(self) -> None:
        if self.run is not None and self.run.process.poll() is not None:
            raise AssertionError(
                f"the run ended with {self.run.process.returncode}:\n{self.run.text()[-4_000:]}"
            )
        assert self.load is None or self.load.running, "the load has ended"

    # --- the end ----------------------------------------------------------------------------------

    def drain(self, *, deadline_s: float = SETTLE_S) -> None:
        """Stop the load and wait until the table holds all of it; by a run of its own where none goes on."""
        self.stop_load()
        if self.run is None or self.run.process.poll() is not None:
            self.run = self.pipeline.run_to_end(deadline_s=deadline_s)
            assert self.run.process.returncode == 0, self.run.text()[-4_000:]
        ends = commits.log_ends(self.broker.bootstrap_servers, self.pipeline.topic, self.pipeline.partitions)

        def probe() -> bool:
            if self.current.process.poll() not in (None, 0):
                self._assert_goes_on()
            return commits.committed(self.pipeline.place, self.pipeline.id) == ends

        await_that("table that holds all of the topic", probe, deadline_s=deadline_s)

    def settle_and_verify(self, *, deadline_s: float = SETTLE_S) -> dict[str, int]:
        """Drain, stop, verify, and see that nothing is left behind; figures for `Outcome.notes`.

        Files that a killed worker left are the sweep's: where there are some, Lockstep's own sweep is made to
        run now instead of after its grace time.
        """
        self.drain(deadline_s=deadline_s)
        if self.current.process.poll() is None:
            status = self.current.stop()
            assert status == 0, f"the run ended with {status}:\n{self.current.text()[-4_000:]}"
        for action, settings in SELDOM.items():
            self._end_pending(action, settings)
        rows = self._prove()
        before = self.leftovers()
        assert not before.pending, f"instants left pending after a clean stop: {before.pending}"
        if not before.none:
            self.sweep()
            after = self.leftovers()
            assert after.none, f"left behind after the sweep: {after}"
            self._prove()  # it took nothing that counts
        return {"records": self.pipeline.produced, **rows, "files_swept": len(before.files)}

    def _prove(self) -> dict[str, int]:
        """The table holds what it should, no row more and none twice. Nothing runs any more."""
        if self.proof is not None:
            return self.proof(self)
        if not self.upserts:
            self.pipeline.assert_exact(self.pipeline.produced)
            return {}
        self.assert_no_gap()
        found = self.difference()
        assert found.none, f"the table is not what the records make of it: {found}"
        return {
            "rows": found.rows,
            "compactions": len(upkeep.completed(self.pipeline.place, Action.COMPACTION)),
        }

    def assert_no_gap(self) -> None:
        """Of upserts `lockstep verify` can check no more than that the commits' ranges follow each other."""
        verdict = self.pipeline.verify()
        assert verdict["exact"] is None and not verdict["ranges_broken"], verdict

    def difference(self) -> Difference:
        """Of an upsert table from what the records on the topic make, by the rules in `tests.merge_model`."""
        topic, partitions = self.pipeline.topic, self.pipeline.partitions
        expected = upsert_model.expected_rows(self.broker.bootstrap_servers, topic, partitions)
        held = upsert_model.held_rows(self.pipeline.place, self.pipeline.folder)
        return upsert_model.difference(held, {**expected, **self.others})

    def _end_pending(self, action: Action, settings: Mapping[str, str]) -> None:
        """A driver that ends does not wait for what it does beside transactions; its successor tidies up."""
        if not upkeep.pending(self.pipeline.place, action):
            return
        self.pipeline.settings |= settings  # no other one is begun
        self.restart()
        self.processes()
        await_that(
            f"end of the {action.value[0]} that was left",
            lambda: not upkeep.pending(self.pipeline.place, action),
            deadline_s=START_S,
        )
        assert self.current.stop() == 0, self.current.text()[-4_000:]

    def leftovers(self) -> Leftovers:
        return commits.leftovers(self.pipeline.place, self.pipeline.id)

    def sweep(self) -> None:
        """Lockstep's own sweep, without its grace time: nothing of this pipeline runs any more."""
        sets = [f"{name}={value}" for name, value in self.pipeline.settings.items()]
        given = {**os.environ, **self.pipeline.place.environment, **self.pipeline.environment}
        config = load(self.pipeline.config, sets=sets, environment=given)
        spark_home, needs = find_spark_home(), needs_of(config)
        jars = find_jars(needs.packages, {})
        submission = Submission(
            config_path=self.pipeline.config,
            sets=sets,
            jars=jars,
            more_jars=classified(needs.classified),
            java_options=options_to_use(jars, {}),
            job=SWEEP_JOB,
        )
        done = subprocess.run(
            compose(config, submission, spark_home=spark_home),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SWEEP_S,
            check=False,
            env=environment(given, spark_home=spark_home),
        )
        assert done.returncode == 0, done.stdout[-4_000:]

    def events(self) -> str:
        """The control topic, as `lockstep events` shows it."""
        return self.pipeline.command("events", "--from-beginning").stdout

    def status_json(self) -> str:
        return json.dumps(self.current.status(), indent=1)

    def close(self) -> None:
        if self.load is not None:
            self.load.kill()
            self.load = None
        self.pipeline.close()

"""Lockstep itself: `lockstep run --until latest`, as anyone would start it."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from bench.cluster import standalone_cluster
from bench.figures import Measured, Span, covered, steady
from bench.lakes import Lake, file_lake
from bench.onlookers import Onlookers
from bench.processes import Sampler
from bench.rivals import control_times, hudi_commits
from bench.rivals.base import ROOT, Load, Settings, Stages, measured
from bench.waiting import end, finish
from bench.workloads import Workload
from lockstep.driver.rundir import read_run_file
from lockstep.errors import Failed
from lockstep.launch.local_server import free_port
from table.service.client import TableClient

WINDOW = (
    "from the job's session being up (Spark started, Hudi loaded) to the completion of the last commit; "
    "making the table, its first commit, the workers' start and joining the group are inside; of upserts all "
    "records of the topic are counted, by the commits' ranges"
)
ALWAYS_COMPACTING = ("services.compaction=async", "services.compaction_every=1")
"""The next compaction is due as soon as one is complete, or with the next commit."""
CLUSTER_WORKERS = 2
"""Spark's worker processes, each with one executor, where Lockstep runs on a standalone cluster."""
STATUS_PERIOD_S = 0.5
JOIN_S = 10.0
_BEGAN = re.compile(r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) .*lockstep\.run: pipeline ", re.MULTILINE)


def run_plain(load: Load) -> Measured:
    """As `run`, without the optional reader."""
    return run(load, "--set", "source.reader=plain")


def run_plain_decoder(load: Load) -> Measured:
    """As `run`, without the optional decoder."""
    return run(load, "--set", "record.decoder=plain")


def run_append(load: Load) -> Measured:
    """As `run`, every record a new row."""
    return run(replace(load, workload=load.workload.as_inserts()))


def run_compacting(load: Load) -> Measured:
    """As `run` of upserts, which without this are not compacted."""
    return run(load, *(word for one in ALWAYS_COMPACTING for word in ("--set", one)))


def run_clustering(load: Load) -> Measured:
    """As `run` of inserts, which without this are not clustered."""
    return run(load, "--set", "services.clustering=async")


def run_watched(load: Load) -> Measured:
    """As `run`, its page open in a browser and scraped, as Prometheus does."""
    port = free_port()
    with Onlookers(port) as seen:
        found = run(load, "--set", "ui.enabled=true", "--set", f"ui.port={port}")
    return replace(found, notes=(*found.notes, seen.said()))


def run_unwatched(load: Load) -> Measured:
    """As `run`, without a page and without whatever observes for it."""
    return run(load, "--set", "ui.enabled=false")


def run_on_cluster(load: Load) -> Measured:
    """As `run`, on a Spark standalone cluster of two worker processes that is up before."""
    cores = -(-(load.settings.workers + 1) // CLUSTER_WORKERS)
    with standalone_cluster(load.folder, workers=CLUSTER_WORKERS, cores=cores) as cluster:
        return run(load, *cluster.run_arguments(), beside=cluster.pids)


def run(load: Load, *arguments: str, beside: Sequence[int] = ()) -> Measured:
    """One load, until everything that was on the topic is committed.

    `arguments`: more of `lockstep run`'s. `beside`: processes whose descendants work for this run as well.
    """
    config = write_config(
        load.folder,
        pipeline=load.name,
        bootstrap_servers=load.bootstrap_servers,
        topic=load.topic,
        workload=load.workload,
        interval_s=load.interval_s,
        settings=load.settings,
        lake=load.lake,
        registry=load.registry,
    )
    log = load.folder / "lockstep.log"
    with (
        running(config, load.settings, "--until", "latest", *arguments, pipeline=load.name) as (
            process,
            watch,
        ),
        Sampler(process.pid, *beside) as sampler,
    ):
        finish("lockstep run", process, timeout_s=load.settings.timeout_s, log=log)
    table = (load.lake.table, load.lake.beside)
    commits = hudi_commits.commits(*table)
    span = steady(commits)
    known = control_times.read(config)
    endings = control_times.endings(known)
    compactions = hudi_commits.compactions(*table)
    stages = watch.stages.shares(span, workers=load.settings.workers) | _coordinated(endings, span)
    if compactions and span is not None:
        stages["compaction"] = covered(compactions, span)
    found = measured(
        load,
        start_ms=began_ms(log),
        commits=commits,
        sampler=sampler,
        worker_pids=sorted(watch.pids),
        commit_ms=[one.commit_ms for one in endings],
        stages=stages,
    )
    return replace(
        found,
        aborted=len(known.given_up),
        compactions=sum(completed is not None for _, completed in compactions),
    )


def write_config(
    folder: Path,
    *,
    pipeline: str,
    bootstrap_servers: str,
    topic: str,
    workload: Workload,
    interval_s: float,
    settings: Settings,
    lake: Lake | None = None,
    registry: str = "",
) -> Path:
    """The pipeline's TOML; its table is in the lake, else in the folder. Nobody compacts one of upserts.

    `registry`: of values that are not JSON. What it tells is kept in the folder: another has other schemas.
    """
    lake = lake or file_lake(folder)
    path = folder / "pipeline.toml"
    kind = f'partition_by = "{workload.partition_by}"' if workload.partition_by else ""
    services = ""
    if workload.kind == "upsert":
        kind += f'\nkind = "upsert"\nordering = "{workload.ordering}"\nbuckets = {workload.buckets}'
        services = '[services]\ncompaction = "off"\n'
    if registry:
        services += f'[registry]\nurl = "{registry}"\ncache_folder = "{folder / "schemas"}"\n'
    path.write_text(
        f"""\
[pipeline]
id = "{pipeline}"
workers = {settings.workers}
[source]
bootstrap_servers = "{bootstrap_servers}"
topics = ["{topic}"]
[record]
format = "{workload.format}"
schema = "{workload.schema}"
[table]
path = "{lake.table}"
name = "events"
key = ["{workload.key}"]
{kind}
{services}{lake.section}[transaction]
interval = "{round(interval_s * 1_000)}ms"
write_timeout = "{max(60, round(3 * interval_s))}s"
[memory]
per_worker = "{settings.memory_per_worker}"
""",
        encoding="utf-8",
    )
    return path


@contextlib.contextmanager
def running(
    config: Path, settings: Settings, *arguments: str, pipeline: str
) -> Iterator[tuple[subprocess.Popen[bytes], Watch]]:
    """`lockstep run` with its log beside the configuration; it is ended, in order, where it still runs."""
    state = config.parent / "state"
    os.environ["LOCKSTEP_STATE"] = str(state)  # where this process, too, looks for the driver's address
    command = [sys.executable, "-m", "lockstep.cli", "run", "-c", str(config), *arguments]
    for assignment in settings.sets:
        command += ["--set", assignment]
    with (config.parent / "lockstep.log").open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "NO_COLOR": "1"},
        )
    watch = Watch(pipeline)
    try:
        watch.start()
        yield process, watch
    finally:
        watch.stop()
        end(process)


def began_ms(log: Path) -> int:
    """When the job's session was up, from its log (Unix epoch). Raises `Failed`."""
    found = _BEGAN.search(log.read_text(encoding="utf-8", errors="replace"))
    if found is None:
        raise Failed(f"{log} does not say when the pipeline began.")
    return round(datetime.strptime(found[1], "%Y-%m-%d %H:%M:%S,%f").timestamp() * 1_000)


def _coordinated(endings: Sequence[control_times.Ending], span: Span | None) -> dict[str, float]:
    """`flush`: END to the last worker's files; `commit`: from there to ACK. Parts of the pipeline's time."""
    if span is None:
        return {}
    inside = [one for one in endings if span.start_ms < one.ack_ms <= span.end_ms]
    return {
        "flush": sum(one.written_ms - one.end_ms for one in inside) / 1_000 / span.seconds,
        "commit": sum(one.ack_ms - one.written_ms for one in inside) / 1_000 / span.seconds,
    }


class Watch:
    """Asks the run's driver for its status, as `lockstep status` does, as long as it answers."""

    def __init__(self, pipeline: str) -> None:
        self._pipeline = pipeline
        self._seen: list[tuple[int, Mapping[str, float]]] = []
        self._workers: dict[str, Mapping[str, Any]] = {}
        self.pids: set[int] = set()
        self.commits = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="status", daemon=True)

    @property
    def records(self) -> int:
        """What all workers have decoded so far."""
        return sum(worker["records"] for worker in self._workers.values())

    @property
    def incarnations(self) -> int:
        """How many workers were seen, one after the other in a slot as well."""
        return len(self._workers)

    @property
    def stages(self) -> Stages:
        """The workers' own meters, summed over workers."""
        return Stages(seen=tuple(self._seen))

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(JOIN_S)

    def _run(self) -> None:
        client: TableClient | None = None
        try:
            while not self._stopping.wait(STATUS_PERIOD_S):
                if client is None:
                    file = read_run_file(self._pipeline)
                    client = TableClient(file.address, file.token) if file is not None else None
                else:
                    status = client.status()
                    if isinstance(status, dict):
                        self._take(status)
        finally:
            if client is not None:
                client.close()

    def _take(self, status: Mapping[str, Any]) -> None:
        self.commits = status["commits"]
        for worker in status["workers"]:
            self.pids.add(int(worker["pid"]))
            self._workers[worker["incarnation"]] = worker
        total: dict[str, float] = {}
        for worker in self._workers.values():
            for stage, spent_s in worker["seconds"].items():
                total[stage] = total.get(stage, 0.0) + spent_s
        self._seen.append((time.time_ns() // 1_000_000, total))

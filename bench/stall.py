"""`python -m bench.stall`: a table that takes no commit for a minute, under full load.

Somebody else holds the table lock. What was consumed must stay within the workers' memory, so consumption
pauses; nobody dies; and when the lock is free, what is left on the topic is caught up with by itself.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"

import click

from bench.load import fill
from bench.place import prepare, sentences, typed, wide_console, working_folder
from bench.processes import Sampler
from bench.rivals import hudi_commits, lockstep_run
from bench.rivals.base import RUN_TIMEOUT_S, Settings
from bench.waiting import await_that, finish
from bench.workloads import WORKLOADS, Workload
from lockstep.brokers.local import Broker
from lockstep.config.units import parse_size_bytes
from lockstep.errors import Failed
from tests import evidence
from tests.locked_table import locked

TOPIC = "events"
INTERVAL_S = 2.0
COMMITS_BEFORE = 2
START_S = 180.0
ABOVE_CAP_BYTES = 350_000_000
"""What a worker's process may take beside the records that it holds: Python, Arrow, librdkafka's queue."""


def run(
    folder: Path,
    workload: Workload,
    *,
    records: int,
    stalled_s: float,
    settings: Settings,
    command: str,
) -> tuple[Path, Sequence[str]]:
    """One run; where the figures are, and what is not as it should be. Raises `Failed`."""
    with Broker(folder / "broker") as broker:
        fill(broker.bootstrap_servers, TOPIC, workload, records=records)
        config = lockstep_run.write_config(
            folder,
            pipeline="bench-stall",
            bootstrap_servers=broker.bootstrap_servers,
            topic=TOPIC,
            workload=workload,
            interval_s=INTERVAL_S,
            settings=settings,
        )
        table, log = folder / "table", folder / "lockstep.log"
        with (
            lockstep_run.running(config, settings, "--until", "latest", pipeline="bench-stall") as (
                process,
                watch,
            ),
            Sampler(process.pid) as sampler,
        ):
            await_that(
                f"commit number {COMMITS_BEFORE}",
                lambda: hudi_commits.count(table) >= COMMITS_BEFORE,
                timeout_s=START_S,
                process=process,
                log=log,
            )
            with locked(table):
                time.sleep(stalled_s)
                read, before = watch.records, hudi_commits.count(table)
            free = time.monotonic()
            await_that(
                "commit after the lock was free",
                lambda: hudi_commits.count(table) > before,
                timeout_s=START_S,
                process=process,
                log=log,
            )
            waited_s = time.monotonic() - free
            finish("lockstep run", process, timeout_s=RUN_TIMEOUT_S, log=log)
        rows = sum(one.rows for one in hudi_commits.commits(table))
        figures = {
            "workload": workload.name,
            "records": records,
            "rows": rows,
            "stalled_s": stalled_s,
            "records_left_when_free": records - read,
            "next_commit_s": round(waited_s, 2),
            "workers": settings.workers,
            "workers_started": watch.incarnations,
            "memory_per_worker_bytes": parse_size_bytes(settings.memory_per_worker),
            "worker_peak_bytes": sampler.largest_bytes(watch.pids),
        }
    if not figures["records_left_when_free"]:
        raise Failed("Everything was read before the lock was free: give it more records.")
    found = problems(figures)
    return evidence.write("bench-stall", command=command, passed=not found, figures=figures), found


def problems(figures: dict[str, Any]) -> Sequence[str]:
    """What is not as it should be, as sentences."""
    most = figures["memory_per_worker_bytes"] + ABOVE_CAP_BYTES
    found = []
    if figures["rows"] != figures["records"]:
        found.append(f"{figures['rows']:,} rows of {figures['records']:,} records")
    if figures["workers_started"] != figures["workers"]:
        found.append(f"{figures['workers_started']} workers were started for {figures['workers']} slots")
    if figures["worker_peak_bytes"] > most:
        found.append(f"a worker took {figures['worker_peak_bytes'] / 1e6:,.0f} MB of {most / 1e6:,.0f} MB")
    return found


@click.command()
@click.option("--workload", type=click.Choice(list(WORKLOADS)), default="narrow", show_default=True)
@click.option("--records", type=click.IntRange(min=1_000), help="Default: the workload's.")
@click.option("--seconds", type=float, default=60.0, show_default=True, help="That no commit is taken.")
@click.option("--workers", type=click.IntRange(min=1), default=2, show_default=True)
@click.option("--memory", default="512MB", show_default=True, help="memory.per_worker.")
@click.option("--set", "sets", multiple=True, metavar="KEY=VALUE", help="One more setting of Lockstep's.")
@click.option("--folder", type=click.Path(path_type=Path), help="Where to work. Default: a temporary one.")
def main(
    workload: str,
    records: int | None,
    seconds: float,
    workers: int,
    memory: str,
    sets: tuple[str, ...],
    folder: Path | None,
) -> None:
    """A table that takes no commit for a while, under full load; figures as bench-stall.json."""
    prepare()
    chosen = WORKLOADS[workload]
    with sentences():
        with working_folder(folder) as place:
            path, found = run(
                place,
                chosen,
                records=records or chosen.records,
                stalled_s=seconds,
                settings=Settings(workers=workers, memory_per_worker=memory, sets=sets),
                command=typed("bench.stall"),
            )
        wide_console().print(path.read_text(encoding="utf-8"), highlight=False)
        if found:
            raise Failed(f"Not as it should be: {'; '.join(found)}. The figures are in {path}.")


if __name__ == "__main__":
    main()

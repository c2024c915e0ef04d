"""`python -m bench.few_writers`: files and times of commits, with and without workers that hand rows over.

A steady load with records of many table partitions in every source partition, which each worker reads some
of: once each worker writes what it reads, once `transaction.writers_per_partition` is 1, in turns, each on a
table of its own.
"""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"

import click

from bench.figures import percentile
from bench.lakes import Place, lake_at
from bench.load import create_topic, start_pace
from bench.place import prepare, sentences, typed, wide_console, working_folder
from bench.processes import Sampler
from bench.rivals import control_times, hudi_commits, lockstep_run
from bench.rivals.base import Settings
from bench.waiting import await_that, end
from bench.workloads import SPREAD, Workload
from lockstep.brokers.local import Broker
from lockstep.config.units import parse_duration_ms
from tests import evidence

SETTING = "transaction.writers_per_partition"
COMMIT_S_MAX = 120.0
START_S = 300.0
WARM = 2
"""The first commits are those of a cold driver, and of a backlog: they do not count."""


def measure(
    folder: Path,
    broker: str,
    workload: Workload,
    *,
    writers: int,
    commits: int,
    interval_s: float,
    per_second: int,
    settings: Settings,
) -> dict[str, Any]:
    """One run until the table has so many commits. Raises `Failed`."""
    name = f"few-{folder.name}"
    create_topic(broker, name, partitions=workload.source_partitions)
    with lake_at(Place.FILE, folder) as lake:
        config = lockstep_run.write_config(
            folder,
            pipeline=name,
            bootstrap_servers=broker,
            topic=name,
            workload=workload,
            interval_s=interval_s,
            settings=settings,
            lake=lake,
        )
        wanted, limit_s = commits + WARM, START_S + commits * COMMIT_S_MAX
        own = replace(settings, sets=(*settings.sets, f"{SETTING}={writers}"))
        with (
            lockstep_run.running(config, own, pipeline=name) as (process, watch),
            Sampler(process.pid) as sampler,
        ):
            await_that(
                "the workers",
                lambda: watch.incarnations >= settings.workers,
                timeout_s=START_S,
                poll_s=0.5,
                process=process,
                log=folder / "lockstep.log",
            )
            pace = start_pace(folder, broker, name, workload, per_second=per_second, seconds=limit_s)
            try:
                await_that(
                    f"commit number {wanted:,}",
                    lambda: hudi_commits.count(lake.table, lake.beside) >= wanted,
                    timeout_s=limit_s,
                    poll_s=1.0,
                    process=process,
                    log=folder / "lockstep.log",
                )
            finally:
                end(pace)
            end(process)
        known = control_times.read(config)
        found = hudi_commits.commits(lake.table, lake.beside)[WARM:wanted]
    return _figures(found, known, writers, sampler)


def _figures(found: Any, known: Any, writers: int, sampler: Sampler) -> dict[str, Any]:
    """`gap`: from a commit to the next, which is how old its oldest records are, its own time aside."""
    endings = control_times.endings(known)[WARM : WARM + len(found)]
    gaps = [later.at_ms - one.at_ms for one, later in pairwise(found)]
    return {
        "writers_per_partition": writers,
        "commits": len(found),
        "files_p50": percentile([one.files for one in found], 50),
        "rows_p50": percentile([one.rows for one in found], 50),
        "rows_per_file": round(sum(one.rows for one in found) / max(1, sum(one.files for one in found)), 1),
        "write_p50_ms": percentile([one.written_ms - one.end_ms for one in endings], 50),
        "commit_p50_ms": percentile([one.commit_ms for one in endings], 50),
        "gap_p50_ms": percentile(gaps, 50),
        "aborted": len(known.given_up),
        "cpu_s_per_commit": round(sampler.cpu_s(found[0].at_ms, found[-1].at_ms) / (len(found) - 1), 2),
    }


@click.command()
@click.option(
    "--table-partitions",
    type=click.Choice([str(count) for count in SPREAD]),
    default="1000",
    show_default=True,
)
@click.option("--workers", type=click.IntRange(min=1, max=10), default=4, show_default=True)
@click.option("--commits", type=click.IntRange(min=2), default=8, show_default=True)
@click.option("--interval", default="2s", show_default=True, help="Between commits.")
@click.option("--per-second", type=click.IntRange(min=1), default=10_000, show_default=True, help="Records.")
@click.option("--rounds", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--memory", default="512MB", show_default=True, help="memory.per_worker.")
@click.option("--folder", type=click.Path(path_type=Path), help="Where to work. Default: a temporary one.")
def main(
    table_partitions: str,
    workers: int,
    commits: int,
    interval: str,
    per_second: int,
    rounds: int,
    memory: str,
    folder: Path | None,
) -> None:
    """Files of commits, with and without an exchange; figures as bench-few-writers-….json."""
    prepare()
    workload = SPREAD[int(table_partitions)]
    each: list[dict[str, Any]] = []
    with sentences(), working_folder(folder) as place, Broker(place / "broker") as broker:
        for number, writers in enumerate([0, 1] * rounds):
            own = place / f"run-{number}"
            own.mkdir()
            one = measure(
                own,
                broker.bootstrap_servers,
                workload,
                writers=writers,
                commits=commits,
                interval_s=parse_duration_ms(interval) / 1_000,
                per_second=per_second,
                settings=Settings(workers=workers, memory_per_worker=memory),
            )
            wide_console().print(str(one), highlight=False)
            each.append(one)
        figures = {
            "table_partitions": int(table_partitions),
            "workers": workers,
            "interval_s": parse_duration_ms(interval) / 1_000,
            "per_second": per_second,
            "each": each,
        }
        name = f"bench-few-writers-{table_partitions}"
        path = evidence.write(name, command=typed("bench.few_writers"), passed=True, figures=figures)
        wide_console().print(f"The figures are in {path}.", highlight=False)


if __name__ == "__main__":
    main()

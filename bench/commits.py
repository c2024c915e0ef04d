"""`python -m bench.commits`: how long Lockstep's commits take, early in a table's life and after a thousand.

A light steady load and a short interval make the commits; each is timed from END sent to ACK sent, by the
control topic's timestamps. One run makes all of them: the first are also the driver's first, in a JVM that is
still cold.

`--store s3`: the table is on an S3 server of its own, which with `--latency-ms` is so far away.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"

import click

from bench.figures import percentile
from bench.lakes import Place, lake_at
from bench.load import create_topic, start_pace
from bench.place import prepare, sentences, typed, wide_console, working_folder
from bench.rivals import control_times, hudi_commits, lockstep_run
from bench.rivals.base import Settings
from bench.waiting import await_that, end
from bench.workloads import WORKLOADS, Workload
from lockstep.brokers.local import Broker
from lockstep.config.units import parse_duration_ms
from lockstep.errors import Failed
from tests import evidence

AROUND = 20
"""So many commits up to one make its figure."""
EARLY = 10
COMMIT_S_MAX = 30.0
START_S = 180.0
FEW_FILES, MANY_FILES = "short", "files"


def points(commits: int) -> list[int]:
    """The numbers of commits at which figures are taken: 10, 100, 1,000 … and the last one."""
    found, number = [], EARLY
    while number < commits:
        found.append(number)
        number *= 10
    return [*found, commits]


def at(endings: Sequence[control_times.Ending], number: int) -> dict[str, Any]:
    """The commits around this one (1 is the first). `commit`: END to ACK; `write`: END to the last files."""
    near = endings[max(0, number - AROUND // 2) : number + AROUND // 2]
    return {
        "commit_number": number,
        "commits": len(near),
        "commit_p50_ms": percentile([one.commit_ms for one in near], 50),
        "commit_p99_ms": percentile([one.commit_ms for one in near], 99),
        "write_p50_ms": percentile([one.written_ms - one.end_ms for one in near], 50),
    }


def run(
    folder: Path,
    workload: Workload,
    *,
    commits: int,
    interval_s: float,
    per_second: int,
    settings: Settings,
    command: str,
    place: Place = Place.FILE,
    latency_ms: float = 0.0,
) -> Path:
    """One run until the table has so many commits; where the figures are. `latency_ms`: where it is far."""
    name = evidence_name(workload, place)
    with (
        Broker(folder / "broker") as broker,
        lake_at(place, folder, latency_ms=latency_ms) as lake,
    ):
        create_topic(broker.bootstrap_servers, name, partitions=workload.source_partitions)
        config = lockstep_run.write_config(
            folder,
            pipeline=name,
            bootstrap_servers=broker.bootstrap_servers,
            topic=name,
            workload=workload,
            interval_s=interval_s,
            settings=settings,
            lake=lake,
        )
        wanted, limit_s = commits + AROUND, START_S + commits * COMMIT_S_MAX
        pace = start_pace(
            folder, broker.bootstrap_servers, name, workload, per_second=per_second, seconds=limit_s
        )
        try:
            with lockstep_run.running(config, settings, pipeline=name) as (process, watch):
                _await_commits(watch, wanted, limit_s, process, folder / "lockstep.log")
                end(process)
        finally:
            end(pace)
        endings = control_times.endings(control_times.read(config))
        in_table = hudi_commits.commits(lake.table, lake.beside)
    if len(endings) < commits:
        raise Failed(f"The control topic tells of {len(endings)} commits where {commits} were made.")
    figures = {
        "place": str(place),
        "latency_ms": latency_ms if place is Place.FAR else 0.0,
        "interval_s": interval_s,
        "per_second": per_second,
        "source_partitions": workload.source_partitions,
        "commits_in_table": len(in_table),
        "files_in_table": sum(one.files for one in in_table),
        "at": [at(endings, number) for number in points(commits)],
    }
    return evidence.write(name, command=command, passed=True, figures=figures)


def evidence_name(workload: Workload, place: Place) -> str:
    """As that of the sustained rates, by workload and place."""
    parts = (workload.name if workload.name != FEW_FILES else "", place if place is not Place.FILE else "")
    return "-".join(filter(None, ("bench-commits", *parts)))


def _await_commits(
    watch: lockstep_run.Watch, wanted: int, limit_s: float, process: subprocess.Popen[bytes], log: Path
) -> None:
    await_that(
        f"commit number {wanted:,}",
        lambda: watch.commits >= wanted,
        timeout_s=limit_s,
        poll_s=0.5,
        process=process,
        log=log,
    )


@click.command()
@click.option(
    "--workload",
    type=click.Choice([FEW_FILES, MANY_FILES]),
    default=FEW_FILES,
    show_default=True,
    help=f"{MANY_FILES}: 100 files a commit.",
)
@click.option("--commits", type=click.IntRange(min=EARLY), default=1_000, show_default=True)
@click.option("--interval", default="200ms", show_default=True, help="Between commits.")
@click.option("--per-second", type=click.IntRange(min=1), default=2_000, show_default=True, help="Records.")
@click.option("--set", "sets", multiple=True, metavar="KEY=VALUE", help="One more setting of Lockstep's.")
@click.option(
    "--store",
    type=click.Choice([Place.FILE.value, Place.S3.value, Place.HDFS.value]),
    default=Place.FILE.value,
    show_default=True,
    help="Where the table is: a folder, an S3 server of its own, or an HDFS.",
)
@click.option("--latency-ms", type=click.FloatRange(min=0), default=0.0, help="Of each request to the store.")
@click.option("--folder", type=click.Path(path_type=Path), help="Where to work. Default: a temporary one.")
def main(
    workload: str,
    commits: int,
    interval: str,
    per_second: int,
    sets: tuple[str, ...],
    store: str,
    latency_ms: float,
    folder: Path | None,
) -> None:
    """How long a commit takes, at the 10th, 100th … commit of a table; figures as bench-commits*.json."""
    prepare()
    if latency_ms and store != Place.S3:
        raise click.BadParameter("--latency-ms is that of a store: say --store s3, too")
    with sentences():
        with working_folder(folder) as place:
            path = run(
                place,
                WORKLOADS[workload],
                commits=commits,
                interval_s=parse_duration_ms(interval) / 1_000,
                per_second=per_second,
                settings=Settings(sets=sets),
                command=typed("bench.commits"),
                place=Place.FAR if latency_ms else Place(store),
                latency_ms=latency_ms,
            )
        wide_console().print(f"The figures are in {path}.", highlight=False)


if __name__ == "__main__":
    main()

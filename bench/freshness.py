"""`python -m bench.freshness`: how old a record is when it becomes visible, under a steady load.

Of every record: the completion time of the instant that brought it, less the record's own Kafka timestamp,
which its producer set. Both clocks are this machine's. The beginning (starts, first commits) and the end
(the last commit is made in haste) are left out.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"

import click
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

from bench.figures import spread
from bench.load import create_topic, ends, produce, start_pace
from bench.place import prepare, sentences, typed, wide_console, working_folder
from bench.processes import Sampler
from bench.rivals import hudi_commits, lockstep_run, structured_streaming
from bench.rivals.base import Settings
from bench.waiting import await_that, end, finish
from bench.workloads import WORKLOADS, Workload
from lockstep.brokers.local import Broker
from lockstep.config.units import parse_duration_ms
from lockstep.errors import Failed
from tests import evidence
from tests.data_files import data_files

START_S = 180.0
LEAVE_OUT_S = 5.0
"""At the end of the load."""
FIRST_RECORDS = 4_000
COLUMNS = ["_hoodie_commit_time", "_kafka_timestamp"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fresh:
    """Ages in milliseconds, over `records`. `cpu_us_per_row`: of the rival's processes, meanwhile."""

    rival: str
    round: int
    records: int
    p50_ms: float
    p99_ms: float
    max_ms: float
    commits: int
    cpu_us_per_row: float
    sent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`seconds`: of load that counts, after `warm_up_s` that do not."""

    workload: Workload
    interval_s: float
    per_second: int
    seconds: float
    warm_up_s: float
    settings: Settings


def ages_ms(
    produced_ms: npt.NDArray[np.int64], requested: npt.NDArray[Any], completed_ms: Mapping[str, int]
) -> npt.NDArray[np.int64]:
    """Per record. `requested`: the instant that brought it. Raises `Failed` for one that is not complete."""
    names, codes = np.unique(requested, return_inverse=True)
    missing = [str(name) for name in names if str(name) not in completed_ms]
    if missing:
        raise Failed(f"Rows carry the instant {missing[0]}, which the timeline does not have as completed.")
    moments = np.array([completed_ms[str(name)] for name in names], dtype=np.int64)
    ages: npt.NDArray[np.int64] = moments[codes] - produced_ms
    return ages


def read_ages(table: Path, *, start_ms: int, end_ms: int) -> npt.NDArray[np.int64]:
    """Of all records in the table that were produced between the two moments."""
    completed_ms = hudi_commits.completions_ms(table)
    found = []
    for path in data_files(table):
        with pq.ParquetFile(path) as file:
            rows = file.read(columns=COLUMNS)
        produced_ms = rows["_kafka_timestamp"].cast(pa.timestamp("ms", "UTC"), safe=False).cast(pa.int64())
        moments = produced_ms.to_numpy()
        inside = (moments >= start_ms) & (moments < end_ms)
        requested = rows["_hoodie_commit_time"].to_numpy()
        found.append(ages_ms(moments[inside], requested[inside].astype(str), completed_ms))
    return np.concatenate(found) if found else np.empty(0, dtype=np.int64)


def lockstep(plan: Plan, folder: Path, broker: Broker, name: str, during: During) -> None:
    """`lockstep run` as a service, stopped when the load is over."""
    config = lockstep_run.write_config(
        folder,
        pipeline=name,
        bootstrap_servers=broker.bootstrap_servers,
        topic=name,
        workload=plan.workload,
        interval_s=plan.interval_s,
        settings=plan.settings,
    )
    with lockstep_run.running(config, plan.settings, pipeline=name) as (process, _):
        during(process, folder / "lockstep.log")
        end(process)


def streaming(plan: Plan, folder: Path, broker: Broker, name: str, during: During) -> None:
    """Structured Streaming, a micro-batch each interval or as soon as the last one is done."""
    task = structured_streaming.write_task(
        folder,
        bootstrap_servers=broker.bootstrap_servers,
        topic=name,
        workload=plan.workload,
        batch_records=0,
        timeout_s=plan.settings.timeout_s,
        trigger_s=plan.interval_s,
        kafka_timestamp=True,
    )
    log = folder / "streaming.log"
    process = structured_streaming.start(task, plan.settings, log=log)
    try:
        during(process, log)
        (folder / "stop").touch()
        finish("the Structured Streaming job", process, timeout_s=plan.settings.timeout_s, log=log)
    finally:
        end(process)


During = Callable[["subprocess.Popen[bytes]", Path], None]
"""What happens while the rival runs: its process, its log."""
RIVALS: Mapping[str, Callable[[Plan, Path, Broker, str, During], None]] = {
    "lockstep": lockstep,
    "streaming": streaming,
}


def measure(plan: Plan, rival: str, round_number: int, folder: Path, broker: Broker) -> Fresh:
    """One rival under the load, on a topic of its own."""
    name = f"fresh-{rival}-{round_number}"
    own = folder / name
    own.mkdir()
    partitions = plan.workload.source_partitions
    create_topic(broker.bootstrap_servers, name, partitions=partitions)
    # A few for the first commit: a load that ran while the rival starts would leave a backlog to work off.
    produce(broker.bootstrap_servers, name, plan.workload, records=FIRST_RECORDS)
    span: dict[str, Any] = {}

    def during(process: subprocess.Popen[bytes], log: Path) -> None:
        load_s = plan.warm_up_s + plan.seconds + LEAVE_OUT_S
        await_that(
            "first commit",
            lambda: hudi_commits.count(own / "table"),
            timeout_s=START_S,
            process=process,
            log=log,
        )
        with Sampler(process.pid) as sampler:
            pace = start_pace(
                own,
                broker.bootstrap_servers,
                name,
                plan.workload,
                per_second=plan.per_second,
                seconds=START_S + load_s,
            )
            try:
                time.sleep(plan.warm_up_s)
                span["start_ms"] = time.time_ns() // 1_000_000
                time.sleep(plan.seconds)
                span["end_ms"] = time.time_ns() // 1_000_000
                time.sleep(LEAVE_OUT_S)
                if pace.poll() is not None:
                    raise Failed(f"The load ended early: see {own / 'pace.log'}.")
            finally:
                end(pace)
            span["cpu_s"] = sampler.cpu_s(span["start_ms"], span["end_ms"])
            span["sent"] = sum(ends(broker.bootstrap_servers, name, partitions=partitions))
            _await_caught_up(plan, own, span["sent"], process, log)

    RIVALS[rival](plan, own, broker, name, during)
    ages = read_ages(own / "table", start_ms=span["start_ms"], end_ms=span["end_ms"])
    if not len(ages):
        raise Failed(f"No record of the load is in the table of {rival}: see {own}.")
    commits = hudi_commits.commits(own / "table")
    return Fresh(
        rival=rival,
        round=round_number,
        records=len(ages),
        p50_ms=float(np.percentile(ages, 50)),
        p99_ms=float(np.percentile(ages, 99)),
        max_ms=float(ages.max()),
        commits=sum(span["start_ms"] <= one.at_ms < span["end_ms"] for one in commits),
        cpu_us_per_row=span["cpu_s"] * 1e6 / len(ages),
        sent=span["sent"],
    )


def _await_caught_up(plan: Plan, own: Path, sent: int, process: subprocess.Popen[bytes], log: Path) -> None:
    """Else a rival that falls behind would be measured by the records that it did bring."""
    await_that(
        f"commit of all {sent:,} records",
        lambda: sum(one.rows for one in hudi_commits.commits(own / "table")) >= sent,
        timeout_s=plan.settings.timeout_s,
        poll_s=0.5,
        process=process,
        log=log,
    )


def run(plan: Plan, rivals: list[str], rounds: int, folder: Path, console: Console, command: str) -> Path:
    """All rounds, every other one backwards; where the figures are."""
    found: list[Fresh] = []
    passed = False
    with ExitStack() as stack:
        broker = stack.enter_context(Broker(folder / "broker"))
        try:
            for number in range(rounds):
                for rival in rivals if number % 2 == 0 else reversed(rivals):
                    one = measure(plan, rival, number, folder, broker)
                    found.append(one)
                    console.print(
                        f"round {number} {rival:10} p50 {one.p50_ms:>8,.0f} ms  p99 {one.p99_ms:>8,.0f} ms  "
                        f"max {one.max_ms:>8,.0f} ms  {one.commits:>4} commits  {one.records:>11,} records  "
                        f"{one.cpu_us_per_row:>6.2f} µs/row",
                        highlight=False,
                        soft_wrap=True,
                    )
            passed = True
        finally:
            if found:  # else what an earlier run left would be replaced by nothing
                path = evidence.write(
                    "bench-freshness", command=command, passed=passed, figures=_figures(plan, found)
                )
    return path


def _figures(plan: Plan, found: list[Fresh]) -> dict[str, Any]:
    metrics = ("p50_ms", "p99_ms", "max_ms", "cpu_us_per_row")
    names = dict.fromkeys(one.rival for one in found)
    return {
        "workload": plan.workload.describe(),
        "interval_s": plan.interval_s,
        "per_second": plan.per_second,
        "seconds": plan.seconds,
        "warm_up_s": plan.warm_up_s,
        "rivals": {
            name: {
                metric: spread(getattr(one, metric) for one in found if one.rival == name)
                for metric in metrics
            }
            for name in names
        },
        "runs": [asdict(one) for one in found],
    }


@click.command()
@click.option("--workload", type=click.Choice(list(WORKLOADS)), default="short", show_default=True)
@click.option("--rival", "rivals", multiple=True, type=click.Choice(list(RIVALS)), help="Default: both.")
@click.option("--per-second", type=click.IntRange(min=1), default=50_000, show_default=True)
@click.option("--seconds", type=float, default=60.0, show_default=True, help="Of load that counts.")
@click.option(
    "--warm-up", "warm_up_s", type=float, default=30.0, show_default=True, help="Seconds before it."
)
@click.option("--interval", default="1s", show_default=True, help="Between commits, or micro-batches.")
@click.option("--rounds", type=click.IntRange(min=1), default=3, show_default=True)
@click.option("--set", "sets", multiple=True, metavar="KEY=VALUE", help="One more setting of Lockstep's.")
@click.option("--streaming-memory", default="6g", show_default=True, help="Spark's heap for streaming.")
@click.option("--folder", type=click.Path(path_type=Path), help="Where to work. Default: a temporary one.")
def main(
    workload: str,
    rivals: tuple[str, ...],
    per_second: int,
    seconds: float,
    warm_up_s: float,
    interval: str,
    rounds: int,
    sets: tuple[str, ...],
    streaming_memory: str,
    folder: Path | None,
) -> None:
    """From produced to visible, per record, under a steady load; figures as bench-freshness.json."""
    prepare()
    console = wide_console()
    with sentences():
        plan = Plan(
            workload=WORKLOADS[workload],
            interval_s=parse_duration_ms(interval) / 1_000,
            per_second=per_second,
            seconds=seconds,
            warm_up_s=warm_up_s,
            settings=Settings(sets=sets, streaming_memory=streaming_memory),
        )
        with working_folder(folder) as place:
            path = run(plan, list(rivals or RIVALS), rounds, place, console, typed("bench.freshness"))
        console.print(f"The figures are in {path}.", highlight=False)


if __name__ == "__main__":
    main()

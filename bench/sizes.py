"""`python -m bench.sizes`: fresh data and good files, both.

A load with frequent commits, whose small files Lockstep puts together beside them: how many are left some
intervals after its end, and what a query of them takes.

The load is steady. When it has ended the run goes on, as a service does when nothing comes, for thirty
intervals: with one of 10 s that is five minutes. With a shorter one all of it is compressed in time, as well
as the age at which the last few files are due. Then the table is copied and the copy made perfect, by Hudi's
own clustering of everything into files of the target, and one JVM asks both the same, in turns.

Rates with and without: `python -m bench --label sizes --rival lockstep --rival lockstep-clustering`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"

import click

from bench.load import create_topic, ends, start_pace
from bench.place import prepare, sentences, typed, wide_console, working_folder
from bench.processes import Sampler
from bench.queries import QUERY, ask, ratio
from bench.rivals import hudi_commits, lockstep_run
from bench.rivals.base import Settings
from bench.waiting import await_that, end
from bench.workloads import WORKLOADS, Workload
from lockstep.brokers.local import Broker
from lockstep.config.load import load as load_config
from lockstep.config.units import format_size, parse_duration_ms, parse_size_bytes
from lockstep.errors import Failed
from table.hudi.census.census import HudiCensus
from table.hudi.reader.timeline import Timeline
from tests import evidence
from tests.data_files import data_files

NAME, TOPIC = "bench-sizes", "events"
SERVED, PERFECT = "served", "perfect"
"""The table as the run left it, and the copy that was clustered as a whole."""
OLD_INTERVALS, SETTLED_INTERVALS = 12, 30
"""Of 10 s each: the defaults of `services.clustering_after`, and five minutes."""
START_S = 180.0
FILES_MAX = 1_000_000
SMALL_MAX = 2
"""In a table partition: the goal."""
PERFECTED = (
    "call run_clustering(path => '{path}', op => 'scheduleandexecute', options => "
    "'hoodie.clustering.plan.strategy.small.file.limit={all},"
    "hoodie.clustering.plan.strategy.target.file.max.bytes={target},"
    "hoodie.clustering.plan.strategy.max.bytes.per.group={all},"
    "hoodie.parquet.max.file.size={target},hoodie.parquet.compression.codec=zstd')"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`minutes`: of load. `target_bytes`: of a file."""

    workload: Workload
    interval_s: float
    minutes: float
    per_second: int
    target_bytes: int
    rounds: int
    settings: Settings
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """What a reader of the table would open. `worst`: small ones of the table partition that has most."""

    files: int
    small: int
    worst: int
    size_bytes: int


def run(folder: Path, plan: Plan) -> tuple[Path, Sequence[str]]:
    """Where the figures are, and what is not as it should be. Raises `Failed`."""
    with Broker(folder / "broker") as broker:
        figures = serve(folder, plan, broker)
    shutil.copytree(folder / "table", folder / PERFECT)
    tables = {SERVED: folder / "table", PERFECT: folder / PERFECT}
    everything = 1_000 * plan.target_bytes
    perfected = PERFECTED.format(path=tables[PERFECT], all=everything, target=plan.target_bytes)
    asked = ask(
        folder,
        tables,
        {PERFECT: perfected},
        workload=plan.workload,
        rounds=plan.rounds,
        settings=plan.settings,
    )
    figures |= {
        "workload": plan.workload.describe(),
        "interval_s": plan.interval_s,
        "minutes": plan.minutes,
        "per_second": plan.per_second,
        "target_bytes": plan.target_bytes,
        "perfect_files": len(live_files(folder / PERFECT)),
        "query": QUERY,
        "ratio": ratio(asked["runs"], SERVED, PERFECT),
        "digests": asked["digests"],
        "runs": asked["runs"],
    }
    found = problems(figures)
    return evidence.write(NAME, command=plan.command, passed=not found, figures=figures), found


def serve(folder: Path, plan: Plan, broker: Broker) -> dict[str, Any]:
    """The load and the time after it; what there is of files, and what all that cost."""
    create_topic(broker.bootstrap_servers, TOPIC, partitions=plan.workload.source_partitions)
    config = lockstep_run.write_config(
        folder,
        pipeline=NAME,
        bootstrap_servers=broker.bootstrap_servers,
        topic=TOPIC,
        workload=plan.workload,
        interval_s=plan.interval_s,
        settings=plan.settings,
    )
    sets = [
        "services.clustering=async",
        f"services.clustering_after={round(OLD_INTERVALS * plan.interval_s)}s",
        f"table.target_file_size={format_size(plan.target_bytes)}",
    ]
    arguments = [word for one in sets for word in ("--set", one)]
    log = folder / "lockstep.log"
    pace = start_pace(
        folder,
        broker.bootstrap_servers,
        TOPIC,
        plan.workload,
        per_second=plan.per_second,
        seconds=START_S + 60 * plan.minutes,
    )
    try:
        with (
            lockstep_run.running(config, plan.settings, *arguments, pipeline=NAME) as (process, _),
            Sampler(process.pid) as sampler,
        ):
            _await(folder, "first commit", lambda: hudi_commits.count(folder / "table") > 0, START_S, process)
            began_ms = time.time_ns() // 1_000_000
            time.sleep(60 * plan.minutes)
            end(pace)
            sent = sum(ends(broker.bootstrap_servers, TOPIC, partitions=plan.workload.source_partitions))
            _await(folder, f"commit of all {sent:,} records", lambda: rows(folder) >= sent, START_S, process)
            ended_ms = time.time_ns() // 1_000_000
            at_the_end = count(config, sets)
            time.sleep(SETTLED_INTERVALS * plan.interval_s)
            settled_ms = time.time_ns() // 1_000_000
            cpu_s = (sampler.cpu_s(began_ms, ended_ms), sampler.cpu_s(ended_ms, settled_ms))
            settled = count(config, sets)
            if process.poll() is not None:
                raise Failed(f"The run ended with {process.returncode}: see {log}.")
            end(process)
    finally:
        end(pace)
    return {
        "records": sent,
        "rows": rows(folder),
        "commits": hudi_commits.count(folder / "table"),
        "clusterings": clusterings(folder / "table"),
        "at_the_end": vars_of(at_the_end),
        "settled": vars_of(settled),
        "settled_s": (settled_ms - ended_ms) / 1_000,
        "cpu_us_per_row": cpu_s[0] * 1e6 / sent,
        "cpu_after_s": cpu_s[1],
    }


def _await(folder: Path, what: str, probe: Any, timeout_s: float, process: subprocess.Popen[bytes]) -> None:
    await_that(what, probe, timeout_s=timeout_s, poll_s=0.5, process=process, log=folder / "lockstep.log")


def rows(folder: Path) -> int:
    return sum(one.rows for one in hudi_commits.commits(folder / "table"))


def count(config: Path, sets: Sequence[str]) -> Files:
    """As the page counts them."""
    found = HudiCensus(load_config(config, sets=sets).table_spec()).take(
        unless=None, files_max=FILES_MAX, enough=lambda: False
    )
    assert found is not None
    return Files(
        files=found.files.files,
        small=found.files.small_files,
        worst=max((one.small_files for one in found.files.worst), default=0),
        size_bytes=found.files.size_bytes,
    )


def vars_of(files: Files) -> dict[str, int]:
    return {name: getattr(files, name) for name in ("files", "small", "worst", "size_bytes")}


def clusterings(table: Path) -> dict[str, float]:
    """How many there were, how many bytes they wrote, and for how long they were under way."""
    timeline = Timeline(table)
    done = [one for one in timeline.completed() if one.operation.upper() == "CLUSTER"]
    return {
        "count": len(done),
        "bytes": sum(file.size_bytes for one in done for file in one.files),
        "seconds": sum(timeline.time_ms(one.completed) - timeline.time_ms(one.requested) for one in done)
        / 1_000,
    }


def live_files(table: Path) -> list[Path]:
    """Base files that no clustering has replaced."""
    timeline = Timeline(table)
    replaced = {
        file_id
        for one in timeline.active()[0]
        if one.action == "replacecommit"
        for ids in timeline.metadata(one)["partitionToReplaceFileIds"].values()
        for file_id in ids
    }
    return [path for path in data_files(table) if path.name.partition("_")[0] not in replaced]


def problems(figures: Mapping[str, Any]) -> Sequence[str]:
    """What is not as it should be, as sentences. That a query takes longer is a figure, and no problem."""
    found = []
    if figures["rows"] != figures["records"]:
        found.append(f"the table has {figures['rows']:,} rows of {figures['records']:,} records")
    if figures["digests"][SERVED] != figures["digests"][PERFECT]:
        found.append("the perfect copy holds other rows")
    if any(one["answer"][0] != figures["records"] for one in figures["runs"]):
        found.append("a query did not count every record once")
    if figures["settled"]["worst"] > SMALL_MAX:
        found.append(f"{figures['settled']['worst']} small files are left in a table partition")
    return found


@click.command()
@click.option("--workload", type=click.Choice(list(WORKLOADS)), default="narrow", show_default=True)
@click.option("--interval", default="10s", show_default=True, help="Between commits.")
@click.option("--minutes", type=float, default=10.0, show_default=True, help="Of load.")
@click.option("--per-second", type=click.IntRange(min=1), default=60_000, show_default=True, help="Records.")
@click.option("--target", default="32MB", show_default=True, help="Of a file: table.target_file_size.")
@click.option("--rounds", type=click.IntRange(min=1), default=10, show_default=True, help="Of queries.")
@click.option("--set", "sets", multiple=True, metavar="KEY=VALUE", help="One more setting of Lockstep's.")
@click.option("--folder", type=click.Path(path_type=Path), help="Where to work. Default: a temporary one.")
def main(
    workload: str,
    interval: str,
    minutes: float,
    per_second: int,
    target: str,
    rounds: int,
    sets: tuple[str, ...],
    folder: Path | None,
) -> None:
    """Small files after a load with frequent commits, and what a query of them takes; bench-sizes.json."""
    prepare()
    with sentences():
        plan = Plan(
            workload=WORKLOADS[workload],
            interval_s=parse_duration_ms(interval) / 1_000,
            minutes=minutes,
            per_second=per_second,
            target_bytes=parse_size_bytes(target),
            rounds=rounds,
            settings=Settings(sets=sets),
            command=typed("bench.sizes"),
        )
        with working_folder(folder) as place:
            path, found = run(place, plan)
        kept = json.loads(path.read_text(encoding="utf-8"))["figures"]
        shown = {name: one for name, one in kept.items() if name not in ("runs", "digests", "workload")}
        wide_console().print(json.dumps(shown, indent=1), highlight=False)
        if found:
            raise Failed(f"Not as it should be: {'; '.join(found)}. The figures are in {path}.")


if __name__ == "__main__":
    main()

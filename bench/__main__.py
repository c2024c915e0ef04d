"""`python -m bench`: one workload, several rivals, in turns on the same topic of the same broker."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

# Spark's JVM is forked from a process that uses gRPC; gRPC's fork handlers break that.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"

import click
from rich.console import Console

from bench import results
from bench.encodings import register
from bench.lakes import LATENCY_MS, Place, lake_at, remove_stored
from bench.load import fill
from bench.place import prepare, typed, wide_console, working_folder
from bench.rivals.base import RUN_TIMEOUT_S, Load, Settings
from bench.rivals.registry import RIVALS, STREAMING_BATCH_RECORDS, Entry, Runners, order, parse, reading
from bench.workloads import EVERY, Workload
from lockstep.brokers.local import Broker
from lockstep.config.units import parse_duration_ms
from lockstep.errors import Failed, LockstepError, sentence
from lockstep.stores.registry import RegistryServer
from table.errors import TableError

DEFAULT_RIVALS = ("lockstep", "lockstep-plain", "streaming", "iceberg-cold", "iceberg-warm", "plain")
TOPIC = "events"
FAILURE_CHARACTERS_MAX = 2_000
DATA = ("table", "checkpoint", "warehouse", "files")
"""What rivals call the folders that hold rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`name`: of the evidence. `interval_s`, `batch_records`: where a rival's variant says nothing else.
    `latency_ms`: of each request to a store that is far.
    """

    name: str
    workload: Workload
    entries: Sequence[Entry]
    records: int
    rounds: int
    interval_s: float
    batch_records: int
    settings: Settings
    command: str
    latency_ms: float = LATENCY_MS


def run(plan: Plan, folder: Path, console: Console) -> Path:
    """All loads; where their figures are. Raises `Failed` at the end where a rival failed at a load.

    Such a failure is a figure too: it is kept with its reason, and the others go on. What was measured before
    this process is ended is kept as well.
    """
    runs: list[dict[str, Any]] = []
    passed = False
    with ExitStack() as stack:
        broker = stack.enter_context(Broker(folder / "broker"))
        runners = Runners()
        stack.callback(runners.close)
        registry = _registry(plan.workload, folder, stack)
        began = time.monotonic()
        size_bytes = fill(broker.bootstrap_servers, TOPIC, plan.workload, records=plan.records)
        console.print(
            f"{plan.workload.title}: {plan.records:,} records of {size_bytes / plan.records:,.0f} bytes in "
            f"{plan.workload.source_partitions} source partitions, produced in "
            f"{time.monotonic() - began:.0f} s"
        )
        try:
            for round_number in range(plan.rounds):
                for entry in order(plan.entries, round_number):
                    load = replace(_load(plan, entry, folder, broker, round_number), registry=registry)
                    one, said = _measure(runners, entry, load, round_number, latency_ms=plan.latency_ms)
                    runs.append(one)
                    console.print(said, highlight=False, soft_wrap=True)
            passed = not any("failed" in one for one in runs)
        finally:
            if runs:  # else what an earlier run left would be replaced by nothing
                path = results.write(plan.name, plan.command, runs, about=_about(plan), passed=passed)
    for one in results.tables(runs, plan.entries):
        console.print(one)
    console.print(f"The figures are in {path}.", highlight=False)
    if not passed:
        raise Failed(f"A rival failed: why is said above and in the figures; the logs are in {folder}.")
    return path


def _registry(workload: Workload, folder: Path, stack: ExitStack) -> str:
    """Where the schema of the workload's values is known; empty of JSON, which needs none."""
    if workload.encoding is None:
        return ""
    server = stack.enter_context(RegistryServer(folder / "registry"))
    register(server.url, f"{TOPIC}-value", workload.encoding)
    return server.url


def _measure(
    runners: Runners, entry: Entry, load: Load, round_number: int, *, latency_ms: float
) -> tuple[dict[str, Any], str]:
    """The run for the figures, and a line about it."""
    try:
        with lake_at(entry.place, load.folder, latency_ms=latency_ms) as lake:
            before_s = lake.cpu_s()
            found = runners.run(entry, replace(load, elsewhere=lake))
            if lake.pids:
                found = replace(found, store_cpu_s=lake.cpu_s() - before_s)
    except (LockstepError, TableError) as error:
        reason = sentence(error)[:FAILURE_CHARACTERS_MAX]
        said = f"round {round_number} {load.rival:16} failed: {reason}"
        return {"rival": load.rival, "round": round_number, "failed": reason}, said
    _remove_data(load.folder)
    return found.to_json() | {"round": round_number}, results.line(round_number, found)


def _load(plan: Plan, entry: Entry, folder: Path, broker: Broker, round_number: int) -> Load:
    name = f"{entry.label}-{round_number}".replace("@", "-")
    own = folder / name
    own.mkdir()
    return Load(
        rival=entry.label,
        name=f"bench-{name}",
        folder=own,
        bootstrap_servers=broker.bootstrap_servers,
        topic=TOPIC,
        workload=plan.workload,
        records=plan.records,
        interval_s=plan.interval_s if entry.interval_s is None else entry.interval_s,
        batch_records=plan.batch_records if entry.batch_records is None else entry.batch_records,
        settings=plan.settings if entry.workers is None else replace(plan.settings, workers=entry.workers),
    )


def _remove_data(folder: Path) -> None:
    """What was written is no longer needed, and would fill the disk and the page cache; logs stay."""
    remove_stored(folder)
    for place in (folder, *folder.glob("warming")):
        for name in DATA:
            shutil.rmtree(place / name, ignore_errors=True)


def _about(plan: Plan) -> dict[str, Any]:
    return {
        "workload": plan.workload.describe(),
        "records": plan.records,
        "rounds": plan.rounds,
        "interval_s": plan.interval_s,
        "batch_records": plan.batch_records,
        "workers": plan.settings.workers,
        "memory_per_worker": plan.settings.memory_per_worker,
        "sets": list(plan.settings.sets),
        **({"latency_ms": plan.latency_ms} if any(one.place is Place.FAR for one in plan.entries) else {}),
        "windows": {entry.label: entry.rival.window for entry in plan.entries},
        "titles": {entry.label: entry.title for entry in plan.entries},
    }


def _interval_s(_context: click.Context, _option: click.Parameter, value: str | None) -> float | None:
    try:
        return None if value is None else parse_duration_ms(value) / 1_000
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


@click.command()
@click.option("--workload", type=click.Choice(list(EVERY)), default="narrow", show_default=True)
@click.option(
    "--rival",
    "labels",
    multiple=True,
    metavar="NAME[-s3|-s3-far|-hdfs][@VARIANT]",
    help=f"Of {', '.join(RIVALS)}; with -s3 the table is on an S3 server of its own, with -s3-far behind "
    "--latency-ms, with -hdfs on an HDFS; after the @ the interval (streaming: the batch). May be repeated. "
    f"Default: {' '.join(DEFAULT_RIVALS)}.",
)
@click.option("--records", type=click.IntRange(min=1_000), help="Default: the workload's, some 20 s of load.")
@click.option("--rounds", type=click.IntRange(min=1), default=3, show_default=True)
@click.option("--interval", callback=_interval_s, help="Between commits. Default: the workload's, mostly 5s.")
@click.option(
    "--batch",
    type=click.IntRange(min=0),
    default=STREAMING_BATCH_RECORDS,
    show_default=True,
    help="Structured Streaming's records of a batch; 0 is everything at once.",
)
@click.option("--workers", type=click.IntRange(min=1), default=2, show_default=True)
@click.option("--memory", default="512MB", show_default=True, help="Lockstep's memory.per_worker.")
@click.option("--set", "sets", multiple=True, metavar="KEY=VALUE", help="One more setting of Lockstep's.")
@click.option("--streaming-memory", default="6g", show_default=True, help="Spark's heap for streaming.")
@click.option("--connect-heap", default="4g", show_default=True, help="Kafka Connect's heap.")
@click.option(
    "--timeout", "timeout_s", type=float, default=RUN_TIMEOUT_S, show_default=True, help="Of a load."
)
@click.option(
    "--latency-ms",
    type=click.FloatRange(min=0, min_open=True),
    default=LATENCY_MS,
    show_default=True,
    help="Of each request of rivals that end with -s3-far.",
)
@click.option("--label", default="", help="Appended to the name of the evidence: bench-WORKLOAD-LABEL.")
@click.option("--folder", type=click.Path(path_type=Path), help="Where to work. Default: a temporary one.")
def main(
    workload: str,
    labels: tuple[str, ...],
    records: int | None,
    rounds: int,
    interval: float | None,
    batch: int,
    workers: int,
    memory: str,
    sets: tuple[str, ...],
    streaming_memory: str,
    connect_heap: str,
    timeout_s: float,
    latency_ms: float,
    label: str,
    folder: Path | None,
) -> None:
    """Rivals side by side on one machine: rates, CPU, memory, stages; figures as bench-WORKLOAD.json."""
    prepare()
    console = wide_console()
    chosen = EVERY[workload]
    try:
        asked = [parse(one) for one in dict.fromkeys(labels or DEFAULT_RIVALS)]
        entries = reading(asked, chosen.format)
        plan = Plan(
            name="-".join(filter(None, ("bench", workload, label))),
            workload=chosen,
            entries=entries,
            records=records or chosen.records,
            rounds=rounds,
            interval_s=chosen.interval_s if interval is None else interval,
            batch_records=batch,
            settings=Settings(
                workers=workers,
                memory_per_worker=memory,
                sets=sets,
                streaming_memory=streaming_memory,
                connect_heap=connect_heap,
                timeout_s=timeout_s,
            ),
            command=typed("bench"),
            latency_ms=latency_ms,
        )
        with working_folder(folder) as place:
            run(plan, place, console)
    except LockstepError as error:
        raise click.ClickException(sentence(error)) from error


if __name__ == "__main__":
    main()

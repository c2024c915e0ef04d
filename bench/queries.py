"""`python -m bench.queries`: a snapshot query of Lockstep's table and of the same table written by Spark.

Both are made from one topic of upserts, Spark's by Structured Streaming, and compacted by Spark SQL. Then one
JVM asks both the same, in turns, so that what the machine does meanwhile meets both. Both must answer what
the newest record of each key says.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"

import click

from bench.figures import Measured, spread
from bench.load import fill
from bench.place import prepare, sentences, typed, wide_console, working_folder
from bench.rivals import hudi_commits, lockstep_run, structured_streaming
from bench.rivals.base import ROOT, RUN_TIMEOUT_S, Load, Settings
from bench.waiting import end, finish
from bench.workloads import UPSERTS, Workload
from lockstep.brokers.local import Broker
from lockstep.errors import Failed
from table.schema import parse_ddl
from tests import evidence
from tests.data_files import data_files

NAME, TOPIC = "bench-queries", "events"
JOB = ROOT / "bench" / "jobs" / "queries.py"
OURS, THEIRS = "lockstep", "streaming"
WRITERS: Mapping[str, Callable[[Load], Measured]] = {
    OURS: lockstep_run.run,
    THEIRS: structured_streaming.run,
}
COMPACTED = (
    "call run_compaction(op => 'scheduleandexecute', path => '{path}', "
    "options => 'hoodie.compact.inline.max.delta.commits=1')"
)
NUMBERS = ("user_id", "ts", "amount")
"""What is summed; `amount` is not a whole number, so its sum depends on the order a little."""
QUERY = f"select count(*), {', '.join(f'sum({name})' for name in NUMBERS)} from asked"
WARM_UP_ROUNDS = 3
BATCH_RECORDS = 1_000_000
"""Structured Streaming's first batch makes base files: without a second one there is nothing to compact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`batch_records`: of Structured Streaming, fewer than there are."""

    records: int
    rounds: int
    interval_s: float
    batch_records: int
    settings: Settings
    command: str


def run(folder: Path, plan: Plan) -> tuple[Path, Sequence[str]]:
    """Where the figures are, and what is not as it should be. Raises `Failed`."""
    with Broker(folder / "broker") as broker:
        fill(broker.bootstrap_servers, TOPIC, UPSERTS, records=plan.records)
        tables = {name: write_table(folder, plan, name, broker.bootstrap_servers) for name in WRITERS}
    calls = {name: COMPACTED.format(path=path) for name, path in tables.items()}
    result = ask(folder, tables, calls, workload=UPSERTS, rounds=plan.rounds, settings=plan.settings)
    figures = {
        "workload": UPSERTS.describe(),
        "records": plan.records,
        "rounds": plan.rounds,
        "query": QUERY,
        "expected": expected(UPSERTS, plan.records),
        "tables": {name: of_table(path, name, result) for name, path in tables.items()},
        "ratio": ratio(result["runs"], OURS, THEIRS),
        "digests": result["digests"],
        "runs": result["runs"],
    }
    found = problems(figures)
    return evidence.write(NAME, command=plan.command, passed=not found, figures=figures), found


def write_table(folder: Path, plan: Plan, name: str, bootstrap_servers: str) -> Path:
    """One of the tables, by its writer. Raises `Failed`."""
    own = folder / name
    own.mkdir()
    load = Load(
        rival=name,
        name=f"{NAME}-{name}",
        folder=own,
        bootstrap_servers=bootstrap_servers,
        topic=TOPIC,
        workload=UPSERTS,
        records=plan.records,
        interval_s=plan.interval_s,
        batch_records=plan.batch_records,
        settings=plan.settings,
    )
    WRITERS[name](load)
    return own / "table"


def ask(
    folder: Path,
    tables: Mapping[str, Path],
    calls: Mapping[str, str],
    *,
    workload: Workload,
    rounds: int,
    settings: Settings,
) -> dict[str, Any]:
    """What the job found: it makes the calls, by table, and asks all in turns. Raises `Failed`."""
    task, log, result = folder / "queries.json", folder / "queries.log", folder / "result.json"
    columns = ", ".join(parse_ddl(workload.schema).names)
    words = {
        "tables": {name: str(path) for name, path in tables.items()},
        "calls": dict(calls),
        "rounds": rounds,
        "warm_up": WARM_UP_ROUNDS,
        "query": QUERY,
        "digest": f"select cast(sum(cast(xxhash64({columns}) as decimal(38, 0))) as string) from asked",
        "result": str(result),
    }
    task.write_text(json.dumps(words), encoding="utf-8")
    process = structured_streaming.start(task, settings, log=log, job=JOB)
    try:
        finish("the job that asks the tables", process, timeout_s=settings.timeout_s, log=log)
    finally:
        end(process)
    found: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
    return found


def of_table(table: Path, name: str, result: Mapping[str, Any]) -> dict[str, Any]:
    """The figures of one table; `seconds` without the rounds that warm up."""
    files = newest_base_files(table)
    return {
        "seconds": spread(
            one["seconds"] for one in result["runs"] if one["table"] == name and one["round"] >= 0
        ),
        "base_files": len(files),
        "base_files_bytes": sum(path.stat().st_size for path in files),
        "commits": hudi_commits.count(table),
        "compactions": sum(done is not None for _, done in hudi_commits.compactions(table)),
        "compaction_s": result["call_s"][name],
    }


def newest_base_files(table: Path) -> list[Path]:
    """Of each file group, `<file id>_<token>_<instant>.parquet`: what was replaced is still there."""
    newest: dict[tuple[Path, str], Path] = {}
    for path in data_files(table):
        group = (path.parent, path.name.partition("_")[0])
        newest[group] = max(path, newest.get(group, path), key=lambda one: one.stem.rpartition("_")[2])
    return list(newest.values())


def ratio(runs: Sequence[Mapping[str, Any]], one_table: str, other: str) -> dict[str, float] | None:
    """How often the time of the other table a query of the one takes, round by round."""
    taken_s = {(one["table"], one["round"]): one["seconds"] for one in runs if one["round"] >= 0}
    rounds = sorted({number for _, number in taken_s})
    return spread(taken_s[one_table, number] / taken_s[other, number] for number in rounds)


def expected(workload: Workload, records: int) -> list[int | float]:
    """The answer to `QUERY` where each key has the row of its newest record."""
    newest = {(workload.key_of or int)(number): number for number in range(records)}
    sums: dict[str, int | float] = dict.fromkeys(NUMBERS, 0)
    for number in newest.values():
        row = json.loads(workload.value(number))
        for name in NUMBERS:
            sums[name] += row[name]
    return [len(newest), *sums.values()]


def problems(figures: Mapping[str, Any]) -> Sequence[str]:
    """What is not as it should be, as sentences."""
    found = [
        f"the table by {name} was compacted {about['compactions']} times"
        for name, about in figures["tables"].items()
        if about["compactions"] != 1
    ]
    for one in figures["runs"]:
        if not all(map(_same, one["answer"], figures["expected"])):
            found.append(
                f"the table by {one['table']} answered {one['answer']} instead of {figures['expected']}"
            )
            break
    if figures["digests"][OURS] != figures["digests"][THEIRS]:
        found.append("the two tables hold other rows")
    return found


def _same(has: int | float, wanted: int | float) -> bool:
    """Whole numbers exactly: the sum of all `ts` tells of one row that is old."""
    return math.isclose(has, wanted, rel_tol=1e-12) if isinstance(wanted, float) else has == wanted


@click.command()
@click.option("--records", type=click.IntRange(min=1_000), default=UPSERTS.records, show_default=True)
@click.option("--rounds", type=click.IntRange(min=1), default=15, show_default=True)
@click.option(
    "--batch",
    type=click.IntRange(min=1),
    default=BATCH_RECORDS,
    show_default=True,
    help="Structured Streaming's records of a batch; there must be several.",
)
@click.option("--workers", type=click.IntRange(min=1), default=2, show_default=True)
@click.option("--timeout", "timeout_s", type=float, default=RUN_TIMEOUT_S, show_default=True)
@click.option("--folder", type=click.Path(path_type=Path), help="Where to work. Default: a temporary one.")
def main(records: int, rounds: int, batch: int, workers: int, timeout_s: float, folder: Path | None) -> None:
    """Queries of both tables, in turns, after a compaction of each; figures as bench-queries.json."""
    prepare()
    plan = Plan(
        records=records,
        rounds=rounds,
        interval_s=UPSERTS.interval_s,
        batch_records=batch,
        settings=Settings(workers=workers, timeout_s=timeout_s),
        command=typed("bench.queries"),
    )
    with sentences():
        with working_folder(folder) as place:
            path, found = run(place, plan)
        kept = json.loads(path.read_text(encoding="utf-8"))["figures"]
        shown = {name: kept[name] for name in ("records", "rounds", "query", "tables", "ratio")}
        wide_console().print(json.dumps(shown, indent=1), highlight=False)
        if found:
            raise Failed(f"Not as it should be: {'; '.join(found)}. The figures are in {path}.")


if __name__ == "__main__":
    main()

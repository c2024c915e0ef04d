"""The plain writer: the libraries and classes that Lockstep's workers use, with no protocol and no table.

What it takes to get from Kafka to parquet files at all; what Lockstep needs more is what exactly once costs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from bench.figures import Commit, Measured, steady
from bench.load import ends
from bench.processes import Sampler
from bench.rivals.base import ROOT, Load, Stages, measured
from bench.waiting import await_that, end, finish
from lockstep.config.units import parse_size_bytes

WINDOW = (
    "from all processes being up, with nothing asked of the broker yet, to the last file closed and durable; "
    "files are closed at the interval, as Lockstep's are, and each such round counts as a commit"
)
READY_S = 60.0
TARGET_FILE_BYTES = 120_000_000


def run(load: Load) -> Measured:
    """One load; every process has its share of the source partitions."""
    workers = load.settings.workers
    all_ends = ends(load.bootstrap_servers, load.topic, partitions=load.workload.source_partitions)
    go, ready = load.folder / "go", [load.folder / f"ready-{n}" for n in range(workers)]
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for number in range(workers):
            mine = {p: e for p, e in enumerate(all_ends) if p % workers == number}
            processes.append(_start(load, number, mine, ready=ready[number], go=go))
        for process, file in zip(processes, ready, strict=True):
            await_that("plain writer", file.exists, timeout_s=READY_S, process=process, log=_log(load))
        with Sampler(*(process.pid for process in processes)) as sampler:
            start_ms = time.time_ns() // 1_000_000
            go.touch()
            for process in processes:
                finish("a plain writer", process, timeout_s=load.settings.timeout_s, log=_log(load))
    finally:
        for process in processes:
            end(process)
    rounds = [_rounds(load.folder / f"rounds-{n}") for n in range(workers)]
    commits = together(rounds)
    return measured(
        load,
        start_ms=start_ms,
        commits=commits,
        sampler=sampler,
        worker_pids=[process.pid for process in processes],
        stages=_stages(start_ms, rounds).shares(steady(commits), workers=workers),
        notes=("a round of files, all processes together, counts as a commit",),
    )


def _start(load: Load, number: int, mine: Mapping[int, int], *, ready: Path, go: Path) -> Any:
    files = load.folder / "files"
    (files / ".hoodie").mkdir(parents=True, exist_ok=True)
    task = {
        "number": number,
        "bootstrap_servers": load.bootstrap_servers,
        "topic": load.topic,
        "ends": mine,
        "schema": load.workload.schema,
        "key": load.workload.key,
        "partition_by": load.workload.partition_by,
        "interval_s": load.interval_s,
        "memory_bytes": parse_size_bytes(load.settings.memory_per_worker),
        "target_file_bytes": TARGET_FILE_BYTES,
        "folder": str(files),
        "ready": str(ready),
        "go": str(go),
        "rounds": str(load.folder / f"rounds-{number}"),
    }
    path = load.folder / f"task-{number}.json"
    path.write_text(json.dumps(task), encoding="utf-8")
    with _log(load).open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "bench.jobs.plain_writer", str(path)],
            cwd=ROOT,
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            env=dict(os.environ),
        )


def _log(load: Load) -> Path:
    return load.folder / "plain.log"


def _rounds(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def together(rounds: Sequence[Sequence[Mapping[str, Any]]]) -> list[Commit]:
    """The first rounds of all processes as one commit, complete with the last of them; then the second; …"""
    return [
        Commit(at_ms=max(one["at_ms"] for one in same), rows=rows)
        for turn in zip_longest(*rounds)
        if (same := [one for one in turn if one is not None]) and (rows := sum(one["rows"] for one in same))
    ]


def _stages(start_ms: int, rounds: list[list[dict[str, Any]]]) -> Stages:
    """The processes' meters, summed, at every moment at which one of them told of its own."""
    newest: dict[int, Mapping[str, float]] = {}
    seen: list[tuple[int, Mapping[str, float]]] = [(start_ms, {})]
    told = sorted(
        (one["at_ms"], number, one["seconds"]) for number, some in enumerate(rounds) for one in some
    )
    for at_ms, number, seconds in told:
        newest[number] = seconds
        seen.append(
            (at_ms, {stage: sum(one.get(stage, 0.0) for one in newest.values()) for stage in seconds})
        )
    return Stages(seen=tuple(seen))

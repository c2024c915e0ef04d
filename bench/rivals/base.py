"""What every rival is given, and how what it left behind becomes figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.figures import Commit, Measured, Span, interpolate, steady
from bench.lakes import Lake, file_lake
from bench.processes import Sampler
from bench.workloads import Workload
from lockstep.errors import Failed

ROOT = Path(__file__).resolve().parents[2]
RUN_TIMEOUT_S = 1_800.0
"""The longest that one load may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What is the same for all loads of a bench run. `memory_per_worker`, `sets`: Lockstep's own.

    `workers`: Lockstep's workers, Connect's tasks, Spark's cores, the plain writer's processes.
    """

    workers: int = 2
    memory_per_worker: str = "512MB"
    sets: tuple[str, ...] = ()
    streaming_memory: str = "6g"
    connect_heap: str = "4g"
    timeout_s: float = RUN_TIMEOUT_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """One load: everything that is on the topic when it starts, `records` of them.

    `rival`: as the figures name it. `folder`: this load's own, empty. `name`: nobody else's, for groups and
    tables. `interval_s`: between commits. `batch_records`: of a micro-batch, 0 is everything at once.
    `elsewhere`: where its table is to be; None: in its folder. `registry`: where the schema of values that
    are not JSON is known.
    """

    rival: str
    name: str
    folder: Path
    bootstrap_servers: str
    topic: str
    workload: Workload
    records: int
    interval_s: float
    batch_records: int
    settings: Settings
    elsewhere: Lake | None = None
    registry: str = ""

    @property
    def lake(self) -> Lake:
        return self.elsewhere or file_lake(self.folder)


def measured(
    load: Load,
    *,
    start_ms: int,
    commits: Sequence[Commit],
    sampler: Sampler,
    worker_pids: Sequence[int],
    commit_ms: Sequence[float] = (),
    stages: Mapping[str, float] | None = None,
    notes: Sequence[str] = (),
) -> Measured:
    """The figures of a load whose window began at `start_ms` (Unix epoch) and ends with the last commit.

    Raises `Failed` where not every record was committed.
    """
    rows = sum(one.rows for one in commits)
    if rows != load.records:
        raise Failed(f"{load.rival} committed {rows:,} rows of {load.records:,}: see {load.folder}.")
    first, last = min(one.at_ms for one in commits), max(one.at_ms for one in commits)
    span = steady(commits)
    return Measured(
        rival=load.rival,
        rows=rows,
        window_s=max(last - start_ms, 1) / 1_000,
        first_commit_s=(first - start_ms) / 1_000,
        commits=len(commits),
        steady_s=span.seconds if span is not None else None,
        steady_rows_per_s=span.rows_per_s if span is not None else None,
        cpu_s=sampler.cpu_s(start_ms, last),
        steady_cpu_us_per_row=_cpu_us_per_row(sampler, span),
        peak_bytes=sampler.peak_bytes,
        peak_worker_bytes=sampler.largest_bytes(worker_pids),
        commit_ms=tuple(commit_ms),
        stages=dict(stages or {}),
        notes=tuple(notes),
    )


def _cpu_us_per_row(sampler: Sampler, span: Span | None) -> float | None:
    if span is None or not span.rows:
        return None
    return sampler.cpu_s(span.start_ms, span.end_ms) * 1e6 / span.rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Stages:
    """Seconds by stage, summed over workers and growing, as they were seen at several moments."""

    seen: Sequence[tuple[int, Mapping[str, float]]] = field(default_factory=tuple)

    def shares(self, span: Span | None, *, workers: int) -> dict[str, float]:
        """The mean part of a worker's time in each stage; of the whole load where there is no steady part."""
        if len(self.seen) < 2:
            return {}
        start_ms, end_ms = (span.start_ms, span.end_ms) if span else (self.seen[0][0], self.seen[-1][0])
        of_s = workers * (end_ms - start_ms) / 1_000
        shares = {}
        for stage in self.seen[-1][1]:
            points = [(float(at_ms), seconds.get(stage, 0.0)) for at_ms, seconds in self.seen]
            shares[stage] = (interpolate(points, end_ms) - interpolate(points, start_ms)) / of_s
        return shares

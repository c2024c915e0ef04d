"""What is computed from measurements. Pure."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

WHOLE_COMMIT = 0.9
"""A last commit with fewer rows than this part of the usual was cut short by the end of the load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """Rows that became visible together. `at_ms`: Unix epoch. `rows`: of this commit alone, as are its
    `files`, where they are known.
    """

    at_ms: int
    rows: int
    files: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """`rows` were committed after `start_ms` and not after `end_ms` (Unix epoch)."""

    start_ms: int
    end_ms: int
    rows: int

    @property
    def seconds(self) -> float:
        return (self.end_ms - self.start_ms) / 1_000

    @property
    def rows_per_s(self) -> float:
        return self.rows / self.seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One load by one rival. `window_s`: what is inside is the rival's own to say.

    Steady: from the first commit to the last whole one, so that no start is inside; None where there were
    too few commits for that. `cpu_s`: of all the rival's processes, without the broker, over the window.
    `peak_bytes`: resident memory of all of them together at its highest, memory they share counted for each;
    `peak_worker_bytes`: of the largest process that moves records. `commit_ms`: how long each commit took,
    from the order to its acknowledgement. `stages`: the part of the steady time that each stage took, 1 being
    all of it; of stages that run in several workers or threads the mean over those. `rows`: of upserts the
    records of the topic, whatever was written for them. `aborted`, `compactions`: Lockstep's transactions
    that were given up, and its compactions that were completed; None of others. `store_cpu_s`: of the S3
    server and of the proxy before it, over the whole load, and in no other figure; None where there is none.
    """

    rival: str
    rows: int
    window_s: float
    first_commit_s: float
    commits: int
    steady_s: float | None
    steady_rows_per_s: float | None
    cpu_s: float
    steady_cpu_us_per_row: float | None
    peak_bytes: int
    peak_worker_bytes: int
    commit_ms: tuple[float, ...] = ()
    stages: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    aborted: int | None = None
    compactions: int | None = None
    store_cpu_s: float | None = None

    @property
    def window_rows_per_s(self) -> float:
        return self.rows / self.window_s

    @property
    def window_cpu_us_per_row(self) -> float:
        """The same as CPU seconds per million rows."""
        return self.cpu_s * 1e6 / self.rows

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {
            "window_rows_per_s": self.window_rows_per_s,
            "window_cpu_us_per_row": self.window_cpu_us_per_row,
            "commit_p50_ms": percentile(self.commit_ms, 50),
        }


METRICS: Mapping[str, bool] = {
    "window_rows_per_s": True,
    "steady_rows_per_s": True,
    "window_cpu_us_per_row": False,
    "steady_cpu_us_per_row": False,
    "window_s": False,
    "first_commit_s": False,
    "steady_s": True,
    "commit_p50_ms": False,
    "peak_bytes": False,
    "peak_worker_bytes": False,
}
"""Figures of a run that are compared between rivals, and whether more is better."""


def steady(commits: Sequence[Commit]) -> Span | None:
    """From the first commit to the last whole one; None where no commit lies between."""
    ordered = sorted(commits, key=lambda one: one.at_ms)
    if len(ordered) < 2:
        return None
    usual = statistics.median(one.rows for one in ordered[:-1])
    last = ordered if ordered[-1].rows >= WHOLE_COMMIT * usual else ordered[:-1]
    if len(last) < 2 or last[-1].at_ms == last[0].at_ms:
        return None
    return Span(start_ms=last[0].at_ms, end_ms=last[-1].at_ms, rows=sum(one.rows for one in last[1:]))


def covered(intervals: Iterable[tuple[int, int | None]], span: Span) -> float:
    """The part of the span in which at least one of the intervals (start, end) is; end None: after all."""
    inside_ms, upto = 0, span.start_ms
    for start_ms, end_ms in sorted(intervals, key=lambda one: one[0]):
        end_ms = span.end_ms if end_ms is None else min(end_ms, span.end_ms)
        inside_ms += max(0, end_ms - max(start_ms, upto))
        upto = max(upto, end_ms)
    return inside_ms / (span.end_ms - span.start_ms)


def spread(values: Iterable[float | None]) -> dict[str, float] | None:
    """Minimum, median and maximum of what was measured; None where nothing was."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    return {"min": min(known), "median": statistics.median(known), "max": max(known)}


def percentile(values: Sequence[float], percent: int) -> float | None:
    """The nearest rank; None of nothing."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)]


def by_rival(runs: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Spread of every metric, by rival, in the order of their first runs. `runs`: JSON of `Measured`."""
    names = dict.fromkeys(run["rival"] for run in runs)
    return {
        name: {metric: spread(run.get(metric) for run in runs if run["rival"] == name) for metric in METRICS}
        for name in names
    }


def ratios(runs: Sequence[Mapping[str, Any]], of: str) -> dict[str, dict[str, Any]]:
    """`of` against every other rival, round by round: by rival, the spread of each metric's quotient.

    Only rounds in which both ran count, so that what the machine did meanwhile touched both.
    """
    rounds: dict[int, dict[str, Mapping[str, Any]]] = {}
    for run in runs:
        rounds.setdefault(run["round"], {})[run["rival"]] = run
    others = dict.fromkeys(run["rival"] for run in runs if run["rival"] != of)
    return {
        other: {
            metric: spread(
                _quotient(both[of].get(metric), both[other].get(metric))
                for both in rounds.values()
                if of in both and other in both
            )
            for metric in METRICS
        }
        for other in others
    }


def _quotient(a: float | None, b: float | None) -> float | None:
    return a / b if a is not None and b else None


def interpolate(points: Sequence[tuple[float, float]], at: float) -> float:
    """The value at `at` of what grows between `points` (place, value), which are in order; the ends hold."""
    if not points:
        return 0.0
    if at <= points[0][0]:
        return points[0][1]
    for (before, low), (after, high) in itertools.pairwise(points):
        if at <= after:
            return low + (high - low) * (at - before) / (after - before) if after > before else high
    return points[-1][1]

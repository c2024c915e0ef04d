"""Figures for people as they come, and for programs at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from bench.figures import Measured, by_rival, percentile, ratios
from bench.rivals.registry import Entry
from lockstep.output import readable_size
from tests import evidence

STEADY_S_MIN = 20.0
"""A steady part that is shorter says little."""
OURS = "lockstep"


def line(round_number: int, found: Measured) -> str:
    """One run, aligned with the others'."""
    if found.steady_rows_per_s is None or found.steady_s is None:
        steady = "steady: too few commits".ljust(44)
    else:
        brief = "" if found.steady_s >= STEADY_S_MIN else ", brief"
        steady = f"steady {found.steady_rows_per_s:>9,.0f} rows/s"
        steady += f" {_number(found.steady_cpu_us_per_row):>6} µs/row"
        steady = f"{steady} ({found.steady_s:.0f} s{brief})".ljust(44)
    commit = percentile(found.commit_ms, 50)
    return (
        f"round {round_number} {found.rival:16} all {found.window_rows_per_s:>9,.0f} rows/s "
        f"{found.window_cpu_us_per_row:>6.2f} µs/row {found.window_s:>6.1f} s  {steady} "
        f"{found.commits:>4} commits  {readable_size(found.peak_worker_bytes):>8} a worker"
        + (f"  commit {commit:,.0f} ms" if commit is not None else "")
    )


def write(
    name: str, command: str, runs: Sequence[Mapping[str, Any]], *, about: Mapping[str, Any], passed: bool
) -> Path:
    """Keep every run, the spread of each metric by rival, and Lockstep's ratios to the others."""
    figures = {
        **about,
        "rivals": by_rival(runs),
        "ratios": {one: ratios(runs, one) for one in _ours(runs)},
        "runs": list(runs),
    }
    return evidence.write(name, command=command, passed=passed, figures=figures)


def table(runs: Sequence[Mapping[str, Any]], entries: Sequence[Entry]) -> Table:
    """Minimum, median and maximum of every rival, and Lockstep's ratio to it."""
    found, titles = by_rival(runs), {entry.label: entry.title for entry in entries}
    shown = Table(title="minimum · median · maximum", title_justify="left")
    shown.add_column("rival", overflow="fold")
    for heading in ("rows/s, all", "rows/s, steady", "µs CPU/row, all", "µs CPU/row, steady", "worker peak"):
        shown.add_column(heading, justify="right")
    against = {one: ratios(runs, one) for one in _ours(runs)}
    for one in against:
        shown.add_column(f"{one} is × (all, steady, CPU)", justify="right")
    for label, metrics in found.items():
        cells = [
            _spread(metrics["window_rows_per_s"], "{:,.0f}"),
            _spread(metrics["steady_rows_per_s"], "{:,.0f}"),
            _spread(metrics["window_cpu_us_per_row"], "{:.2f}"),
            _spread(metrics["steady_cpu_us_per_row"], "{:.2f}"),
            readable_size(int(metrics["peak_worker_bytes"]["max"])),
        ]
        for quotients in against.values():
            theirs = quotients.get(label)
            names = ("window_rows_per_s", "steady_rows_per_s", "steady_cpu_us_per_row")
            cells.append("\n".join(_spread(theirs[one], "{:.2f}") for one in names) if theirs else "–")
        shown.add_row(titles.get(label, label), *cells)
    return shown


def _ours(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    return [one for one in dict.fromkeys(run["rival"] for run in runs) if one.partition("@")[0] == OURS]


def _spread(spread: Mapping[str, float] | None, form: str) -> str:
    if spread is None:
        return "–"
    return " · ".join(form.format(spread[name]) for name in ("min", "median", "max"))


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"

"""Figures for people as they come, and for programs at the end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from bench.figures import Measured, by_rival, percentile, ratios, spread
from bench.rivals.registry import Entry
from lockstep.output import readable_size
from tests import evidence

STEADY_S_MIN = 20.0
"""A steady part that is shorter says little."""
OURS = "lockstep"
RATES: Mapping[str, tuple[str, str]] = {
    "rows/s, all": ("window_rows_per_s", "{:,.0f}"),
    "rows/s, steady": ("steady_rows_per_s", "{:,.0f}"),
    "µs CPU/row, all": ("window_cpu_us_per_row", "{:.2f}"),
    "µs CPU/row, steady": ("steady_cpu_us_per_row", "{:.2f}"),
}
"""Columns: a metric, and how it is written."""


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
        + (f"  {found.compactions} compactions" if found.compactions else "")
        + (f"  {found.aborted} transactions aborted" if found.aborted else "")
        + (f"  the store took {found.store_cpu_s:,.0f} s of CPU" if found.store_cpu_s is not None else "")
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


def tables(runs: Sequence[Mapping[str, Any]], entries: Sequence[Entry]) -> Iterator[Table]:
    """Minimum, median and maximum of every rival; for each Lockstep among them its ratios; the stages."""
    titles = {entry.label: entry.title for entry in entries}
    rates = _table("minimum · median · maximum", "rival", *RATES, "worker peak, MB")
    for label, metrics in by_rival(runs).items():
        cells = [_spread(metrics[metric], form) for metric, form in RATES.values()]
        rates.add_row(titles.get(label, label), *cells, _spread(metrics["peak_worker_bytes"], "{:,.0f}", 1e6))
    yield rates
    for one in _ours(runs):
        quotients = _table(f"{titles.get(one, one)} is × times", "rival", *RATES)
        for label, metrics in ratios(runs, one).items():
            cells = [_spread(metrics[metric], "{:.2f}") for metric, _ in RATES.values()]
            quotients.add_row(titles.get(label, label), *cells)
        if quotients.row_count:
            yield quotients
    parts = _table(
        "where the time went, median of the rounds, % of a worker's or the pipeline's", "rival", "stages"
    )
    for label in dict.fromkeys(run["rival"] for run in runs):
        found = [run["stages"] for run in runs if run["rival"] == label and "stages" in run]
        names = dict.fromkeys(stage for some in found for stage in some)
        middle = {stage: spread(some.get(stage) for some in found) for stage in names}
        said = (f"{stage} {100 * one['median']:.0f}" for stage, one in middle.items() if one is not None)
        parts.add_row(titles.get(label, label), " · ".join(said) or "not known")
    yield parts


def _table(title: str, *headings: str) -> Table:
    made = Table(title=title, title_justify="left")
    for place, heading in enumerate(headings):
        made.add_column(heading, justify="right" if place and heading != "stages" else "left")
    return made


def _ours(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    return [one for one in dict.fromkeys(run["rival"] for run in runs) if one.startswith(OURS)]


def _spread(found: Mapping[str, float] | None, form: str, unit: float = 1.0) -> str:
    if found is None:
        return "–"
    return " · ".join(form.format(found[name] / unit) for name in ("min", "median", "max"))


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"

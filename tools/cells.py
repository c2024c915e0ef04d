"""Figures of the benchmarks as docs/benchmarks.md spells them: a table's cells, and where they come from.

`kept`: the recorded evidence of a run, None where there is none. `rival`: its label.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tools.staleness import changed_mark

NOT_YET = "not measured yet"
OURS = "lockstep"


def table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table in Markdown."""
    lines = [f"| {' | '.join(row)} |" for row in (titles, *rows)]
    return [lines[0].replace("|  |", "| |"), "|" + "---|" * len(titles), *lines[1:]]


def _of(found: Mapping[str, Any], rival: str) -> Any:
    """What was found of a rival, also where it ran as a variant, `streaming@500000`."""
    return next((one for name, one in found.items() if rival in (name, name.partition("@")[0])), None)


def steady(kept: Mapping[str, Any] | None, rival: str) -> str:
    """The rate between the first and the last whole commit, in rows a second (µs of CPU per row)."""
    metrics = _of(kept["figures"]["rivals"], rival) if kept is not None else None
    if metrics is None:
        return NOT_YET
    rows, cpu = metrics["steady_rows_per_s"], metrics["steady_cpu_us_per_row"]
    failed = sum("failed" in run for run in kept["figures"]["runs"] if run["rival"] == rival)
    if rows is None:
        return "failed" if failed else "too few commits"
    return f"{rows['median']:,.0f}" + (f" ({cpu['median']:.2f})" if cpu is not None else "")


def ratio(kept: Mapping[str, Any] | None, rival: str, metric: str) -> str:
    """Our metric as a multiple of the rival's."""
    theirs = _of(kept["figures"]["ratios"].get(OURS, {}), rival) if kept is not None else None
    return spread(theirs[metric], "{:.2f}") if theirs else "–"


def peak(kept: Mapping[str, Any] | None, rival: str) -> str:
    """The most memory that any of its workers had."""
    metrics = _of(kept["figures"]["rivals"], rival) if kept is not None else None
    found = metrics["peak_worker_bytes"] if metrics is not None else None
    return f"{found['max'] / 1e6:,.0f} MB" if found is not None else NOT_YET


def spread(found: Mapping[str, float] | None, form: str) -> str:
    """The median, with the least and the most where they differ."""
    if found is None:
        return "–"
    low, median, high = (form.format(found[name]) for name in ("min", "median", "max"))
    return median if low == high else f"{median} ({low} to {high})"


def origin(name: str, kept: Mapping[str, Any] | None) -> Iterator[str]:
    """Lines below a table: what measured it, when, and where every run is."""
    if kept is not None:
        yield ""
        verdict = "" if kept["passed"] else ", **not all runs ended well**"
        yield (
            f"`{kept['command']}`, {kept['at']}, commit `{kept['commit']}`{changed_mark(kept)}, "
            f"{kept['cpus']} processors, the broker beside{verdict}: [every run](evidence/bench-{name}.json)."
        )

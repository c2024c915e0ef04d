"""The part of docs/benchmarks.md on small files that are put together beside the commits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tools.cells import NOT_YET, OURS, origin, spread, table

CLUSTERING = "lockstep-clustering"
RATE, CPU = "steady_rows_per_s", "steady_cpu_us_per_row"

Read = Callable[[str], Mapping[str, Any] | None]


def sized(read: Read) -> list[str]:
    """What is left of small files after a load, what a query of them takes; then what it costs."""
    kept = read("bench-sizes")
    if kept is None:
        return [f"Small files after a load with frequent commits: {NOT_YET}."]
    found = kept["figures"]
    done, settled = found["clusterings"], found["settled"]
    written = done["bytes"] / settled["size_bytes"]
    return [
        f"Small files after {found['minutes']:g} minutes of {found['per_second']:,} records a second, "
        f"committed each {found['interval_s']:g} s, with files of {found['target_bytes'] / 1e6:,.0f} MB "
        f'wanted and `services.clustering = "async"`: {found["commits"]} commits, {done["count"]} '
        f"clusterings. {found['settled_s']:.0f} s after the load there are {settled['files']} files, "
        f"{settled['worst']} of them small in the table partition that has most; {written:.2f} times what "
        f"the table holds was written again. A query of all rows takes "
        f"{spread(found['ratio'], '{:.2f}')} times as long as of a copy in {found['perfect_files']} perfect "
        "files.",
        *origin("sizes", kept),
    ]


def beside(read: Read) -> list[str]:
    """Rates with and without."""
    kept = read("bench-narrow-sizes")
    if kept is None:
        return [f"Rates while small files are put together: {NOT_YET}."]
    found = kept["figures"]
    rows = []
    for name, metrics in found["rivals"].items():
        is_ours = name.partition("@")[0] == CLUSTERING
        others = found["ratios"].get(name, {}) if is_ours else {}
        quotient = next((one for other, one in others.items() if other.partition("@")[0] == OURS), None)
        cells = [spread(metrics[RATE], "{:,.0f}"), spread(metrics[CPU], "{:.2f}")]
        rows.append([found["titles"][name], *cells, spread(quotient and quotient[RATE], "{:.2f}")])
    return [
        "While small files are put together, and without, in turns, sustained:",
        "",
        *table(("", "rows/s", "µs CPU/row", "×"), rows),
        *origin("narrow-sizes", kept),
    ]

"""The part of docs/benchmarks.md on what a page that is open and scraped costs a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tools.cells import NOT_YET, origin, spread, table

WATCHED, UNWATCHED = "lockstep-page", "lockstep-no-page"
RATE, CPU = "steady_rows_per_s", "steady_cpu_us_per_row"


def watched(read: Callable[[str], Mapping[str, Any] | None]) -> list[str]:
    """Both, sustained, and how often the one's rate is the other's."""
    kept = read("bench-narrow-page")
    if kept is None:
        return [f"With the page open and scraped: {NOT_YET}."]
    found = kept["figures"]
    rows = []
    for name, metrics in found["rivals"].items():
        quotient = found["ratios"].get(name, {}).get(UNWATCHED) if name == WATCHED else None
        cells = [spread(metrics[RATE], "{:,.0f}"), spread(metrics[CPU], "{:.2f}")]
        rows.append([found["titles"][name], *cells, spread(quotient and quotient[RATE], "{:.2f}")])
    return [
        "With the page open in a browser and scraped each 5 s, and without a page, in turns, sustained:",
        "",
        *table(("", "rows/s", "µs CPU/row", "×"), rows),
        *origin("narrow-page", kept),
    ]

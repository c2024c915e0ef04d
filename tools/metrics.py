"""Write docs/metrics.md's tables from the table in the code. Run by `make docs`, tested for staleness."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from lockstep.watch.counters import BUCKETS_S  # noqa: E402
from lockstep.watch.metric_table import METRICS, PIPELINE  # noqa: E402
from tools.places import fill  # noqa: E402

DOCUMENT = ROOT / "docs" / "metrics.md"


def metrics() -> str:
    """A row per metric."""
    lines = [
        "| metric | type | unit | labels | what it is | alert on |",
        "|---|---|---|---|---|---|",
    ]
    for metric in METRICS:
        labels = ", ".join(f"`{label}`" for label in (PIPELINE, *metric.labels))
        cells = (f"`{metric.name}`", metric.kind, metric.unit, labels, metric.meaning, metric.alert)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(line.replace("|  |", "| |") for line in lines)


def buckets() -> str:
    """The histogram's bounds."""
    bounds = ", ".join(f"{bound:g}" for bound in BUCKETS_S)
    return f"Buckets of `lockstep_commit_duration_seconds`, in seconds: {bounds}."


PARTS: Mapping[str, Callable[[], str]] = {"metrics": metrics, "buckets": buckets}


def updated(document: str) -> str:
    """The document with every generated part in its place."""
    return fill(document, PARTS, DOCUMENT.name)


if __name__ == "__main__":
    DOCUMENT.write_text(updated(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")

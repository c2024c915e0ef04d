"""Write docs/scale.md's figures from docs/evidence/scale.json. Run by `make docs`, tested for staleness.

The laws are least-squares fits to what `python -m bench.scale` measured; the prose is written by hand.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests import evidence  # noqa: E402
from tools.places import fill  # noqa: E402
from tools.staleness import changed_mark, commit_mark  # noqa: E402

DOCUMENT = ROOT / "docs" / "scale.md"
LARGE = (10_000, 500)
"""The size whose bytes are shown by message: source partitions, workers."""

INTERVAL_S = 10


def measured() -> str:
    """A row per size."""
    lines = [
        "| source partitions | workers | core | reading | writing | together | a worker reads | "
        "bytes a partition: topic | commit |",
        "|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for size in _sizes():
        parts = [size["core_cpu_ms"], size["read_cpu_ms"], size["write_cpu_ms"]]
        cells = [
            f"{size['partitions']:,}",
            f"{size['workers']:,}",
            *(f"{figure:.1f} ms" for figure in (*parts, sum(parts), size["worker_read_cpu_ms"])),
            f"{size['topic_bytes'] / size['partitions']:.0f}",
            f"{size['metadata_bytes'] / size['partitions']:.0f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    kept = evidence.read("scale")
    if kept is not None:
        commit = f"commit `{kept['commit']}`{changed_mark(kept)}"
        lines += ["", f"`{kept['command']}`, {kept['at']}, {commit}, {kept['cpus']} processors."]
    return "\n".join(lines)


def laws() -> str:
    """What grows with source partitions (P) and with workers (W), as fitted."""
    mark = commit_mark(evidence.read("scale"))
    lines = [f"| | grows as{mark} | at 100,000 source partitions, 1,000 workers |", "|---|---|--:|"]
    for name, unit, value in _GROWING:
        per_partition, per_worker = _fit(value)
        at = per_partition * 100_000 + per_worker * 1_000
        shares = (_short(per_partition * 1_000), _short(per_worker * 100))
        law = f"{shares[0]} {unit} per 1,000 P + {shares[1]} {unit} per 100 W"
        lines.append(f"| {name} | {law} | {_short(at)} {unit} |")
    return "\n".join(lines)


def messages() -> str:
    """The bytes of one transaction on the control topic, by message, at the largest common size."""
    found = [s for s in _sizes() if (s["partitions"], s["workers"]) == LARGE]
    if not found:
        return "Not measured yet."
    mark = commit_mark(evidence.read("scale"))
    lines = [f"| message | bytes of one transaction{mark} | share |", "|---|--:|--:|"]
    total = found[0]["topic_bytes"]
    for name, size_bytes in sorted(found[0]["bytes_by_message"].items(), key=lambda one: -one[1]):
        lines.append(f"| {name} | {size_bytes:,} | {100 * size_bytes / total:.0f} % |")
    read_mb_s = total * LARGE[1] / INTERVAL_S / 1e6
    lines += [
        "",
        f"Every worker reads all of it: {LARGE[1]} workers at an interval of {INTERVAL_S} s take "
        f"{read_mb_s:.0f} MB/s from the brokers.",
    ]
    return "\n".join(lines)


PARTS: Mapping[str, Callable[[], str]] = {"measured": measured, "laws": laws, "messages": messages}

_GROWING: tuple[tuple[str, str, Callable[[Mapping[str, Any]], float]], ...] = (
    (
        "coordinator's CPU for a transaction",
        "ms",
        lambda s: s["core_cpu_ms"] + s["read_cpu_ms"] + s["write_cpu_ms"],
    ),
    ("bytes of a transaction on the control topic", "kB", lambda s: s["topic_bytes"] / 1e3),
    ("our metadata in a commit", "kB", lambda s: s["metadata_bytes"] / 1e3),
)


def _sizes() -> list[dict[str, Any]]:
    found = evidence.read("scale")
    return list(found["figures"]["sizes"]) if found is not None else []


def _fit(value: Callable[[Mapping[str, Any]], float]) -> tuple[float, float]:
    """Least squares of value = a P + b W, by relative error, neither below 0."""
    sizes = _sizes()
    if not sizes:
        return 0.0, 0.0
    wanted = np.array([value(s) for s in sizes])
    grown = np.array([[s["partitions"], s["workers"]] for s in sizes], dtype=float)
    (per_partition, per_worker), *_ = np.linalg.lstsq(
        grown / wanted[:, None], np.ones(len(sizes)), rcond=None
    )
    if per_worker < 0:
        return float(np.mean(wanted / grown[:, 0])), 0.0
    return float(per_partition), float(per_worker)


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def updated(document: str) -> str:
    """The document with every generated part in its place."""
    return fill(document, PARTS, DOCUMENT.name)


if __name__ == "__main__":
    DOCUMENT.write_text(updated(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")

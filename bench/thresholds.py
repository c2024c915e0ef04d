"""Thresholds of the benchmarks: `python -m bench.thresholds` compares the newest figures with them.

The figures are those of build/evidence, which the benchmarks have just written. All thresholds are ratios of
measurements that were taken in alternation, except for the freshness, whose load leaves the machine idle most
of the time. Each is about half of the recorded figure: a failure means a regression, not a busy machine.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import evidence


@dataclass(frozen=True, slots=True)
class Threshold:
    """`least` and `most`: bounds of the value, None where there is none."""

    benchmark: str
    title: str
    value: Callable[[Mapping[str, Any]], float]
    least: float | None = None
    most: float | None = None

    def judge(self, figures: Mapping[str, Any]) -> tuple[bool, str]:
        """Return whether the value is within its bounds, and a line that says so."""
        value = self.value(figures)
        below = self.least is not None and value < self.least
        above = self.most is not None and value > self.most
        bound = f"at least {self.least:g}" if self.least is not None else f"at most {self.most:g}"
        verdict = "FAILED" if below or above else "ok"
        return not (below or above), f"{verdict:<7}{self.title}: {value:.2f}, {bound}"


def rate_ratio(to: str) -> Callable[[Mapping[str, Any]], float]:
    """Lockstep's median rate over a whole run, in multiples of a rival's."""
    return lambda figures: float(figures["ratios"]["lockstep"][to]["window_rows_per_s"]["median"])


THRESHOLDS = (
    Threshold(
        "bench-narrow",
        "rate of Structured Streaming, inserts",
        rate_ratio("streaming"),
        least=4.0,
    ),
    Threshold(
        "bench-upserts",
        "rate of Structured Streaming, upserts",
        rate_ratio("streaming@4000000"),
        least=2.5,
    ),
    Threshold(
        "bench-freshness",
        "median seconds from produced to visible",
        lambda figures: figures["rivals"]["lockstep"]["p50_ms"]["median"] / 1_000,
        most=3.0,
    ),
)


def main(folder: Path = evidence.ROOT / "build" / "evidence") -> int:
    """Print a line for each threshold. Exit code 1 if a value is out of bounds or was not measured."""
    passed = True
    for threshold in THRESHOLDS:
        path = folder / f"{threshold.benchmark}.json"
        if not path.exists():
            ok, line = False, f"FAILED {threshold.title}: {path.name} was not written"
        else:
            ok, line = threshold.judge(json.loads(path.read_text(encoding="utf-8"))["figures"])
        passed &= ok
        sys.stdout.write(f"{line}\n")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())

"""Time profile of a run: by process, by file, by test. Pure, but for `write`."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests import evidence
from tests.suite.tiers import file_of

SHOWN = 25


@dataclass(slots=True)
class Timing:
    """Durations in seconds. `busy`: of each process, in tests with their fixtures; `cpu`: see `CPU_S`."""

    by_test: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    busy: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    count: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    cpu: dict[str, float] = field(default_factory=dict)

    def add(self, process: str, nodeid: str, seconds: float, *, last: bool) -> None:
        """Add one phase of a test. `last`: its teardown."""
        self.by_test[nodeid] += seconds
        self.busy[process] += seconds
        self.count[process] += last

    @property
    def by_file(self) -> dict[str, float]:
        files: dict[str, float] = defaultdict(float)
        for nodeid, seconds in self.by_test.items():
            files[file_of(nodeid)] += seconds
        return dict(_longest(files))

    def lines(self, wall_s: float) -> list[str]:
        """The profile for a terminal: processes, the longest files, the slowest tests."""
        lines = [f"{'process':<10} {'tests':>7} {'in tests':>10} {'CPU':>8}   of {wall_s:.0f} s"]
        lines += [
            f"{name:<10} {self.count[name]:>7,} {seconds:>8.0f} s {self.cpu.get(name, 0.0):>6.0f} s"
            for name, seconds in sorted(self.busy.items())
        ]
        return [*lines, "", "longest files", *_rows(self.by_file), "", *self.slowest()]

    def slowest(self) -> list[str]:
        return ["slowest tests", *_rows(dict(_longest(self.by_test)))]

    def figures(self, wall_s: float, cpu_s: float) -> dict[str, Any]:
        """What docs/evidence/suite.json keeps of one tier."""
        return {
            "tests": len(self.by_test),
            "wall_s": round(wall_s),
            "cpu_s": round(cpu_s),
            "processes": [
                {"tests": self.count[name], "busy_s": round(seconds), "cpu_s": round(self.cpu.get(name, 0.0))}
                for name, seconds in sorted(self.busy.items())
            ],
            "files": {file: round(seconds, 1) for file, seconds in list(self.by_file.items())[:SHOWN]},
        }


def write(name: str, figures: Mapping[str, Any]) -> None:
    """Keep the figures of a tier as evidence, next to those of other tiers. With RECORD=1 only."""
    if os.environ.get("RECORD") != "1":
        return
    known = evidence.read("suite")
    tiers = dict(known["figures"]["tiers"]) if known else {}
    tiers[name] = {**evidence.origin(evidence.cover_paths("suite")), **figures}
    evidence.write("suite", command="RECORD=1 make test", passed=True, figures={"tiers": tiers})


def _longest(seconds: Mapping[str, float]) -> Iterable[tuple[str, float]]:
    return sorted(seconds.items(), key=lambda one: -one[1])


def _rows(seconds: Mapping[str, float]) -> list[str]:
    return [f"{one:>8.1f} s  {name}" for name, one in list(seconds.items())[:SHOWN]]

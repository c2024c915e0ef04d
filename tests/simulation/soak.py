"""Many schedules and the whole small world: `python -m tests.simulation.soak --schedules 500000`.

Prints where it stands, every violation made small, and the figures, which it also keeps as evidence: at the
end, at Ctrl-C, and once a minute. With RESUME=1 it goes on where a run of the same code ended: of the code
that a schedule runs, which is the cores, the fakes and the checks, and no shell around them.
"""

from __future__ import annotations

import argparse
import importlib
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests import evidence
from tests.simulation.crew import Crew, MemberLost, Task
from tests.simulation.exhaustive import all_points, explain
from tests.simulation.pairs import legal
from tests.simulation.seeds import SEEDS, kept_seeds
from tests.simulation.shrink import shrink

CHUNK = 200
PROGRESS_EVERY_S = 10.0
KEPT_EVERY_S = 60.0
SHRUNK_MAX = 10
"""Violations that are made small; of more than these, only the seed and the sentence are printed."""

FIRST_SEED = 1_000_000
"""Tests walk the seeds from 0; a soak walks others."""

FAILED_MAX = 1_000


@dataclass(slots=True)
class SoakFigures:
    """What was walked so far. `failed`: (seed or point, sentence) of the first violations."""

    schedules: int = 0
    events: int = 0
    violations: int = 0
    seconds: float = 0.0
    exhaustive_points: int = 0
    exhaustive_violations: int = 0
    lost: int = 0
    next_seed: int = 0
    pairs_before: int = 0
    pairs: set[str] = field(default_factory=set)
    failed: list[tuple[int, str]] = field(default_factory=list)

    @property
    def schedules_per_s(self) -> float:
        return round(self.schedules / self.seconds, 1) if self.seconds else 0.0

    @classmethod
    def so_far(cls, found: Mapping[str, Any]) -> SoakFigures:
        """Those of an earlier run of the same code. Whatever it walked out of order is walked again."""
        return cls(
            schedules=found["next_seed"] - found["first_seed"],
            events=found["events"],
            violations=found["violations"],
            seconds=found["seconds"],
            exhaustive_points=found["exhaustive_points"],
            exhaustive_violations=found["exhaustive_violations"],
            lost=found["processes_lost"],
            next_seed=found["next_seed"],
            pairs_before=found["state_event_pairs"],
        )

    @property
    def pairs_met(self) -> int:
        """At least so many: those of an earlier run are known by their number."""
        return max(self.pairs_before, len(self.pairs))

    def describe(self) -> str:
        walked = (
            f"{self.schedules} schedules, {self.violations} violations, {self.schedules_per_s:g} a second"
        )
        return f"{walked}, {self.pairs_met} of {len(legal())} (state, event) pairs"

    def as_evidence(self, *, first_seed: int, asked: int) -> dict[str, Any]:
        return {
            "schedules": self.schedules,
            "schedules_asked": asked,
            "first_seed": first_seed,
            "next_seed": self.next_seed,
            "violations": self.violations,
            "events": self.events,
            "seconds": round(self.seconds, 1),
            "schedules_per_s": self.schedules_per_s,
            "exhaustive_points": self.exhaustive_points,
            "exhaustive_violations": self.exhaustive_violations,
            "state_event_pairs": self.pairs_met,
            "state_event_pairs_legal": len(legal()),
            "seeds_kept": len(kept_seeds()),
            "processes_lost": self.lost,
        }


def walk_seeds(
    figures: SoakFigures,
    first: int,
    count: int,
    *,
    jobs: int | None = None,
    keep: Callable[[], object] = lambda: None,
) -> None:
    """Walk the seeds, printing violations and progress. Raises `MemberLost` where a process is lost.

    `keep` is called now and then, when `figures` are such that a later run can go on from them.
    """
    began_s = said_s = kept_s = time.monotonic()
    earlier_s = figures.seconds
    figures.next_seed = first
    ahead: dict[int, int] = {}
    with Crew(jobs) as crew:
        for task, found in crew.run(_chunks(first, count)):
            ahead[task["first"]] = task["count"]
            while figures.next_seed in ahead:
                figures.next_seed += ahead.pop(figures.next_seed)
            figures.schedules += task["count"]
            figures.events += found["events"]
            figures.pairs.update(found["pairs"])
            for seed, sentence in found["failed"]:
                _violation(figures, seed, sentence)
            now_s = time.monotonic()
            figures.seconds = earlier_s + now_s - began_s
            if now_s - said_s > PROGRESS_EVERY_S:
                said_s = now_s
                _say(figures.describe())
            if now_s - kept_s > KEPT_EVERY_S:
                kept_s = now_s
                keep()


def walk_points(figures: SoakFigures, *, jobs: int | None = None) -> None:
    """Walk the whole small world."""
    count = len(all_points())
    _say(f"the small world: {count} points")
    with Crew(jobs) as crew:
        tasks = ({"do": "points", "numbers": numbers} for numbers in _slices(count))
        for task, found in crew.run(tasks):
            figures.exhaustive_points += len(task["numbers"])
            for number, sentence in found["failed"]:
                figures.exhaustive_violations += 1
                _say(explain(number, sentence))


def _chunks(first: int, count: int) -> Iterator[Task]:
    for start in range(first, first + count, CHUNK):
        yield {"do": "schedules", "first": start, "count": min(CHUNK, first + count - start)}


def _slices(count: int) -> Iterator[list[int]]:
    for start in range(0, count, CHUNK):
        yield list(range(start, min(start + CHUNK, count)))


def _violation(figures: SoakFigures, seed: int, sentence: str) -> None:
    figures.violations += 1
    if len(figures.failed) < FAILED_MAX:
        figures.failed.append((seed, sentence))
    small = shrink(seed) if figures.violations <= SHRUNK_MAX else None
    _say(small.report() if small is not None else f"seed {seed}: {sentence}")


def walked_code() -> list[str]:
    """The files that a schedule runs: what the crew's processes load is loaded here as well."""
    importlib.import_module("table.widening")  # which is loaded where a schema changes
    return [*evidence.loaded(), str(SEEDS.relative_to(evidence.ROOT)), "pyproject.toml"]


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.soak", description=__doc__)
    parser.add_argument("--schedules", type=int, default=500_000, help="how many random schedules")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED, help="the first of the seeds")
    parser.add_argument("--jobs", type=int, help="processes (the number of cores)")
    parser.add_argument("--no-small-world", action="store_true", help="random schedules only")
    asked = parser.parse_args(arguments)
    before = evidence.unfinished("simulation", walked_code())
    figures = SoakFigures.so_far(before) if before else SoakFigures(next_seed=asked.first_seed)
    whole = False
    options = f"--schedules {asked.schedules} --first-seed {asked.first_seed}"

    def keep() -> Path:
        violations = figures.violations + figures.exhaustive_violations
        return evidence.write(
            "simulation",
            command=f"python -m tests.simulation.soak {options}",
            passed=whole and not violations and not asked.no_small_world,
            figures=figures.as_evidence(first_seed=asked.first_seed, asked=asked.schedules),
            of=walked_code(),
        )

    _say(f"{asked.schedules} schedules, seeds from {asked.first_seed}, {figures.schedules} walked before")
    try:
        if not asked.no_small_world and figures.exhaustive_points < len(all_points()):
            figures.exhaustive_points = figures.exhaustive_violations = 0
            walk_points(figures, jobs=asked.jobs)
        left = asked.first_seed + asked.schedules - figures.next_seed
        walk_seeds(figures, figures.next_seed, left, jobs=asked.jobs, keep=keep)
        whole = True
    except KeyboardInterrupt:
        _say("interrupted: the figures so far")
    except MemberLost as lost:
        figures.lost += 1
        _say(str(lost))
    _say(
        f"{figures.describe()}; the small world: {figures.exhaustive_points} points, "
        f"{figures.exhaustive_violations} violations; written to {keep()}"
    )
    return 0 if whole and not figures.violations + figures.exhaustive_violations else 1


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())

"""Many schedules and the whole small world: `python -m tests.simulation.soak --schedules 500000`.

Prints where it stands, every violation made small, and at the end the figures, which it also keeps as
evidence. Ctrl-C ends it with the figures so far.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests import evidence
from tests.simulation.crew import Crew, MemberLost, Task
from tests.simulation.exhaustive import all_points, explain
from tests.simulation.pairs import legal
from tests.simulation.seeds import kept_seeds
from tests.simulation.shrink import shrink

CHUNK = 200
PROGRESS_EVERY_S = 10.0
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
    pairs: set[str] = field(default_factory=set)
    failed: list[tuple[int, str]] = field(default_factory=list)

    @property
    def schedules_per_s(self) -> float:
        return round(self.schedules / self.seconds, 1) if self.seconds else 0.0

    def describe(self) -> str:
        walked = (
            f"{self.schedules} schedules, {self.violations} violations, {self.schedules_per_s:g} a second"
        )
        return f"{walked}, {len(self.pairs)} of {len(legal())} (state, event) pairs"

    def as_evidence(self, *, first_seed: int, asked: int) -> dict[str, Any]:
        return {
            "schedules": self.schedules,
            "schedules_asked": asked,
            "first_seed": first_seed,
            "violations": self.violations,
            "events": self.events,
            "seconds": round(self.seconds, 1),
            "schedules_per_s": self.schedules_per_s,
            "exhaustive_points": self.exhaustive_points,
            "exhaustive_violations": self.exhaustive_violations,
            "state_event_pairs": len(self.pairs),
            "state_event_pairs_legal": len(legal()),
            "seeds_kept": len(kept_seeds()),
            "processes_lost": self.lost,
        }


def walk_seeds(figures: SoakFigures, first: int, count: int, *, jobs: int | None = None) -> None:
    """Walk the seeds, printing violations and progress. Raises `MemberLost` where a process is lost."""
    began_s = said_s = time.monotonic()
    earlier_s = figures.seconds
    with Crew(jobs) as crew:
        for task, found in crew.run(_chunks(first, count)):
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
    figures = SoakFigures()
    whole = False
    _say(f"{asked.schedules} schedules, seeds from {asked.first_seed}")
    try:
        if not asked.no_small_world:
            walk_points(figures, jobs=asked.jobs)
        walk_seeds(figures, asked.first_seed, asked.schedules, jobs=asked.jobs)
        whole = True
    except KeyboardInterrupt:
        _say("interrupted: the figures so far")
    except MemberLost as lost:
        figures.lost += 1
        _say(str(lost))
    violations = figures.violations + figures.exhaustive_violations
    options = f"--schedules {asked.schedules} --first-seed {asked.first_seed}"
    path = evidence.write(
        "simulation",
        command=f"python -m tests.simulation.soak {options}",
        passed=whole and not violations and not asked.no_small_world,
        figures=figures.as_evidence(first_seed=asked.first_seed, asked=asked.schedules),
    )
    _say(
        f"{figures.describe()}; the small world: {figures.exhaustive_points} points, "
        f"{figures.exhaustive_violations} violations; written to {path}"
    )
    return 0 if whole and not violations else 1


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())

"""Replays one seed, or tries many.

`--seed N` replays that seed and prints what happened; with `--shrink` it is made small first. Without a seed,
`--from` and `--count` name seeds to try.
"""

from __future__ import annotations

import argparse
import sys

from tests.simulation.overrides import add_options, from_options
from tests.simulation.shrink import LINES_MAX, shrink
from tests.simulation.soak import SoakFigures, walk_seeds
from tests.simulation.world import ScheduleFailed, World


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="replay this seed and print what happened")
    parser.add_argument("--full", action="store_true", help="print every line, with ids as they are")
    parser.add_argument("--shrink", action="store_true", help="make the failing seed small first")
    parser.add_argument("--from", dest="first", type=int, default=0, help="the first of many seeds")
    parser.add_argument("--count", type=int, default=1_000, help="how many seeds to try")
    parser.add_argument("--jobs", type=int, help="processes (the number of cores)")
    add_options(parser)
    asked = parser.parse_args()
    if asked.seed is None:
        figures = SoakFigures()
        walk_seeds(figures, asked.first, asked.count, jobs=asked.jobs)
        sys.stdout.write(f"{figures.describe()}\n")
        return 1 if figures.violations else 0
    return shrink_and_print(asked.seed) if asked.shrink else replay(asked)


def replay(asked: argparse.Namespace) -> int:
    """Print one schedule, and how it ended."""
    world = World(asked.seed, record=True, overrides=from_options(asked))
    ending = ""
    try:
        world.run()
    except ScheduleFailed as failed:
        ending = str(failed)
    lines = world.transcript.lines() if asked.full else world.transcript.telling(LINES_MAX)
    sys.stdout.write("\n".join([*lines, "", ending or "all is well"]) + "\n")
    return 1 if ending else 0


def shrink_and_print(seed: int) -> int:
    """Print the smallest schedule found that fails as this seed does."""
    small = shrink(seed)
    sys.stdout.write(f"{small.report() if small else 'all is well'}\n")
    return 1 if small else 0


if __name__ == "__main__":
    sys.exit(main())

"""`python -m tests.simulation --seed N` replays one seed and prints its transcript."""

from __future__ import annotations

import argparse
import sys
import time

from tests.simulation.world import ScheduleFailed, World, replay


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="replay this seed and print what happened")
    parser.add_argument("--from", dest="first", type=int, default=0, help="the first of many seeds")
    parser.add_argument("--count", type=int, default=1_000, help="how many seeds to try")
    asked = parser.parse_args()
    if asked.seed is not None:
        lines, error = replay(asked.seed)
        sys.stdout.write("\n".join(lines) + "\n")
        sys.stdout.write(f"\n{error}\n" if error is not None else "\nall is well\n")
        return 1 if error is not None else 0
    return sweep(asked.first, asked.count)


def sweep(first: int, count: int) -> int:
    """Try many seeds; a line for each that fails."""
    failed, began = 0, time.monotonic()
    for seed in range(first, first + count):
        try:
            World(seed).run()
        except ScheduleFailed as error:
            failed += 1
            sys.stdout.write(f"seed {seed}: {error}\n")
            sys.stdout.flush()
    took_s = time.monotonic() - began
    sys.stdout.write(f"{failed} of {count} seeds failed, {took_s:.1f} s\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

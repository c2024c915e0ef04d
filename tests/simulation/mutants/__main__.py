"""`python -m tests.simulation.mutants` finds every seeded bug and keeps how long it took.

`--show NAME` prints the transcript of the schedule that finds one.
"""

from __future__ import annotations

import argparse
import sys

from tests import evidence
from tests.simulation.mutants import MUTANTS
from tests.simulation.mutants.base import Notes
from tests.simulation.mutants.search import SCHEDULES_MAX, Found, NotFound, find
from tests.simulation.world import ScheduleFailed

COMMAND = "python -m tests.simulation.mutants"


def main() -> int:
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    parser.add_argument("--show", metavar="NAME", choices=sorted(MUTANTS), help="the transcript of one")
    asked = parser.parse_args()
    return show(asked.show) if asked.show else search_all()


def search_all() -> int:
    """All of them, one line each; the figures are kept as evidence."""
    found: list[Found] = []
    lived: list[str] = []
    for mutant in MUTANTS.values():
        try:
            one = find(mutant)
        except NotFound as error:
            lived.append(str(error))
            sys.stdout.write(f"NOT FOUND: {error}\n")
            continue
        found.append(one)
        sys.stdout.write(f"{one.mutant:<34} {one.after_schedules:>6}  {one.said[:120]}\n")
        sys.stdout.flush()
    figures = {
        "bugs": len(MUTANTS),
        "found": len(found),
        "schedules_max": SCHEDULES_MAX,
        "most_schedules": max((one.after_schedules for one in found), default=0),
        "mutants": [
            {
                "name": one.mutant,
                "bug": one.bug,
                "layer": one.layer,
                "found_after_schedules": one.after_schedules,
                "found_by": one.checker,
            }
            for one in found
        ],
        "not_found": lived,
    }
    path = evidence.write("mutants", command=COMMAND, passed=not lived, figures=figures)
    sys.stdout.write(f"{len(found)} of {len(MUTANTS)} were found; {path}\n")
    return 1 if lived else 0


def show(name: str) -> int:
    """Replay the schedule that finds it."""
    mutant = MUTANTS[name]
    found = find(mutant)
    world = mutant.world(found.seed, Notes(), record=True)
    try:
        world.run()
    except ScheduleFailed as failed:
        sys.stdout.write("\n".join(world.transcript.lines()) + f"\n\n{failed}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""`python -m tests.simulation.mutants` finds every seeded bug and keeps how long it took.

`--show NAME` prints the transcript of the schedule that finds one.
"""

from __future__ import annotations

import argparse
import sys

from tests import evidence
from tests.simulation.crew import Crew
from tests.simulation.mutants import MUTANTS
from tests.simulation.mutants.base import Notes
from tests.simulation.mutants.search import SCHEDULES_MAX, Found, NotFound, find, find_again
from tests.simulation.walked import SCHEDULES
from tests.simulation.world import ScheduleFailed

COMMAND = "python -m tests.simulation.mutants"
SEARCH_MAX_S = 3_600.0
"""For one bug: the rarest take thousands of schedules."""


def main() -> int:
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    parser.add_argument("--show", metavar="NAME", choices=sorted(MUTANTS), help="the transcript of one")
    parser.add_argument("--jobs", type=int, help="processes (the number of cores)")
    parser.add_argument("--tier", choices=["test"], help="only by what `make test` runs: the recorded seeds")
    asked = parser.parse_args()
    if asked.tier:
        return find_by_tier()
    return show(asked.show) if asked.show else search_all(asked.jobs)


def find_by_tier() -> int:
    """Find each at its recorded seed, which `make test` walks with and without the bug; keep the result."""
    found: list[Found] = []
    lived: list[str] = []
    for mutant in MUTANTS.values():
        try:
            found.append(find_again(mutant))
        except NotFound as error:
            lived.append(str(error))
            sys.stdout.write(f"NOT FOUND: {error}\n")
    figures = {
        "bugs": len(MUTANTS),
        "found": len(found),
        "by_the_schedules_of_make_test": sum(one.after_schedules <= SCHEDULES for one in found),
        "not_found": lived,
    }
    evidence.write("tier-cores", command=f"{COMMAND} --tier test", passed=not lived, figures=figures)
    sys.stdout.write(f"make test catches {len(found)} of {len(MUTANTS)}\n")
    return 1 if lived else 0


def search_all(jobs: int | None) -> int:
    """Search for all; print a line for each as it ends. The evidence lists them in the catalogue's order."""
    by_name: dict[str, Found] = {}
    lived: list[str] = []
    with Crew(jobs, task_max_s=SEARCH_MAX_S) as crew:
        for task, told in crew.run({"do": "mutant", "name": name} for name in MUTANTS):
            if "lived" in told:
                lived.append(told["lived"])
                sys.stdout.write(f"NOT FOUND: {told['lived']}\n")
            else:
                one = by_name[task["name"]] = Found(**told["found"])
                sys.stdout.write(f"{one.mutant:<34} {one.after_schedules:>6}  {one.said[:120]}\n")
            sys.stdout.flush()
    found = [by_name[name] for name in MUTANTS if name in by_name]
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
        "not_found": sorted(lived),
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

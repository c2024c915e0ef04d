"""`python -m tests.seeded` puts each seeded bug of the shells in and plays the tests that must find it.

`python -m tests.seeded NAME …` plays these alone, and keeps no evidence. `--list` names all.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tests import evidence
from tests.seeded import BUGS
from tests.seeded.base import Bug
from tests.seeded.play import Found, NotFound, find_by, must_pass

COMMAND = "python -m tests.seeded"


def main() -> int:
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    parser.add_argument("names", metavar="NAME", nargs="*", help="of the bugs to play; by default all")
    parser.add_argument("--list", action="store_true", help="names all, and plays none")
    asked = parser.parse_args()
    if strange := set(asked.names) - BUGS.keys():
        parser.error(f"no bug is called {', '.join(sorted(strange))}")
    if asked.list:
        for bug in BUGS.values():
            say(f"{bug.name:<44} {bug.says}")
        return 0
    bugs = [BUGS[name] for name in asked.names or BUGS]
    try:
        must_pass(bugs)
    except NotFound as error:
        say(f"NOT PLAYED: {error}")
        return 1
    found, lived = find_all(bugs)
    if not asked.names:
        keep(found, lived)
    say(f"{len(found)} of {len(bugs)} were found")
    return 1 if lived else 0


def find_all(bugs: Sequence[Bug]) -> tuple[list[Found], list[str]]:
    """Those that were found, and why others were not; a line for each."""
    found: list[Found] = []
    lived: list[str] = []
    for bug in bugs:
        try:
            one = find_by(bug)
        except NotFound as error:
            lived.append(str(error))
            say(f"NOT FOUND: {error}")
            continue
        found.append(one)
        say(f"{bug.name:<44} {one.took_s:>5.0f} s  {one.said[:100]}")
    return found, lived


def keep(found: Sequence[Found], lived: Sequence[str]) -> None:
    """As evidence."""
    figures = {
        "bugs": len(BUGS),
        "found": len(found),
        "tests_that_find_them": len({test for one in found for test in one.bug.found_by}),
        "each": [
            {
                "name": one.bug.name,
                "bug": one.bug.says,
                "hole": one.bug.hole.value,
                "found_by": list(one.bug.found_by),
            }
            for one in found
        ],
        "not_found": list(lived),
    }
    say(str(evidence.write("seeded", command=COMMAND, passed=not lived, figures=figures)))


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

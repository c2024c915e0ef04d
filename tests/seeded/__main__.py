"""`python -m tests.seeded` puts each seeded bug of the shells in and plays the tests that must find it.

`python -m tests.seeded NAME …` plays these alone, `--new` those that are not on record, and puts them there.
`--list` names all. `--tier test` proves that `make test` alone catches each of them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tests import evidence
from tests.seeded import BUGS
from tests.seeded.base import Bug
from tests.seeded.play import Found, NotFound, find_by, must_pass
from tests.suite.tiers import Tier

COMMAND = "python -m tests.seeded"
TIER = Tier.TEST
MAKE_TEST = (Tier.CHECK, Tier.TEST)
"""Tiers that `make test` runs."""
Figures = dict[str, Any]
"""Of one bug, as the evidence has it."""


def main() -> int:
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    parser.add_argument("names", metavar="NAME", nargs="*", help="of the bugs to play; by default all")
    parser.add_argument("--new", action="store_true", help="those that are not on record")
    parser.add_argument("--tier", choices=[TIER], help="all, by the tests of `make test` alone")
    parser.add_argument("--list", action="store_true", help="names all, and plays none")
    asked = parser.parse_args()
    if strange := set(asked.names) - BUGS.keys():
        parser.error(f"no bug is called {', '.join(sorted(strange))}")
    if asked.list:
        for bug in BUGS.values():
            say(f"{bug.name:<44} {bug.says}")
        return 0
    if asked.tier:
        return find_by_tier()
    known = recorded()
    bugs = [bug for bug in BUGS.values() if not asked.new or bug.name not in known]
    if asked.names:
        bugs = [BUGS[name] for name in asked.names]
    try:
        must_pass(bugs)
    except NotFound as error:
        say(f"NOT PLAYED: {error}")
        return 1
    found, lived = find_all(bugs)
    keep(found, lived, so_far=known)
    say(f"{len(found)} of {len(bugs)} were found")
    return 1 if lived else 0


def find_by_tier() -> int:
    """Put in each bug and run only the tests of it that `make test` runs. Return the exit code."""
    found, lived = find_all([*BUGS.values()], tiers=MAKE_TEST)
    figures = {
        "bugs": len(BUGS),
        "found": len(found),
        "each": [{"name": one.bug.name, "said": one.said} for one in found],
        "not_found": list(lived.values()),
    }
    command = f"{COMMAND} --tier {TIER}"
    say(str(evidence.write("tier-shells", command=command, passed=not lived, figures=figures)))
    say(f"make test catches {len(found)} of {len(BUGS)}")
    return 1 if lived else 0


def find_all(bugs: Sequence[Bug], *, tiers: Collection[Tier] = ()) -> tuple[list[Found], dict[str, str]]:
    """Those that were found, and by name why others were not; a line for each."""
    found: list[Found] = []
    lived: dict[str, str] = {}
    for bug in bugs:
        try:
            one = find_by(bug, tiers=tiers)
        except NotFound as error:
            lived[bug.name] = str(error)
            say(f"NOT FOUND: {error}")
            continue
        found.append(one)
        say(f"{bug.name:<44} {one.took_s:>5.0f} s  {one.said[:100]}")
    return found, lived


def recorded() -> Mapping[str, Figures]:
    """Those that are on record, each as it was played; not where other tests are to find it by now."""
    rows = {one["name"]: one for one in evidence.rows("seeded", "each")}
    return {
        name: rows[name]
        for name, bug in BUGS.items()
        if name in rows and rows[name]["found_by"] == list(bug.found_by)
    }


def keep(found: Sequence[Found], lived: Mapping[str, str], *, so_far: Mapping[str, Figures]) -> None:
    """As evidence, in the place of what was known of the same bugs."""
    anew = {one.bug.name: _figures(one.bug) for one in found}
    known = {name: row for name, row in so_far.items() if name not in lived} | anew
    each = [known[name] for name in BUGS if name in known]
    figures = {
        "bugs": len(BUGS),
        "found": len(each),
        "tests_that_find_them": len({test for one in each for test in one["found_by"]}),
        "each": each,
        "not_found": list(lived.values()),
    }
    say(str(evidence.write("seeded", command=COMMAND, passed=len(each) == len(BUGS), figures=figures)))


def _figures(bug: Bug) -> Figures:
    covers = cover_of_bug(bug)
    figures = {"name": bug.name, "bug": bug.says, "hole": bug.hole.value, "found_by": list(bug.found_by)}
    return {**figures, **evidence.origin(covers), "covers": covers}


def cover_of_bug(bug: Bug) -> list[str]:
    """Return the files that a bug's row covers: the modules that it replaces, and those of its tests."""
    modules = {place.partition(":")[0].replace(".", "/") for place in bug.wrong}
    packages = {one for one in modules if (evidence.ROOT / one).is_dir()}
    replaced = {f"{one}/__init__.py" if one in packages else f"{one}.py" for one in modules}
    return sorted(replaced | {test.partition("::")[0] for test in bug.found_by})


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

"""Walks the object store's world: `python -m tests.simulation.bucket --schedules 100000`.

Random schedules, each single fault, pairs of faults, and the seeded bugs; what was found is kept as evidence.
`--seed N`, `--point N` or `--pair N` replays one; with `--shrink` it is made small, with `--full` every line
of it is shown, with `--bug NAME` it is played with that seeded bug.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import chain

from tests import evidence
from tests.simulation.bucket.explore import Schedule, all_pairs, all_points, kind_of, report, shrink
from tests.simulation.bucket.mutants import HARMLESS, MUTANTS, NotFound, find
from tests.simulation.bucket.rules import RULES

COMMAND = "python -m tests.simulation.bucket"
CHUNK = 100
FIRST_SEED = 1_000_000
"""Tests walk the seeds from 0."""
PAIRS_STEP = 7_919
"""A prime: fewer pairs than all are spread over all."""
SAID_EVERY_S = 20.0
SHRUNK_MAX = 5


def schedule_of(sort: str, number: int) -> Schedule:
    if sort == "seed":
        return Schedule.of(number)
    if sort == "point":
        return all_points()[number]
    return all_pairs()[number * PAIRS_STEP % len(all_pairs())]


def walk(sort: str, first: int, count: int) -> list[tuple[str, int, str]]:
    """What fails among these: its sort, its number, and why."""
    failed = []
    for number in range(first, first + count):
        if failure := schedule_of(sort, number).fails():
            failed.append((sort, number, failure))
    return failed


def tasks(sort: str, first: int, count: int) -> Iterator[tuple[str, int, int]]:
    for start in range(first, first + count, CHUNK):
        yield sort, start, min(CHUNK, first + count - start)


def walk_all(asked: argparse.Namespace) -> tuple[dict[str, int], int]:
    """How many of each sort were walked, and how many failed, each of which is shown."""
    counts = {"seed": asked.schedules, "point": len(all_points()), "pair": min(asked.pairs, len(all_pairs()))}
    if asked.random_only:
        counts = {"seed": asked.schedules, "point": 0, "pair": 0}
    firsts = {"seed": asked.first_seed, "point": 0, "pair": 0}
    work = [tasks(sort, firsts[sort], count) for sort, count in counts.items()]
    walked, said_s, failures = 0, time.monotonic(), 0
    with ProcessPoolExecutor(asked.jobs) as pool:
        for sort_first_count, failed in _in_turn(pool, chain(*work), asked.jobs):
            walked += sort_first_count[2]
            for sort, number, failure in failed:
                failures += 1
                say(f"--{sort} {number} fails: {failure}")
                if failures <= SHRUNK_MAX:
                    say(report(shrink(schedule_of(sort, number))))
            if time.monotonic() - said_s > SAID_EVERY_S:
                said_s = time.monotonic()
                say(f"{walked:,} of {sum(counts.values()):,} schedules, {failures} violations")
    return counts, failures


Task = tuple[str, int, int]


def _in_turn(
    pool: ProcessPoolExecutor, work: Iterator[Task], jobs: int
) -> Iterator[tuple[Task, list[tuple[str, int, str]]]]:
    """Few at a time: a list of a million tasks is not handed over at once."""
    under_way = []
    for task in work:
        under_way.append((task, pool.submit(walk, *task)))
        if len(under_way) > 2 * jobs:
            done, future = under_way.pop(0)
            yield done, future.result()
    for done, future in under_way:
        yield done, future.result()


def search_all() -> tuple[list[dict[str, object]], list[str]]:
    found: list[dict[str, object]] = []
    lived: list[str] = []
    for mutant in MUTANTS.values():
        try:
            after, schedule = find(mutant)
        except NotFound as error:
            lived.append(str(error))
            say(str(error))
            continue
        violated = kind_of(schedule.fails(mutant.rules))
        found.append(
            {
                "name": mutant.name,
                "bug": mutant.bug,
                "found_after_schedules": after,
                "violates": violated,
            }
        )
        say(f"{mutant.name:<32} {after:>6}  {violated}")
    return found, lived


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def replay(asked: argparse.Namespace, sort: str) -> int:
    rules = MUTANTS[asked.bug].rules if asked.bug else RULES
    focus = MUTANTS[asked.bug].focus if asked.bug else ()
    number = getattr(asked, sort)
    schedule = Schedule.of(number, focus) if sort == "seed" else schedule_of(sort, number)
    failure = schedule.fails(rules)
    if failure and asked.shrink:
        schedule = shrink(schedule, rules)
    say(report(schedule, rules, full=asked.full))
    return 1 if failure else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog=COMMAND, description=__doc__)
    parser.add_argument("--schedules", type=int, default=100_000, help="how many random ones")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED, help="the first of their seeds")
    parser.add_argument("--pairs", type=int, default=1_000_000, help="how many pairs of faults at most")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--random-only", action="store_true", help="no single faults, pairs, seeded bugs")
    for sort in ("seed", "point", "pair"):
        parser.add_argument(f"--{sort}", type=int, help="replay this one")
    parser.add_argument("--bug", choices=sorted(MUTANTS), help="with this seeded bug")
    parser.add_argument("--shrink", action="store_true", help="make it small first")
    parser.add_argument("--full", action="store_true", help="show every line, names as they are")
    asked = parser.parse_args()
    for sort in ("seed", "point", "pair"):
        if getattr(asked, sort) is not None:
            return replay(asked, sort)
    return record(asked)


def record(asked: argparse.Namespace) -> int:
    began_s = time.monotonic()
    counts, failures = walk_all(asked)
    seconds = time.monotonic() - began_s
    found, lived = ([], []) if asked.random_only else search_all()
    figures = {
        "schedules": counts["seed"],
        "first_seed": asked.first_seed,
        "single_faults": counts["point"],
        "pairs_of_faults": counts["pair"],
        "pairs_of_faults_in_all": len(all_pairs()),
        "violations": failures,
        "seconds": round(seconds, 1),
        "schedules_per_s": round(sum(counts.values()) / seconds, 1) if seconds else 0.0,
        "bugs": len(MUTANTS),
        "found": len(found),
        "harmless": [bug.__name__ for bug in HARMLESS],
        "mutants": found,
        "not_found": lived,
    }
    options = f"--schedules {asked.schedules} --first-seed {asked.first_seed} --pairs {counts['pair']}"
    passed = not failures and not lived and not asked.random_only
    path = evidence.write("bucket", command=f"{COMMAND} {options}", passed=passed, figures=figures)
    say(f"{sum(counts.values()):,} schedules, {failures} violations, written to {path}")
    return 0 if not failures and not lived else 1


if __name__ == "__main__":
    sys.exit(main())

"""Tiers of the test suite: which command runs a test. Pure.

A test belongs to exactly one tier. Its tier follows from its fixtures and markers, and from the record of the
seeded bugs (docs/evidence/seeded.json). No list of tests is kept by hand.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import PurePosixPath

from tests.suite.plan import UNIT_FOLDER, Lane, of_whole_tree

MIRRORS: Mapping[str, str] = {"native": "participant/records", "proto": "control_topic", "docs": "tools"}
"""Top-level folders whose unit tests mirror another folder."""
CORES = frozenset({"coordinator", "participant"})
"""Packages whose own modules form a core: its transitions are tested in `CORES_FOLDER`."""
CORES_FOLDER = str(UNIT_FOLDER / "cores")
NIGHTLY = "nightly"
"""The marker of tests that `make nightly` repeats, and `make test` never runs."""
SMOKE = "smoke"
"""The marker of end-to-end tests that `make test` runs. Its argument is one of `SMOKE_SUBJECTS`."""
SMOKE_SUBJECTS: Mapping[str, int] = {
    "inserts": 1,
    "upserts": 1,
    "s3": 1,
    "avro": 1,
    "killed worker": 1,
    "killed driver": 1,
    "page": 1,
}
"""Number of tests for each subject."""


class Tier(StrEnum):
    """`CHECK`: unit tests; `make check` runs those of changed packages. `TEST`: the rest of `make test`.
    `ALL`: the rest of `make test-all`, of which each CI run takes a slice."""

    CHECK = "check"
    TEST = "test"
    ALL = "all"


def tier_of(nodeid: str, lane: Lane, markers: Collection[str], evidence: Collection[str]) -> Tier:
    """Return the tier of one test.

    `evidence`: the tests that catch seeded bugs. A node id without parameters names all tests of a function.
    """
    if NIGHTLY in markers:
        return Tier.ALL
    if lane is Lane.PURE:
        return Tier.CHECK if UNIT_FOLDER in PurePosixPath(file_of(nodeid)).parents else Tier.TEST
    if SMOKE in markers or nodeid in evidence or without_parameters(nodeid) in evidence:
        return Tier.TEST
    return Tier.ALL


def file_of(nodeid: str) -> str:
    """Return the file of a test, with `/`, relative to the root of the repository."""
    return nodeid.partition("::")[0]


def without_parameters(nodeid: str) -> str:
    """Return the node id of a test function."""
    return nodeid.partition("[")[0]


# --- make check -------------------------------------------------------------------------------------------


def unit_tests_of(changed: Iterable[str], existing: Collection[str]) -> set[str]:
    """Return the folders and files below tests/unit that mirror the changed files.

    `existing`: folders below tests/unit. A changed file selects the closest folder that mirrors its own, at
    least its package; a changed unit test selects itself, and a file that tests share the folder of its own.
    A changed core also selects the tests of both cores.
    """
    selected = set()
    for file in map(PurePosixPath, changed):
        if UNIT_FOLDER in file.parents:
            is_test = file.name.startswith("test_") and file.suffix == ".py"
            selected.add(str(file if is_test else file.parent))
            continue
        if str(file.parent) in CORES:
            selected.add(CORES_FOLDER)
        root = file.parts[0]
        for folder in (*file.parents, PurePosixPath(MIRRORS.get(root, root))):
            mirror = UNIT_FOLDER / folder
            if folder.parts and str(mirror) in existing:
                selected.add(str(mirror))
                break
    return selected


def is_selected(file: str, selected: Collection[str]) -> bool:
    """Whether `make check` runs a file of unit tests. Files directly in tests/unit cover the whole tree."""
    path = PurePosixPath(file)
    if of_whole_tree(file):
        return True
    return not selected.isdisjoint({file, *map(str, path.parents)}) if selected else False


# --- the slice of a CI run --------------------------------------------------------------------------------


def slice_of(units: Mapping[str, float], commit: str, slices: int) -> set[str]:
    """Return the units that one CI run plays: one of `slices` groups of about the same duration.

    `units`: name to duration in seconds. The hash of the commit chooses the group, so that every unit has a
    chance of 1 in `slices`, and decides ties, so that the groups differ from commit to commit. Source:
    longest processing time first (Graham 1969).
    """
    groups: list[set[str]] = [set() for _ in range(slices)]
    loads = [0.0] * slices
    order = {name: _hash(commit, name) for name in units}
    for name in sorted(units, key=lambda one: (-units[one], order[one])):
        lightest = min(range(slices), key=lambda number: (loads[number], _hash(commit, name, str(number))))
        groups[lightest].add(name)
        loads[lightest] += units[name]
    return groups[_hash(commit) % slices]


def _hash(*parts: str) -> int:
    return int.from_bytes(hashlib.sha256("\0".join(parts).encode()).digest()[:8])


# --- consistency ------------------------------------------------------------------------------------------


def smoke_errors(subjects: Iterable[str]) -> list[str]:
    """Return what is wrong with the subjects of all smoke tests; empty if each has its number of tests."""
    found = Counter(subjects)
    wrong = [f"smoke test of an unknown subject: {name!r}" for name in found if name not in SMOKE_SUBJECTS]
    wrong += [
        f"subject {name!r}: {found[name]} smoke tests instead of {count}"
        for name, count in SMOKE_SUBJECTS.items()
        if found[name] != count
    ]
    return wrong


def seeded_errors(bugs: Mapping[str, Sequence[str]], recorded: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the seeded bugs that `make test` is not known to catch.

    Both map a bug to the tests that must fail with it: as the code says, and as the last record has it. `make
    test` runs every recorded test, so a bug needs a record that names the same tests.
    """
    wrong = []
    for name, tests in bugs.items():
        if name not in recorded:
            wrong.append(f"{name}: not on record. Run: python -m tests.seeded --new")
        elif list(recorded[name]) != list(tests):
            wrong.append(f"{name}: recorded with other tests. Run: python -m tests.seeded {name}")
    wrong += [f"{name}: on record, but no such bug exists" for name in recorded if name not in bugs]
    return wrong

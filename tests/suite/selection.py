"""Selection of tests: tiers, changed files, the slice of a CI run. Reads git and the evidence."""

from __future__ import annotations

import json
import subprocess
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from tests.suite import took
from tests.suite.plan import Lane, lane_of
from tests.suite.tiers import UNIT_FOLDER, Tier, file_of, is_selected, slice_of, tier_of, unit_tests_of

ROOT = Path(__file__).resolve().parents[2]
SEEDED = ROOT / "docs" / "evidence" / "seeded.json"
SLICES = 8
"""Number of CI runs after which every test is expected to have run once."""


def add_options(group: pytest.OptionGroup) -> None:
    group.addoption("--tier", action="append", default=[], choices=[*Tier], help="run the tests of this tier")
    group.addoption("--changed", action="store_true", help="of the unit tests, those of changed packages")
    group.addoption("--slice", metavar="COMMIT", help=f"one {SLICES}th of the tests, chosen by this hash")


def select(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Remove the tests that the options of this run leave out."""
    tiers = {Tier(name) for name in config.getoption("tier")}
    if tiers:
        _keep(config, items, lambda item: tier(item) in tiers)
    if config.getoption("changed"):
        selected = unit_tests_of(_changed_files(), _unit_folders())
        _keep(config, items, lambda item: is_selected(file_of(item.nodeid), selected))
    if commit := config.getoption("slice"):
        units = _units(items)
        chosen = slice_of({name: seconds for name, (seconds, _) in units.items()}, commit, SLICES)
        nodeids = {nodeid for name in chosen for nodeid in units[name][1]}
        _keep(config, items, lambda item: item.nodeid in nodeids)


def lane(item: pytest.Item) -> Lane:
    """Return the lane of a collected test."""
    return lane_of(file_of(item.nodeid), getattr(item, "fixturenames", ()), markers(item))


def markers(item: pytest.Item) -> set[str]:
    return {marker.name for marker in item.iter_markers()}


def tier(item: pytest.Item) -> Tier:
    """Return the tier of a collected test."""
    return tier_of(item.nodeid, lane(item), markers(item), evidence())


@cache
def recorded_bugs() -> dict[str, list[str]]:
    """Map each seeded bug on record to the tests that caught it. Raises `OSError` or `ValueError`."""
    rows = json.loads(SEEDED.read_text(encoding="utf-8"))["figures"]["each"]
    return {str(row["name"]): [str(test) for test in row["found_by"]] for row in rows}


@cache
def evidence() -> frozenset[str]:
    """Node ids, without parameters, of the tests that catch the seeded bugs on record."""
    return frozenset(test for tests in recorded_bugs().values() for test in tests)


def _keep(config: pytest.Config, items: list[pytest.Item], wanted: object) -> None:
    assert callable(wanted)
    kept = [item for item in items if wanted(item)]
    left_out = [item for item in items if not wanted(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


def _units(items: Sequence[pytest.Item]) -> dict[str, tuple[float, list[str]]]:
    """Map the units of a slice to their duration in seconds and their tests.

    A test that starts components is a unit; tests that share a Spark session form one unit a file.
    """
    known = took.read()
    units: dict[str, list[str]] = defaultdict(list)
    seconds: dict[str, float] = defaultdict(float)
    for item in items:
        file, in_lane = file_of(item.nodeid), lane(item)
        name = item.nodeid if in_lane is Lane.PARTS else file
        units[name].append(item.nodeid)
        seconds[name] += took.described(file, in_lane, "", known).takes_s
    return {name: (seconds[name], nodeids) for name, nodeids in units.items()}


def _unit_folders() -> set[str]:
    below = (ROOT / UNIT_FOLDER).rglob("*")
    return {path.relative_to(ROOT).as_posix() for path in below if path.is_dir()}


def _changed_files() -> set[str]:
    """Files that differ from the branch point of origin/main, in commits, index or working tree.

    Without such a branch, files that differ from the last commit.
    """
    base = _git("merge-base", "origin/main", "HEAD") or ["HEAD"]
    return {*_git("diff", "--name-only", base[0]), *_git("ls-files", "--others", "--exclude-standard")}


def _git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.splitlines() if done.returncode == 0 else []

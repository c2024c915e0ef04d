"""Selection of tests: tiers, changed files, the slice of a CI run. Reads git and the evidence."""

from __future__ import annotations

import json
import os
import subprocess
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from functools import cache
from pathlib import Path

import pytest

from tests.suite import took
from tests.suite.plan import UNIT_FOLDER, Lane, lane_of
from tests.suite.tiers import (
    Tier,
    file_of,
    is_selected,
    slice_of,
    tier_of,
    unit_tests_of,
    without_parameters,
)

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
        changed = changed_files()
        everything = {str(UNIT_FOLDER)}
        selected = everything if changed is None else unit_tests_of(changed, _unit_folders())
        _keep(config, items, lambda item: is_selected(file_of(item.nodeid), selected))
    if commit := config.getoption("slice"):
        units = _units(items)
        chosen = slice_of({name: seconds for name, (seconds, _) in units.items()}, commit, SLICES)
        nodeids = {nodeid for name in chosen for nodeid in units[name][1]}
        _keep(config, items, lambda item: item.nodeid in nodeids)


def narrowed(config: pytest.Config) -> bool:
    """Whether the command line leaves out tests of the selected tiers."""
    options = ("keyword", "markexpr", "deselect", "ignore", "ignore_glob", "lf", "changed", "slice")
    if any(config.getoption(option, None) for option in options):
        return True
    asked = [config.invocation_params.dir / argument for argument in config.args]
    files = (config.rootpath / "tests").rglob("test_*.py")
    return not all(any(path in (file, *file.parents) for path in asked) for file in files)


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
    """Map each seeded bug on record to the tests that caught it. Raises `pytest.UsageError`."""
    try:
        rows = json.loads(SEEDED.read_text(encoding="utf-8"))["figures"]["each"]
        return {str(row["name"]): [str(test) for test in row["found_by"]] for row in rows}
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise pytest.UsageError(f"cannot read the record of the seeded bugs: {SEEDED}: {error!r}") from error


def bugs_of(tests: Collection[str]) -> list[str]:
    """Return the seeded bugs on record that any of these tests caught; node ids without parameters."""
    return (
        [name for name, named in recorded_bugs().items() if not tests_of(named).isdisjoint(tests)]
        if tests
        else []
    )


def tests_of(nodeids: Collection[str]) -> set[str]:
    """Return the node ids without parameters."""
    return {without_parameters(nodeid) for nodeid in nodeids}


@cache
def evidence() -> frozenset[str]:
    """Node ids of the tests that catch the seeded bugs on record, of most without parameters."""
    return frozenset(test for tests in recorded_bugs().values() for test in tests)


def _keep(config: pytest.Config, items: list[pytest.Item], wanted: Callable[[pytest.Item], bool]) -> None:
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        (kept if wanted(item) else left_out).append(item)
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


def changed_files(root: Path = ROOT) -> set[str] | None:
    """Files that differ from the branch point of origin/main, in commits, index or working tree.

    Without such a branch, files that differ from the last commit. None if git does not know: without git or a
    commit, or in a shallow clone that lacks the branch point.
    """
    base = "HEAD"
    if _git(root, "rev-parse", "--verify", "--quiet", "origin/main"):
        (base, *_) = _git(root, "merge-base", "origin/main", "HEAD") or [""]
    differ = _git(root, "diff", "--name-only", "--no-renames", "--relative", "-z", base) if base else None
    new = _git(root, "ls-files", "--others", "--exclude-standard", "-z")
    return None if differ is None or new is None else {*differ, *new}


def _git(root: Path, *arguments: str) -> list[str] | None:
    """Return the names that git prints; None if it fails or is not installed."""
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, check=False)
    except OSError:
        return None
    names = os.fsdecode(done.stdout).rstrip("\n").split("\0")
    return [name for name in names if name] if done.returncode == 0 else None

"""Tiers, the unit tests of a change, and the slice of a CI run."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from tests.suite.plan import Lane
from tests.suite.tiers import (
    SMOKE_SUBJECTS,
    Tier,
    is_selected,
    seeded_errors,
    slice_of,
    smoke_errors,
    tier_of,
    unit_tests_of,
)

CAUGHT = {"tests/integration/test_a.py::test_x", "tests/integration/test_c.py::test_y[1]"}


@pytest.mark.parametrize(
    ("nodeid", "lane", "markers", "tier"),
    [
        ("tests/unit/table/test_chain.py::test_x", Lane.PURE, (), Tier.CHECK),
        ("tests/unit/table/test_chain.py::test_x", Lane.PARTS, (), Tier.ALL),
        ("tests/fuzz/test_a.py::test_x", Lane.PURE, (), Tier.TEST),
        ("tests/simulation/test_coverage.py::test_x", Lane.PURE, ("nightly",), Tier.ALL),
        ("tests/integration/test_a.py::test_x[1]", Lane.SPARK, (), Tier.TEST),
        ("tests/integration/test_a.py::test_xy", Lane.SPARK, (), Tier.ALL),
        ("tests/integration/test_c.py::test_y[1]", Lane.SPARK, (), Tier.TEST),
        ("tests/integration/test_c.py::test_y[2]", Lane.SPARK, (), Tier.ALL),
        ("tests/integration/test_b.py::test_x", Lane.PARTS, ("smoke",), Tier.TEST),
        ("tests/integration/test_b.py::test_x", Lane.PARTS, ("integration",), Tier.ALL),
    ],
)
def test_fixtures_markers_and_evidence_decide_the_tier(
    nodeid: str, lane: Lane, markers: tuple[str, ...], tier: Tier
) -> None:
    assert tier_of(nodeid, lane, markers, CAUGHT) is tier


FOLDERS = {
    f"tests/unit/{one}"
    for one in ("coordinator", "table", "table/hudi", "participant/records", "tests", "tools")
}


@pytest.mark.parametrize(
    ("changed", "selected"),
    [
        ("table/hudi/driver/commit.py", {"tests/unit/table/hudi"}),
        ("table/chain.py", {"tests/unit/table"}),
        ("coordinator/core.py", {"tests/unit/cores", "tests/unit/coordinator"}),
        ("participant/records/kinds.py", {"tests/unit/participant/records"}),
        ("tests/unit/table/test_chain.py", {"tests/unit/table/test_chain.py"}),
        ("tests/suite/plan.py", {"tests/unit/tests"}),
        ("native/src/rows.rs", {"tests/unit/participant/records"}),
        ("docs/protocol.md", {"tests/unit/tools"}),
        ("tests/unit/table/rows.py", {"tests/unit/table"}),
        ("tests/unit/conftest.py", {"tests/unit"}),
        ("README.md", set()),
    ],
)
def test_a_change_selects_the_unit_tests_that_mirror_it(changed: str, selected: set[str]) -> None:
    assert unit_tests_of([changed], FOLDERS) == selected


def test_a_folder_selects_all_files_below_it_and_files_of_the_whole_tree_are_always_selected() -> None:
    assert is_selected("tests/unit/table/hudi/test_x.py", {"tests/unit/table"})
    assert not is_selected("tests/unit/tables/test_x.py", {"tests/unit/table"})
    assert is_selected("tests/unit/table/test_x.py", {"tests/unit/table/test_x.py"})
    assert is_selected("tests/unit/test_house.py", set())
    assert not is_selected("tests/unit/table/test_x.py", set())


@pytest.mark.parametrize("seed", range(5))
def test_every_unit_is_in_one_slice_of_eight_and_slices_take_about_the_same_time(seed: int) -> None:
    chance = Random(seed)
    units = {f"t{number}": chance.choice((1.0, 5.0, 60.0)) for number in range(200)}
    runs = 400
    counts: Counter[str] = Counter()
    for run in range(runs):
        chosen = slice_of(units, f"{seed}-{run}", 8)
        counts.update(chosen)
        assert abs(sum(units[name] for name in chosen) - sum(units.values()) / 8) <= 60
    assert min(counts[name] for name in units) > runs / 8 / 3
    assert sum(counts.values()) == pytest.approx(runs * len(units) / 8, rel=0.05)


def test_the_slices_of_one_commit_differ_from_those_of_another() -> None:
    units = dict.fromkeys(map(str, range(64)), 1.0)
    slices = {frozenset(slice_of(units, f"{number}", 8)) for number in range(50)}
    assert len(slices) == 50
    assert slice_of(units, "7", 8) == slice_of(dict(reversed(units.items())), "7", 8)


def test_a_smoke_subject_without_its_tests_and_an_unknown_one_are_errors() -> None:
    whole = [name for name, count in SMOKE_SUBJECTS.items() for _ in range(count)]
    assert smoke_errors(whole) == []
    assert smoke_errors(whole[1:]) == [f"subject {whole[0]!r}: 0 smoke tests instead of 1"]
    assert smoke_errors([*whole, "x"]) == ["smoke test of an unknown subject: 'x'"]


def test_a_seeded_bug_without_a_record_or_with_another_one_is_an_error() -> None:
    assert seeded_errors({"a": ["t"]}, {"a": ["t"]}) == []
    (missing,) = seeded_errors({"a": ["t"]}, {})
    assert missing.startswith("a: not on record")
    (other,) = seeded_errors({"a": ["t"]}, {"a": ["u"]})
    assert other.startswith("a: recorded with other tests")
    (gone,) = seeded_errors({}, {"a": ["t"]})
    assert "no such bug" in gone

"""The time profile of the suite in CONTRIBUTING.md."""

from __future__ import annotations

from tests import evidence
from tools import suite_times

KEPT = {
    "commit": "0a0a",
    "tests": 9_000,
    "wall_s": 480,
    "cpu_s": 840,
    "processes": [{"tests": 1, "busy_s": 400, "cpu_s": 300}, {"tests": 2, "busy_s": 300, "cpu_s": 290}],
    "files": {"tests/unit/test_a.py": 31.4, "tests/unit/test_b.py": 2.0},
}


def test_the_times_are_those_of_the_last_record() -> None:
    recorded = evidence.read("suite")
    tiers = recorded["figures"]["tiers"] if recorded is not None else {}
    document = suite_times.DOCUMENT.read_text(encoding="utf-8")
    assert suite_times.updated(document, tiers) == document, "run `make docs`"


def test_a_tier_is_a_row_with_its_times_and_its_longest_files() -> None:
    *_, row = suite_times.lines({"test": KEPT})
    assert row == (
        "| `make test` at `0a0a` | 9,000 | 8.0 min | 14.0 min | 400 s · 300 s "
        "| `unit/test_a` 31 s, `unit/test_b` 2 s |"
    )

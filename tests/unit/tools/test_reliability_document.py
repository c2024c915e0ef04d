"""docs/reliability.md shows what the recorded runs found and what the fault tests play."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from tools.staleness import without_marks

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reliability", ROOT / "tools" / "reliability.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_documents_tables_and_figures_are_the_recorded_ones(generator: ModuleType) -> None:
    document = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    assert without_marks(generator.updated(document)) == without_marks(document), "run `make docs`"


def test_every_numbered_invariant_has_a_checker(generator: ModuleType) -> None:
    shown = generator.checkers()
    for number in range(1, 14):
        assert f"| S{number} | [s{number}_" in shown
    for number in range(1, 4):
        assert f"| L{number} | [l{number}_" in shown


def test_a_time_that_the_locks_expiry_was_allowed_on_top_of_is_shown_with_both(generator: ModuleType) -> None:
    measured = {"outcome": "as expected", "recovery_s": 68.3, "limit_s": 75.0, "commit": "1f2e"}
    assert generator._seen(measured, 15.0) == "as expected, 68.3 s of 75 s, the lock's expiry included (1f2e)"
    measured = {"outcome": "slow", "recovery_s": 9.5, "limit_s": 9.0, "commit": "1f2e"}
    assert generator._seen(measured, 9.0) == "slow, 9.5 s (1f2e)"


def test_a_document_without_a_place_for_a_part_is_refused(generator: ModuleType) -> None:
    with pytest.raises(ValueError, match="no place"):
        generator.updated("# nothing")

"""docs/scale.md shows what was measured, and its laws are those that the figures follow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests import evidence
from tools import scale
from tools.staleness import without_marks

ROOT = Path(__file__).resolve().parents[3]


def test_the_documents_figures_are_the_recorded_ones() -> None:
    document = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    assert without_marks(scale.updated(document)) == without_marks(document), "run `make docs`"


def test_a_law_is_found_again_in_figures_that_follow_it(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = [(100, 5), (1_000, 50), (2_000, 500), (10_000, 500)]

    def read(name: str) -> dict[str, Any]:
        each = [{"partitions": p, "workers": w, "cost": 0.25 * p + 3 * w} for p, w in sizes]
        return {"name": name, "figures": {"sizes": each}}

    monkeypatch.setattr(evidence, "read", read)
    assert scale._fit(lambda s: s["cost"]) == pytest.approx((0.25, 3.0))

"""Thresholds of the benchmarks: the recorded figures are within them, and worse ones are not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.thresholds import THRESHOLDS, Threshold, main
from tests.evidence import RECORDED


@pytest.mark.parametrize("threshold", THRESHOLDS, ids=lambda one: one.benchmark)
def test_the_recorded_figures_are_within_the_thresholds(threshold: Threshold) -> None:
    recorded = json.loads((RECORDED / f"{threshold.benchmark}.json").read_text(encoding="utf-8"))
    ok, line = threshold.judge(recorded["figures"])
    assert ok, line


def test_a_figure_out_of_bounds_and_a_figure_that_is_missing_fail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slow = {"ratios": {"lockstep": {"streaming": {"window_rows_per_s": {"median": 1.5}}}}}
    (tmp_path / "bench-narrow.json").write_text(json.dumps({"figures": slow}))
    assert main(tmp_path) == 1
    first, second, _ = capsys.readouterr().out.splitlines()
    assert first == "FAILED rate of Structured Streaming, inserts: 1.50, at least 4"
    assert second.endswith("bench-upserts.json was not written")
    assert main(RECORDED) == 0

"""Times of a run: the profile, and what is kept as evidence."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import evidence
from tests.suite import timing


def a_run() -> timing.Timing:
    times = timing.Timing()
    for process, nodeid, seconds in (
        ("gw0", "a.py::x", 3.0),
        ("gw1", "a.py::y", 2.0),
        ("gw1", "b.py::z", 1.0),
    ):
        times.add(process, nodeid, seconds / 2, last=False)
        times.add(process, nodeid, seconds / 2, last=True)
    times.cpu["gw0"] = 1.5
    return times


def test_times_are_shown_by_process_by_file_and_by_test_the_longest_first() -> None:
    lines = [" ".join(line.split()) for line in a_run().lines(10.0)]
    assert lines[1:3] == ["gw0 1 3 s 2 s", "gw1 2 3 s 0 s"]
    assert lines[lines.index("longest files") + 1 :][:2] == ["5.0 s a.py", "1.0 s b.py"]
    assert lines[lines.index("slowest tests") + 1] == "3.0 s a.py::x"


def test_figures_of_a_tier_are_kept_next_to_those_of_others_and_only_when_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence, "RECORDED", tmp_path)
    monkeypatch.delenv("RECORD", raising=False)
    timing.write("test", a_run().figures(10.0, 5.0))
    assert evidence.read("suite") is None

    monkeypatch.setenv("RECORD", "1")
    timing.write("test", a_run().figures(10.0, 5.0))
    timing.write("all", a_run().figures(99.0, 5.0))
    kept = evidence.read("suite")
    assert kept is not None
    tiers = kept["figures"]["tiers"]
    assert (tiers["test"]["wall_s"], tiers["all"]["wall_s"], tiers["all"]["tests"]) == (10, 99, 3)
    assert tiers["test"]["files"] == {"a.py": 5.0, "b.py": 1.0} and tiers["test"]["commit"]

"""Keeps what became of each test, and what it failed by, for whoever plays tests with a seeded bug.

Used as `python -m pytest -p tests.seeded.plugin …`, with a file named in the environment.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

KEPT = "LOCKSTEP_SEEDED_KEPT"
"""The variable of the environment that names the file: a list of what `judge.Result` has."""
SAID_MAX = 300

_results: list[dict[str, Any]] = []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "call" or report.outcome != "passed":
        kinds: list[str] = []
        said = ""
        if call.excinfo is not None:
            kinds = [f"{one.__module__}.{one.__qualname__}" for one in call.excinfo.type.__mro__]
            said = " ".join(str(call.excinfo.value).split())[:SAID_MAX]
        _results.append(
            {
                "test": item.nodeid,
                "when": report.when,
                "outcome": report.outcome,
                "kinds": kinds,
                "said": said,
            }
        )
    return report


def pytest_sessionfinish() -> None:
    if path := os.environ.get(KEPT):
        Path(path).write_text(json.dumps(_results), encoding="utf-8")

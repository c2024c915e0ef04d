"""The part of the plugin that runs in each process that plays tests."""

from __future__ import annotations

import json
import os
import resource
from pathlib import Path

import pytest

from tests.suite.selection import lane

LANES = "lockstep_lanes"
"""Name of the worker input that holds a path, to which a process writes lane and group of each test."""
CPU_S = "lockstep_cpu_s"
"""Name of the worker output that holds the CPU time of the process and of the children it waited for."""


class Member:
    """Reports lanes after the collection, and CPU time at the end."""

    def __init__(self, config: pytest.Config) -> None:
        self._lanes = Path(config.workerinput[LANES])  # type: ignore[attr-defined]

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        lanes = [(lane(item), _together(item)) for item in session.items]
        mine = self._lanes.with_suffix(f".{os.getpid()}")
        mine.write_text(json.dumps(lanes), encoding="utf-8")
        mine.replace(self._lanes)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        session.config.workeroutput[CPU_S] = cpu_s()  # type: ignore[attr-defined]


def cpu_s() -> float:
    """User and system time of this process and of all its descendants that were waited for, in seconds."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _together(item: pytest.Item) -> str:
    marker = item.get_closest_marker("xdist_group")
    return str(marker.args[0]) if marker is not None else ""

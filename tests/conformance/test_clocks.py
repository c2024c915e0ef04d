"""The two clocks: what the simulator's processes assume of them, in a process as well."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from tests.simulation.clocked import Clocked
from tests.simulation.scheduler import Scheduler

ROOT = Path(__file__).resolve().parents[2]
TELLS_THE_TIME = """
import sys
from control_topic.clocks import monotonic_ms, wall_ms
for _ in sys.stdin:
    print(monotonic_ms(), wall_ms(), flush=True)
"""
PAUSE_MS = 300


class Process(Protocol):
    def now(self) -> tuple[int, int]:
        """Its monotonic clock and its wall clock, ms."""

    def stand_still(self) -> None:
        """For `PAUSE_MS`, in the middle of whatever it does."""


class RealProcess:
    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", TELLS_THE_TIME],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )

    def now(self) -> tuple[int, int]:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        monotonic, wall = self.process.stdout.readline().split()
        return int(monotonic), int(wall)

    def stand_still(self) -> None:
        os.kill(self.process.pid, signal.SIGSTOP)
        time.sleep(PAUSE_MS / 1_000)
        os.kill(self.process.pid, signal.SIGCONT)

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


class SimulatedProcess:
    def __init__(self) -> None:
        self._scheduler = Scheduler()
        self._process = Clocked(self._scheduler, "process", skew_ms=4_711)

    def now(self) -> tuple[int, int]:
        return self._process.clock_ms(), self._process.wall_ms()

    def stand_still(self) -> None:
        self._process.pause(PAUSE_MS)
        self._scheduler.run_until(self._process.paused_until_ms)


@pytest.fixture(params=["real", "simulated"])
def process(request: pytest.FixtureRequest) -> Iterator[Process]:
    if request.param == "simulated":
        yield SimulatedProcess()
        return
    real = RealProcess()
    yield real
    real.close()


def test_both_clocks_go_on_while_a_process_stands_still_and_have_jumped_when_it_wakes(
    process: Process,
) -> None:
    before = process.now()
    process.stand_still()
    after = process.now()
    assert all(later - earlier >= PAUSE_MS for earlier, later in zip(before, after, strict=True))


def test_the_wall_clock_counts_from_1970_and_the_monotonic_one_from_anywhere(process: Process) -> None:
    monotonic, wall = process.now()
    assert wall > 1_600_000_000_000
    assert 0 <= monotonic < wall

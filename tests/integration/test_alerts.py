"""A real Prometheus scrapes a real run and a `lockstep ui`: the right alerts fire, and clear again."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lockstep.launch.local_server import free_port
from tests.debian import NotToBeHad
from tests.harness import Pipeline, Run, await_that
from tests.locked_table import locked
from tests.prometheus_server import Prometheus

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

DEADLINE_S = 180.0
END_S = 30.0
KILLS = 3
OTHERS = frozenset(
    {
        *("LockstepHalted", "LockstepDeadLetters", "LockstepWorkerMemoryHigh", "LockstepLagTooOld"),
        *("LockstepServiceFailing", "LockstepServiceOverdue", "LockstepObservationOld"),
    }
)
"""What none of this is a reason for."""


@contextmanager
def beside(pipeline: Pipeline, port: int) -> Iterator[None]:
    """`lockstep ui`, which lives longer than any run."""
    command = [sys.executable, "-m", "lockstep.cli", "ui", "-c", str(pipeline.config), "--port", str(port)]
    environment = {**os.environ, "LOCKSTEP_STATE": str(pipeline.folder / "state"), "NO_COLOR": "1"}
    with (pipeline.folder / "ui.log").open("wb") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=environment
        )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(END_S)


@contextmanager
def producing(pipeline: Pipeline) -> Iterator[None]:
    """Some records at a time, so that there always is something to commit."""
    ended = threading.Event()

    def produce() -> None:
        while not ended.wait(0.5):
            pipeline.produce(50)

    thread = threading.Thread(target=produce, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(END_S)


class Watched:
    """The alerts of one pipeline, awaited."""

    def __init__(self, prometheus: Prometheus) -> None:
        self._prometheus = prometheus

    def await_firing(self, *names: str) -> None:
        for name in names:
            found = await_that(f"alert {name}", lambda name=name: self._fires(name), deadline_s=DEADLINE_S)
            said = [found["annotations"][part] for part in ("summary", "description")]
            assert not any("error" in text or "<no value>" in text for text in said), said
            assert found["annotations"]["runbook"] == f"docs/alerts.md#{name.lower()}"

    def await_clear(self, *names: str) -> None:
        for name in names:
            await_that(
                f"end of alert {name}", lambda name=name: self._fires(name) is None, deadline_s=DEADLINE_S
            )

    def _fires(self, name: str) -> object:
        return self._prometheus.firing().get(name)

    def await_value(self, expression: str, wanted: Callable[[float], bool]) -> None:
        def probe() -> bool:
            value = self._prometheus.value(expression)
            return value is not None and wanted(value)

        await_that(f"value of {expression}", probe, deadline_s=DEADLINE_S)


def kill_a_worker_again_and_again(run: Run) -> None:
    """Each time the one that does not coordinate; with commits in between, or the run would halt."""
    for number in range(1, KILLS + 1):
        run.kill_worker(coordinator=False)
        done = run.status()
        commits = done["commits"] if done else 0
        run.await_commits(commits + number + 1)


def test_the_right_alerts_fire_and_clear_when_workers_the_lock_and_the_driver_are_lost(
    pipeline: Pipeline, tmp_path: Path
) -> None:
    ports = free_port(), free_port()
    pipeline.settings.update({"ui.enabled": "true", "ui.port": str(ports[0])})
    try:
        prometheus = Prometheus(tmp_path / "prometheus", ports)
    except NotToBeHad as error:
        pytest.skip(str(error))
    pipeline.produce(1_000)
    with prometheus, beside(pipeline, ports[1]), producing(pipeline):
        alarms = Watched(prometheus)
        run = pipeline.start()
        run.await_commits(3)
        alarms.await_value('count(up{job="lockstep"} == 1)', lambda count: count == 2)
        alarms.await_value("min(lockstep_records_total)", lambda records: records > 0)
        alarms.await_value('max(lockstep_mode{mode="run"})', lambda mode: mode == 1)
        alarms.await_clear("LockstepNotScraped", "LockstepNoCommit", "LockstepRunGone")
        assert prometheus.unhealthy() == []

        kill_a_worker_again_and_again(run)
        alarms.await_firing("LockstepWorkerRestarts")

        with locked(pipeline.table):
            alarms.await_firing("LockstepOutage", "LockstepNoCommit")
        alarms.await_clear("LockstepOutage", "LockstepNoCommit")

        run.kill()
        alarms.await_firing("LockstepNotScraped", "LockstepRunGone")
        again = pipeline.start()
        again.await_commits(2)
        alarms.await_clear("LockstepNotScraped", "LockstepRunGone", "LockstepWorkerRestarts")

        assert again.stop() == 0
        alarms.await_firing("LockstepNotScraped")
        long_stopped = 'min(min_over_time(lockstep_state{state="stopped"}[20s]))'
        alarms.await_value(long_stopped, lambda stopped: stopped == 1)
        assert "LockstepRunGone" not in prometheus.firing()  # it was stopped on purpose
        assert not prometheus.ever_fired() & OTHERS

"""A real Prometheus scrapes a real run and a `lockstep ui`: the right alerts fire, and clear again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lockstep.launch.local_server import free_port
from tests.debian import NotToBeHad
from tests.harness import Pipeline, Run, await_that
from tests.locked_table import locked
from tests.prometheus_server import Prometheus

pytestmark = [pytest.mark.integration, pytest.mark.nightly]

DEADLINE_S = 240.0
END_S = 30.0
KILLS_MAX = 15
OTHERS = frozenset(
    {
        *("LockstepHalted", "LockstepDeadLetters", "LockstepWorkerMemoryHigh"),
        *("LockstepServiceFailing", "LockstepServiceOverdue", "LockstepObservationOld"),
    }
)
"""What none of this is a reason for. Where an hour is a minute, a run that starts slowly lags by more."""


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
            found = await_that(f"alert {name}", lambda name=name: self.fires(name), deadline_s=DEADLINE_S)
            said = [found["annotations"][part] for part in ("summary", "description")]
            assert not any("error" in text or "<no value>" in text for text in said), said
            assert found["annotations"]["runbook"] == f"docs/alerts.md#{name.lower()}"

    def await_clear(self, *names: str) -> None:
        for name in names:
            await_that(
                f"end of alert {name}", lambda name=name: self.fires(name) is None, deadline_s=DEADLINE_S
            )

    def fires(self, name: str) -> Any:
        return self._prometheus.firing().get(name)

    def await_health(self) -> None:
        """One scrape that takes more than its second makes a target unhealthy, until the next."""
        await_that("health of all", lambda: not self._prometheus.unhealthy(), deadline_s=DEADLINE_S)

    def await_value(self, expression: str, wanted: Callable[[float], bool]) -> None:
        def probe() -> bool:
            value = self._prometheus.value(expression)
            return value is not None and wanted(value)

        await_that(f"value of {expression}", probe, deadline_s=DEADLINE_S)


def kill_a_worker_again_and_again(run: Run, enough: Callable[[], object]) -> None:
    """The same slot's, each time it is back; with commits in between, or the run would halt."""
    slot, *_ = await_that(
        "worker that does not coordinate",
        lambda: [one["slot"] for one in workers_of(run) if not one["coordinator"]],
    )
    killed: set[int] = set()

    def replaced() -> int:
        alive = (one["pid"] for one in workers_of(run) if one["slot"] == slot and one["state"] != "dead")
        return next((pid for pid in alive if pid not in killed), 0)

    while not enough():
        assert len(killed) < KILLS_MAX, f"so often a worker was killed, and nobody minded: {killed}"
        pid = await_that("worker that is back", replaced)
        os.kill(pid, signal.SIGKILL)
        killed.add(pid)
        run.await_commits(await_that("a status", run.status)["commits"] + 2)


def workers_of(run: Run) -> list[dict[str, Any]]:
    status = run.status() or {"workers": []}
    workers: list[dict[str, Any]] = status["workers"]
    return workers


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
        alarms.await_health()

        kill_a_worker_again_and_again(run, lambda: alarms.fires("LockstepWorkerRestarts"))
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

"""Which process is who in one run: the wrapper, the JVM, the driver's Python, its workers."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass

import psutil

from tests.harness import DEADLINE_S, Run, await_that


@dataclass(frozen=True, slots=True, kw_only=True)
class Processes:
    """Pids of one run. `worker`: one that does not hold the coordinator; 0 where there is none."""

    wrapper: int
    jvm: int
    driver: int
    coordinator: int
    worker: int
    workers: tuple[int, ...]
    incarnations: dict[int, str]

    @property
    def run(self) -> tuple[int, ...]:
        """JVM and Python: what is the driver to an orchestrator."""
        return (self.jvm, self.driver)


def look(run: Run) -> Processes | str:
    """What is still missing, where the run is not up: an answer of its driver, or a worker."""
    if run.process.poll() is not None:
        return f"the run has ended with {run.process.returncode}"
    status = run.status()
    if status is None:
        return "the driver does not answer"
    alive = [w for w in status["workers"] if w["state"] != "dead" and psutil.pid_exists(w["pid"])]
    holders = [w["pid"] for w in alive if w["coordinator"]]
    others = [w["pid"] for w in alive if not w["coordinator"]]
    if not holders or not others or not all(w["partitions"] for w in alive):
        return f"workers are missing or own nothing: {status['workers']}"
    try:
        jvm = psutil.Process(run.process.pid).children()[0]
        # spark-submit's shell leaves a zombie behind, which has no command line.
        living = [child for child in jvm.children() if child.status() != psutil.STATUS_ZOMBIE]
        driver = next(c for c in living if "job.py" in " ".join(c.cmdline()))
    except (psutil.Error, StopIteration, IndexError) as error:
        return f"JVM and driver are not found: {error!r}"
    return Processes(
        wrapper=run.process.pid,
        jvm=jvm.pid,
        driver=driver.pid,
        coordinator=holders[0],
        worker=others[0],
        workers=tuple(w["pid"] for w in alive),
        incarnations={w["pid"]: w["incarnation"] for w in alive},
    )


def await_processes(run: Run, *, deadline_s: float = DEADLINE_S) -> Processes:
    """Once every worker owns source partitions and one of them the coordinator."""
    until = time.monotonic() + deadline_s
    while True:
        found = look(run)
        if isinstance(found, Processes):
            return found
        assert time.monotonic() < until, f"within {deadline_s:.0f} s not everybody was there: {found}"
        time.sleep(0.1)


def send(pids: Iterable[int], number: signal.Signals) -> int:
    """Signal them in this order, as fast as can be; the moment after, Unix epoch, milliseconds."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
    return time.time_ns() // 1_000_000


def await_gone(pids: Iterable[int], *, deadline_s: float = 60) -> None:
    """Until none of them runs any more; whose parent is us must be waited for by its owner."""
    left = list(pids)
    await_that(f"end of the processes {left}", lambda: not any(map(_runs, left)), deadline_s=deadline_s)


def _runs(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False

"""Worker slots: one Spark job each, restarted alone with back-off when its task ends."""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections.abc import Callable

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.util import inheritable_thread_target

from participant.worker.spec import Ended, WorkerSpec
from participant.worker.task import run_task

log = logging.getLogger("lockstep.slots")

BACKOFF_S = (0.0, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
"""Waits before a slot's next worker; the first restart is at once, the last wait repeats."""
FAILS = (Py4JError, PySparkException, OSError, EOFError)
"""Of a job: that its task died, that Spark is at its end, and that its temporary folder is full or gone."""
LASTED_S = 60.0
"""A worker that lived for so long did not fail by starting: the back-off starts from nothing."""


class Slot:
    """One slot's thread. `died` is told of every end, before the next worker starts."""

    def __init__(
        self,
        context: SparkContext,
        spec: WorkerSpec,
        number: int,
        *,
        log_level: str,
        died: Callable[[Ended], None],
    ) -> None:
        self._context = context
        self._spec = spec
        self.number = number
        self._log_level = log_level
        self._died = died
        self._ending = threading.Event()
        self._began_s: float | None = None
        self._cancelled_for = ""
        self._failures = 0
        self.starts = 0
        self.group = f"lockstep-{spec.pipeline}-{spec.run[:8]}-worker-{number}"
        self._thread = threading.Thread(
            target=inheritable_thread_target(self._run), name=f"slot-{number}", daemon=True
        )

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        """Start no further worker; the one that runs is told by its directive."""
        self._ending.set()

    def cancel(self, why: str = "") -> None:
        """Kill the task: for a worker that does not answer. The slot's thread sees its job end, for `why`."""
        self._cancelled_for = why
        self._context.cancelJobGroup(self.group)

    @property
    def began_s(self) -> float | None:
        """When the job that goes on was begun, by time.monotonic; None between two jobs."""
        return self._began_s

    def waits(self) -> bool:
        """Whether the job's task has no Spark slot yet."""
        tracker = self._context.statusTracker()
        try:
            newest = tracker.getJobInfo(max(tracker.getJobIdsForGroup(self.group), default=-1))
            stages = [tracker.getStageInfo(stage) for stage in newest.stageIds] if newest is not None else []
        except FAILS:
            return False
        return not any(stage is not None and stage.numActiveTasks for stage in stages)

    def join(self, timeout_s: float) -> bool:
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def commits_go_on(self) -> None:
        """A commit since the last failure: whatever failed is over."""
        self._failures = 0

    def _run(self) -> None:
        while not self._ending.is_set():
            self._cancelled_for = ""
            self.starts += 1
            began = self._began_s = time.monotonic()
            death = self._run_job()
            self._began_s = None
            if time.monotonic() - began > LASTED_S:
                self._failures = 0
            self._died(death)
            if self._ending.is_set():
                return
            wait_s = BACKOFF_S[min(self._failures, len(BACKOFF_S) - 1)]
            self._failures += 1
            log.warning(
                "worker-%d ended: %s; the next one starts %s",
                self.number,
                death.reason,
                f"in {wait_s:.0f} s" if wait_s else "now",
            )
            self._ending.wait(wait_s)

    def _run_job(self) -> Ended:
        """One Spark job with one task. The job has ended when this returns."""
        task = functools.partial(run_task, self._spec, self.number, self._log_level, self.starts == 1)
        try:
            self._context.setJobGroup(self.group, f"lockstep worker {self.number}", interruptOnCancel=True)
            answers = self._context.parallelize([self.number], 1).mapPartitions(task).collect()
        except FAILS as error:
            reason = self._cancelled_for or _cause(error)
            return Ended(slot=self.number, incarnation="", reason=reason, failed=True)
        except Exception as error:  # whatever it is, a slot without its thread has no worker ever again
            log.exception("worker-%d ended unexpectedly", self.number)
            return Ended(slot=self.number, incarnation="", reason=repr(error), failed=True)
        return Ended.from_json(answers[0])


def _cause(error: Exception) -> str:
    """The first meaningful line of what Spark says about a task that died; no stack frame is."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith("at ")]
    for line in reversed(lines):
        if "Python worker exited unexpectedly" in line:
            return "its process died"
    for line in lines:
        if "cancelled" in line:
            return "its task was cancelled"
    for line in reversed(lines):
        if line.endswith(tuple("abcdefghijklmnopqrstuvwxyz.)")) and "Error" in line.split(":")[0]:
            return line[:400]
    return (lines[0] if lines else type(error).__name__)[:400]

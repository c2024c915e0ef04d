"""The supervisor: the driver's main thread. It keeps the slots filled, watches, sweeps, and ends the run."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pyspark import SparkContext

from lockstep.driver.deaths import Deaths
from lockstep.driver.slots import Slot
from lockstep.driver.starts import SlotSeen, Starts
from participant.worker.spec import Ended, WorkerSpec
from table.errors import TableError
from table.service.calls import RunMode
from table.service.ledger import RunOutcome
from table.service.modes import GOING_ON
from table.service.place import Place
from table.service.progress import Progress
from table.service.roster import Reported, lives
from table.service.servicer import TableService

log = logging.getLogger("lockstep.supervisor")

PERIOD_S = 0.1
LOOK_AT_STARTS_S = 1.0
ASK_SPARK_AFTER_S = 5.0
"""A worker takes some seconds to come up; after that Spark is asked whether its task runs."""
END_S = 45.0
"""How long the workers have to leave before their tasks are killed."""
KILL_S = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisorLimits:
    """How long the driver waits, and how many deaths it bears."""

    sweep_period_s: float
    """Between looks for orphaned files."""

    sweep_grace_s: float
    """None younger than this is removed."""

    silence_s: float
    """A worker that has not reported for so long is killed."""

    start_s: float
    """So is one that has never reported, counted from its task's start."""

    deaths_max: int
    """Workers that die without a commit between them before the run halts."""


class Supervisor:
    """`progress` is called about ten times a second on the main thread."""

    def __init__(
        self,
        context: SparkContext,
        spec: WorkerSpec,
        service: TableService,
        place: Place,
        *,
        limits: SupervisorLimits,
        log_level: str,
        progress: Callable[[Progress], None],
        ending: Callable[[RunOutcome], None],
    ) -> None:
        self._ending = ending
        self._service = service
        self._place = place
        self._limits = limits
        self._progress = progress
        self._commits = 0
        self._deaths = Deaths(limits.deaths_max)
        self._deaths_lock = threading.Lock()
        self._cancelled: set[str] = set()
        self._halt_heard = False
        self._sweeper: threading.Thread | None = None
        self._sweep_alarm = ""
        self._starts = Starts(limits.start_s)
        self._next_starts_s = 0.0
        self._slots = [
            Slot(context, spec, number, log_level=log_level, died=self._on_death)
            for number in range(spec.workers)
        ]
        self._next_sweep_s = time.monotonic() + limits.sweep_period_s

    def run(self) -> RunOutcome:
        """Until the run has ended, however it ends. All workers are gone when this returns."""
        for slot in self._slots:
            slot.start()
        try:
            while (outcome := self._service.finished(halt_heard=self._halt_heard)) is None:
                self._look(self._service.progress())
                time.sleep(PERIOD_S)
            self._ending(outcome)
        finally:
            self._end_workers()
        return outcome

    def _look(self, progress: Progress) -> None:
        self._progress(progress)
        if progress.commits > self._commits:
            self._commits = progress.commits
            with self._deaths_lock:
                self._deaths.committed()
            for slot in self._slots:
                slot.commits_go_on()
        if progress.newest_instant:
            self._place.note_commits()
        self._kill_silent(progress)
        self._watch_starts(progress)
        self._sweep()

    def _kill_silent(self, progress: Progress) -> None:
        """A frozen worker keeps its slot: the next one starts when Spark says that its task has ended."""
        for entry in progress.workers:
            silent_s = (progress.now_ms - entry.at_ms) / 1_000
            incarnation = entry.report.incarnation
            if entry.dead or silent_s < self._limits.silence_s or incarnation in self._cancelled:
                continue
            self._cancelled.add(incarnation)
            log.warning(
                "worker-%d has been silent for %.0f s: its task is killed", entry.report.slot, silent_s
            )
            self._slots[entry.report.slot].cancel()

    def _watch_starts(self, progress: Progress) -> None:
        """Whose worker does not come up is started anew; where nobody does, the run halts."""
        now_s = time.monotonic()
        if now_s < self._next_starts_s or progress.standing.mode not in GOING_ON:
            return
        self._next_starts_s = now_s + LOOK_AT_STARTS_S
        somebody = any(lives(entry, progress.now_ms) for entry in progress.workers)
        seen = [self._slot_seen(slot, progress, now_s) for slot in self._slots]
        verdict = self._starts.look(now_s, seen, lives=somebody)
        for number in verdict.cancel:
            why = f"it has not reported within {self._limits.start_s:.0f} s of its start"
            log.warning("worker-%d: %s: its task is killed", number, why)
            self._slots[number].cancel(why)
        self._service.alarm("starts", verdict.alarm, stands=not somebody)
        if verdict.halt:
            self._service.halt(verdict.halt)

    def _slot_seen(self, slot: Slot, progress: Progress, now_s: float) -> SlotSeen:
        began_s = slot.began_s
        reported = began_s is not None and any(
            entry.report.slot == slot.number and not entry.dead and entry.at_ms >= began_s * 1_000
            for entry in progress.workers
        )
        asks = began_s is not None and not reported and now_s - began_s > ASK_SPARK_AFTER_S
        return SlotSeen(
            number=slot.number,
            start=slot.starts,
            reported=reported,
            waits=asks and slot.waits(),
            idle=began_s is None,
        )

    def _sweep(self) -> None:
        """Beside everything else, one at a time: it waits for the table like anybody."""
        if time.monotonic() < self._next_sweep_s or (self._sweeper is not None and self._sweeper.is_alive()):
            return
        self._next_sweep_s = time.monotonic() + self._limits.sweep_period_s
        self._sweeper = threading.Thread(target=self._sweep_once, name="sweep", daemon=True)
        self._sweeper.start()

    def _sweep_once(self) -> None:
        """A sweep that fails is tried again at its next time: orphans are invisible to every reader."""
        try:
            report = self._service.sweep(
                grace_ms=int(self._limits.sweep_grace_s * 1_000), timeout_s=self._limits.sweep_period_s
            )
        except TableError as error:
            log.warning("orphaned files were not looked for: %s", error)
            return
        if report.alarm and report.alarm != self._sweep_alarm:
            log.error("%s", report.alarm)
        self._sweep_alarm = report.alarm
        self._service.alarm("sweep", report.alarm, stands=False)

    def _on_death(self, death: Ended) -> None:
        """On a slot's thread. Where the task could not say who it was, its last report says so."""
        if death.fenced and self._superseded():
            return
        if not death.failed:
            if self._service.halting():  # it has heard so, and no other one is to start
                self._halt_heard = True
                self._slots[death.slot].end()
            return
        reason = f"worker-{death.slot}: {death.reason}"
        if death.elsewhere:
            for slot in self._slots:
                slot.end()
            self._service.halt(f"{reason}.")
            return
        progress = self._service.progress()
        incarnation = death.incarnation or who_reports(progress.workers, death.slot)
        if incarnation:
            self._service.worker_died(incarnation, reason, fault=death.fault)
            if death.fault.is_outage:
                return  # that is waited out, and has an end of its own
        with self._deaths_lock:
            paused = progress.standing.mode is RunMode.PAUSE
            halt = self._deaths.add(time.monotonic(), reason, paused=paused)
        if halt:
            self._service.halt(halt)

    def _superseded(self) -> bool:
        """A worker was fenced: by a newer run, which then has the pipeline, or by its own successor.

        The table's folder says which run started last. Known before the slot is filled again: otherwise two
        runs would fence each other in turns.
        """
        newer = self._place.taken_by()
        if newer:
            for slot in self._slots:
                slot.end()
            self._service.supersede(
                f"run {newer} of this pipeline started later and has taken over its workers' places"
            )
        return bool(newer)

    def _end_workers(self) -> None:
        for slot in self._slots:
            slot.end()
        progress = self._service.progress()
        now_s = time.monotonic()
        for slot in self._slots:
            if not self._slot_seen(slot, progress, now_s).reported:
                slot.cancel("the run ends")  # nobody is there who could leave
        deadline = now_s + END_S
        late = [slot for slot in self._slots if not slot.join(max(0.0, deadline - time.monotonic()))]
        for slot in late:
            log.warning("worker-%d does not leave: its task is killed", slot.number)
            slot.cancel()
        deadline = time.monotonic() + KILL_S
        for slot in late:
            slot.join(max(0.0, deadline - time.monotonic()))


def who_reports(workers: Iterable[Reported], slot: int) -> str:
    """The slot's incarnation that has reported and is not known to have ended; empty where there is none.

    One that dies before its first report took nothing with it: it is not its predecessor's second death.
    """
    return next((one.report.incarnation for one in workers if one.report.slot == slot and not one.dead), "")

"""One blow at one victim at one step: killed or paused, and how long it takes until commits go on."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypedDict, Unpack

from tests.faults import processes
from tests.faults.aim import MID_WRITE_MS, Hit, hit
from tests.faults.commits import wall_ms
from tests.faults.processes import Processes
from tests.faults.stage import Recovery, Stage
from tests.faults.steps import Step
from tests.harness import DEADLINE_S, await_that

ATTEMPTS_MAX = 6
ANSWER_S = DEADLINE_S
GUARDIAN_S = 3.0


class Victim(Enum):
    WORKER = "worker"
    COORDINATOR = "coordinator's worker"
    DRIVER = "driver"
    JVM = "driver's JVM"
    """Its Python is left alone."""
    BROKER = "broker"
    STORE = "store's server"
    """Where the table is there."""


KILLED = (Victim.WORKER, Victim.COORDINATOR, Victim.DRIVER, Victim.BROKER)


class When(TypedDict, total=False):
    """More of when a blow is struck than its step."""

    after_start_ms: int
    """Of one in the middle of writing."""
    not_before: Callable[[], None]
    """Awaited between the step's first sign and the signal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blow:
    victim: Victim
    kind: str
    hit: Hit
    recovery: Recovery
    """From the kill, the driver's or broker's restart, or the end of the pause."""
    expiry_s: float = 0.0
    """A driver was killed while the table was locked, and left it so, which may last for so long."""

    def line(self) -> str:
        step = self.hit.step.value if self.hit.step is not None else "between transactions"
        missed = "" if self.hit.is_on_target else f" (aimed at: {self.hit.aimed.value})"
        return (
            f"{self.kind:5} {self.victim.value:20} {step}{missed}: {self.recovery.commit_s:.1f} s, "
            f"all source partitions {self.recovery.all_partitions_s:.1f} s [{self.hit.last_words}]"
        )


def kill(stage: Stage, victim: Victim, step: Step, **when: Unpack[When]) -> Blow:
    """SIGKILL at this step, or at whatever was hit instead; driver and servers are started again at once."""
    found = _signal(stage, stage.processes(), victim, step, signal.SIGKILL, **when)
    moment_ms = found.at_ms
    expiry_s = 0.0
    if victim is Victim.DRIVER:
        stage.current.process.wait(60)
        expiry_s = left_locked_s(stage)
        moment_ms = wall_ms()
        stage.restart()
    elif victim is Victim.BROKER:
        assert stage.broker.wait(20), "the broker outlived SIGKILL"
        stage.broker.kill()  # takes note of it
        stage.broker.start()
        moment_ms = wall_ms()
    elif victim is Victim.STORE:
        moment_ms = start_store(stage)
    recovery = stage.recovery(moment_ms, deadline_s=ANSWER_S)
    return Blow(victim=victim, kind="kill", hit=found, recovery=recovery, expiry_s=expiry_s)


def start_store(stage: Stage) -> int:
    """Again, once it was killed; the moment when it answers, Unix epoch, milliseconds."""
    assert stage.server is not None and stage.server.wait(20), "the store's server outlived SIGKILL"
    stage.server.kill()  # takes note of it
    stage.server.start()
    return wall_ms()


def pause(stage: Stage, victim: Victim, step: Step, *, seconds: float, **when: Unpack[When]) -> Blow:
    """SIGSTOP at this step, SIGCONT after so many seconds to what is still there."""
    who = stage.processes()
    found = _signal(stage, who, victim, step, signal.SIGSTOP, **when)
    time.sleep(max(0.0, seconds - (wall_ms() - found.at_ms) / 1_000))
    moment_ms = send_to(stage, who, victim, signal.SIGCONT)
    if victim in (Victim.DRIVER, Victim.JVM) and _ends(stage):
        moment_ms = wall_ms()
        stage.restart()
    recovery = stage.recovery(moment_ms, deadline_s=ANSWER_S)
    return Blow(victim=victim, kind="pause", hit=found, recovery=recovery)


def _signal(
    stage: Stage, who: Processes, victim: Victim, step: Step, number: signal.Signals, **when: Unpack[When]
) -> Hit:
    not_before = when.get("not_before", lambda: None)

    def strike() -> int:
        not_before()
        return send_to(stage, who, victim, number)

    after_start_ms = when.get("after_start_ms", MID_WRITE_MS)
    return hit(stage, step, strike, writer=writer_of(who, victim), after_start_ms=after_start_ms)


def is_locked(stage: Stage) -> bool:
    """Whether somebody holds the table lock, or left it behind."""
    return stage.pipeline.place.is_locked()


def left_locked_s(stage: Stage) -> float:
    """So long the lock may last that a dead driver has left; 0 where it has left none."""
    return stage.pipeline.place.expiry_s if is_locked(stage) else 0.0


def await_released(stage: Stage) -> None:
    """Until somebody has just let go of the table lock: so soon nobody takes it again."""
    look_s = stage.pipeline.place.look_s
    await_that("table lock", lambda: is_locked(stage), deadline_s=ANSWER_S, every_s=look_s)
    await_that("end of the table lock", lambda: not is_locked(stage), deadline_s=ANSWER_S, every_s=look_s)


def _ends(stage: Stage) -> bool:
    """Whether the driver is gone: frozen inside the table lock it is ended by its guardian."""
    try:
        stage.current.process.wait(GUARDIAN_S)
    except subprocess.TimeoutExpired:
        return False
    return True


def on_target(stage: Stage, step: Step, strike: Callable[[], Blow]) -> tuple[Blow, int]:
    """Strike until the step is hit; that blow, and how many missed. A miss is a fault to recover from too."""
    misses = 0
    while True:
        blow = strike()
        if blow.hit.is_on_target:
            return blow, misses
        misses += 1
        assert misses < ATTEMPTS_MAX, f"{step.value!r} was not hit in {misses} attempts; last {blow.line()}"


def writer_of(who: Processes, victim: Victim) -> str:
    """The incarnation of a victim that writes; empty of others."""
    pid = {Victim.WORKER: who.worker, Victim.COORDINATOR: who.coordinator}.get(victim)
    return who.incarnations[pid] if pid else ""


def send_to(stage: Stage, who: Processes, victim: Victim, number: signal.Signals) -> int:
    """The moment after the signal, Unix epoch, milliseconds."""
    match victim:
        case Victim.WORKER:
            return processes.send([who.worker], number)
        case Victim.COORDINATOR:
            return processes.send([who.coordinator], number)
        case Victim.BROKER:
            return processes.send([stage.broker.pid], number)
        case Victim.STORE:
            assert stage.server is not None
            return processes.send([stage.server.pid], number)
        case Victim.JVM:
            return processes.send([who.jvm], number)
        case Victim.DRIVER:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(who.jvm, number)  # the JVM leads the group, Python is in it
            moment_ms = wall_ms()
            if number == signal.SIGKILL:
                processes.send([who.wrapper], number)
            return moment_ms

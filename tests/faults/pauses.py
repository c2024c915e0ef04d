"""SIGSTOP for longer than somebody waits, then SIGCONT: what was taken for dead comes back."""

from __future__ import annotations

from functools import partial

from tests.faults.blows import Victim, on_target, pause
from tests.faults.kills import await_holder, begin
from tests.faults.scenario import Outcome, Scenario, put
from tests.faults.stage import Stage
from tests.faults.steps import Step
from tests.place import Folder

SESSION_S = 15.0
"""Longer than the consumer group's session of 10 s."""
SILENCE_S = 25.0
"""Longer than the 20 s after which the driver kills a silent worker, and its guardian a silent driver."""
JVM_S = 65.0
"""Longer than the table lock lives."""
LIMIT_S = 9.0
RESTART_LIMIT_S = 15.0 + Folder.expiry_s
FROZEN = "the JVM was stopped, or storage is too slow"
"""What a driver's guardian says when it kills it."""


def paused(
    stage: Stage,
    *,
    victim: Victim,
    step: Step,
    seconds: float,
    restarts: bool | None = False,
    once_named: bool = False,
    said: str = "",
) -> Outcome:
    """`restarts`: whether a run must have ended by it; None: it may. `once_named`: once its lock names it."""
    begin(stage, step)
    place = stage.pipeline.place
    not_before = (lambda: await_holder(place)) if once_named else (lambda: None)
    blow, misses = on_target(
        stage, step, lambda: pause(stage, victim, step, seconds=seconds, not_before=not_before)
    )
    over_ms = blow.hit.at_ms + seconds * 1_000
    meanwhile = sum(one.landed_ms < over_ms for one in stage.commits_after(blow.hit.at_ms))
    runs = len(stage.pipeline.runs)
    figures = stage.settle_and_verify()
    assert restarts in (None, runs > 1), f"{runs} runs were started"
    assert any(said in run.text() for run in stage.pipeline.runs), f"nobody said {said!r}"
    return Outcome(
        recovery_s=blow.recovery.commit_s,
        notes={
            "hit": blow.hit.last_words,
            "misses": misses,
            "paused_s": seconds,
            "commits_meanwhile": meanwhile,
            "restarts": runs - 1,
            "all_source_partitions_s": blow.recovery.all_partitions_s,
            **figures,
        },
    )


put(
    "SIGSTOP",
    Scenario(
        "worker_paused_past_its_session",
        f"a worker is stopped for {SESSION_S:.0f} s in the middle of writing, then goes on",
        "the group gives its source partitions to the other worker; it comes back as a member",
        partial(paused, victim=Victim.WORKER, step=Step.MID_WRITE, seconds=SESSION_S),
        LIMIT_S,
        in_tests=True,
    ),
    Scenario(
        "worker_paused_for_25_s",
        f"a worker is stopped for {SILENCE_S:.0f} s in the middle of writing, then goes on",
        "the driver kills and replaces it; nothing has to be done by hand",
        partial(paused, victim=Victim.WORKER, step=Step.MID_WRITE, seconds=SILENCE_S),
        LIMIT_S,
    ),
    Scenario(
        "coordinators_worker_paused_past_its_session",
        f"the coordinator's worker is stopped for {SESSION_S:.0f} s when it has sent END, then goes on",
        "another worker coordinates meanwhile; the one that comes back is fenced, and has no effect",
        partial(paused, victim=Victim.COORDINATOR, step=Step.END_SENT, seconds=SESSION_S),
        LIMIT_S,
    ),
    Scenario(
        "coordinators_worker_paused_for_25_s",
        f"the coordinator's worker is stopped for {SILENCE_S:.0f} s while its commit is carried out",
        "the commit lands without it; the driver kills and replaces it, nothing has to be done by hand",
        partial(paused, victim=Victim.COORDINATOR, step=Step.COMMIT_BEGUN, seconds=SILENCE_S),
        LIMIT_S,
    ),
    Scenario(
        "driver_paused_past_the_session",
        f"the driver (JVM and Python) is stopped for {SESSION_S:.0f} s in mid-write, then goes on",
        "the workers wait for it and keep their places; it goes on where it was",
        partial(paused, victim=Victim.DRIVER, step=Step.MID_WRITE, seconds=SESSION_S),
        LIMIT_S,
    ),
    Scenario(
        "driver_paused_inside_the_table_lock",
        f"the driver is stopped for {SILENCE_S:.0f} s inside the table lock",
        "its guardian kills it, so that the lock is not held for ever; the next run goes on",
        partial(paused, victim=Victim.DRIVER, step=Step.COMMIT_BEGUN, seconds=SILENCE_S, restarts=None),
        RESTART_LIMIT_S,
    ),
    Scenario(
        "driver_jvm_frozen_inside_the_table_lock",
        f"the driver's JVM alone is stopped for {JVM_S:.0f} s inside the table lock, which lives for less",
        "the driver's guardian kills it before the lock expires, so that it cannot write to a table on "
        "which others may have gone on; the next run goes on",
        partial(
            paused,
            victim=Victim.JVM,
            step=Step.COMMIT_BEGUN,
            seconds=JVM_S,
            restarts=True,
            once_named=True,
            said=FROZEN,
        ),
        RESTART_LIMIT_S,
    ),
    Scenario(
        "broker_paused_past_the_session",
        f"the broker is stopped for {SESSION_S:.0f} s in the middle of writing, then goes on",
        "everybody waits for it, and what was said is said again",
        partial(paused, victim=Victim.BROKER, step=Step.MID_WRITE, seconds=SESSION_S),
        LIMIT_S,
    ),
)

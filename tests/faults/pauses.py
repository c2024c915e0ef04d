"""SIGSTOP for longer than somebody waits, then SIGCONT: what was taken for dead comes back."""

from __future__ import annotations

from collections.abc import Callable

from tests.faults.blows import Victim, on_target, pause
from tests.faults.kills import LOCK_EXPIRY_S, await_note
from tests.faults.scenario import Outcome, scenario
from tests.faults.stage import Stage
from tests.faults.steps import Step

GROUP = "SIGSTOP"

SESSION_S = 15.0
"""Longer than the consumer group's session of 10 s."""
SILENCE_S = 25.0
"""Longer than the 20 s after which the driver kills a silent worker, and its guardian a silent driver."""
JVM_S = 65.0
"""Longer than the table lock lives."""
LIMIT_S = 9.0
RESTART_LIMIT_S = 15.0 + LOCK_EXPIRY_S


def _pause(
    stage: Stage,
    victim: Victim,
    step: Step,
    seconds: float,
    not_before: Callable[[], None] = lambda: None,
) -> Outcome:
    stage.start()
    blow, misses = on_target(
        stage, step, lambda: pause(stage, victim, step, seconds=seconds, not_before=not_before)
    )
    over_ms = blow.hit.at_ms + seconds * 1_000
    meanwhile = sum(one.landed_ms < over_ms for one in stage.commits_after(blow.hit.at_ms))
    runs = len(stage.pipeline.runs)
    figures = stage.settle_and_verify()
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


@scenario(
    GROUP,
    fault=f"a worker is stopped for {SESSION_S:.0f} s in the middle of writing, then goes on",
    expected="the group gives its source partitions to the other worker; it comes back as a member",
    limit_s=LIMIT_S,
    in_tests=True,
)
def worker_paused_past_its_session(stage: Stage) -> Outcome:
    outcome = _pause(stage, Victim.WORKER, Step.MID_WRITE, SESSION_S)
    assert outcome.notes["restarts"] == 0, "a run had to be started again"
    return outcome


@scenario(
    GROUP,
    fault=f"a worker is stopped for {SILENCE_S:.0f} s in the middle of writing, then goes on",
    expected="the driver kills and replaces it; nothing has to be done by hand",
    limit_s=LIMIT_S,
)
def worker_paused_for_25_s(stage: Stage) -> Outcome:
    outcome = _pause(stage, Victim.WORKER, Step.MID_WRITE, SILENCE_S)
    assert outcome.notes["restarts"] == 0, "a run had to be started again"
    return outcome


@scenario(
    GROUP,
    fault=f"the coordinator's worker is stopped for {SESSION_S:.0f} s when it has sent END, then goes on",
    expected="another worker coordinates meanwhile; the one that comes back is fenced, and has no effect",
    limit_s=LIMIT_S,
)
def coordinators_worker_paused_past_its_session(stage: Stage) -> Outcome:
    outcome = _pause(stage, Victim.COORDINATOR, Step.END_SENT, SESSION_S)
    assert outcome.notes["restarts"] == 0, "a run had to be started again"
    return outcome


@scenario(
    GROUP,
    fault=f"the coordinator's worker is stopped for {SILENCE_S:.0f} s while its commit is carried out",
    expected="the commit lands without it; the driver kills and replaces it, nothing has to be done by hand",
    limit_s=LIMIT_S,
)
def coordinators_worker_paused_for_25_s(stage: Stage) -> Outcome:
    outcome = _pause(stage, Victim.COORDINATOR, Step.COMMIT_BEGUN, SILENCE_S)
    assert outcome.notes["restarts"] == 0, "a run had to be started again"
    return outcome


@scenario(
    GROUP,
    fault=f"the driver (JVM and Python) is stopped for {SESSION_S:.0f} s in mid-write, then goes on",
    expected="the workers wait for it and keep their places; it goes on where it was",
    limit_s=LIMIT_S,
)
def driver_paused_past_the_session(stage: Stage) -> Outcome:
    outcome = _pause(stage, Victim.DRIVER, Step.MID_WRITE, SESSION_S)
    assert outcome.notes["restarts"] == 0, "a run had to be started again"
    return outcome


@scenario(
    GROUP,
    fault=f"the driver is stopped for {SILENCE_S:.0f} s inside the table lock",
    expected="its guardian kills it, so that the lock is not held for ever; the next run goes on",
    limit_s=RESTART_LIMIT_S,
)
def driver_paused_inside_the_table_lock(stage: Stage) -> Outcome:
    return _pause(stage, Victim.DRIVER, Step.COMMIT_BEGUN, SILENCE_S)


@scenario(
    GROUP,
    fault=f"the driver's JVM alone is stopped for {JVM_S:.0f} s inside the table lock, which lives for less",
    expected="the driver's guardian kills it before the lock expires, so that it cannot write to a table on "
    "which others may have gone on; the next run goes on",
    limit_s=RESTART_LIMIT_S,
)
def driver_jvm_frozen_inside_the_table_lock(stage: Stage) -> Outcome:
    hoodie = stage.pipeline.table / ".hoodie"
    outcome = _pause(stage, Victim.JVM, Step.COMMIT_BEGUN, JVM_S, lambda: await_note(hoodie))
    assert outcome.notes["restarts"], "the JVM went on after the lock could have expired"
    said = any("the JVM was stopped, or storage is too slow" in run.text() for run in stage.pipeline.runs)
    assert said, "its guardian did not say why it killed it"
    return outcome


@scenario(
    GROUP,
    fault=f"the broker is stopped for {SESSION_S:.0f} s in the middle of writing, then goes on",
    expected="everybody waits for it, and what was said is said again",
    limit_s=LIMIT_S,
)
def broker_paused_past_the_session(stage: Stage) -> Outcome:
    outcome = _pause(stage, Victim.BROKER, Step.MID_WRITE, SESSION_S)
    assert outcome.notes["restarts"] == 0, "a run had to be started again"
    return outcome

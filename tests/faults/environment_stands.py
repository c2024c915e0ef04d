"""What a run could wait for for ever: each is said after half a minute, and has an end."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

from lockstep.driver.application import START_S
from lockstep.driver.stands import OUTAGE_MAX_S, UNREAD_MAX_S
from lockstep.driver.supervisor import END_S, KILL_S
from tests.busy_member import NAME, busy_member
from tests.faults import processes
from tests.faults.acts import CALM_PER_SECOND, assert_said, ends_with, on_a_broker_of_its_own, plain, proved
from tests.faults.commits import wall_ms
from tests.faults.scenario import Outcome, scenario
from tests.faults.stage import Stage
from tests.harness import Pipeline, await_that

RECORDS = 2_000
NOTHING_TO_DO = "nothing to do"
NO_REPLICAS = {"offsets.topic.replication.factor": "3"}
"""Kafka's own default, of which one broker alone makes nothing."""
AFTER_S = 90
"""On top of a bound: looks that take their time, and the end of a run."""


def await_alarm(pipeline: Pipeline, *said: str) -> float:
    """Until `lockstep status` says so, and nothing of having nothing to do; how long that took."""
    began_ms = wall_ms()

    def shown() -> str:
        text = " ".join(pipeline.command("status").stdout.split())
        return text if all(words in text for words in said) else ""

    text = await_that(f"status that says {said}", shown, deadline_s=150)
    assert NOTHING_TO_DO not in text, text
    return (wall_ms() - began_ms) / 1_000


def _goes_on(stage: Stage, **notes: int) -> Outcome:
    """The next run, under a load of its own, loses nothing."""
    began_ms = wall_ms()
    stage.start_load(per_second=CALM_PER_SECOND // 4)
    again = stage.restart()
    recovery_s = stage.recovery_s(began_ms, deadline_s=150)
    return proved(stage, again, recovery_s=recovery_s, **notes)


# --- the consumer group -------------------------------------------------------------------------------


@scenario(
    "Kafka",
    fault="somebody with the workers' own assignor joins the pipeline's consumer group, and is busy for an "
    "hour with what it polled: the rebalance that it began does not end; then the coordinator's worker dies",
    expected="`lockstep status` names the member and what nobody reads; after 120 s of that the run halts "
    "and says so; once the other one has gone the pipeline goes on",
)
def group_with_a_busy_member(stage: Stage) -> Outcome:
    pipeline = stage.pipeline
    run = stage.start(per_second=CALM_PER_SECOND)
    with busy_member(pipeline.kafka, pipeline.id, pipeline.topic):
        began_ms = wall_ms()
        await_that("source partition that nobody reads", lambda: _unread(stage), deadline_s=60)
        run.kill_worker(coordinator=True)
        await_alarm(pipeline, "STALLED", "No worker reads", NAME)
        ends_with(run, 3, "No worker reads", NAME, deadline_s=UNREAD_MAX_S + AFTER_S)
        halted_s = (wall_ms() - began_ms) / 1_000
        assert_said(run, ["WARNING"])
    again = stage.restart()
    recovery_s = stage.recovery_s(wall_ms(), deadline_s=150)
    return proved(stage, again, recovery_s=recovery_s, halted_after_s=round(halted_s))


def _unread(stage: Stage) -> bool:
    workers = (stage.current.status() or {"workers": []})["workers"]
    owned = {one for worker in workers if worker["state"] != "dead" for one in worker["partitions"]}
    return len(owned) < stage.pipeline.partitions


@scenario(
    "Kafka",
    fault="the cluster cannot keep consumer groups: one broker, and three replicas wanted of the topic that "
    "they are kept in",
    expected="`lockstep validate` fails and says why; a run says so after half a minute, in the log and in "
    "`lockstep status`, and can be stopped",
)
def group_without_a_coordinator(stage: Stage) -> Outcome:
    with on_a_broker_of_its_own(stage, NO_REPLICAS, records=RECORDS) as pipeline:
        refused = pipeline.command("validate")
        assert refused.returncode == 1, refused.stdout
        said = f"consumer group {pipeline.id} has no coordinator"
        assert said in " ".join(refused.stdout.split()), refused.stdout
        began_ms = wall_ms()
        run = pipeline.start()
        await_alarm(pipeline, "STALLED", said, "offsets.topic.replication.factor")
        alarm_s = (wall_ms() - began_ms) / 1_000
        assert_said(run, ["WARNING", said, f"after {OUTAGE_MAX_S:.0f} s the run halts"])
        assert run.stop() == 0, run.text()[-4_000:]
        plain(run)
    return Outcome(notes={"alarm_after_s": round(alarm_s)})


# --- the broker ---------------------------------------------------------------------------------------


@scenario(
    "Kafka",
    fault="the broker is killed and does not come back",
    expected="`lockstep status` says so after half a minute; after ten minutes the run halts; with the "
    "broker back, the next run loses nothing",
)
def broker_away_for_good(stage: Stage) -> Outcome:
    run = stage.start(per_second=CALM_PER_SECOND // 4)
    stage.stop_load()
    began_ms = wall_ms()
    stage.broker.kill()
    try:
        await_alarm(stage.pipeline, "STALLED", "The Kafka broker at", "did not")
        alarm_s = (wall_ms() - began_ms) / 1_000
        ends_with(run, 3, "Kafka has not served this run for", deadline_s=OUTAGE_MAX_S + 2 * AFTER_S)
        halted_s = (wall_ms() - began_ms) / 1_000
    finally:
        stage.broker.start()
    return _goes_on(stage, alarm_after_s=round(alarm_s), halted_after_s=round(halted_s))


# --- what starts the workers --------------------------------------------------------------------------


@contextmanager
def _frozen_forker(stage: Stage) -> Iterator[None]:
    """What Spark forks workers from is stopped, and the workers are killed."""
    there = processes.await_processes(stage.current)
    [forker] = [
        child.pid
        for child in psutil.Process(there.jvm).children()
        if child.status() != psutil.STATUS_ZOMBIE and "worker_daemon" in " ".join(child.cmdline())
    ]
    os.kill(forker, signal.SIGSTOP)
    try:
        processes.send(there.workers, signal.SIGKILL)
        yield
        processes.await_gone([forker, there.jvm, there.driver])
    finally:
        processes.send([forker], signal.SIGCONT)


@scenario(
    "SIGSTOP",
    fault="the process that Spark forks workers from is frozen, and all workers are killed",
    expected="`lockstep status` says which do not come up; after a second start of 120 s the run halts, says "
    "so, and all its processes end; the next run loses nothing",
)
def forker_frozen(stage: Stage) -> Outcome:
    run = stage.start(per_second=CALM_PER_SECOND // 4)
    stage.stop_load()
    with _frozen_forker(stage):
        began_ms = wall_ms()
        await_alarm(stage.pipeline, "has not reported")
        ends_with(run, 3, "did not report within", deadline_s=2 * START_S + END_S + KILL_S + AFTER_S)
        halted_s = (wall_ms() - began_ms) / 1_000
    return _goes_on(stage, halted_after_s=round(halted_s))


@scenario(
    "SIGSTOP",
    fault="the process that Spark forks workers from is frozen, all workers are killed, and the run is told "
    "to stop",
    expected="it stops, and all its processes have ended, within the time that workers have to leave; the "
    "next run loses nothing",
)
def forker_frozen_and_told_to_stop(stage: Stage) -> Outcome:
    run = stage.start(per_second=CALM_PER_SECOND // 4)
    stage.stop_load()
    with _frozen_forker(stage):
        began_s = time.monotonic()
        assert run.stop(deadline_s=END_S + KILL_S + 30) == 0, run.text()[-4_000:]
        stopped_s = time.monotonic() - began_s
        plain(run)
    return _goes_on(stage, stopped_after_s=round(stopped_s))

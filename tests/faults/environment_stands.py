"""What a run could wait for for ever: each is said after half a minute, and has an end."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import psutil

from lockstep.driver.application import START_S
from lockstep.driver.stands import OUTAGE_MAX_S, UNREAD_MAX_S
from lockstep.driver.supervisor import END_S, KILL_S
from tests.busy_member import NAME, busy_member
from tests.faults import processes
from tests.faults.acts import (
    CALM_PER_SECOND,
    assert_said,
    await_alarm,
    begins_again,
    halts,
    on_a_broker_of_its_own,
    plain,
    stops_well,
)
from tests.faults.commits import wall_ms
from tests.faults.environment_kafka import broker_away
from tests.faults.scenario import Outcome, Scenario, put
from tests.faults.stage import Stage
from tests.harness import await_that

RECORDS = 2_000
NO_REPLICAS = {"offsets.topic.replication.factor": "3"}
"""Kafka's own default, of which one broker alone makes nothing."""
AFTER_S = 90
"""On top of a bound: looks that take their time, and the end of a run."""


@contextmanager
def _busy_member(stage: Stage) -> Iterator[None]:
    """A rebalance that does not end; the coordinator's worker dies in it."""
    pipeline = stage.pipeline
    with busy_member(pipeline.kafka, pipeline.id, pipeline.topic):
        await_that("source partition that nobody reads", lambda: _unread(stage), deadline_s=60)
        stage.current.kill_worker(coordinator=True)
        yield


def _unread(stage: Stage) -> bool:
    workers = (stage.current.status() or {"workers": []})["workers"]
    owned = {one for worker in workers if worker["state"] != "dead" for one in worker["partitions"]}
    return len(owned) < stage.pipeline.partitions


def _no_group_coordinator(stage: Stage) -> Outcome:
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
        stops_well(run)
    return Outcome(notes={"alarm_after_s": round(alarm_s)})


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


def _told_to_stop(stage: Stage) -> Outcome:
    run = stage.start(per_second=CALM_PER_SECOND // 4)
    stage.stop_load()
    with _frozen_forker(stage):
        began_s = time.monotonic()
        assert run.stop(deadline_s=END_S + KILL_S + 30) == 0, run.text()[-4_000:]
        stopped_s = time.monotonic() - began_s
        plain(run)
    return begins_again(stage, per_second=CALM_PER_SECOND // 4, stopped_after_s=round(stopped_s))


put(
    "Kafka",
    Scenario(
        "group_with_a_busy_member",
        "somebody with the workers' own assignor joins the pipeline's consumer group, and is busy for an "
        "hour with what it polled: the rebalance that it began does not end; then the coordinator's worker "
        "dies",
        "`lockstep status` names the member and what nobody reads; after 120 s of that the run halts "
        "and says so; once the other one has gone the pipeline goes on",
        partial(
            halts,
            during=_busy_member,
            alarm=("STALLED", "No worker reads", NAME),
            said=("No worker reads", NAME, "WARNING"),
            deadline_s=UNREAD_MAX_S + AFTER_S,
        ),
    ),
    Scenario(
        "group_without_a_coordinator",
        "the cluster cannot keep consumer groups: one broker, and three replicas wanted of the topic that "
        "they are kept in",
        "`lockstep validate` fails and says why; a run says so after half a minute, in the log and in "
        "`lockstep status`, and can be stopped",
        _no_group_coordinator,
    ),
    Scenario(
        "broker_away_for_good",
        "the broker is killed and does not come back",
        "`lockstep status` says so after half a minute; after ten minutes the run halts; with the "
        "broker back, the next run loses nothing",
        partial(
            halts,
            during=broker_away,
            alarm=("STALLED", "The Kafka broker at", "did not"),
            said=("Kafka has not served this run for",),
            deadline_s=OUTAGE_MAX_S + 2 * AFTER_S,
            per_second=CALM_PER_SECOND // 4,
            with_load=False,
        ),
    ),
)
put(
    "SIGSTOP",
    Scenario(
        "forker_frozen",
        "the process that Spark forks workers from is frozen, and all workers are killed",
        "`lockstep status` says which do not come up; after a second start of 120 s the run halts, says "
        "so, and all its processes end; the next run loses nothing",
        partial(
            halts,
            during=_frozen_forker,
            alarm=("has not reported",),
            said=("did not report within",),
            deadline_s=2 * START_S + END_S + KILL_S + AFTER_S,
            per_second=CALM_PER_SECOND // 4,
            with_load=False,
        ),
    ),
    Scenario(
        "forker_frozen_and_told_to_stop",
        "the process that Spark forks workers from is frozen, all workers are killed, and the run is told "
        "to stop",
        "it stops, and all its processes have ended, within the time that workers have to leave; the "
        "next run loses nothing",
        _told_to_stop,
    ),
)

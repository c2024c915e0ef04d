"""The driver dies while it clusters or cleans beside its transactions. Compactions: `upserts_compactions`."""

from __future__ import annotations

from tests.faults import commits, upkeep
from tests.faults.kills import DRIVER_LIMIT_S
from tests.faults.scenario import Outcome, scenario
from tests.faults.stage import START_S, Stage
from tests.faults.upkeep import Action, Moment
from tests.faults.upkeep_blows import await_another, kill_driver, until_done_anew, until_struck
from tests.harness import await_that

GROUP = "Services"
EVERY = "3"
"""Commits between clusterings, and between cleans."""


def _killed_while_clustering(stage: Stage, moment: Moment) -> Outcome:
    stage.pipeline.settings |= {"services.clustering": "async", "services.clustering_every": EVERY}
    stage.start()
    struck, misses = until_done_anew(stage, Action.CLUSTERING, moment)
    figures = stage.settle_and_verify()
    table = stage.pipeline.table
    unnamed = commits.unnamed_base_files(table)
    assert not unnamed, f"base files that no commit names: {unnamed}"
    clusterings = len(upkeep.completed(table, Action.CLUSTERING))
    return struck.outcome(misses=misses, clusterings=clusterings, **figures)


@scenario(
    GROUP,
    fault="SIGKILL of the driver and restarted: a clustering has just been begun",
    expected="the next run takes the clustering away and clusters anew",
    limit_s=DRIVER_LIMIT_S,
)
def driver_killed_as_a_clustering_begins(stage: Stage) -> Outcome:
    return _killed_while_clustering(stage, Moment.BEGUN)


@scenario(
    GROUP,
    fault="SIGKILL of the driver and restarted: a clustering is writing base files",
    expected="the next run takes the clustering and its files away and clusters anew",
    limit_s=DRIVER_LIMIT_S,
)
def driver_killed_while_a_clustering_writes(stage: Stage) -> Outcome:
    return _killed_while_clustering(stage, Moment.WRITING)


@scenario(
    GROUP,
    fault="SIGKILL of the driver and restarted: a clustering is in Hudi's metadata table, and not yet "
    "complete on the timeline",
    expected="the next run takes the clustering out of both and clusters anew",
    limit_s=DRIVER_LIMIT_S,
)
def driver_killed_as_a_clustering_completes(stage: Stage) -> Outcome:
    return _killed_while_clustering(stage, Moment.LISTED)


@scenario(
    GROUP,
    fault="SIGKILL of the driver and restarted: a clean removes what compactions have replaced",
    expected="the next clean finishes it; readers miss nothing",
    limit_s=DRIVER_LIMIT_S,
)
def driver_killed_while_it_cleans(stage: Stage) -> Outcome:
    stage.with_upserts(compaction_every="2", cleaning="async", cleaning_every=EVERY)
    stage.pipeline.settings["table.hudi.hoodie.clean.commits.retained"] = "2"
    stage.start()
    struck, misses = until_struck(lambda: kill_driver(stage, Action.CLEAN))
    table = stage.pipeline.table
    await_that(
        "end of the clean that was left",
        lambda: struck.instant in upkeep.completed(table, Action.CLEAN),
        deadline_s=START_S,
    )
    await_another(stage, Action.CLEAN, struck.instant)
    return struck.outcome(misses=misses, **stage.settle_and_verify())

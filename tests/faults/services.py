"""The driver dies while it clusters or cleans beside its transactions. Compactions: `upserts_compactions`."""

from __future__ import annotations

from tests.faults import upkeep
from tests.faults.kills import DRIVER_LIMIT_S
from tests.faults.scenario import Outcome, Scenario, put
from tests.faults.stage import START_S, Stage
from tests.faults.upkeep import Action
from tests.faults.upkeep_blows import await_another, driver_kills, kill_driver, until_struck
from tests.harness import await_that

EVERY = "3"
"""Commits between clusterings, and between cleans."""
CLUSTERED = {"services.clustering": "async", "services.clustering_every": EVERY}


def _killed_while_it_cleans(stage: Stage) -> Outcome:
    stage.start()
    struck, misses = until_struck(lambda: kill_driver(stage, Action.CLEAN))
    place = stage.pipeline.place
    await_that(
        "end of the clean that was left",
        lambda: struck.instant in upkeep.completed(place, Action.CLEAN),
        deadline_s=START_S,
    )
    await_another(stage, Action.CLEAN, struck.instant)
    return struck.outcome(misses=misses, **stage.settle_and_verify())


put(
    "Services",
    *driver_kills(Action.CLUSTERING, "clusters", settings=CLUSTERED),
    Scenario(
        "driver_killed_while_it_cleans",
        "SIGKILL of the driver and restarted: a clean removes what compactions have replaced",
        "the next clean finishes it; readers miss nothing",
        _killed_while_it_cleans,
        DRIVER_LIMIT_S,
        settings={"table.hudi.hoodie.clean.commits.retained": "2"},
        upserts={"compaction_every": "2", "cleaning": "async", "cleaning_every": EVERY},
    ),
)

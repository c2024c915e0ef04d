"""The driver dies while it clusters or cleans beside its transactions. Compactions: `upserts_compactions`."""

from __future__ import annotations

import signal
import time

from table.hudi.upkeep.clustering import COPIES, COPYING, EXECUTION_CLASS, STRATEGY_CLASS
from tests.faults import upkeep
from tests.faults.blows import ANSWER_S, Victim, left_locked_s, send_to
from tests.faults.commits import wall_ms
from tests.faults.kills import DRIVER_LIMIT_S
from tests.faults.pauses import FROZEN, JVM_S
from tests.faults.scenario import Outcome, Scenario, put
from tests.faults.stage import START_S, Stage
from tests.faults.upkeep import Action
from tests.faults.upkeep_blows import Struck, await_another, driver_kills, kill_driver, until_struck
from tests.harness import await_that

EVERY = "3"
"""Commits between cleans."""
HUDIS_LOCK_S = 5.0
"""Within so long a clean that is open takes the lock to complete."""
CLUSTERED = {
    "services.clustering": "async",
    "services.clustering_files": "4",
    "services.clustering_share": "100%",
    "services.clustering_every": "100000",
}
"""As often as a few commits have added so many files. Often enough to be hit."""
COPIED = {
    **CLUSTERED,
    "services.clustering_every": "4",
    f"table.hudi.{STRATEGY_CLASS}": COPYING,
    f"table.hudi.{EXECUTION_CLASS}": COPIES,
}
"""Files that are tiny would be rewritten else."""


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


def _freeze_jvm(stage: Stage) -> Struck | None:
    """Stop the JVM in a lock that Hudi has taken by itself, while a clean is open; None for a miss."""
    place, who = stage.pipeline.place, stage.processes()
    instant = upkeep.await_begun(place, Action.CLEAN)
    until = time.monotonic() + HUDIS_LOCK_S
    while time.monotonic() < until and not place.cleans_under_lock():
        time.sleep(place.look_s)
    send_to(stage, who, Victim.JVM, signal.SIGSTOP)
    if not place.cleans_under_lock() or instant not in upkeep.pending(place, Action.CLEAN):
        send_to(stage, who, Victim.JVM, signal.SIGCONT)
        await_that("end of the clean", lambda: instant not in upkeep.pending(place, Action.CLEAN))
        return None
    stage.current.wait(JVM_S)
    assert FROZEN in stage.current.text(), stage.current.text()[-4_000:]
    expiry_s, at_ms = left_locked_s(stage), wall_ms()
    stage.restart()
    recovery = stage.recovery(at_ms, deadline_s=ANSWER_S)
    return Struck(instant=instant, base_files=0, expiry_s=expiry_s, recovery=recovery)


def _jvm_frozen_while_it_cleans(stage: Stage) -> Outcome:
    stage.start()
    struck, misses = until_struck(lambda: _freeze_jvm(stage))
    await_another(stage, Action.CLEAN, struck.instant)
    return struck.outcome(misses=misses, **stage.settle_and_verify())


CLEANS = {"compaction_every": "2", "cleaning": "async", "cleaning_every": EVERY}
RETAINS = {"table.hudi.hoodie.clean.commits.retained": "2"}

put(
    "Services",
    *driver_kills(Action.CLUSTERING, "clusters", settings=CLUSTERED),
    *driver_kills(
        Action.CLUSTERING, "clusters", prefix="copying_", how=" that copies row groups", settings=COPIED
    ),
    Scenario(
        "driver_killed_while_it_cleans",
        "SIGKILL of the driver and restarted: a clean removes what compactions have replaced",
        "the next clean finishes it; readers miss nothing",
        _killed_while_it_cleans,
        DRIVER_LIMIT_S,
        settings=RETAINS,
        upserts=CLEANS,
    ),
    Scenario(
        "driver_jvm_frozen_while_it_cleans",
        f"the driver's JVM alone is stopped for up to {JVM_S:.0f} s inside a table lock that Hudi has taken "
        "by itself, while it cleans",
        "the driver's guardian kills it before the lock expires; the next run finishes the clean",
        _jvm_frozen_while_it_cleans,
        DRIVER_LIMIT_S,
        settings=RETAINS,
        upserts=CLEANS,
    ),
)

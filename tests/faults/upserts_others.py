"""Spark SQL beside upserts: changes rows while processes are killed, drops a table partition."""

from __future__ import annotations

from lockstep.errors import EXIT_HALTED
from tests.faults import upkeep
from tests.faults.acts import CALM_PER_SECOND, halts_after_s
from tests.faults.blows import Blow, Victim, kill
from tests.faults.scenario import ON_FILES, Outcome, scenario
from tests.faults.sql import say
from tests.faults.sql_writer import CHANGING, SqlWriter, changed_rows
from tests.faults.stage import Stage
from tests.faults.steps import Step
from tests.faults.tables_others import ROUNDS_S, foreign_writer
from tests.faults.upkeep import Action
from tests.harness import await_that

BLOWS = (
    (Victim.WORKER, Step.MID_WRITE),
    (Victim.DRIVER, Step.COMMIT_LANDED),
    (Victim.COORDINATOR, Step.END_SENT),
    (Victim.DRIVER, Step.MID_WRITE),
)


@scenario(
    "Upserts",
    fault="a Spark SQL writer that was told nothing updates and merges the pipeline's rows and its own "
    "all the time, while worker, coordinator's worker and driver are killed",
    expected="both go on; every row is as the last of both says, by the ordering field",
    upserts={"compaction_every": "4"},
    stores=ON_FILES,
)
def sql_writer_beside_upserts_with_kills(stage: Stage) -> Outcome:
    stage.start(per_second=CALM_PER_SECOND)
    blows: list[Blow] = []
    with foreign_writer(stage, CHANGING) as writer:
        for victim, step in BLOWS:
            _await_round(writer)
            blows.append(kill(stage, victim, step))
        _await_round(writer)
        theirs = writer.stop()
    for kind in ("update", "merge"):
        assert theirs.get(kind), f"the SQL writer never succeeded to {kind}: {writer.text()[-4_000:]}"
    stage.others = changed_rows(theirs)
    figures = stage.settle_and_verify()
    return Outcome(
        notes={
            "recovered_after_s": ", ".join(f"{blow.recovery.commit_s:.1f}" for blow in blows),
            **figures,
            **{f"their_{kind}": count for kind, count in theirs.items() if not kind.endswith("round")},
        }
    )


@scenario(
    "Upserts",
    fault="a Spark SQL session drops a table partition of the table while the pipeline changes rows in it",
    expected="nothing is committed that Hudi would hide: the run halts, at each start again, and names "
    "instant and table partition; the documented way on ends with every row as it should be",
    upserts={"compaction": "off"},
    stores=ON_FILES,
)
def table_partition_dropped_under_upserts(stage: Stage) -> Outcome:
    pipeline, run = stage.pipeline, stage.start(per_second=CALM_PER_SECOND)
    drop = "alter table dropped drop partition (region = 'a')"
    say(pipeline.folder, f"create table dropped using hudi location '{pipeline.table}'", drop)
    halted_s = halts_after_s(run, "took table partition 'a' out", "Table partitions that were taken out")
    again = pipeline.run_to_end()
    assert again.process.returncode == EXIT_HALTED, again.text()[-4_000:]
    taken_back = _take_back_to_the_drop(stage)
    stage.restart()
    figures = stage.settle_and_verify()
    return Outcome(notes={"halted_after_s": halted_s, "taken_back": taken_back, **figures})


def _take_back_to_the_drop(stage: Stage) -> int:
    """As docs/operations.md tells an operator to; how many instants that were."""
    table = stage.pipeline.table
    (dropped,) = upkeep.completed(stage.pipeline.place, Action.CLUSTERING)  # what is a replacecommit
    later = {one for one in upkeep.completed(stage.pipeline.place, Action.DELTACOMMIT) if one > dropped}
    newest_first = sorted(later | {dropped}, reverse=True)
    call = "call rollback_to_instant(table => 'dropped', instant_time => '{}')"
    known = f"create table dropped using hudi location '{table}'"
    without = ("call delete_metadata_table(table => 'dropped')", "set hoodie.metadata.enable=false")
    say(stage.pipeline.folder, known, *without, *(call.format(one) for one in newest_first))
    return len(newest_first)


def _await_round(writer: SqlWriter) -> None:
    """Until it has gone through another round."""
    done = writer.rounds()

    def probe() -> bool:
        assert writer.running, f"the SQL writer has ended: {writer.text()[-4_000:]}"
        return writer.rounds() > done

    await_that("round of the SQL writer", probe, deadline_s=ROUNDS_S)

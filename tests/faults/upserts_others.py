"""Spark SQL changes an upsert table's rows while processes of the pipeline are killed."""

from __future__ import annotations

from tests.faults.acts import CALM_PER_SECOND
from tests.faults.blows import Blow, Victim, kill
from tests.faults.scenario import Outcome, scenario
from tests.faults.sql_writer import CHANGING, SqlWriter, changed_rows
from tests.faults.stage import Stage
from tests.faults.steps import Step
from tests.faults.tables_others import ROUNDS_S, foreign_writer
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
)
def sql_writer_beside_upserts_with_kills(stage: Stage) -> Outcome:
    stage.with_upserts(compaction_every="4")
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


def _await_round(writer: SqlWriter) -> None:
    """Until it has gone through another round."""
    done = writer.rounds()

    def probe() -> bool:
        assert writer.running, f"the SQL writer has ended: {writer.text()[-4_000:]}"
        return writer.rounds() > done

    await_that("round of the SQL writer", probe, deadline_s=ROUNDS_S)

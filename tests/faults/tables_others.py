"""Others write to the same table at the same time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pyarrow.parquet as pq

from table.hudi.reader.timeline import Timeline
from tests.faults.acts import CALM_PER_SECOND, halts, is_met_between_runs, stops_well
from tests.faults.clock import make_clock
from tests.faults.clocks import HOUR_S
from tests.faults.commits import wall_ms
from tests.faults.scenario import ON_FILES, Notes, Outcome, Scenario, put, scenario
from tests.faults.sql import say
from tests.faults.sql_writer import WELL_BEHAVED, SqlWriter
from tests.faults.stage import Stage
from tests.harness import SCHEMA, Run, await_that

GROUP = "Other writers"
ROUNDS = 6
ROUNDS_S = 600.0


@contextmanager
def foreign_writer(stage: Stage, kind: str, *, rounds: int = 0, updates: bool = True) -> Iterator[SqlWriter]:
    writer = SqlWriter(
        stage.pipeline.table, kind=kind, folder=stage.pipeline.folder, rounds=rounds, updates=updates
    )
    try:
        yield writer
    finally:
        writer.kill()


@scenario(
    GROUP,
    fault="a Spark SQL writer with the same lock, optimistic concurrency control and LAZY cleaning inserts, "
    "updates rows of Lockstep's, clusters and cleans, all the time",
    expected="both go on; none of Lockstep's rows is missing or doubled, and verify says which it cannot "
    "check any more because the other one changed them",
    stores=ON_FILES,
)
def sql_writer_beside_the_pipeline(stage: Stage) -> Outcome:
    run = stage.start(per_second=CALM_PER_SECOND)
    with foreign_writer(stage, "well_behaved") as writer:
        began_ms = wall_ms()
        await_that("rounds of the SQL writer", lambda: writer.rounds() >= ROUNDS, deadline_s=ROUNDS_S)
        commits, seconds = len(stage.commits_after(began_ms)), (wall_ms() - began_ms) / 1_000
        done = writer.rounds()
        theirs = writer.stop()
    stage.drain()
    stops_well(run)
    verdict = stage.pipeline.verify()
    rewritten = sum(part["rewritten"] for part in verdict["partitions"])
    assert verdict["exact"] is not False, verdict
    assert (verdict["missing"], verdict["duplicated"], verdict["unexpected"]) == (0, 0, 0), verdict
    assert verdict["rows"] + rewritten == stage.pipeline.produced, verdict
    assert verdict["foreign_rows"] - rewritten == theirs["rows"], (verdict, theirs)
    for kind in ("insert", "update", "cluster", "clean"):
        assert theirs.get(kind), f"the SQL writer never succeeded to {kind}: {writer.text()[-4_000:]}"
    assert commits >= ROUNDS, f"{commits} commits beside {ROUNDS} rounds"
    return Outcome(
        notes={
            "records": stage.pipeline.produced,
            "rows_rewritten_by_the_other": rewritten,
            "commits_meanwhile": commits,
            "their_round_s": round(seconds / done, 1),
            **{f"their_{kind}": count for kind, count in theirs.items() if not kind.endswith("round")},
        }
    )


def _archive(stage: Stage) -> Notes:
    """Others commit so often that none of Lockstep's instants is in the active timeline any more."""
    pipeline = stage.pipeline
    with foreign_writer(stage, "archiving", rounds=30, updates=False) as writer:
        theirs = writer.wait(ROUNDS_S)
    assert theirs["insert"] == 30, writer.text()[-4_000:]
    timeline = pipeline.table / ".hoodie" / "timeline"
    ours = [one.requested for one in Timeline(pipeline.table).completed() if one.state is not None]
    assert ours, "none of Lockstep's commits is found"
    active = [instant for instant in ours if list(timeline.glob(f"{instant}_*.commit"))]
    assert not active, f"commits of Lockstep's are still in the active timeline: {active}"
    return {"foreign_commits": theirs["insert"]}


put(
    GROUP,
    Scenario(
        "offsets_in_the_archived_timeline",
        "so many foreign commits follow Lockstep's last one that it is archived, while no run is alive",
        "the offsets are found in the archived timeline, and the next run goes on from them",
        partial(is_met_between_runs, fault=_archive),
    ),
    stores=ON_FILES,
)


@scenario(
    GROUP,
    fault="a Spark SQL writer with Hudi's own defaults (EAGER, no lock) inserts all the time, which "
    "docs/operations.md forbids and validate warns of",
    expected="it rolls open instants back and may destroy files of a commit at the wrong moment, which "
    "nobody can prevent: the operator is told of the aborts, and verify finds every row that is missing",
    stores=ON_FILES,
)
def eager_writer_beside_the_pipeline(stage: Stage) -> Outcome:
    run = stage.start(per_second=CALM_PER_SECOND)
    warned = stage.pipeline.command("validate").stdout
    assert "EAGER" in warned, warned
    with foreign_writer(stage, "eager", updates=False) as writer:
        await_that("abort", lambda: _aborts(run) > 0, deadline_s=ROUNDS_S)
        theirs = writer.stop()
    recovery_s = stage.recovery_s(wall_ms())
    stage.drain()
    stops_well(run)
    verdict, there = stage.pipeline.verify(), _rows_there(stage)
    assert (verdict["duplicated"], verdict["unexpected"]) == (0, 0), verdict
    assert (verdict["rows"], verdict["missing"]) == (there, stage.pipeline.produced - there), verdict
    assert verdict["exact"] is (there == stage.pipeline.produced), verdict
    return Outcome(
        recovery_s=recovery_s,
        notes={
            "records": stage.pipeline.produced,
            "rows_destroyed_and_found_by_verify": verdict["missing"],
            "transactions_aborted": _aborts(run),
            "their_inserts": theirs.get("insert", 0),
            "their_refusals": theirs.get("insert_refused", 0),
        },
    )


def _aborts(run: Run) -> int:
    """How many of the run's transactions somebody else rolled back, as its operator is told."""
    return run.text().count("was rolled back:")


def _rows_there(stage: Stage) -> int:
    """Rows in those files of Lockstep's commits that still exist; counted without Hudi and without verify."""
    paths = [
        stage.pipeline.table / file.path
        for one in Timeline(stage.pipeline.table).completed()
        if one.state is not None
        for file in one.files
    ]
    return sum(pq.ParquetFile(path).metadata.num_rows for path in paths if path.exists())


@contextmanager
def _taken_out_of_the_metadata_table(stage: Stage) -> Iterator[str]:
    pipeline = stage.pipeline
    newest = Timeline(pipeline.table).newest(pipeline.id)
    assert newest is not None
    for file in pipeline.table.glob(f".hoodie/metadata/.hoodie/timeline/{newest.instant}*"):
        file.unlink()
    yield f"instant {newest.instant} is complete and not in it"
    verdict = pipeline.verify()
    assert verdict["exact"] is False and newest.instant in verdict["metadata_broken"][0], verdict
    known = f"create table torn using hudi location '{pipeline.table}'"
    say(pipeline.folder, known, "call delete_metadata_table(table => 'torn')")


@contextmanager
def _column_added_an_hour_ago(stage: Stage) -> Iterator[None]:
    pipeline, began_ms = stage.pipeline, wall_ms()
    clock = make_clock(pipeline.folder / "others.clock", seconds=-HOUR_S)
    say(
        pipeline.folder,
        *(f"set {name}={value}" for name, value in WELL_BEHAVED.items()),
        f"create table theirs using hudi location '{pipeline.table}'",
        "alter table theirs add columns (origin string)",
        environment=clock.environment(),
    )
    timeline = Timeline(pipeline.table)
    [theirs] = [one for one in timeline.completed() if one.operation == "ALTER_SCHEMA"]
    assert timeline.time_ms(theirs.completed) < began_ms - HOUR_S * 500, theirs
    yield
    text = pipeline.config.read_text(encoding="utf-8")
    pipeline.config.write_text(text.replace(SCHEMA, f"{SCHEMA}, origin STRING"), encoding="utf-8")


put(
    GROUP,
    Scenario(
        "metadata_table_that_lost_a_commit",
        "a commit is taken out of Hudi's metadata table while the pipeline runs, as somebody's rollback "
        "does that comes too late",
        "nothing is committed beside that: the run halts and names the instant, and verify says so; "
        "with the metadata table deleted as documented the next run makes it anew, and goes on",
        partial(halts, during=_taken_out_of_the_metadata_table, said=("contradicts the timeline",)),
    ),
    Scenario(
        "column_added_by_others_whose_clock_is_behind",
        "somebody with the same lock, whose clock is 1 h behind, adds a column to the table: on the "
        "timeline that is older than everything of the pipeline's",
        "nothing is committed that would take the column away again: the run halts and names the field; "
        "with it in record.schema the next run goes on",
        partial(halts, during=_column_added_an_hour_ago, said=("origin", "record.schema")),
    ),
    stores=ON_FILES,
)

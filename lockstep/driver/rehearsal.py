"""What a driver does to a table, done once to an empty one, so that its JVM loads what a run will need."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession

from control_topic.messages import DataFile, SourcePartition
from lockstep.config import Config, from_mapping
from lockstep.errors import EXIT_WELL
from participant.records.raw import RawBatch, Values
from participant.worker.memory import MemoryBudget
from participant.worker.stages import stages
from table.kinds import table_kind
from table.port import Commit, TableLayout, TransactionalTable
from table.state import TableState

PIPELINE = "rehearsal"
TOPIC = "rehearsal"
COMMITS = 3
SCHEMA = "event_id STRING, day STRING"
MEMORY_BYTES = 1 << 26


def configuration(folder: Path) -> Config:
    """Of a pipeline whose table is in this folder; no broker is ever asked."""
    return from_mapping(
        {
            "pipeline": {"id": PIPELINE, "workers": 1},
            "source": {"bootstrap_servers": "127.0.0.1:1", "topics": [TOPIC]},
            "record": {"schema": SCHEMA},
            "table": {
                "path": (folder / "table").as_uri(),
                "name": PIPELINE,
                "key": ["event_id"],
                "partition_by": "day",
            },
        }
    )


def rehearse(spark: SparkSession, config: Config) -> int:
    """Open, commit, roll back, sweep: the exit code."""
    table = table_kind(config.table.format).committer(spark, config.table_spec(), PIPELINE)
    layout = table.open()
    for number in range(COMMITS):
        _commit(table, layout, number)
    table.roll_back(table.begin(run=PIPELINE, transaction="given up"))
    table.tend()
    table.sweep(grace_ms=0)
    table.close()
    spark.sparkContext.parallelize([0], 1).map(str).collect()  # how workers are started
    return EXIT_WELL


def _commit(table: TransactionalTable, layout: TableLayout, number: int) -> None:
    transaction, here = f"transaction {number}", SourcePartition(TOPIC, 0)
    newest = table.newest()
    table.unfinished()
    instant = table.begin(run=PIPELINE, transaction=transaction)
    state = TableState(
        pipeline=PIPELINE,
        run=PIPELINE,
        epoch=number + 1,
        transaction=transaction,
        offsets={here: number + 1},
        kind="data" if number else "genesis",
    )
    commit = Commit(
        instant=instant,
        expected=newest.offsets if newest is not None else {},
        state=state,
        files=_files(layout, instant, number),
    )
    table.commit(commit, fence=lambda _newest: "")
    table.find(transaction)


def _files(layout: TableLayout, instant: str, number: int) -> tuple[DataFile, ...]:
    """One record in one file."""
    batch = RawBatch(
        partition=SourcePartition(TOPIC, 0),
        offsets=np.array([number]),
        timestamps_ms=np.array([0]),
        values=Values.of([f'{{"event_id":"e-{number}","day":"2026-01-01"}}'.encode()]),
    )
    made = stages(
        layout=layout,
        slot=0,
        incarnation=PIPELINE,
        memory=MemoryBudget(MEMORY_BYTES),
    )
    writer = made.files.writer(instant, lambda _written: None)
    writer.write(made.files.shape(made.decoder.decode(batch).rows(batch)))
    return writer.close()

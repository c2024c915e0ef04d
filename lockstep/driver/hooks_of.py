"""A run's hooks, from its configuration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from pyspark.sql import SparkSession

from lockstep.config import Config
from lockstep.hooks.hooks import Hooks
from lockstep.hooks.port import Ending, HowEnded
from lockstep.hooks.sinks import RunTold, sinks_of
from table.kinds import table_kind
from table.port import TableLayout
from table.service.ledger import RunOutcome, RunOutcomeKind
from table.service.servicer import TableService

NEWEST_S = 300
HOW: Mapping[RunOutcomeKind, HowEnded] = {
    RunOutcomeKind.STOPPED: HowEnded.WELL,
    RunOutcomeKind.REACHED: HowEnded.WELL,
    RunOutcomeKind.HALTED: HowEnded.HALTED,
    RunOutcomeKind.SUPERSEDED: HowEnded.SUPERSEDED,
}


@contextmanager
def telling(
    spark: SparkSession,
    config: Config,
    kafka: Mapping[str, str],
    layout: TableLayout,
    service: TableService,
    *,
    run: str,
) -> Iterator[Hooks]:
    """Tell of each commit from here on. Whoever leaves it without `finish` was ended by an error.

    Before any worker starts: the first commit is after that. Raises `LockstepError`, `TableError`.
    """
    sinks = sinks_of(config, kafka, RunTold(run=run, layout=layout, spark=spark))
    kind, storage = table_kind(layout.kind), config.store_settings()
    hooks = Hooks(
        sinks,
        pipeline=config.pipeline.id,
        store=kind.notes(layout.path, storage),
        open_reader=partial(kind.reader, layout.path, storage),
        newest=service.newest(timeout_s=NEWEST_S) if sinks else None,
        seen=service.seen,
        alarm=service.alarm,
    )
    hooks.start()
    try:
        yield hooks
    finally:
        hooks.finish(Ending(how=HowEnded.FAILED, reason="the run was ended by an error"))


def ending_of(outcome: RunOutcome) -> Ending:
    return Ending(how=HOW[outcome.kind], reason=outcome.reason)

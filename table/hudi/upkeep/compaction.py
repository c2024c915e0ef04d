"""Compaction of merge-on-read tables: log files become base files, in Spark's free slots.

Log files that are committed meanwhile belong to the next file slice, and under non-blocking concurrency
control neither side makes the other's commit fail. What is made of one that a dead or a paused driver leaves:
table/hudi/upkeep/plans.py.

Of Spark's slots it takes no more than the workers leave free: the slot of a worker that dies would else go to
the next file group, and the worker that replaces it would wait until that is merged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from table.hudi.driver.asking import elements
from table.hudi.driver.clock import await_clock
from table.hudi.driver.java import changing
from table.hudi.driver.session import Session
from table.hudi.upkeep import plans
from table.hudi.upkeep.dictionaries import leave_out_dictionaries
from table.hudi.upkeep.due import ByCommits, Done, Opener
from table.hudi.upkeep.plans import OWNER, PendingPlan, Tidied
from table.port import SCHEDULE, TableSpec

ACTION = "compaction"


class Compaction(ByCommits):
    """Implements `table.hudi.upkeep.due.ServiceWork`."""

    name = ACTION
    properties: Mapping[str, str] = {}

    def __init__(self, spec: TableSpec, pipeline: str, free_slots: Callable[[], int] = lambda: 1) -> None:
        self._pipeline = pipeline
        self._free_slots = free_slots
        self._scheduled_only = spec.compaction == SCHEDULE
        self._given = spec.properties
        self._due = {"hoodie.compact.inline.max.delta.commits": str(spec.compaction_every)}

    def open(self, opener: Opener) -> Session:
        return opener(fixed=self._due, by_spark=True)

    def tidy(self, session: Session) -> str:
        return tidy(session, self._pipeline).objection(ACTION)

    def run(self, session: Session, doing: Callable[[str], None]) -> Done | None:
        instant, groups = plan(session, "" if self._scheduled_only else self._pipeline)
        what = f"{groups:,} file group{'' if groups == 1 else 's'}"
        if not instant:
            return None
        if self._scheduled_only:
            return Done(instant, f"{what} planned")
        doing(what)
        leave_out_dictionaries(session, self._given)
        with changing(f"compaction {instant} of table {session.path} was not completed", session.lock.folder):
            plans.begin(session, ACTION, instant)
            done = session.client.compact(instant)  # begins with nothing before its outcome is asked for
            done.setWriteStatuses(done.getWriteStatuses().coalesce(self._free_slots()))
            await_clock(session)
            with plans.completing(session, ACTION, instant):
                session.client.commitCompaction(instant, done, session.none())
        return Done(instant, what)


def plan(session: Session, owner: str) -> tuple[str, int]:
    """Plan a compaction: its instant, empty where nothing is due, and how many file groups it has.

    See `plans.schedule`.
    """
    utils = session.hudi.common.util.CompactionUtils

    def about(instant: str) -> tuple[str, int]:
        return instant, len(utils.getCompactionPlan(session.meta, instant).getOperations())

    return plans.schedule(session, ACTION, owner, session.client.scheduleCompaction, about) or ("", 0)


def tidy(session: Session, pipeline: str) -> Tidied:
    """Take away pending compactions of this pipeline that nobody else has begun. See `plans.abandon`."""
    utils = session.hudi.common.util.CompactionUtils

    def pending() -> Iterator[PendingPlan]:
        for pair in elements(utils.getAllPendingCompactionPlans(session.meta)):
            planned = pair.getRight()
            owner = (planned.getExtraMetadata() or {}).get(OWNER) or ""
            yield PendingPlan(str(pair.getLeft().requestedTime()), str(owner), planned)

    return plans.abandon(session, ACTION, pipeline, pending, _folders)


def _folders(planned: Any) -> set[str]:
    return {str(one.getPartitionPath()) for one in elements(planned.getOperations())}

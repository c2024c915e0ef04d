"""Compaction of merge-on-read tables: log files become base files, in Spark's free slots.

Log files that are committed meanwhile belong to the next file slice, and under non-blocking concurrency
control neither side makes the other's commit fail.

A driver that dies leaves a compaction pending, or one that is paused goes on with it after its successor has
begun. So a successor takes what is pending of its pipeline away, under the table lock, and plans anew: to be
completed, an instant needs its inflight file, which Hudi looks for under the same lock. Plans of others are
left alone, and so are those of `schedule`, which are for others to carry out.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from table.hudi.java import changing
from table.hudi.plans import OWNER, remove_files
from table.hudi.session import Session
from table.hudi.upkeep import Done, Opener
from table.port import SCHEDULE, TableSpec

log = logging.getLogger(__name__)

ACTION = "compaction"


class Compaction:
    """Implements `table.hudi.upkeep.Work`."""

    name = ACTION
    properties: Mapping[str, str] = {}

    def __init__(self, spec: TableSpec, pipeline: str) -> None:
        self._pipeline = pipeline
        self._scheduled_only = spec.compaction == SCHEDULE
        self._due = {"hoodie.compact.inline.max.delta.commits": str(spec.compaction_every)}

    def open(self, opener: Opener) -> Session:
        return opener(fixed=self._due, by_spark=True)

    def tidy(self, session: Session) -> None:
        abandon(session, self._pipeline)

    def run(self, session: Session, doing: Callable[[str], None]) -> Done | None:
        instant, groups = plan(session, "" if self._scheduled_only else self._pipeline)
        what = f"{groups:,} file group{'' if groups == 1 else 's'}"
        if not instant:
            return None
        if self._scheduled_only:
            return Done(instant, f"{what} planned")
        doing(what)
        with changing(f"compaction {instant} of table {session.path} was not completed", session.lock_folder):
            done = session.client.compact(instant)
            session.client.commitCompaction(instant, done, session.none())
        return Done(instant, what)


def plan(session: Session, owner: str) -> tuple[str, int]:
    """Plan a compaction of what is committed; its instant, empty where nothing is due, and its file groups.

    `owner`: the pipeline that carries it out, empty where it is left to others.
    """
    marked = session.java_map({OWNER: owner} if owner else {})
    with changing(f"table {session.path}: no compaction could be planned", session.lock_folder):
        session.reload()
        planned = session.client.scheduleCompaction(session.some(marked))
        if not planned.isPresent():
            return "", 0
        instant = str(planned.get())
        session.reload()
        utils = session.hudi.common.util.CompactionUtils
        return instant, len(utils.getCompactionPlan(session.meta, instant).getOperations())


def abandon(session: Session, pipeline: str) -> list[str]:
    """Take away pending compactions of this pipeline and the files they had made; their instants."""
    doing = f"table {session.path}: a compaction that was left behind could not be taken away"
    utils = session.hudi.common.util.CompactionUtils
    taken: list[str] = []
    with changing(doing, session.lock_folder):
        session.holder.free_if_dead()
        with session.locked():
            session.reload()
            for pair in list(utils.getAllPendingCompactionPlans(session.meta)):
                instant, planned = str(pair.getLeft().requestedTime()), pair.getRight()
                if (planned.getExtraMetadata() or {}).get(OWNER) == pipeline:
                    folders = {str(one.getPartitionPath()) for one in planned.getOperations() or ()}
                    session.remove_pending(ACTION, instant)
                    remove_files(session, folders, instant)
                    taken.append(instant)
                    log.warning("compaction %s was left behind by another run: it is taken away", instant)
    return taken

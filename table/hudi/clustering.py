"""Clustering of insert tables: small files become larger ones, in Spark's free slots. Rows stay as they are.

A transaction of ours only adds files, so that it never meets one. A foreign `UPDATE` can: Hudi refuses it
while a file that it must rewrite is being clustered, and it is repeated afterwards.

What a driver leaves behind that dies, or is paused, is taken away as in table/hudi/compaction.py. The files
of clustering have names of Hudi's own, by which the sweep cannot tell them: a driver that was paused and may
not complete its clustering any more removes them itself.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from table.errors import TableError
from table.hudi.java import changing
from table.hudi.plans import OWNER, remove_files
from table.hudi.session import Session
from table.hudi.upkeep import Done, Opener
from table.port import SCHEDULE, TableSpec

log = logging.getLogger(__name__)

ACTION = "clustering"
STRATEGY = "hoodie.clustering.plan.strategy."


class Clustering:
    """Implements `table.hudi.upkeep.Work`."""

    name = ACTION
    properties: Mapping[str, str] = {}

    def __init__(self, spec: TableSpec, pipeline: str) -> None:
        self._pipeline = pipeline
        self._scheduled_only = spec.clustering == SCHEDULE
        self._strategy = {  # files below half of the target become files of the target; never one alone
            STRATEGY + "small.file.limit": str(spec.target_file_bytes // 2),
            STRATEGY + "target.file.max.bytes": str(spec.target_file_bytes),
            STRATEGY + "single.group.clustering.enabled": "false",
        }

    def open(self, opener: Opener) -> Session:
        return opener(given=self._strategy, by_spark=True)

    def tidy(self, session: Session) -> None:
        abandon(session, self._pipeline)

    def run(self, session: Session, doing: Callable[[str], None]) -> Done | None:
        instant, files, folders = plan(session, "" if self._scheduled_only else self._pipeline)
        if not instant:
            return None
        if self._scheduled_only:
            return Done(instant, f"{files:,} files planned")
        doing(f"{files:,} files")
        try:
            carry_out(session, instant)
        except TableError:
            _remove_what_nobody_has(session, instant, folders)
            raise
        return Done(instant, f"{files:,} files put together")


def plan(session: Session, owner: str) -> tuple[str, int, set[str]]:
    """Plan a clustering of what is committed; its instant, empty where nothing is due, its files and folders.

    `owner`: the pipeline that carries it out, empty where it is left to others.
    """
    marked = session.java_map({OWNER: owner} if owner else {})
    with changing(f"table {session.path}: no clustering could be planned", session.lock_folder):
        session.reload()
        planned = session.client.scheduleClustering(session.some(marked))
        if not planned.isPresent():
            return "", 0, set()
        instant = str(planned.get())
        session.reload()
        made = session.hudi.common.util.ClusteringUtils.getPendingClusteringPlan(session.meta, instant)
        slices = _slices(made)
        return instant, len(slices), {str(one.getPartitionPath()) for one in slices}


def carry_out(session: Session, instant: str) -> None:
    """Do what was planned. Raises `TableError`."""
    with changing(f"clustering {instant} of table {session.path} was not completed", session.lock_folder):
        session.client.cluster(instant, True)


def abandon(session: Session, pipeline: str) -> list[str]:
    """Take away pending clusterings of this pipeline and the files they had made; their instants."""
    doing = f"table {session.path}: a clustering that was left behind could not be taken away"
    utils = session.hudi.common.util.ClusteringUtils
    taken: list[str] = []
    with changing(doing, session.lock_folder):
        session.holder.free_if_dead()
        with session.locked():
            session.reload()
            for pair in utils.getAllPendingClusteringPlans(session.meta).toArray():
                instant, planned = str(pair.getLeft().requestedTime()), pair.getRight()
                if _owner(session, instant) == pipeline:
                    session.remove_pending(ACTION, instant)
                    remove_files(session, {str(one.getPartitionPath()) for one in _slices(planned)}, instant)
                    taken.append(instant)
                    log.warning("clustering %s was left behind by another run: it is taken away", instant)
    return taken


def _owner(session: Session, instant: str) -> str:
    """The pipeline that carries a pending clustering out, empty where it is others'."""
    requested = session.hudi.common.table.timeline.HoodieInstant.State.REQUESTED
    opened = session.meta.createNewInstant(requested, ACTION, instant)
    extra = session.meta.getActiveTimeline().readRequestedReplaceMetadata(opened).getExtraMetadata()
    return str((extra or {}).get(OWNER) or "")


def _slices(planned: Any) -> list[Any]:
    return [one for group in planned.getInputGroups() or () for one in group.getSlices() or ()]


def _remove_what_nobody_has(session: Session, instant: str, folders: set[str]) -> None:
    """Where a successor has taken the instant off the timeline: what was written for it since."""
    with changing(f"table {session.path}: its timeline cannot be read"):
        if session.reload().containsInstant(instant):
            return  # taken away with the instant, before it is planned again
    remove_files(session, folders, instant)

"""Clustering of insert tables: small files become larger ones, in Spark's free slots. Rows stay as they are.

It is done for the table partitions that have too many small files by what commits said
(table/hudi/upkeep/sizing.py), and for the whole table after so many commits. After each that takes a while it
rests, so that it is at work for a share of the time at most.

A transaction of ours only adds files, so that it never meets one. A foreign `UPDATE` can: Hudi refuses it
while a file that it must rewrite is being clustered, and it is repeated afterwards.

What a driver leaves behind that dies, or is paused, is taken away as table/hudi/upkeep/plans.py says. One
that was paused and may not complete its clustering any more removes what it has written for it at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from control_topic.messages import DataFile
from table.errors import TableError
from table.hudi.driver.asking import elements
from table.hudi.driver.java import changing
from table.hudi.driver.session import Session
from table.hudi.properties import SMALL_FILES, small_file_bytes
from table.hudi.reader.timeline import Timeline
from table.hudi.upkeep import plans
from table.hudi.upkeep.due import Done, Opener
from table.hudi.upkeep.known_files import SEPARATOR, KnownFiles
from table.hudi.upkeep.plans import OWNER, PendingPlan, Tidied
from table.hudi.upkeep.sizing import ROUND_PARTITIONS_MAX, Sizing
from table.port import SCHEDULE, TableSpec

ACTION = "clustering"
STRATEGY = "hoodie.clustering.plan.strategy."
SELECTED = STRATEGY + "partition.selected"
"""Table partitions; empty: all of them."""
CHOOSING = (
    *(STRATEGY + name for name in ("class", "cluster.", "daybased.", "partition.")),
    "hoodie.clustering.plan.partition.",
)
"""With these the configuration says itself which table partitions are looked at."""
CODEC = "hoodie.parquet.compression.codec"


class Clustering:
    """Implements `table.hudi.upkeep.due.ServiceWork`."""

    name = ACTION
    properties: Mapping[str, str] = {}

    def __init__(self, spec: TableSpec, pipeline: str) -> None:
        self._pipeline = pipeline
        self._scheduled_only = spec.clustering == SCHEDULE
        self._share = spec.clustering_share
        self._small_below_bytes = small_file_bytes(spec)
        self._strategy = {  # small files become files of the target; never one alone
            SMALL_FILES: str(self._small_below_bytes),
            STRATEGY + "target.file.max.bytes": str(spec.target_file_bytes),
            STRATEGY + "max.bytes.per.group": str(spec.target_file_bytes),
            STRATEGY + "max.num.groups": str(ROUND_PARTITIONS_MAX),
            STRATEGY + "single.group.clustering.enabled": "false",
            CODEC: "zstd",  # as workers write; Hudi's own choice takes a multiple of the time
        }
        sizing = Sizing(
            small_below_bytes=self._small_below_bytes,
            target_bytes=spec.target_file_bytes,
            files=spec.clustering_files,
            after_s=spec.clustering_after_ms / 1_000,
        )
        is_chosen = any(name.startswith(CHOOSING) for name in spec.properties)
        self._known = None if is_chosen else KnownFiles(sizing, lambda: Timeline(spec.path, spec.storage))

    def open(self, opener: Opener) -> Session:
        return opener(given=self._strategy, by_spark=True)

    def tidy(self, session: Session) -> str:
        left = tidy(session, self._pipeline).objection(ACTION)
        if self._known is not None:
            self._known.begin(time.monotonic())
        return left

    def committed(self, files: Sequence[DataFile], now_s: float) -> None:
        if self._known is not None:
            self._known.committed(files, now_s)

    def due_in_s(self, now_s: float) -> float | None:
        return None if self._known is None else self._known.due_in_s(now_s)

    def rest_s(self, took_s: float) -> float:
        return took_s * (1 / self._share - 1)

    def run(self, session: Session, doing: Callable[[str], None]) -> Done | None:
        """The whole table."""
        if self._known is not None:
            session.set_directly(SELECTED, "")
            session.set_directly(SMALL_FILES, str(self._small_below_bytes))
        return self._run(session, doing)

    def run_early(self, session: Session, doing: Callable[[str], None], now_s: float) -> Done | None:
        """The table partitions that have too many small files by now."""
        due = self._known.due(now_s) if self._known is not None else None
        if self._known is None or due is None:
            return None
        session.set_directly(SELECTED, SEPARATOR.join(due.table_partitions))
        session.set_directly(SMALL_FILES, str(due.below_bytes))
        done = self._run(session, doing)
        if done is None or self._scheduled_only:
            self._known.forget(due.table_partitions)
        return done

    def _run(self, session: Session, doing: Callable[[str], None]) -> Done | None:
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
        if self._known is not None:
            self._known.clustered(instant)
        return Done(instant, f"{files:,} files put together")


def plan(session: Session, owner: str) -> tuple[str, int, set[str]]:
    """Plan a clustering: its instant, empty where nothing is due, its files, and the folders of those.

    See `plans.schedule`.
    """
    utils = session.hudi.common.util.ClusteringUtils

    def about(instant: str) -> tuple[str, int, set[str]]:
        made = utils.getPendingClusteringPlan(session.meta, instant)
        return instant, len(_slices(made)), _folders(made)

    return plans.schedule(session, ACTION, owner, session.client.scheduleClustering, about) or ("", 0, set())


def carry_out(session: Session, instant: str) -> None:
    """Do what was planned. Raises `TableError`."""
    doing = f"clustering {instant} of table {session.path} was not completed"
    with changing(doing, session.lock.folder), plans.completing(session, ACTION, instant):
        plans.begin(session, ACTION, instant)
        session.client.cluster(instant, True)


def tidy(session: Session, pipeline: str) -> Tidied:
    """Take away pending clusterings of this pipeline that nobody else has begun. See `plans.abandon`."""
    utils = session.hudi.common.util.ClusteringUtils

    def pending() -> Iterator[PendingPlan]:
        for pair in elements(utils.getAllPendingClusteringPlans(session.meta)):
            instant = str(pair.getLeft().requestedTime())
            yield PendingPlan(instant, _owner(session, instant), pair.getRight())

    return plans.abandon(session, ACTION, pipeline, pending, _folders)


def _owner(session: Session, instant: str) -> str:
    """The pipeline that carries a pending clustering out, empty where it is others'."""
    requested = session.hudi.common.table.timeline.HoodieInstant.State.REQUESTED
    opened = session.meta.createNewInstant(requested, ACTION, instant)
    extra = session.meta.getActiveTimeline().readRequestedReplaceMetadata(opened).getExtraMetadata()
    return str((extra or {}).get(OWNER) or "")


def _slices(planned: Any) -> list[Any]:
    groups = elements(planned.getInputGroups())
    return [one for group in groups for one in elements(group.getSlices())]


def _folders(planned: Any) -> set[str]:
    return {str(one.getPartitionPath()) for one in _slices(planned)}


def _remove_what_nobody_has(session: Session, instant: str, folders: set[str]) -> None:
    """Where a successor has taken the instant off the timeline: what was written for it since."""
    with changing(f"table {session.path}: its timeline cannot be read"):
        if session.reload().containsInstant(instant):
            return  # taken away with the instant, before it is planned again
    plans.remove_files(session, folders, instant)

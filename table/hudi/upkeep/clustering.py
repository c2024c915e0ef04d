"""Clustering of insert tables: small files become larger ones, in Spark's free slots. Rows stay as they are.

It is done for the table partitions that have too many small files by what commits said
(table/hudi/upkeep/sizing.py), and after so many commits by a look at the whole table. After each that takes a
while it rests, so that it is at work for a share of the time at most.

Files that are not tiny are put together by copying their row groups as they are, which takes a fraction of
reading and writing their rows; what becomes of them is counted (table/hudi/upkeep/counted.py).

A transaction of ours only adds files, so that it never meets one. A foreign `UPDATE` can: Hudi refuses it
while a file that it must rewrite is being clustered, and it is repeated afterwards.

What a driver leaves behind that dies, or is paused, is taken away as table/hudi/upkeep/plans.py says. One
that was paused and may not complete its clustering any more removes what it has written for it at once.
"""

from __future__ import annotations

import json
import posixpath
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from control_topic.messages import DataFile
from table.errors import Refused, TableError
from table.hudi.driver.asking import elements
from table.hudi.driver.java import changing
from table.hudi.driver.session import Session
from table.hudi.properties import SMALL_FILES, small_file_bytes
from table.hudi.reader.timeline import Timeline
from table.hudi.upkeep import plans
from table.hudi.upkeep.counted import Before, InputFile, check, count
from table.hudi.upkeep.dictionaries import leave_out_dictionaries
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
STRATEGY_CLASS = STRATEGY + "class"
COPYING = "org.apache.hudi.client.clustering.plan.strategy.SparkStreamCopyClusteringPlanStrategy"
REWRITING = "org.apache.hudi.client.clustering.plan.strategy.SparkSizeBasedClusteringPlanStrategy"
EXECUTION_CLASS = "hoodie.clustering.execution.strategy.class"
"""Of the two what carries their plans out, which a plan names and Hudi takes from its configuration."""
COPIES = "org.apache.hudi.client.clustering.run.strategy.SparkStreamCopyClusteringExecutionStrategy"
REWRITES = "org.apache.hudi.client.clustering.run.strategy.SparkSortAndSizeExecutionStrategy"
SORTED = STRATEGY + "sort.columns"
NEVER_COPIED = (
    *(STRATEGY_CLASS, SORTED),
    *(EXECUTION_CLASS, "hoodie.layout.optimize.strategy"),
)
"""What says otherwise how files are put together."""
COPIED_FROM_BYTES = 1_000_000
"""Files of the mean size that are copied: their row groups stay, and small ones cost readers time."""
CODEC = "hoodie.parquet.compression.codec"
BLOOM_ENTRIES = "hoodie.index.bloom.num_entries"
BLOOM_GROWS_BY = 1_000
"""Keys. What is rewritten has a bloom filter in its footer, which begins for so many and grows: by Hudi's own
60,000 each file has 431 kB of it, however few its rows are."""
ROW_GROUP = "hoodie.parquet.block.size"
FILTERED_ROW_GROUP_BYTES = 16_000_000
"""Where files have bloom filters: Hudi's writer makes none larger than 1 MB, which serves 800,000 rows."""
FILTERS = "parquet.bloom.filter."
"""Of Hadoop's configuration, by which Hudi's writer of parquet makes them; `#` and the column follow."""


class Clustering:
    """Implements `table.hudi.upkeep.due.ServiceWork`."""

    name = ACTION
    properties: Mapping[str, str] = {}

    def __init__(self, spec: TableSpec, pipeline: str) -> None:
        self._pipeline = pipeline
        self._scheduled_only = spec.clustering == SCHEDULE
        self._given = spec.properties
        self._share = spec.clustering_share
        self._small_below_bytes = small_file_bytes(spec)
        self._strategy = {  # small files become files of the target; never one alone
            SMALL_FILES: str(self._small_below_bytes),
            STRATEGY + "target.file.max.bytes": str(spec.target_file_bytes),
            STRATEGY + "max.bytes.per.group": str(spec.target_file_bytes),
            STRATEGY + "max.num.groups": str(ROUND_PARTITIONS_MAX),
            STRATEGY + "single.group.clustering.enabled": "false",
            STRATEGY + "binary.copy.schema.evolution.enable": "false",  # only files of the same columns
            "hoodie.clustering.plan.generation.use.local.engine.context": "true",  # without a Spark job
            CODEC: "zstd",  # as workers write; Hudi's own choice takes a multiple of the time
        }
        self._lookup_fields = spec.lookup_fields
        if spec.lookup_fields:
            self._strategy[ROW_GROUP] = str(FILTERED_ROW_GROUP_BYTES)
        if spec.sort_fields:
            self._strategy[SORTED] = ",".join(spec.sort_fields)
        said = self._strategy.keys() | spec.properties.keys()
        self._may_copy = not spec.lookup_fields and not any(name.startswith(NEVER_COPIED) for name in said)
        sizing = Sizing(
            small_below_bytes=self._small_below_bytes,
            target_bytes=spec.target_file_bytes,
            files=spec.clustering_files,
            after_s=spec.clustering_after_ms / 1_000,
        )
        is_chosen = any(name.startswith(CHOOSING) for name in spec.properties)
        self._known = None if is_chosen else KnownFiles(sizing, lambda: Timeline(spec.path, spec.storage))

    def open(self, opener: Opener) -> Session:
        session = opener(given=self._strategy, by_spark=True)
        session.set_directly(BLOOM_ENTRIES, str(BLOOM_GROWS_BY))
        return session

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
        """The whole table: by the same rule, where Hudi can be told of what is found; else all of it."""
        if self._known is None:
            return self._run(session, doing)
        if self._known.look():
            return self.run_early(session, doing, time.monotonic())
        session.set_directly(SELECTED, "")
        session.set_directly(SMALL_FILES, str(self._small_below_bytes))
        self._choose(session, copied=False)
        return self._run(session, doing)

    def run_early(self, session: Session, doing: Callable[[str], None], now_s: float) -> Done | None:
        """The table partitions that have too many small files by now."""
        due = self._known.due(now_s) if self._known is not None else None
        if self._known is None or due is None:
            return None
        session.set_directly(SELECTED, SEPARATOR.join(due.table_partitions))
        session.set_directly(SMALL_FILES, str(due.below_bytes))
        is_copied = due.is_copied and due.mean_bytes >= COPIED_FROM_BYTES
        self._choose(session, copied=is_copied and not self._scheduled_only)  # who carries it out looks not
        try:
            done = self._run(session, doing)
        except NotCopied as found:
            self._known.not_copied(found.table_partitions)
            self.tidy(session)
            return None
        if done is None or self._scheduled_only:
            self._known.forget(due.table_partitions)
        return done

    def _choose(self, session: Session, *, copied: bool) -> None:
        if self._may_copy:
            session.set_directly(STRATEGY_CLASS, COPYING if copied else REWRITING)
            session.set_directly(EXECUTION_CLASS, COPIES if copied else REWRITES)

    def _run(self, session: Session, doing: Callable[[str], None]) -> Done | None:
        planned = plan(session, "" if self._scheduled_only else self._pipeline)
        if planned is None:
            return None
        files = f"{planned.files:,} files"
        if self._scheduled_only:
            return Done(planned.instant, f"{files} planned")
        doing(files)
        leave_out_dictionaries(session, self._given)
        try:
            carry_out(session, planned, self._lookup_fields)
        except TableError:
            _remove_what_nobody_has(session, planned)
            raise
        if self._known is not None:
            self._known.clustered(planned.instant, copied=planned.copied)
        return Done(planned.instant, f"{files} put together")


class NotCopied(Refused):
    """Of a plan to copy files: in these table partitions are such as may not be."""

    def __init__(self, instant: str, table_partitions: frozenset[str]) -> None:
        super().__init__(
            f"clustering {instant} would copy files whose filters, keys or statistics cannot be united: "
            f"leave {STRATEGY_CLASS} out of table.hudi, and they are rewritten"
        )
        self.table_partitions = table_partitions


class Planned(NamedTuple):
    """A clustering. `copied`: row groups are."""

    instant: str
    groups: tuple[tuple[InputFile, ...], ...]
    copied: bool

    @property
    def files(self) -> int:
        return sum(map(len, self.groups))

    @property
    def folders(self) -> set[str]:
        """Table partitions."""
        return {file.folder for group in self.groups for file in group}


def plan(session: Session, owner: str) -> Planned | None:
    """Plan a clustering; None where nothing is due. See `plans.schedule`."""
    utils = session.hudi.common.util.ClusteringUtils

    def about(instant: str) -> Planned:
        # Avro's own JSON of it: a call into Java for each file takes a millisecond.
        made = json.loads(str(utils.getPendingClusteringPlan(session.meta, instant).toString()))
        return Planned(
            instant=instant,
            groups=tuple(
                tuple(
                    InputFile(str(one["partitionPath"]), posixpath.basename(str(one["dataFilePath"])))
                    for one in group["slices"]
                )
                for group in made["inputGroups"]
            ),
            copied=str(made["strategy"]["strategyClassName"]) == COPIES,
        )

    return plans.schedule(session, ACTION, owner, session.client.scheduleClustering, about)


def carry_out(session: Session, planned: Planned, lookup_fields: Sequence[str] = ()) -> None:
    """Do what was planned. Raises `TableError`; `NotCopied` before anything is begun."""
    instant = planned.instant
    doing = f"clustering {instant} of table {session.path} was not completed"

    @cache
    def look() -> None:
        made = [
            InputFile(folder, name)
            for folder in planned.folders
            for name in plans.names_in(session.store, folder)
            if name.endswith(f"_{instant}.parquet")
        ]
        try:
            check(session.store, before, made, copied=planned.copied)
        except Refused:
            plans.check_held(session, ACTION, instant)  # its files go with it
            raise

    with changing(doing, session.lock.folder):
        before = count(session.store, planned.groups)
        if planned.copied and before.not_copied:
            raise NotCopied(instant, before.not_copied)
        _make_filters(session, lookup_fields, before)
        with plans.completing(session, ACTION, instant, look):
            plans.begin(session, ACTION, instant)
            session.client.cluster(instant, True)


def _make_filters(session: Session, fields: Sequence[str], before: Before) -> None:
    """Rows that are written again have bloom filters of these columns."""
    rows = max((-(-before.rows[folder] // count) for folder, count in before.groups.items()), default=0)
    conf = session.client.getEngineContext().getStorageConf()
    for name in fields:
        conf.set(f"{FILTERS}enabled#{name}", "true")
        conf.set(f"{FILTERS}expected.ndv#{name}", str(max(rows, 1)))


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


def _remove_what_nobody_has(session: Session, planned: Planned) -> None:
    """Where a successor has taken the instant off the timeline: what was written for it since."""
    with changing(f"table {session.path}: its timeline cannot be read"):
        if session.reload().containsInstant(planned.instant):
            return  # taken away with the instant, before it is planned again
    plans.remove_files(session, planned.folders, planned.instant)

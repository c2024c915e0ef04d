"""The small files of an insert table, as commits of ours and the active timeline tell of them.

A commit says which files it has; the rest is read from the timeline, without the table lock: once at the
start what is on it, and of each clustering of ours what it has made of what. Now and then the whole table is
listed, for what others have written and what was archived before the run began. What others rewrite meanwhile
is not heard of; that is why nothing of this is taken for the truth (`table.hudi.upkeep.sizing`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from control_topic.messages import DataFile
from table.hudi.census.census import REPLACING, known_of, replaced_groups
from table.hudi.census.files import base_files
from table.hudi.layout import META_FOLDER, file_id
from table.hudi.reader.stored import unavailable
from table.hudi.reader.timeline import Timeline
from table.hudi.upkeep.sizing import Round, SizedFile, Sizing, SmallFiles

LISTED_MAX = 1_000_000
"""Files, where the whole table is looked at: a thousand requests to S3."""
SEPARATOR = ","
"""Of table partitions, where Hudi is told which to look at: one with it in its name cannot be told."""


class KnownFiles:
    """Any thread may call. What reads the timeline raises `TableError`; it holds up nobody else.

    `timeline`: opens the table's.
    """

    def __init__(self, sizing: Sizing, timeline: Callable[[], Timeline]) -> None:
        self._timeline = timeline
        self._lock = threading.Lock()
        self._small = SmallFiles(sizing)
        self._below_bytes = sizing.small_below_bytes
        self._is_begun = False

    def committed(self, files: Sequence[DataFile], now_s: float) -> None:
        """Files of a commit of ours."""
        added = (
            SizedFile(table_partition=one.table_partition, file_id=file_id(one), size_bytes=one.size_bytes)
            for one in files
        )
        with self._lock:
            self._small.added((one for one in added if SEPARATOR not in one.table_partition), now_s)

    def begin(self, now_s: float) -> None:
        """Read once what earlier runs have left on the active timeline: it is as old as this run."""
        if self._is_begun:
            return
        timeline = self._timeline()
        finished, _ = timeline.active()
        for one, metadata in timeline.metadata_of(reversed(finished)):
            with timeline.decoding(one.requested, one.action):
                written, gone = tuple(_written(metadata)), _replaced(metadata)
                with self._lock:
                    self._small.added(written, now_s)
                    for table_partition, ids in gone.items():
                        self._small.replaced(table_partition, ids)
        self._is_begun = True

    def look(self) -> bool:
        """At the whole table, for what no commit of ours has told of.

        False where that is not all, or Hudi cannot be told of it.
        """
        timeline = self._timeline()
        finished, pending = timeline.active()
        replaced: set[tuple[str, str]] = set()
        for one, metadata in timeline.metadata_of(one for one in finished if one.action == REPLACING):
            with timeline.decoding(one.requested, one.action):
                replaced |= replaced_groups(metadata)
        try:
            found, is_whole = base_files(
                timeline.store.sizes(leaving_out=(META_FOLDER,)),
                known_of(finished, pending, frozenset(replaced)),
                below_bytes=self._below_bytes,
                files_max=LISTED_MAX,
                enough=lambda: False,
            )
        except OSError as error:
            raise unavailable(timeline.store, "", error) from error
        told = [SizedFile(table_partition=folder, file_id=name, size_bytes=n) for folder, name, n in found]
        with self._lock:
            self._small.looked(one for one in told if SEPARATOR not in one.table_partition)
        return is_whole and not any(SEPARATOR in one.table_partition for one in told)

    def clustered(self, instant: str, *, copied: bool) -> None:
        """What this clustering has made, and of what. `copied`: row groups as they were."""
        timeline = self._timeline()
        for one in timeline.active()[0]:
            if one.requested == instant:
                metadata = timeline.metadata(one)
                with timeline.decoding(instant, one.action):
                    made, gone = tuple(_written(metadata)), _replaced(metadata)
                    with self._lock:
                        self._small.clustered(made, gone, copied=copied)

    def not_copied(self, table_partitions: Collection[str]) -> None:
        with self._lock:
            self._small.not_copied(table_partitions)

    def forget(self, table_partitions: Collection[str]) -> None:
        with self._lock:
            self._small.forget(table_partitions)

    def due_in_s(self, now_s: float) -> float | None:
        with self._lock:
            return self._small.due_in_s(now_s)

    def due(self, now_s: float) -> Round | None:
        with self._lock:
            return self._small.due(now_s)


def _written(metadata: Mapping[str, Any]) -> Iterator[SizedFile]:
    """Base files of an instant's metadata, as Hudi keeps it."""
    for table_partition, stats in (metadata.get("partitionToWriteStats") or {}).items():
        if SEPARATOR not in table_partition:
            for stat in stats or ():
                yield SizedFile(
                    table_partition=table_partition,
                    file_id=str(stat.get("fileId") or ""),
                    size_bytes=int(stat.get("fileSizeInBytes") or 0),
                )


def _replaced(metadata: Mapping[str, Any]) -> Mapping[str, Collection[str]]:
    """By table partition the file groups that an instant has taken out."""
    found = metadata.get("partitionToReplaceFileIds") or {}
    return {table_partition: tuple(map(str, ids or ())) for table_partition, ids in found.items()}

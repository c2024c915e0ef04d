"""What a table's timelines record of instants, for the sweep: commits with their files, and rollbacks."""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Container, Iterable, Mapping
from typing import Any

from table.chain import earliest_after
from table.hudi.reader.stored import avro_record
from table.hudi.reader.timeline import Finished, Timeline

DATA_ACTIONS = frozenset({"commit", "deltacommit"})
CLUSTERED = "replacecommit"
ROLLBACK = "rollback"


class TimelineRecords:
    """Implements `table.hudi.upkeep.sweep.Timelines`. `open_timeline`: opens the table's.

    Raises `Unavailable`, and `Refused` for metadata that cannot be read.
    """

    def __init__(self, open_timeline: Callable[[], Timeline]) -> None:
        self._open = open_timeline
        self._timeline: Timeline
        self._complete: Mapping[str, Finished] = {}
        self._targets: dict[str, frozenset[str]] = {}
        """Requested time of a rollback on the active timeline -> instants that it rolled back."""

    def pending(self) -> Container[str]:
        self._timeline = self._open()
        finished, pending = self._timeline.active()
        self._complete = {one.requested: one for one in finished}
        return pending

    def named(self, instant: str, *, carried_out: bool) -> Container[str] | None:
        one = self._complete.get(instant)
        if one is None:
            return None
        if not _is_judged(one.action, carried_out=carried_out):
            return _Everything()
        try:
            metadata = self._timeline.metadata(one)
        except FileNotFoundError:
            return None  # archived since it was listed
        return _files(one.action, metadata)

    def named_in_archive(
        self, instants: Collection[str], carried_out: Container[str]
    ) -> Mapping[str, Container[str]]:
        found: dict[str, Container[str]] = {}
        for instant, one in self._timeline.archive.find(instants).items():
            if not _is_judged(one.action, carried_out=instant in carried_out):
                found[instant] = _Everything()
                continue
            with self._timeline.decoding(instant, one.action):
                found[instant] = _files(one.action, avro_record(io.BytesIO(one.metadata)))
        return found

    def complete(self, instants: Collection[str]) -> set[str]:
        """Return those of `instants` that are complete on either timeline; reads no metadata of commits."""
        found = set(instants) & self._complete.keys()
        return found | self._timeline.archive.requested(set(instants) - found)

    def rolled_back(self, instants: Collection[str]) -> Collection[str]:
        found = set(instants) & self._rolled_back_lately()
        left = set(instants) - found
        if left:
            since = earliest_after(min(left), in_local_time=self._timeline.in_local_time)
            for one in self._timeline.archive.rollbacks(since):
                with self._timeline.decoding(one.requested, ROLLBACK):
                    found |= left & _targets(avro_record(io.BytesIO(one.metadata)))
        return found

    def _rolled_back_lately(self) -> set[str]:
        """Return the targets of rollbacks on the active timeline."""
        targets: dict[str, frozenset[str]] = {}
        for one in self._complete.values():
            if one.action != ROLLBACK:
                continue
            known = self._targets.get(one.requested)
            if known is None:
                try:
                    known = _targets(self._timeline.metadata(one))
                except FileNotFoundError:
                    continue  # archived since it was listed
            targets[one.requested] = known
        self._targets = targets
        return set().union(*targets.values())


class _Everything(Container[str]):
    """Files of an instant of another writer, which are not Lockstep's to judge."""

    def __contains__(self, _path: object) -> bool:
        return True


def _is_judged(action: str, *, carried_out: bool) -> bool:
    return action in DATA_ACTIONS or (action == CLUSTERED and carried_out)


def _files(action: str, metadata: Mapping[str, Any]) -> Container[str]:
    stats: Iterable[Any] = (metadata.get("partitionToWriteStats") or {}).values()
    paths = {str(stat.get("path") or "") for group in stats for stat in group or ()}
    # A replacecommit without files removed table partitions, and wrote nothing.
    return paths if paths or action != CLUSTERED else _Everything()


def _targets(rollback: Mapping[str, Any]) -> frozenset[str]:
    """Return the commits that a rollback removed (HoodieRollbackMetadata).

    A compaction or a clustering is left out: Hudi may carry its plan out again, with the same instant.
    """
    infos = rollback.get("instantsRollback") or ()
    return frozenset(str(one["commitTime"]) for one in infos if one.get("action") in DATA_ACTIONS)

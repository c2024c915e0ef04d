"""File groups that somebody has taken out of the table as a whole, as `ALTER TABLE … DROP PARTITION` does.

Hudi goes by their ids: whatever is written into such a group later is hidden with it, and cleaned with it, as
long as the instant that took it out is on the active timeline. A base file of inserts is a group of its own,
with an id that nobody had before; the group of a bucket has the one id that all its writers agree on. So
upserts have to look. Hudi 1.2.0's own writers do not: https://github.com/apache/hudi/issues/19793
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from control_topic.messages import DataFile
from table.errors import Contradiction
from table.hudi.driver.asking import elements
from table.hudi.driver.java import reading
from table.hudi.driver.session import Session
from table.hudi.layout import file_id

NAMED_MAX = 3


class Replaced:
    """What is taken out, read once for each instant. Used by one thread."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._groups: dict[str, Mapping[str, frozenset[str]]] = {}

    def check(self, files: Iterable[DataFile]) -> None:
        """Raise `Contradiction` where a file is of such a group. Under the table lock, after a reload."""
        by_instant = self._look()
        hidden: dict[str, set[str]] = {}
        for file in files if by_instant else ():
            for instant, groups in by_instant.items():
                if file_id(file) in groups.get(file.table_partition, ()):
                    hidden.setdefault(instant, set()).add(file.table_partition)
        if hidden:
            raise Contradiction(_why(self._session.path, hidden))

    def _look(self) -> Mapping[str, Mapping[str, frozenset[str]]]:
        """By the requested time of the instant, and by table partition: ids of groups."""
        with reading(f"table {self._session.path}: its timeline cannot be read"):
            timeline = self._session.meta.getActiveTimeline()
            found: dict[str, Mapping[str, frozenset[str]]] = {}
            for instant in elements(timeline.getCompletedReplaceTimeline().getInstants()):
                time = str(instant.requestedTime())
                found[time] = self._groups.get(time) or self._read(timeline, instant)
        self._groups = found
        return found

    def _read(self, timeline: object, instant: object) -> Mapping[str, frozenset[str]]:
        """Through Hudi's own JSON: a call into Java for each id takes a millisecond."""
        made = timeline.readReplaceCommitMetadata(instant)  # type: ignore[attr-defined]
        mapper = self._session.hudi.common.util.JsonUtils.getObjectMapper()
        replaced = json.loads(mapper.writeValueAsString(made.getPartitionToReplaceFileIds()))
        return {table_partition: frozenset(ids) for table_partition, ids in replaced.items()}


def _why(path: str, hidden: Mapping[str, set[str]]) -> str:
    instants = ", ".join(sorted(hidden))
    named = sorted(set().union(*hidden.values()))
    partitions = ", ".join(repr(one) for one in named[:NAMED_MAX])
    if len(named) > NAMED_MAX:
        partitions += f" and {len(named) - NAMED_MAX} more"
    return (
        f"table {path}: instant {instants} took table partition {partitions} out (DROP PARTITION, TRUNCATE, "
        "INSERT OVERWRITE), and Hudi would hide what is written there now: see "
        '"Table partitions that were taken out" in docs/operations.md'
    )

"""Which files the instants of a table name, as its two timelines say, read through Hudi."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from table.hudi.driver.asking import elements
from table.hudi.driver.history import History, archived_between, listed_files
from table.hudi.driver.java import reading
from table.hudi.driver.session import Session

COMPACTED = "commit"
CLUSTERED = "replacecommit"


class HudiTimelines:
    """Implements `table.hudi.upkeep.sweep.Timelines`."""

    def __init__(self, session: Session, history: History) -> None:
        self._session = session
        self._history = history

    def pending(self) -> Container[str]:
        return self._history.pending_times()

    def named(self, instant: str, *, carried_out: bool) -> Container[str] | None:
        with reading(f"table {self._session.path}: its timeline cannot be read"):
            timeline = self._session.meta.getActiveTimeline()
            completed = timeline.getCommitsTimeline().filterCompletedInstants()
            return self._of(timeline, completed, instant, carried_out)

    def named_in_archive(self, instant: str, *, carried_out: bool) -> Container[str]:
        with reading(f"table {self._session.path}: its archived timeline cannot be read"):
            timeline = archived_between(self._session, instant, instant)
            return self._of(timeline, timeline, instant, carried_out) or ()

    def _of(self, timeline: Any, instants: Any, time_of: str, carried_out: bool) -> Container[str] | None:
        for one in elements(instants.findInstantsInClosedRange(time_of, time_of).getInstants()):
            if one.getAction() in (self._history.action, COMPACTED):
                return set(listed_files(timeline.readCommitMetadata(one)))
            if one.getAction() == CLUSTERED and carried_out:
                # One that names none took table partitions out, and has made none.
                return set(listed_files(timeline.readReplaceCommitMetadata(one))) or _Everything()
            return _Everything()  # a replacecommit of others', say: its files are no affair of ours
        return None


class _Everything(Container[str]):
    def __contains__(self, _path: object) -> bool:
        return True

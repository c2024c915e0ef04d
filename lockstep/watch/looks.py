"""What table, topics and consumer group say at one moment, for `lockstep status` and for the observer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lockstep.brokers.group import GroupMember
from lockstep.brokers.source_topics import SourceTopics
from lockstep.config import Config
from lockstep.offsets.standing import SourceView, look
from lockstep.watch.status import LastCommit
from table.instants import Instant, MissingTable
from table.kinds import table_kind
from table.service.place import last_started
from table.state import TableState


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLook:
    """The table, as its newest instant of the pipeline has it."""

    exists: bool = False
    mode: str | None = None
    """`insert` or `upsert`."""

    instant: Instant | None = None
    completed_ms: int = 0

    @property
    def state(self) -> TableState | None:
        """None where the pipeline has committed nothing yet."""
        return self.instant.state if self.instant is not None else None

    def last_commit(self, now_ms: int) -> LastCommit | None:
        """The same, None where there is none."""
        instant, state = self.instant, self.state
        if instant is None or state is None:
            return None
        return LastCommit(
            transaction=state.transaction,
            instant=instant.requested,
            kind=state.kind,
            epoch=state.epoch,
            rows=sum(file.rows for file in instant.files),
            age_ms=max(0, now_ms - self.completed_ms),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceLook:
    """Log and consumer group."""

    view: SourceView
    members: Sequence[GroupMember]


def look_at_table(config: Config) -> TableLook:
    """Raises `table.errors.TableError` and `table.state.StateError`, as the table's reader does."""
    try:
        timeline = table_kind(config.table.format).reader(config.table.path, config.store_settings())
        instant = timeline.newest_instant(config.pipeline.id)
    except MissingTable:
        return TableLook()
    if instant is None or instant.state is None:
        return TableLook(exists=True, mode=timeline.mode)
    return TableLook(
        exists=True, mode=timeline.mode, instant=instant, completed_ms=timeline.time_ms(instant.completed)
    )


def look_at_source(source: SourceTopics, group: str) -> SourceLook:
    """Raises `table.service.source_facts.SourceTopicsError`."""
    return SourceLook(view=look(source, group), members=source.group_members(group))


def placed_run(config: Config) -> str:
    """The run that the table's folder says started last; empty where none is known."""
    notes = table_kind(config.table.format).notes(config.table.path, config.store_settings())
    return last_started(notes, config.pipeline.id)

"""What table, topics and consumer group say at one moment, for `lockstep status` and for the observer."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lockstep.brokers.group import GroupMember
from lockstep.brokers.source_topics import SourceTopics
from lockstep.config import Config
from lockstep.offsets.standing import SourceView, look
from lockstep.watch.status import LastCommit
from table.followed import FollowedTable
from table.instants import Instant, MissingTable
from table.kinds import table_kind
from table.service.place import last_started
from table.state import TableState

PROVE_EVERY_S = 300.0


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


class TableLooks:
    """Looks at one table again and again, and reads what is new: all of it each `PROVE_EVERY_S` only, which a
    restore is found out by. `clock_s`: never goes back.
    """

    def __init__(self, config: Config, *, clock_s: Callable[[], float] = time.monotonic) -> None:
        kind, path, storage = table_kind(config.table.format), config.table.path, config.store_settings()
        self._table = FollowedTable(lambda: kind.reader(path, storage), pipeline=config.pipeline.id)
        self._clock_s = clock_s
        self._proof_due_s = clock_s()

    def look(self) -> TableLook:
        """Raises `table.errors.TableError` and `table.state.StateError`, as the table's reader does."""
        try:
            if self._clock_s() >= self._proof_due_s:
                self._table.prove()
                self._proof_due_s = self._clock_s() + PROVE_EVERY_S
            else:
                self._table.look()
        except MissingTable:
            return TableLook()
        instant, reader = self._table.newest, self._table.reader
        if instant is None or instant.state is None:
            return TableLook(exists=True, mode=reader.mode)
        return TableLook(
            exists=True, mode=reader.mode, instant=instant, completed_ms=reader.time_ms(instant.completed)
        )


def look_at_table(config: Config) -> TableLook:
    """Once. Raises as `TableLooks` does."""
    return TableLooks(config).look()


def look_at_source(source: SourceTopics, group: str) -> SourceLook:
    """Raises `table.service.source_facts.SourceTopicsError`."""
    return SourceLook(view=look(source, group), members=source.group_members(group))


def placed_run(config: Config) -> str:
    """The run that the table's folder says started last; empty where none is known."""
    notes = table_kind(config.table.format).notes(config.table.path, config.store_settings())
    return last_started(notes, config.pipeline.id)

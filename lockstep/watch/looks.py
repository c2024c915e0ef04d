"""What table, topics and consumer group say at one moment, for `lockstep status` and for the observer."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from lockstep.brokers.group import GroupMember
from lockstep.brokers.source_topics import SourceTopics
from lockstep.config import Config
from lockstep.offsets.standing import SourceView, look
from lockstep.output import readable_duration
from lockstep.watch.status import LastCommit
from table.followed import FollowedTable
from table.instants import Instant, MissingTable, Savepoint
from table.kinds import table_kind
from table.service.place import last_started
from table.state import TableState

PROVE_EVERY_S = 300.0
SAVEPOINT_FORGOTTEN_MS = 24 * 3_600_000
"""A savepoint that is kept for longer is named: it may have been forgotten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLook:
    """The table, as its newest instant of the pipeline has it."""

    exists: bool = False
    mode: str | None = None
    """`insert` or `upsert`."""

    instant: Instant | None = None
    completed_ms: int = 0
    savepoint: Savepoint | None = None
    """Savepoint of the oldest commit that an operator keeps."""
    savepoint_ms: int = 0
    """When it was created."""

    @property
    def state(self) -> TableState | None:
        """None where the pipeline has committed nothing yet."""
        return self.instant.state if self.instant is not None else None

    def savepoint_problem(self, now_ms: int) -> str:
        """Return a sentence about a savepoint that may have been forgotten, empty if there is none."""
        if self.savepoint is None or now_ms - self.savepoint_ms < SAVEPOINT_FORGOTTEN_MS:
            return ""
        age = readable_duration(now_ms - self.savepoint_ms)
        return (
            f"The savepoint of instant {self.savepoint.instant}, created {age} ago, keeps "
            f"{self.savepoint.kept:,} instants on the active timeline: nothing after it is archived. If it "
            "is not needed any more: CALL delete_savepoint(table => …, instant_time => "
            f"'{self.savepoint.instant}')."
        )

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
        found = TableLook(exists=True, mode=reader.mode)
        if (savepoint := reader.oldest_savepoint()) is not None:
            found = replace(found, savepoint=savepoint, savepoint_ms=reader.time_ms(savepoint.created))
        if instant is None or instant.state is None:
            return found
        return replace(found, instant=instant, completed_ms=reader.time_ms(instant.completed))


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

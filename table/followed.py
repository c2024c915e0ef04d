"""A table that is looked at again and again, for a pipeline's newest commit: what is new is read, no more."""

from __future__ import annotations

from collections.abc import Callable

from table.chain import newest_of
from table.errors import TableError
from table.instants import Instant, MissingTable
from table.port import TableReader
from table.state import StateError

FRESH_MAX = 20
"""Instants that came between two looks and are read one by one; of more, the table is asked as a whole."""


class FollowedTable:
    """`reader`: opens the table, and raises `MissingTable` where there is none yet. For one thread."""

    def __init__(self, reader: Callable[[], TableReader], *, pipeline: str) -> None:
        self._open = reader
        self._pipeline = pipeline
        self._reader: TableReader | None = None
        self._top: tuple[str, str] | None = None
        self.newest: Instant | None = None
        """The pipeline's newest commit, as of the last good look; None before there is one."""

    @property
    def reader(self) -> TableReader:
        """The table's, after a good look."""
        assert self._reader is not None
        return self._reader

    def look(self) -> None:
        """Raises `MissingTable`, and whatever its reader does; then all of it is looked at the next time."""
        try:
            self._look()
        except MissingTable:
            self._forget()
            self.newest = None
            raise
        except (TableError, StateError, OSError):
            self._forget()
            raise

    def prove(self) -> None:
        """Look at the whole of it: a commit that was seen may have been taken away since, by a restore."""
        self._top = None
        self.look()

    def _look(self) -> None:
        if self._reader is None:
            self._reader = self._open()
        fresh = self._fresh(self._reader)
        if fresh is None:
            # Who completes meanwhile is met by the next look.
            top = next(iter(self._reader.completed()), None)
            self.newest = self._reader.newest_instant(self._pipeline)
        else:
            top = fresh[0] if fresh else None
            self._take(fresh)
        if top is not None:
            self._top = top.requested, top.completed

    def _take(self, fresh: list[Instant]) -> None:
        ours = [one for one in fresh if one.state is not None and one.state.pipeline == self._pipeline]
        if not ours:
            return
        known = [self.newest] if self.newest is not None else []
        newest = newest_of(state for one in (*known, *ours) if (state := one.state) is not None)
        self.newest = next(one for one in (*known, *ours) if one.state is newest)

    def _fresh(self, reader: TableReader) -> list[Instant] | None:
        """What was completed since the last look, the newest first; None where that is not known."""
        if self._top is None:
            return None
        found: list[Instant] = []
        for one in reader.completed():
            if (one.requested, one.completed) == self._top:
                return found
            if len(found) == FRESH_MAX:
                return None
            found.append(one)
        return None

    def _forget(self) -> None:
        """A table may be made anew at the same place."""
        self._reader = self._top = None

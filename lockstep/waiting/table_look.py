"""What a table that is followed says of a pipeline, kept where it cannot be looked at."""

from __future__ import annotations

from collections.abc import Callable

from table.errors import TableError
from table.followed import FollowedTable
from table.instants import MissingTable
from table.port import TableReader
from table.state import StateError, TableState


class TableLook:
    """`reader`: opens the table, and raises `MissingTable` where there is none yet."""

    def __init__(self, reader: Callable[[], TableReader], *, pipeline: str) -> None:
        self._table = FollowedTable(reader, pipeline=pipeline)
        self.newest: TableState | None = None
        self.problem = "the table has not been looked at yet"
        """Why `newest` is not known, or may be old; empty where it is."""

    def look(self) -> bool:
        """See what is there now; whether it may be another commit than before."""
        return self._seen(self._table.look)

    def prove(self) -> None:
        """The same of the whole of it."""
        self._seen(self._table.prove)

    def _seen(self, look: Callable[[], None]) -> bool:
        before = self.newest
        try:
            look()
            self.newest = self._table.newest.state if self._table.newest is not None else None
            self.problem = "" if self.newest is not None else "the table holds no offsets of the pipeline yet"
        except MissingTable as error:
            self.newest, self.problem = None, str(error)
        except (TableError, StateError, OSError) as error:
            self.problem = str(error)
        return self.newest is not before

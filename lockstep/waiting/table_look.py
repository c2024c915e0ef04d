"""Looks at a table again and again, for a pipeline's newest commit, and reads only what is new each time."""

from __future__ import annotations

from collections.abc import Callable

from table.chain import newest_of
from table.errors import TableError
from table.instants import Instant, MissingTable
from table.port import TableReader
from table.state import StateError, TableState

FRESH_MAX = 20
"""Instants that came between two looks and are read one by one; of more, the table is asked as a whole."""


class TableLook:
    """`reader`: opens the table, and raises `MissingTable` where there is none yet."""

    def __init__(self, reader: Callable[[], TableReader], *, pipeline: str) -> None:
        self._open = reader
        self._pipeline = pipeline
        self._reader: TableReader | None = None
        self._top: tuple[str, str] | None = None
        self.newest: TableState | None = None
        self.problem = "the table has not been looked at yet"
        """Why `newest` is not known, or may be old; empty where it is."""

    def look(self) -> bool:
        """See what is there now; whether it may be another commit than before."""
        before = self.newest
        try:
            self._look()
            self.problem = "" if self.newest is not None else "the table holds no offsets of the pipeline yet"
        except MissingTable as error:
            self._forget()
            self.newest, self.problem = None, str(error)
        except (TableError, StateError, OSError) as error:
            self._forget()
            self.problem = str(error)
        return self.newest is not before

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
            self.newest = self._reader.newest(self._pipeline)
        else:
            top = fresh[0] if fresh else None
            ours = [s for one in fresh if (s := one.state) is not None and s.pipeline == self._pipeline]
            known = [self.newest] if self.newest is not None else []
            self.newest = newest_of([*known, *ours]) if ours else self.newest
        if top is not None:
            self._top = _key(top)

    def _fresh(self, reader: TableReader) -> list[Instant] | None:
        """What was completed since the last look, the newest first; None where that is not known."""
        if self._top is None:
            return None
        found: list[Instant] = []
        for one in reader.completed():
            if _key(one) == self._top:
                return found
            if len(found) == FRESH_MAX:
                return None
            found.append(one)
        return None

    def _forget(self) -> None:
        """A table may be made anew at the same place."""
        self._reader = self._top = None


def _key(instant: Instant) -> tuple[str, str]:
    return instant.requested, instant.completed
